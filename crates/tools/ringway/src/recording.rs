//! Received frames on their way into a capture file.

use crate::drops::{Drops, Losses};
use crate::fragments::Whole;
use ringway::{Port, PortKind, tai_ahead};
use ringway_file::{Burst, Direction, Record};
use std::path::Path;

/// What is known of a port's frames besides their bytes.
pub struct Origin {
    /// The port's name.
    pub name: String,
    /// The port's number in the file.
    pub interface: u32,
    is_monitor: bool,
    /// What the times that frames come with are ahead of those since 1970; `None` where they come
    /// with none, or with those of a clock that the user has chosen.
    ahead: Option<u64>,
}

/// What was not written to a file.
pub fn losses(file: &Path, not_written: u64) -> Losses {
    let drops = Drops { not_written, ..Drops::default() };
    Losses { port: file.display().to_string(), drops, left: 0 }
}

impl Origin {
    pub fn new(interface: u32, port: &Port) -> Origin {
        let is_monitor = port.kind() == PortKind::Monitor;
        let ahead = is_monitor.then(|| tai_ahead().unsigned_abs() * 1_000_000_000);
        Origin { name: port.name().to_owned(), interface, is_monitor, ahead }
    }

    /// Of an interface that is listened to.
    pub fn listening(interface: u32, name: &str) -> Origin {
        Origin { name: name.into(), interface, is_monitor: true, ahead: None }
    }

    /// Records a frame that was copied out. What there is no room for is counted by the recorder.
    pub fn record_copy(
        &self,
        burst: &mut Burst<'_>,
        bytes: &[u8],
        length: u32,
        time: u64,
        was_sent: bool,
    ) {
        let direction = if was_sent { Direction::Sent } else { Direction::Received };
        let (interface, captured) = (self.interface, bytes.len() as u32);
        let record = Record { interface, direction, time, length: captured, wire_length: length };
        burst.record(&record, |room| {
            let captured = room.len().min(bytes.len());
            room[..captured].copy_from_slice(&bytes[..captured]);
        });
    }

    /// When a frame came: now, but for those of files and monitors.
    pub fn time(&self, frame: &Whole<'_>, now: u64) -> u64 {
        let told = |ahead| frame.time()?.checked_sub(ahead);
        let recorded = frame.recorded().map(|recorded| recorded.time);
        recorded.or_else(|| self.ahead.and_then(told)).unwrap_or(now)
    }

    /// Records a frame. What there is no room for is counted by the recorder.
    pub fn record(&self, burst: &mut Burst<'_>, frame: &Whole<'_>, now: u64) {
        let direction = match self.is_monitor && frame.was_sent() {
            true => Direction::Sent,
            false => Direction::Received,
        };
        let (time, length) = (self.time(frame, now), frame.len() as u32);
        let (interface, wire_length) = (self.interface, frame.wire_length() as u32);
        let record = Record { interface, direction, time, length, wire_length };
        burst.record(&record, |room| frame.copy_to(room));
    }
}
