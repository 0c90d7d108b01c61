//! A machine and its monitor that do anything: bytes in the rings and tables of the card's queues, messages of any
//! kind, and memory that goes, while frames move both ways. What a port gets are frames.
#![no_main]

use std::{
    cell::RefCell,
    io::Write,
    sync::{Arc, OnceLock},
};

use libfuzzer_sys::fuzz_target;
use ringway_abi::NS_MOREFRAG;
use ringway_region::{Layout, LostPages, Region, RingView, Sizes};
use ringway_vhost::{
    Connection,
    guest::{Guest, MEMORY, Setup},
};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

const SLOTS: u32 = 64;

/// Made once: it is the fuzzer's memory, and not the guest's.
struct Port {
    tx: RingView,
    rx: RingView,
}

thread_local! {
    static PORT: RefCell<Port> = RefCell::new(Port::new());
}

impl Port {
    fn new() -> Port {
        let sizes = Sizes::private([1, 1], [SLOTS; 2], 0, 0);
        let region = Arc::new(Region::create(1, Layout::new(&sizes, 0).unwrap()).unwrap());
        let [tx, rx] = [0, 1].map(|object| RingView::new(&region, object, SLOTS).unwrap());
        Port { tx, rx }
    }

    fn reset(&self) {
        for (ring, first) in [(&self.tx, 2), (&self.rx, 2 + SLOTS)] {
            for i in 0..SLOTS {
                let more = if i % 3 == 0 { NS_MOREFRAG } else { 0 };
                ring.set_slot(i, first + i, 600, more);
            }
            ring.set_head(0);
            ring.set_cur(0);
            ring.set_tail(SLOTS - 1);
        }
    }

    /// Frees what was sent; each frame has an end, and is no longer than a frame may be.
    fn check(&self) {
        let mut at = self.tx.next(self.tx.tail());
        let mut len = 0;
        while at != self.tx.head() {
            let slot = self.tx.slot(at);
            len += usize::from(slot.len);
            assert!(len <= 12 + ringway_vnet::MAX_FRAME);
            if slot.flags & NS_MOREFRAG == 0 {
                len = 0;
            }
            at = self.tx.next(at);
        }
        assert_eq!(len, 0, "a frame without an end");
        self.tx.set_tail(self.tx.prev(at));
    }
}

fn is_readable(connection: &Connection) -> bool {
    let mut fds = [PollFd::from_borrowed_fd(connection.socket(), PollFlags::IN)];
    poll(&mut fds, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).is_ok_and(|ready| ready > 0)
}

/// The next bytes of the input.
struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    fn take(&mut self, count: usize) -> &'a [u8] {
        let (taken, left) = self.0.split_at(count.min(self.0.len()));
        self.0 = left;
        taken
    }

    fn byte(&mut self) -> u8 {
        self.take(1).first().copied().unwrap_or(0)
    }

    fn half(&mut self) -> u16 {
        u16::from_le_bytes([self.byte(), self.byte()])
    }
}

fuzz_target!(|data: &[u8]| {
    static WATCH: OnceLock<LostPages> = OnceLock::new();
    WATCH.get_or_init(|| LostPages::watch().unwrap());
    let mut input = Input(data);
    let bits = input.byte();
    let has = |bit: u32| bits >> bit & 1 != 0;
    let setup = Setup {
        packed: has(0),
        events: has(1),
        mergeable: has(2),
        indirect: has(3),
        features: if has(4) { 0x1983 } else { 0 },
        pairs: if has(5) { 2 } else { 1 },
        ..Setup::default()
    };
    let (mut guest, socket) = Guest::start(setup).unwrap();
    let mut connection = Connection::new(socket).unwrap();
    while is_readable(&connection) {
        connection.handle().unwrap();
    }
    PORT.with_borrow(|port| {
        port.reset();
        let header_len = if has(6) { 12 } else { 0 };
        for _ in 0..64 {
            if input.0.is_empty() {
                break;
            }
            match input.byte() % 8 {
                0 => {
                    let (at, len) = guest.rings(usize::from(input.byte() % 2));
                    let place = u64::from(input.half()) % (len - 16);
                    let count = usize::from(input.byte() % 17);
                    guest.write(at + place, input.take(count));
                }
                1 => {
                    // Near the index, where it matters most.
                    let (at, _) = guest.rings(usize::from(input.byte() % 2));
                    guest.write(at + 16 * 64 + u64::from(input.byte() % 8), input.take(2));
                }
                2 => {
                    let len = usize::from(input.half() % 5000) + 1;
                    guest.send(0, &vec![input.byte(); len], usize::from(input.byte()) + 40);
                }
                3 => {
                    guest.offer_buffer(0, u32::from(input.half()) % 2048);
                }
                4 => {
                    let (number, len) =
                        (u32::from(input.byte() % 44), usize::from(input.byte() % 49));
                    let payload = input.take(len);
                    let header = [number, 1, payload.len() as u32].map(u32::to_ne_bytes).concat();
                    let sent = [&header, payload].concat();
                    if (&*guest.socket()).write_all(&sent).is_err() {
                        return;
                    }
                    while is_readable(&connection) {
                        if connection.handle().is_err() {
                            return;
                        }
                    }
                }
                5 if has(7) => {
                    let _ = guest.resize(MEMORY / 256 * u64::from(input.byte()));
                }
                6 => {
                    connection.receive((&port.rx, header_len), 16);
                    port.rx.set_tail(port.rx.prev(port.rx.head()));
                }
                _ => {
                    connection.send((&port.tx, header_len), 16);
                    port.check();
                }
            }
        }
    });
});
