//! Packets for the program: one by one, where they lie, or to its function.
//!
//! One device is read by its own wait, several by one wait for all. A break ends the wait that is under way.

use std::{cell::Cell, ffi::c_int, sync::atomic::Ordering::Relaxed};

use ringway_live_capture::{End, Reading, poll};
use rustix::{
    event::{PollFlags, Timespec, epoll},
    fd::{AsRawFd, BorrowedFd, OwnedFd},
    io::Errno,
    net::sockopt::socket_error,
};

use crate::{
    abi::*,
    admission::{Place, Reader},
    errno::fails,
    ring::{Ring, lock},
    source::Source,
};

/// What came of a read.
pub enum Got {
    /// A packet: it has the reader's header.
    Packet(Place),
    Nothing,
    /// A break, while it waited.
    Broken,
    Failed,
}

/// Packets that are read in one go to a program's function; then other devices have their turn.
const TURN: u32 = 1024;

impl Ring {
    /// Hands out the next packet, as [`next`](Self::next) does, where there is nothing to do but that. False, and
    /// nothing is handed out, where there may be more to it.
    #[inline]
    pub fn next_plain(&self, hand_out: impl Fn(&pfring_pkthdr, Place)) -> bool {
        if !self.state.is_plain() {
            return false;
        }
        let (Ok(mut reader), [source]) = (self.reader.try_lock(), &self.sources[..]) else {
            return false;
        };
        if reader.kept.is_some() {
            return false;
        }
        loop {
            let mut is_taken = false;
            let is_of_run = source.opened.read_run(&source.signals, |header, data, metadata| {
                is_taken = self.admit(&mut reader, source, header, data, metadata);
                if is_taken {
                    self.count_received(1);
                    hand_out(&reader.header, Place(data));
                }
            });
            if is_taken || !is_of_run {
                return is_taken;
            }
        }
    }

    /// Hands out the next packet, which stays where it is until the next is read. `None` while another read is
    /// under way, which only rings for several threads may have.
    pub fn next(&self, wait: bool, hand_out: impl FnOnce(&mut Reader, Place)) -> Option<Got> {
        self.set_program_receives();
        if self.is_reentrant() {
            return Some(self.next_of_many(wait, hand_out));
        }
        let mut reader = self.reader.take()?;
        let got = self.next_alone(&mut reader, wait);
        if let Got::Packet(place) = got {
            hand_out(&mut reader, place);
        }
        Some(got)
    }

    /// One read, or one wait for all devices after another.
    fn next_alone(&self, reader: &mut Reader, wait: bool) -> Got {
        if let Some(place) = self.take_kept(reader) {
            return Got::Packet(place);
        }
        if let [source] = &self.sources[..] {
            return self.read_until(reader, source, wait, || false);
        }
        loop {
            match self.look(reader) {
                Got::Nothing if wait => {}
                got => return got,
            }
            if let Some(end) = self.wait_for_any() {
                return end;
            }
        }
    }

    /// For several threads: none of them holds the lock while it waits.
    fn next_of_many(&self, wait: bool, hand_out: impl FnOnce(&mut Reader, Place)) -> Got {
        loop {
            {
                let mut reader = lock(&self.reader);
                let got = match self.take_kept(&mut reader) {
                    Some(place) => Got::Packet(place),
                    None => self.look(&mut reader),
                };
                match got {
                    Got::Packet(place) => {
                        hand_out(&mut reader, place);
                        return got;
                    }
                    Got::Nothing if wait => {}
                    got => return got,
                }
            }
            if let Some(end) = self.wait_for_any() {
                return end;
            }
        }
    }

    /// What there is now, of any device. A device whose packets are all unwanted takes no more than
    /// a turn.
    pub fn look(&self, reader: &mut Reader) -> Got {
        let mut may_have_more = true;
        if !self.sources.is_empty() && self.present().next().is_none() {
            return Got::Failed;
        }
        while std::mem::take(&mut may_have_more) {
            for _ in 0..self.sources.len() {
                reader.turn = (reader.turn + 1) % self.sources.len();
                let source = &self.sources[reader.turn];
                if source.is_left_out.load(Relaxed) {
                    continue;
                }
                match self.read_turn(reader, source, || false) {
                    (Got::Nothing, has_ended) => may_have_more |= has_ended,
                    (Got::Failed, _) if self.leave_out(source) => {}
                    (got, _) => return got,
                }
            }
        }
        Got::Nothing
    }

    /// Devices that packets may still come from.
    pub fn present(&self) -> impl Iterator<Item = &Source> {
        self.sources.iter().filter(|source| !source.is_left_out.load(Relaxed))
    }

    /// Goes on without a device that has failed; whether there is another.
    #[cold]
    pub fn leave_out(&self, source: &Source) -> bool {
        if self.sources.len() == 1 {
            return false;
        }
        source.is_left_out.store(true, Relaxed);
        if let Some(Some(set)) = self.set.get() {
            // It may be none of it.
            let _ = epoll::delete(set, source.watch());
        }
        self.present().next().is_some()
    }

    /// Reads one, without a wait, of a turn's packets; and whether the turn has ended before there
    /// was one.
    pub fn read_turn(
        &self,
        reader: &mut Reader,
        source: &Source,
        stops: impl Fn() -> bool,
    ) -> (Got, bool) {
        let left = Cell::new(TURN);
        let got = self.read_until(reader, source, false, || {
            left.set(left.get() - 1);
            left.get() == 0 || stops()
        });
        (got, left.get() == 0)
    }

    /// Reads one, or none if it is to stop looking.
    pub fn read_until(
        &self,
        reader: &mut Reader,
        source: &Source,
        wait: bool,
        stops: impl Fn() -> bool,
    ) -> Got {
        reader.last = None;
        loop {
            let mut found = None;
            let is_of_run = source.opened.read_run(&source.signals, |header, data, metadata| {
                if self.admit(reader, source, header, data, metadata) {
                    found = Some(Got::Packet(Place(data)));
                }
            });
            if !is_of_run {
                found = self.read_one(reader, source, wait);
            }
            if let Some(got) = found {
                return got;
            }
            if stops() {
                return Got::Nothing;
            }
        }
    }

    /// One read of one packet; `None` where the ring does not take that.
    fn read_one(&self, reader: &mut Reader, source: &Source, wait: bool) -> Option<Got> {
        let reading =
            Reading { signals: &source.signals, most: Some(1), nonblocking: !wait, keeps: true };
        let (mut found, mut packets) = (None, 0);
        let result = source.opened.read(reading, |header, data, metadata| {
            packets += 1;
            if self.admit(reader, source, header, data, metadata) {
                found = Some(Place(data));
            }
        });
        match (result, found) {
            (_, Some(place)) => Some(Got::Packet(place)),
            (Err(End::Broken), _) => Some(Got::Broken),
            (Err(End::Failed(_)), _) => Some(Got::Failed),
            (Ok(_), None) if packets == 0 && !wait => Some(Got::Nothing),
            (Ok(_), None) => None,
        }
    }

    /// Waits for as long as one wait takes; how the read ends, if it does.
    fn wait_for_any(&self) -> Option<Got> {
        let duration = self.poll_duration.load(Relaxed);
        match self.poll(duration) {
            Err(Errno::INTR) | Ok(_) => {}
            Err(_) => return Some(Got::Failed),
        }
        // Each thread that waits is to hear of it: the next receive forgets it.
        (self.wake.any() || self.is_closing()).then_some(Got::Broken)
    }

    /// The program is going to watch descriptors.
    pub fn watch(&self) {
        for source in &self.sources {
            source.opened.watch();
        }
    }

    /// Waits for packets, or a break; the number of devices that may have some.
    pub fn poll(&self, milliseconds: u32) -> Result<usize, Errno> {
        let timeout = Timespec {
            tv_sec: i64::from(milliseconds / 1000),
            tv_nsec: i64::from(milliseconds % 1000) * 1_000_000,
        };
        let fds: Vec<_> = self.present().map(Source::watch).collect();
        let count = fds.len();
        let fds = fds.into_iter();
        let fds: Vec<_> = fds.chain(self.wake.wake_fd()).map(|fd| (fd, PollFlags::IN)).collect();
        let seen = poll(&fds, Some(timeout))?;
        self.wake.slept(&seen);
        let devices = || fds.iter().copied().zip(&seen).take(count);
        // One of several: the others go on, and this one tells it once.
        if self.sources.len() > 1 {
            take_error(devices().map(|((fd, _), events)| (fd, *events)));
        }
        Ok(devices().filter(|(_, events)| !events.is_empty()).count())
    }

    /// Gives packets to the program's function until a break, or a failure.
    pub fn each(&self, wait: bool, mut give: impl FnMut(&pfring_pkthdr, *const u8)) -> c_int {
        if let [source] = &self.sources[..]
            && !self.is_reentrant()
        {
            return self.each_of_one(source, wait, give);
        }
        loop {
            let got = self.next(wait, |reader, place| {
                self.count_received(1);
                give(&reader.header, place.0);
            });
            match got {
                Some(Got::Packet(_) | Got::Nothing) => {}
                Some(Got::Broken) => return 0,
                Some(Got::Failed) => return fails(ERROR_GENERIC, libc::ENODEV),
                None => return ERROR_GENERIC,
            }
            if self.wake.any() || self.is_closing() {
                return 0;
            }
        }
    }

    /// Where they lie, in one go.
    fn each_of_one(
        &self,
        source: &Source,
        wait: bool,
        mut give: impl FnMut(&pfring_pkthdr, *const u8),
    ) -> c_int {
        self.set_program_receives();
        let Some(mut reader) = self.reader.take() else { return ERROR_GENERIC };
        let _handing_out = source.opened.handing_out();
        if let Some(place) = reader.kept.take() {
            self.count_received(1);
            give(&reader.header, place.0);
        }
        let reading = Reading {
            signals: &source.signals,
            most: Some(TURN),
            nonblocking: !wait,
            keeps: false,
        };
        loop {
            let result = source.opened.read(reading, |header, data, metadata| {
                if self.admit(&mut reader, source, header, data, metadata) {
                    // First: the function may ask for it.
                    self.count_received(1);
                    give(&reader.header, data);
                }
            });
            match result {
                Ok(_) => {}
                Err(End::Broken) => return 0,
                Err(End::Failed(_)) => return fails(ERROR_GENERIC, libc::ENODEV),
            }
            if self.is_closing() {
                return 0;
            }
        }
    }

    /// The packet that was looked at. The program's descriptor is readable only if there are others.
    fn take_kept(&self, reader: &mut Reader) -> Option<Place> {
        let place = reader.kept.take()?;
        if self.is_selectable.load(Relaxed)
            && let Some(source) = self.sources.get(reader.kept_of)
        {
            source.opened.settle();
        }
        Some(place)
    }

    /// As long as a packet that was looked at is there, the program's descriptor is readable.
    pub fn hold_kept(&self, reader: &Reader) {
        if reader.kept.is_some()
            && self.is_selectable.load(Relaxed)
            && let Some(source) = self.sources.get(reader.kept_of)
        {
            source.opened.hold();
        }
    }

    /// Looks at the next packet, which stays. A ring that is not enabled collects none.
    pub fn peek(&self) -> Option<pfring_pkthdr> {
        if !self.is_enabled() {
            return None;
        }
        self.set_program_receives();
        let mut reader = self.reader.take()?;
        if reader.kept.is_none()
            && let Got::Packet(place) = self.look(&mut reader)
        {
            (reader.kept, reader.kept_of) = (Some(place), reader.turn);
        }
        self.hold_kept(&reader);
        reader.kept.map(|_| reader.header)
    }

    /// Packets that wait, before filters and rules: each takes one slot, unless it is longer than a buffer.
    pub fn queued(&self) -> u32 {
        let next = u32::from(self.peek().is_some());
        if next == 0 {
            return 0;
        }
        self.sources.iter().fold(next, |all, source| all.saturating_add(source.opened.queued()))
    }

    /// Throws away what there is now.
    pub fn discard(&self) {
        let Some(mut reader) = self.reader.take() else { return };
        (reader.kept, reader.last) = (None, None);
        for source in &self.sources {
            let reading =
                Reading { signals: &source.signals, most: None, nonblocking: true, keeps: false };
            // A file is there to be read.
            if !source.is_file() {
                let read = || source.opened.read(reading, |_, _, _| {});
                while source.opened.has_early() && read().is_ok() {}
                let _ = read();
                source.opened.forget_earlier();
            }
            source.forget_lost();
        }
    }

    /// The descriptor that is readable while there are packets; -1 without devices.
    pub fn fd(&self) -> c_int {
        self.is_selectable.store(true, Relaxed);
        match &self.sources[..] {
            [] => -1,
            [source] => source.opened.watch(),
            _ => self.set.get_or_init(|| self.all().ok()).as_ref().map_or(-1, AsRawFd::as_raw_fd),
        }
    }

    /// One for several devices.
    fn all(&self) -> rustix::io::Result<OwnedFd> {
        let set = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        for source in self.present() {
            epoll::add(&set, source.watch(), epoll::EventData::new_u64(0), epoll::EventFlags::IN)?;
        }
        Ok(set)
    }
}

/// Whether a descriptor says that it has failed; what it says is forgotten, as far as it is a socket.
pub fn take_error<'f>(seen: impl Iterator<Item = (BorrowedFd<'f>, PollFlags)>) -> bool {
    let mut has_failed = false;
    for (fd, events) in seen {
        if events.intersects(PollFlags::ERR | PollFlags::HUP) {
            let _ = socket_error(fd);
            has_failed = true;
        }
    }
    has_failed
}

#[cfg(test)]
mod tests;
