//! Messages for callbacks: the slow part of polling.

use std::sync::atomic::Ordering::Relaxed;

use ringway_qbman::{Leftover, Message, Rejection, manager};

use crate::{abi::qm_mr_entry, fman, handles, thread::Qman};

/// `QM_PIRQ_*`.
pub const DQRI: u32 = 0x2_0000;
pub const MRI: u32 = 0x1_0000;
pub const CSCI: u32 = 0x10_0000;
/// Those that there are, with what the ring of enqueue commands has to say.
pub const SOURCES: u32 = DQRI | MRI | CSCI | 0x8_0000 | 0x4_0000;

/// `QMAN_FQ_STATE_*`: changing, not empty, order restoration list.
pub const CHANGING: u64 = 0x8000_0000;
pub const NOT_EMPTY: u64 = 0x4000_0000;
pub const ORDER_LIST: u64 = 0x2000_0000;

/// `enum qman_fq_state`.
pub const OOS: i32 = 0;
pub const PARKED: i32 = 1;
pub const SCHEDULED: i32 = 2;
pub const RETIRED: i32 = 3;

/// `QM_MR_VERB_*`, with the bit that says that it is valid.
const VALID: u8 = 0x80;
const DC_ERN: u8 = 0x20;
const FQRN: u8 = 0x21;
pub const FQRNI: u8 = 0x22;
const FQRL: u8 = 0x23;
const FQPN: u8 = 0x24;

/// `QM_MR_RC_*`.
fn code(why: Rejection) -> u8 {
    match why {
        Rejection::Congested => 0x00,
        Rejection::NoService => 0x20,
        Rejection::Early => 0x30,
        Rejection::Late => 0x40,
        Rejection::TailDrop => 0x50,
        Rejection::OrderRetired => 0x60,
        Rejection::NoOrder => 0x70,
    }
}

/// `QM_MR_FQS_*`.
pub fn fqs(left: Leftover) -> u8 {
    u8::from(left.frames) | u8::from(left.order) << 1
}

/// A message about a queue.
pub fn of_queue(verb: u8, queue: u32, tag: u32, fqs: u8) -> qm_mr_entry {
    qm_mr_entry { verb: verb | VALID, first: fqs, fqid: queue, tag, ..qm_mr_entry::default() }
}

impl Qman {
    /// Hands messages to callbacks: what there was.
    pub fn poll_messages(&self) -> u32 {
        if self.is_polling.replace(true) {
            return 0;
        }
        let mut work = 0;
        // What callbacks cause is for the next call.
        for _ in 0..64 {
            let message = self.portal.borrow().message();
            let Some(message) = message else { break };
            work |= MRI;
            self.tell(message);
        }
        self.portal.borrow_mut().flush();
        if self.tell_groups() {
            work |= CSCI;
        }
        self.is_polling.set(false);
        work
    }

    fn tell(&self, message: Message) {
        match message {
            Message::Rejected { frame, queue, tag, why, order } => {
                let (point, seqnum) = order.unwrap_or((0, 0));
                let [a, b, c, _] = point.to_ne_bytes();
                let fd = frame.into();
                let orp = [a, b, c];
                let entry = qm_mr_entry {
                    verb: VALID,
                    seqnum,
                    rc: code(why),
                    orp,
                    fqid: queue,
                    tag,
                    fd,
                    ..qm_mr_entry::default()
                };
                if let Some(fq) = handles::get(tag)
                    && let Some(ern) = fq.callbacks().ern
                {
                    // SAFETY: the program's function, with its queue, and an entry that stays during the call.
                    unsafe { ern(self.handle(), fq.ptr(), &entry) };
                }
            }
            Message::PortRejected { frame, queue, engine, why } => {
                let Some(handler) = self.dc_ern() else { return fman::discard(&frame) };
                let (verb, first) = (DC_ERN | VALID, engine & 3);
                let fd = frame.into();
                let entry = qm_mr_entry {
                    verb,
                    first,
                    rc: code(why),
                    fqid: queue,
                    fd,
                    ..qm_mr_entry::default()
                };
                // SAFETY: the program's function, with an entry that stays during the call.
                unsafe { handler(self.handle(), &entry) };
            }
            Message::Retired { queue, tag, left } => self.tell_queue(FQRN, queue, tag, fqs(left)),
            Message::OrderEmpty { queue, tag } => self.tell_queue(FQRL, queue, tag, 0),
            Message::Parked { queue, tag } => self.tell_queue(FQPN, queue, tag, 0),
        }
    }

    fn tell_queue(&self, verb: u8, queue: u32, tag: u32, fqs: u8) {
        let Some(fq) = handles::of_queue(tag, queue) else { return };
        match verb {
            FQPN => fq.state().store(PARKED, Relaxed),
            FQRL => drop(fq.flags().fetch_and(!ORDER_LIST, Relaxed)),
            _ => note_retired(fq, fqs),
        }
        if let Some(callback) = fq.callbacks().fqs {
            let entry = of_queue(verb, queue, tag, fqs);
            // SAFETY: the program's function, with its queue, and an entry that stays during the call.
            unsafe { callback(self.handle(), fq.ptr(), &entry) };
        }
    }

    fn has_changed((cgr, was): (crate::argument::Cgr, bool)) -> bool {
        manager().group(cgr.number()).is_ok_and(|group| group.is_congested() != was)
    }

    /// Whether all groups are as they were told last.
    pub fn groups_are_told(&self) -> bool {
        !self.groups.borrow().iter().copied().any(Qman::has_changed)
    }

    fn tell_groups(&self) -> bool {
        let mut any = false;
        for place in 0.. {
            // Callbacks may create groups and delete them.
            let told = self.groups.borrow().get(place).copied();
            let Some(told) = told else { break };
            if !Qman::has_changed(told) {
                continue;
            }
            any = true;
            let (cgr, was) = told;
            if let Some(place) = self.groups.borrow_mut().get_mut(place) {
                place.1 = !was;
            }
            if let Some(callback) = cgr.callback() {
                // SAFETY: the program's function, with its group.
                unsafe { callback(self.handle(), cgr.ptr(), (!was).into()) };
            }
        }
        any
    }

    /// Arms what the program wants to be woken by, or wakes it at once.
    pub fn arm(&self) {
        let (sources, portal) = (self.sources.get(), self.portal.borrow());
        let is_quiet = [
            sources & DQRI == 0 || portal.arm_frames(&self.notifier),
            sources & MRI == 0 || portal.arm_messages(&self.notifier),
            sources & CSCI == 0 || portal.arm_congestion(&self.notifier, || self.groups_are_told()),
        ];
        if is_quiet.contains(&false) {
            self.notifier.raise();
        }
    }
}

/// The program's object of a queue that is retired now.
pub fn note_retired(fq: crate::argument::Fq, fqs: u8) {
    let left = (u64::from(fqs & 1) * NOT_EMPTY) | (u64::from(fqs >> 1 & 1) * ORDER_LIST);
    let flags = fq.flags().load(Relaxed) & !(CHANGING | NOT_EMPTY | ORDER_LIST);
    fq.flags().store(flags | left, Relaxed);
    fq.state().store(RETIRED, Relaxed);
}
