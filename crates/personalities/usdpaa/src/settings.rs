//! A frame queue's descriptor, and what the manager makes of it.

use ringway_qbman::{OrderSettings, Settings, TailDrop};

use crate::abi::{qm_fqd, qm_fqd_oac};

/// `QM_INITFQ_WE_*`.
pub const WE_OAC: u16 = 0x100;
const WE_ORPC: u16 = 0x80;
const WE_CGID: u16 = 0x40;
const WE_FQCTRL: u16 = 0x20;
pub const WE_DESTWQ: u16 = 0x10;
const WE_ICSCRED: u16 = 8;
pub const WE_TDTHRESH: u16 = 4;
pub const WE_CONTEXTB: u16 = 2;
pub const WE_CONTEXTA: u16 = 1;

/// `QM_FQCTRL_*`.
pub const CGE: u16 = 0x400;
const TDE: u16 = 0x200;
const ORP: u16 = 0x100;
const HOLDACTIVE: u16 = 2;

/// `QM_OAC_CG`, in the bits of the byte.
const OAC_CG: u8 = 1 << 6;

/// Nothing is later than this.
const ALL_LATE: u16 = 0x2000;

impl qm_fqd {
    /// What was written before.
    pub fn from_bytes(bytes: [u8; 24]) -> qm_fqd {
        let half = |at: usize| u16::from_ne_bytes([bytes[at], bytes[at + 1]]);
        let word = |at: usize| {
            u32::from_ne_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
        };
        qm_fqd {
            orpc: bytes[0],
            cgid: bytes[1],
            fq_ctrl: half(2),
            dest_wq: half(4),
            ics_cred: half(6),
            td: half(8),
            context_b: word(10),
            context_a_hi: word(14),
            context_a_lo: word(18),
            oac_query: qm_fqd_oac { oac: bytes[22], oal: bytes[23] as i8 },
        }
    }

    fn to_bytes(self) -> [u8; 24] {
        let mut bytes = [0; 24];
        let mut at = 0;
        let mut put = |field: &[u8]| {
            bytes[at..at + field.len()].copy_from_slice(field);
            at += field.len();
        };
        put(&[self.orpc, self.cgid]);
        put(&{ self.fq_ctrl }.to_ne_bytes());
        put(&{ self.dest_wq }.to_ne_bytes());
        put(&{ self.ics_cred }.to_ne_bytes());
        put(&{ self.td }.to_ne_bytes());
        put(&{ self.context_b }.to_ne_bytes());
        put(&{ self.context_a_hi }.to_ne_bytes());
        put(&{ self.context_a_lo }.to_ne_bytes());
        put(&[self.oac_query.oac, self.oac_query.oal as u8]);
        bytes
    }

    /// Takes the fields that `we_mask` names; the others of `from` may be anything.
    pub fn write(&mut self, we_mask: u16, from: &qm_fqd) {
        let names = |bit| we_mask & bit != 0;
        if names(WE_OAC) {
            let [oac, oal] = { from.td }.to_ne_bytes();
            self.oac_query = qm_fqd_oac { oac, oal: oal as i8 };
        }
        if names(WE_ORPC) {
            self.orpc = from.orpc;
        }
        if names(WE_CGID) {
            self.cgid = from.cgid;
        }
        if names(WE_FQCTRL) {
            self.fq_ctrl = from.fq_ctrl;
        }
        if names(WE_DESTWQ) {
            self.dest_wq = from.dest_wq;
        }
        if names(WE_ICSCRED) {
            self.ics_cred = from.ics_cred & 0x7fff;
        }
        if names(WE_TDTHRESH) {
            self.td = from.td & 0x1fff;
        }
        if names(WE_CONTEXTB) {
            self.context_b = from.context_b;
        }
        if names(WE_CONTEXTA) {
            self.context_a_hi = from.context_a_hi;
            self.context_a_lo = from.context_a_lo;
        }
    }

    fn order(&self) -> OrderSettings {
        let window = 32 << (self.orpc >> 3 & 7);
        let late = match self.orpc & 3 {
            0 => 0,
            1 => 32,
            2 => window,
            _ => ALL_LATE,
        };
        OrderSettings { window, advances: self.orpc & 4 != 0, late }
    }

    /// Has the manager act by it.
    pub fn apply(self, settings: &mut Settings) {
        let has = |bit| self.fq_ctrl & bit != 0;
        let (exp, mant) = (self.td & 0x1f, u64::from(self.td >> 5 & 0xff));
        let oac = self.oac_query;
        *settings = Settings {
            channel: self.dest_wq >> 3,
            work_queue: (self.dest_wq & 7) as u8,
            hold_active: has(HOLDACTIVE),
            tail_drop: has(TDE).then_some(TailDrop { bytes: mant << exp }),
            group: has(CGE).then_some(self.cgid),
            order: has(ORP).then(|| self.order()),
            overhead: oac.oal,
            overhead_in_queue: false,
            overhead_in_group: oac.oac & OAC_CG != 0,
            context_a: u64::from(self.context_a_hi) << 32 | u64::from(self.context_a_lo),
            context_b: self.context_b,
            attributes: self.to_bytes(),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_named_fields_are_written() {
        let garbage = qm_fqd::from_bytes([0xa5; 24]);
        let mut fqd = qm_fqd::default();
        fqd.write(0, &garbage);
        assert_eq!(fqd.to_bytes(), [0; 24]);
        let from = qm_fqd { dest_wq: 0x21 << 3 | 4, fq_ctrl: HOLDACTIVE | TDE, ..garbage };
        let from = qm_fqd { td: 3 | 0x80 << 5, ..from };
        fqd.write(WE_DESTWQ | WE_FQCTRL | WE_TDTHRESH, &from);
        let mut settings = Settings::default();
        fqd.apply(&mut settings);
        assert_eq!((settings.channel, settings.work_queue), (0x21, 4));
        assert!(settings.hold_active && settings.group.is_none() && settings.order.is_none());
        assert_eq!(settings.tail_drop, Some(TailDrop { bytes: 0x400 }));
        assert_eq!(qm_fqd::from_bytes(settings.attributes).to_bytes(), fqd.to_bytes());
        assert_eq!(qm_fqd::from_bytes([0xa5; 24]).to_bytes(), [0xa5; 24]);
    }

    #[test]
    fn the_window_has_a_code() {
        let order = |orpc| qm_fqd { orpc, ..qm_fqd::default() }.order();
        let expected = OrderSettings { window: 32, advances: false, late: 0 };
        assert_eq!(order(0), expected);
        let expected = OrderSettings { window: 4096, advances: true, late: ALL_LATE };
        assert_eq!(order(0x3f), expected);
        assert_eq!(order(2).late, 32);
    }
}
