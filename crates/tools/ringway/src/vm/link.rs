//! What is between a machine's monitor and its port: vhost-user, or a stream of frames.

use super::limited::Limited;
use crate::output::note;
use ringway::{Port, Sources};
use ringway_abi::Dir;
use ringway_vhost::{Connection, HEADER_LEN, Moved};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::fmt;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Frames of a queue that are sent at once when the link ends, and before a message is obeyed: all that it can hold.
pub const ALL: u32 = 32_768;

/// Why a link has ended.
pub enum End {
    /// The monitor has closed it.
    Closed,
    Because(String),
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            End::Closed => "the monitor has closed it",
            End::Because(reason) => reason,
        })
    }
}

impl From<ringway_vhost::End> for End {
    fn from(end: ringway_vhost::End) -> End {
        match end {
            ringway_vhost::End::Closed => End::Closed,
            end => End::Because(end.to_string()),
        }
    }
}

/// What of the machine's is waited for.
#[derive(Clone, Copy, Debug)]
pub struct Awaited {
    /// Frames that it sends.
    pub frames: bool,
    /// Room for those that it is to receive.
    pub room: bool,
}

/// What a link still had when it ended.
#[derive(Clone, Copy, Debug, Default)]
pub struct Remainder {
    /// What of the machine's frames went to the port then, or found no room.
    pub out: Moved,
    /// Frames for the machine that count as moved, and that its monitor did not take; their bytes.
    pub into: [u64; 2],
}

/// Waits until there may be room at a port again; false: it is not waited for any longer.
pub type AwaitRoom<'w> = &'w mut dyn FnMut(&mut Port) -> bool;

/// A machine's link.
pub trait Link {
    /// Whether its monitor has asked for something, or it has ended.
    fn is_asked(&self) -> bool;

    /// Does the next of what its monitor has asked for.
    fn obey(&mut self) -> Result<(), End>;

    /// Fails where memory that was handed over is not there any more.
    fn check_memory(&self) -> Result<(), End>;

    /// Whether the machine takes frames.
    fn is_up(&self) -> bool;

    /// Whether frames for it are of use now.
    fn can_receive(&self) -> bool {
        self.is_up()
    }

    /// After what time another [`receive`](Self::receive) is of use although there is no more room.
    fn patience(&self) -> Option<Duration> {
        None
    }

    /// What it makes use of, in words.
    fn features(&self) -> Option<String>;

    /// Bytes of the header that each frame has.
    fn header_len(&self) -> usize;

    /// What the machine has spoiled, in words.
    fn fault(&self) -> Option<String>;

    /// A frame that tells others where the machine is, if its monitor has asked for that.
    fn take_announcement(&mut self) -> Option<[u8; 60]>;

    /// Moves up to `budget` frames from the machine to the port.
    fn send(&mut self, port: &mut Port, header_len: usize, budget: u32) -> Moved;

    /// Moves up to `budget` frames from the port to the machine.
    fn receive(&mut self, port: &mut Port, header_len: usize, budget: u32) -> Moved;

    /// Ends the link: sends the frames that the machine has sent by now while the port has room, and counts those left
    /// over. The port's frames have that header; where it is not known, none is sent.
    fn finish(
        &mut self,
        port: &mut Port,
        header_len: Option<usize>,
        await_room: AwaitRoom<'_>,
    ) -> Remainder;

    /// Whether there is what is waited for.
    fn look(&mut self, awaited: Awaited) -> bool;

    /// From now on a source tells of it.
    fn arm(&mut self, awaited: Awaited);

    /// What ends a sleep.
    fn sources<'s>(&'s self, awaited: Awaited, sources: &mut Sources<'s>);

    /// What ends a sleep in which no frames move: what its monitor says, or that it has gone.
    fn message_sources<'s>(&'s self, sources: &mut Sources<'s>);

    /// The connection to its monitor.
    fn socket(&self) -> BorrowedFd<'_>;

    /// The monitor has gone, whether or not all that it has said was read.
    fn has_hung_up(&self) -> bool {
        is_ready(self.socket(), PollFlags::empty())
    }
}

/// A card by vhost-user.
pub struct Vhost {
    connection: Connection,
    kicks: Vec<Arc<OwnedFd>>,
    /// What is told of messages that were refused.
    refusals: Limited,
}

impl Vhost {
    pub fn new(socket: UnixStream) -> io::Result<Vhost> {
        let (connection, kicks) = (Connection::new(socket)?, Vec::new());
        Ok(Vhost { connection, kicks, refusals: Limited::default() })
    }
}

impl Link for Vhost {
    fn is_asked(&self) -> bool {
        is_readable(self.socket())
    }

    fn obey(&mut self) -> Result<(), End> {
        if let Some(problem) = self.connection.handle()? {
            let text = format!("the machine's monitor was refused: {problem}");
            self.refusals.line(&text, Instant::now()).into_iter().for_each(note);
        }
        Ok(())
    }

    fn check_memory(&self) -> Result<(), End> {
        Ok(self.connection.check_memory()?)
    }

    fn is_up(&self) -> bool {
        self.connection.is_up()
    }

    fn can_receive(&self) -> bool {
        self.connection.can_receive()
    }

    fn patience(&self) -> Option<Duration> {
        self.connection.patience()
    }

    fn features(&self) -> Option<String> {
        Some(self.connection.features().to_string())
    }

    fn header_len(&self) -> usize {
        if self.connection.features().has_offloads() { HEADER_LEN } else { 0 }
    }

    fn fault(&self) -> Option<String> {
        self.connection.fault().map(|(queue, fault)| {
            format!(
                "queue {queue} is not used any more, until the machine sets it up anew: {fault}"
            )
        })
    }

    fn take_announcement(&mut self) -> Option<[u8; 60]> {
        self.connection.take_announcement()
    }

    fn send(&mut self, port: &mut Port, header_len: usize, budget: u32) -> Moved {
        let tx = &port.binding().rings(Dir::Tx)[0];
        let moved = self.connection.send((tx.kring().ring(), header_len), budget);
        if moved.frames > 0 || moved.no_room {
            tx.sync();
        }
        moved
    }

    fn receive(&mut self, port: &mut Port, header_len: usize, budget: u32) -> Moved {
        let rx = &port.binding().rings(Dir::Rx)[0];
        rx.sync();
        self.connection.receive((rx.kring().ring(), header_len), budget)
    }

    fn finish(
        &mut self,
        port: &mut Port,
        header_len: Option<usize>,
        await_room: AwaitRoom<'_>,
    ) -> Remainder {
        let mut out = Moved::default();
        if let Some(header_len) = header_len
            && !port.is_shut()
            && self.connection.check_memory().is_ok()
        {
            // Others may have the machine's memory, and go on.
            let most = self.connection.most_unsent();
            while out.frames + out.dropped() < most {
                let moved = self.send(port, header_len, ALL);
                out += moved;
                if moved.no_room && !await_room(port) || !moved.no_room && !moved.is_something() {
                    break;
                }
            }
        }
        out.not_taken += self.connection.unsent();
        match self.refusals.untold() {
            0 => {}
            untold => note(format!("the machine's monitor was refused {untold} times more")),
        }
        Remainder { out, ..Remainder::default() }
    }

    fn look(&mut self, awaited: Awaited) -> bool {
        awaited.frames && self.connection.offers(true)
            || awaited.room && self.connection.offers(false)
    }

    fn arm(&mut self, awaited: Awaited) {
        self.kicks.clear();
        for (to_send, is_awaited) in [(true, awaited.frames), (false, awaited.room)] {
            if is_awaited {
                self.connection.arm(to_send);
                self.kicks.extend(self.connection.kicks(to_send));
            }
        }
    }

    fn sources<'s>(&'s self, _awaited: Awaited, sources: &mut Sources<'s>) {
        self.kicks.iter().for_each(|kick| sources.add(kick.as_fd(), PollFlags::IN));
        self.message_sources(sources);
    }

    fn message_sources<'s>(&'s self, sources: &mut Sources<'s>) {
        sources.add(self.socket(), PollFlags::IN);
    }

    fn socket(&self) -> BorrowedFd<'_> {
        self.connection.socket()
    }
}

/// Whether a descriptor can be read without waiting.
pub fn is_readable(fd: BorrowedFd<'_>) -> bool {
    is_ready(fd, PollFlags::IN)
}

/// Whether a descriptor is ready for that.
pub fn is_ready(fd: BorrowedFd<'_>, events: PollFlags) -> bool {
    let mut fds = [PollFd::from_borrowed_fd(fd, events)];
    poll(&mut fds, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).is_ok_and(|ready| ready > 0)
}
