//! Frames on their way through the queue manager: from an interface into queues, by a portal into the queue of another
//! interface, which drains it.

use ringway_qbman::{Command, Consume, Entry, Frame, Manager, Schedule, Settings};

use crate::{cases::PACKETS, counted};

/// Queues that the first interface shares its frames out to.
const FLOWS: u32 = 8;
const OUT: u32 = 100;
const OUT_CHANNEL: u16 = 0x40;

/// With `batch` frames at once, 16 at most, which is what a portal has room for.
pub fn reflector(batch: u32) {
    let manager = Manager::new();
    let init = |queue: u32, change: &dyn Fn(&mut Settings)| {
        manager.init(queue, Schedule::Scheduled, change).expect("it is out of service");
    };
    for queue in 1..=FLOWS {
        init(queue, &|settings| settings.channel = 0x21);
    }
    init(OUT, &|settings| settings.channel = OUT_CHANNEL);
    let mut portal = manager.portal(None).expect("one is free");
    portal.set_pools(2);
    let frames: Vec<_> = (0..batch)
        .map(|number| (1 + number % FLOWS, Frame::contiguous(7, u64::from(number) << 11, 64, 60)))
        .collect();
    let mut entries = [Entry::default(); 16];
    let mut turn = || {
        manager.enqueue_all(&frames, |_, _, _| unreachable!("the queues are in service"));
        assert_eq!(portal.fill(batch as usize), batch as usize);
        while let Some((place, entry)) = portal.peek() {
            let command = Command { queue: OUT, frame: entry.frame, ..Command::default() };
            portal.advance();
            portal.enqueue(command, true).expect("there is room");
            portal.consume(Consume { place, park: false });
        }
        portal.flush();
        assert_eq!(manager.drain(OUT_CHANNEL, &mut entries), batch as usize);
    };
    turn();
    counted(|| (0..PACKETS / batch).for_each(|_| turn()));
}
