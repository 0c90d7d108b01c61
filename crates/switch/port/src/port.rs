//! The traits of a port.

use ringway_abi::Dir;
use ringway_kring::Offsets;
use ringway_mirror::{Mirrors, Shown};
use rustix::fd::BorrowedFd;

use crate::{
    counters::{Delivered, Drops, Unsent},
    frame::{Burst, Frame},
};

/// Place of a port in its bridge: 0..=253.
pub type PortIndex = u8;

/// The ring that packets for `ring` go to where there are so many: without a division where there is such a ring.
#[inline]
pub fn wrapped(ring: usize, rings: usize) -> usize {
    if ring < rings { ring } else { ring.checked_rem(rings).unwrap_or(0) }
}

/// A port of a bridge, as the bridge's worker uses it.
pub trait Port: PacketIo + Backpressure + Configure + Mirrored + Wake + Send {}

impl<P: PacketIo + Backpressure + Configure + Mirrored + Wake + Send> Port for P {}

/// The packets. "Sent" and "received" are the port's own view: the bridge collects what the port sent
/// and delivers what it is to receive.
pub trait PacketIo {
    /// Rings that the port sends on.
    fn tx_rings(&self) -> usize;

    /// Rings that the port receives on.
    fn rx_rings(&self) -> usize {
        1
    }

    /// Whether a program would see what is delivered.
    fn receives(&self) -> bool;

    /// Whether the kernel sends what is delivered, frame by frame, in a system call of the caller's thread: each frame
    /// then costs much more than its copy, though not before the [`flush`](PacketIo::flush).
    fn sends_by_call(&self) -> bool {
        false
    }

    /// Whether there may be something to [collect](PacketIo::collect): where that is cheaper to tell.
    fn may_have_sent(&self, _ring: usize) -> bool {
        true
    }

    /// Adds to `burst` what the port has sent since the last [`release`](PacketIo::release), up
    /// to the size of a burst. Returns the number of slots looked at, 0 if there is nothing.
    fn collect<'a>(&'a mut self, ring: usize, burst: &mut Burst<'a>, drops: &mut Drops) -> u32;

    /// Something has come that the port is to look for. One that has to ask the kernel looks only after this,
    /// and when it has heard its doorbell.
    fn expect(&mut self) {}

    /// Takes the slots of the last [`collect`](PacketIo::collect) as done with.
    fn release(&mut self, ring: usize);

    /// The port goes: what it has sent by now is the last that is collected. A port that cannot tell
    /// is asked for one more burst or two.
    fn seal(&mut self) {}

    /// Copies packets of `burst` to the port's receive ring `ring`, modulo those it has, in
    /// their order. It counts what it cannot deliver in `drops`.
    fn deliver(
        &mut self,
        ring: usize,
        frames: &[Frame],
        burst: &Burst<'_>,
        drops: &mut Drops,
    ) -> Delivered;

    /// The same for packets that go to no other port: their buffers may change hands, in place of being copied,
    /// where the burst [has them](Burst::slots).
    fn hand_over(
        &mut self,
        ring: usize,
        frames: &[Frame],
        burst: &Burst<'_>,
        drops: &mut Drops,
    ) -> Delivered {
        self.deliver(ring, frames, burst, drops)
    }

    /// What of the deliveries was not received: for a port that learns of it later. It counts what was refused
    /// in `drops`.
    fn unsent(&mut self, _drops: &mut Drops) -> Unsent {
        Unsent::default()
    }

    /// What was delivered and waits for the kernel is not sent any more: the port's link is down, or the port goes.
    fn discard(&mut self) {}

    /// Makes deliveries visible. `idle` says that the bridge has nothing more to do: a receiver that
    /// waits is to be woken, however little there is.
    fn flush(&mut self, idle: bool);

    /// Makes freed slots visible, after all deliveries are: what has left a port has arrived
    /// (S-VALE-5). `idle` as for [`flush`](PacketIo::flush).
    fn complete(&mut self, _idle: bool) {}

    /// Tells the port's program how many packets more were lost on the way to it: found no room, and were too long.
    fn tell_lost(&mut self, _lost: [u64; 2]) {}

    /// Counts what was lost where the port does not look with every packet, such as in the kernel: when
    /// the counters are asked for, and before the port goes.
    fn count_lost(&mut self, _drops: &mut Drops) {}
}

/// Room for packets, and waiting for it. By default there is always room, and nothing waits.
pub trait Backpressure {
    /// Whether the port keeps what is not released: if not, a full receiver loses it, lossless or not.
    fn can_wait(&self) -> bool {
        false
    }

    /// As [`release`](PacketIo::release), for the first `slots` only: the others wait for a lossless
    /// port, and are collected again. Only called if the port [`can_wait`](Backpressure::can_wait).
    fn release_some(&mut self, _ring: usize, _slots: u32) {}

    /// Tells whether what is left of a ring after [`release_some`](Backpressure::release_some) waits
    /// for a receiver.
    fn hold_back(&mut self, _ring: usize, _held: bool) {}

    /// Asks the program that has sent on a ring in this round to yield its processor once. Called before
    /// [`complete`](PacketIo::complete).
    fn ask_to_yield(&mut self, _ring: usize) {}

    /// What receive ring `ring`, one of those that the port has, has room for. By default there is no
    /// telling, and nothing waits for it.
    fn room(&mut self, _ring: usize) -> Room {
        Room { free: u32::MAX, slots: u32::MAX, bytes: u32::MAX }
    }

    /// Asks to hear the doorbell when slots of that ring are freed.
    fn await_room(&self, _ring: usize) {}

    /// Whether there is room for `slots` more. If not, the rest of the burst is lost, too
    /// (S-VALE-10). A port that says so always may lose some of the packets that belong together.
    fn has_room(&mut self, _ring: usize, _slots: u32, _burst: &Burst<'_>) -> bool {
        true
    }
}

/// The way to a port past the port itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KernelWay {
    /// By the interface of this number, which sends.
    Interface(u32),
    /// To the host's stack, which receives by this interface.
    Stack(u32),
}

/// Settings that change while the port runs. By default there is nothing to set.
pub trait Configure {
    /// Has a ring find the data of its slots at offsets, or at the start of the buffers again. Ports
    /// that have no slots have no offsets.
    fn set_offsets(&mut self, _dir: Dir, _ring: usize, _offsets: Option<Offsets>) {}

    /// From now on frames of up to so many bytes, without a VLAN tag, are to be delivered, and no
    /// longer ones: for ports where it is not buffers but an interface that says how long they may be.
    fn set_max_frame(&mut self, _bytes: u32) {}

    /// Whether the port takes bursts without virtio-net headers, and others with headers of 10 bytes that
    /// the kernel can be given: it sends frames whole, and the kernel cuts and sums them.
    fn takes_headers(&self) -> bool {
        false
    }

    /// The way to the port of a program in the kernel that may forward in its place, if there is such a
    /// program where the port receives.
    fn kernel_way(&self) -> Option<KernelWay> {
        None
    }
}

/// Monitors. By default, as where the port has no rings of a program, it has none.
pub trait Mirrored {
    /// From now on, what the port's rings carry is shown to these monitors and to no others.
    fn set_mirrors(&mut self, mirrors: PortMirrors) {
        drop(mirrors);
    }

    /// Shows packets that were sent on a ring to the monitors that get copies: `bytes` are those of all
    /// slots, one behind the other. They are what was forwarded, whatever stands in the ring by now.
    fn show_sent(&mut self, _ring: usize, _bytes: &[u8], _slots: &[Shown]) {}

    /// Learns which receive slots the program has released, where it matters at once. Returns
    /// whether there was anything to learn.
    fn take_back(&mut self) -> bool {
        false
    }
}

/// What the worker sleeps on.
pub trait Wake {
    /// Announces that the worker is about to sleep.
    fn arm(&mut self);

    /// What the worker listens to while it sleeps.
    fn doorbell(&self) -> BorrowedFd<'_>;

    /// Whether the worker hears each notification once, and not for as long as the doorbell is
    /// readable: where clients hold it, which may keep it readable for ever.
    fn is_edge_triggered(&self) -> bool {
        false
    }

    /// Called when the worker has heard the doorbell, before it looks for work.
    fn drain(&self);
}

/// The mirrors of a port's rings, in the order of the rings.
#[derive(Debug, Default)]
pub struct PortMirrors {
    pub tx: Vec<Mirrors>,
    pub rx: Vec<Mirrors>,
}

/// Slots of a receive ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// Those that are free.
    pub free: u32,
    /// Those that would be, if all were.
    pub slots: u32,
    /// Bytes that each holds, at least.
    pub bytes: u32,
}
