//! The buffers of a region, by number.

use std::sync::Arc;

use ringway_abi::NS_MOREFRAG;
use ringway_region::{Region, Slot};

use crate::{port::Port, slots::Slots};

/// The buffers of a port's region, to copy between those that are in no slot, in a slot of this region,
/// or in one of another. It stays valid when the port has closed.
///
/// ```
/// # use ringway_doc as Port;
/// let mut a = Port::options().extra_bufs(1).open("vale0:a")?;
/// let mut b = Port::open("vale0:b")?;
/// let (buffers, extra) = (a.buffers(), a.take_extra_bufs());
/// let frame = ringway::Slot { buf_idx: extra[0], len: 60, ..a.tx(0).slots().get(0) };
/// assert!(buffers.copy_out(frame, &mut b.tx(0).slots(), 0));
/// a.return_extra_bufs(extra);
/// # Ok::<(), ringway::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Buffers {
    region: Arc<Region>,
}

impl Port {
    /// The buffers of the port's region.
    ///
    /// ```
    /// # use ringway_doc as Port;
    /// let mut port = Port::options().extra_bufs(1).open("vale0:a")?;
    /// let (buffers, extra) = (port.buffers(), port.take_extra_bufs());
    /// let copied = buffers.copy(port.tx(0).slots().get(0), extra[0]);
    /// assert!(copied);
    /// port.return_extra_bufs(extra);
    /// # Ok::<(), ringway::Error>(())
    /// ```
    pub fn buffers(&self) -> Buffers {
        Buffers { region: self.binding().region().clone() }
    }
}

impl Buffers {
    /// Copies a slot's data into another buffer of the region. False if there is no such buffer.
    ///
    /// ```
    /// # use ringway_doc as Port;
    /// let mut port = Port::options().extra_bufs(1).open("vale0:a")?;
    /// let (buffers, extra) = (port.buffers(), port.take_extra_bufs());
    /// // What was received is kept, and its slot goes back.
    /// for n in 0..port.rx(0).available() as u32 {
    ///     assert!(buffers.copy(port.rx(0).slots().get(n), extra[0]));
    /// }
    /// port.return_extra_bufs(extra);
    /// # Ok::<(), ringway::Error>(())
    /// ```
    #[inline]
    pub fn copy(&self, slot: Slot, to: u32) -> bool {
        let (Some(from), Some(to)) = (self.region.buf(slot.buf_idx), self.region.buf(to)) else {
            return false;
        };
        to.copy_from(&from, usize::from(slot.len).min(from.size() as usize));
        true
    }

    /// Copies a slot's data into the `n`th slot of a ring, which gets its length and says whether the
    /// packet goes on. False, with length 0, if it does not fit that ring's buffers.
    #[inline]
    pub fn copy_out(&self, slot: Slot, to: &mut Slots<'_>, n: u32) -> bool {
        let old = to.get(n);
        let copied = match (self.region.buf(slot.buf_idx), to.buf(old.buf_idx)) {
            (Some(from), Some(to)) if u32::from(slot.len) <= from.size().min(to.size()) => {
                to.copy_from(&from, slot.len.into());
                true
            }
            _ => false,
        };
        let len = if copied { slot.len } else { 0 };
        to.set(n, Slot { len, flags: slot.flags & NS_MOREFRAG, ..old });
        copied
    }
}
