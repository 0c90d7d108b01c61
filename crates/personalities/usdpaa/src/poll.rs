//! Frames for callbacks: the fast part of polling.

use std::ffi::c_int;

use ringway_qbman::{Consume, Entry, RING, Status};

use crate::{
    abi::{qm_dqrr_entry, qman_portal},
    argument::Fq,
    handles,
    thread::Qman,
};

/// `QM_DQRR_VERB_FRAME_DEQUEUE`, and the bit that says that an entry is valid.
const VERB: u8 = 0x60 | 0x80;
/// Of what is dequeued without a command of the program's.
const TOKEN: u8 = 0xab;
/// `QMAN_FQ_STATE_NE`, `QMAN_FQ_STATE_VDQCR`.
const NOT_EMPTY: u64 = 0x4000_0000;
pub const VDQCR: u64 = 0x0800_0000;

/// `enum qman_cb_dqrr_result`; consumed is what is none of these.
const PARK: c_int = 1;
const DEFER: c_int = 2;
const STOP: c_int = 3;
const CONSUME_STOP: c_int = 4;

/// As the program sees it.
fn entry(entry: &Entry) -> qm_dqrr_entry {
    let is_volatile = entry.status.has(Status::UNSCHEDULED);
    qm_dqrr_entry {
        verb: VERB,
        stat: entry.status.0,
        seqnum: entry.sequence,
        tok: if is_volatile { 0 } else { TOKEN },
        reserved2: [0; 3],
        fqid: entry.queue,
        context_b: entry.context_b,
        fd: entry.frame.into(),
        reserved4: [0; 32],
    }
}

impl Qman {
    /// What callbacks get as the portal.
    pub fn handle(&self) -> *mut qman_portal {
        (&raw const *self).cast_mut().cast()
    }

    /// Hands up to `limit` entries to callbacks: how many.
    pub fn poll_frames(&self, limit: usize) -> usize {
        if self.is_polling.replace(true) {
            return 0;
        }
        let mut done = 0;
        let (mut stopped, mut looked) = (false, false);
        while done < limit && !stopped {
            let batch = self.portal.borrow_mut().fill((limit - done).min(RING));
            if batch == 0 {
                // What interfaces have received may be for this portal.
                if done == 0 && !looked && crate::fman::poll() {
                    looked = true;
                    continue;
                }
                break;
            }
            for _ in 0..batch {
                let Some(place) = self.hand_out() else { break };
                done += 1;
                stopped = self.call(place);
                if stopped {
                    break;
                }
            }
            self.portal.borrow_mut().flush();
        }
        self.is_polling.set(false);
        done
    }

    /// Puts the next entry where the program sees it: which place that is.
    #[inline]
    fn hand_out(&self) -> Option<usize> {
        let mut portal = self.portal.borrow_mut();
        let (place, taken) = portal.peek()?;
        self.dqrr.0[place].set(entry(taken));
        portal.advance();
        Some(place)
    }

    /// Calls the callback for an entry, and does what it says: whether polling ends.
    #[inline]
    fn call(&self, place: usize) -> bool {
        let slot = &self.dqrr.0[place];
        let (stat, tag) = {
            let entry = slot.get();
            (Status(entry.stat), entry.context_b)
        };
        let is_volatile = stat.has(Status::UNSCHEDULED);
        let fq = if is_volatile { self.volatile.get() } else { handles::get(tag) };
        let result = match fq {
            Some(fq) => {
                if is_volatile && stat.has(Status::EMPTY) {
                    fq.flags().fetch_and(!NOT_EMPTY, std::sync::atomic::Ordering::Relaxed);
                }
                let result = match fq.callbacks().dqrr {
                    // SAFETY: the program's function, with its queue, and an entry that stays until it is consumed.
                    Some(dqrr) => unsafe { dqrr(self.handle(), fq.ptr(), slot.as_ptr()) },
                    None => 0,
                };
                if is_volatile && stat.has(Status::EXPIRED) && result != STOP {
                    self.end_volatile(fq);
                }
                result
            }
            None => 0,
        };
        match result {
            DEFER => return false,
            STOP => {
                self.portal.borrow_mut().retract();
                return true;
            }
            _ => {}
        }
        self.consume(Consume { place, park: result == PARK });
        result == CONSUME_STOP
    }

    #[inline]
    pub fn consume(&self, entry: Consume) {
        self.portal.borrow_mut().consume(entry);
    }

    /// Not for a queue that its callback has destroyed.
    fn end_volatile(&self, fq: Fq) {
        if self.volatile.get() == Some(fq) {
            fq.flags().fetch_and(!VDQCR, std::sync::atomic::Ordering::Relaxed);
            self.volatile.set(None);
        }
    }
}
