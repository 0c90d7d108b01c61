//! Copy mode on an interface: a packet socket of the kernel's, which listens beside the stack and sends through it.
//!
//! Nothing is taken away: the stack and other sockets get what it hears. It hears as other packet sockets do: what
//! the interface receives, and what others send through it.

use std::{
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};

use libc::{PACKET_FANOUT, PACKET_QDISC_BYPASS, SOL_PACKET};
use ringway_packet::{
    Geometry, LinkWatch, Listen, Listener, PATIENCE_MS, has_lost_interface, socket, take_drops,
};

use crate::socket_filter::SocketFilter;

/// The kernel's blocks: each holds the longest packet that it makes of what it sends in one piece.
const GEOMETRY: Geometry = Geometry { block_size: 128 << 10, blocks: 32 };

/// What the program has asked of a packet socket.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StackOptions {
    /// What it receives.
    pub filter: Option<SocketFilter>,
    /// The group that shares what comes, and how: the argument of PACKET_FANOUT.
    pub fanout: Option<u32>,
    /// Frames wait in no queueing discipline.
    pub bypass: bool,
    pub ignore_outgoing: bool,
}

/// See the file's description.
pub struct Stack {
    socket: OwnedFd,
    /// Where it receives as well.
    listener: Option<Mutex<Listener>>,
    lost: AtomicU64,
    link: LinkWatch,
}

impl StackOptions {
    /// Whether there is something that only the kernel's sockets can do.
    pub fn selects(&self) -> bool {
        self.filter.is_some() || self.fanout.is_some()
    }
}

impl Stack {
    /// A socket of interface `ifindex`, which hears what comes from now on if it `listens`.
    pub fn open(ifindex: u32, listens: bool, options: &StackOptions) -> Result<Stack, i32> {
        let listen = Listen {
            ifindex,
            geometry: GEOMETRY,
            patience_ms: PATIENCE_MS,
            outgoing: !options.ignore_outgoing,
            promiscuous: false,
        };
        let open = || match listens {
            true => {
                let filter = |socket: BorrowedFd<'_>| match &options.filter {
                    Some(filter) => filter.attach(socket),
                    None => Ok(()),
                };
                listen.begin_with(filter).map(|(socket, listener)| (socket, Some(listener)))
            }
            false => {
                let socket = socket::new()?;
                socket::bind(socket.as_fd(), ifindex, 0)?;
                Ok((socket, None))
            }
        };
        let opened = open().and_then(|(socket, listener)| {
            if options.bypass {
                socket::set_option(socket.as_fd(), SOL_PACKET, PACKET_QDISC_BYPASS, &1)?;
            }
            if let Some(fanout) = options.fanout.filter(|_| listener.is_some()) {
                socket::set_option(
                    socket.as_fd(),
                    SOL_PACKET,
                    PACKET_FANOUT,
                    &fanout.cast_signed(),
                )?;
            }
            let listener = listener.map(Mutex::new);
            Ok(Stack { socket, listener, lost: AtomicU64::new(0), link: LinkWatch::default() })
        });
        opened.map_err(|error| match error.raw_os_error() {
            Some(libc::EPERM) => {
                ringway::explain(
                    &"copy mode shares the interface with the stack, which takes CAP_NET_RAW: give it to the program as an \
                      ambient capability (setpriv --inh-caps=+net_raw --ambient-caps=+net_raw); or set PACKET_ZEROCOPY \
                      before bind, or bind to netmap:INTERFACE, to have the interface's rings",
                );
                libc::EPERM
            }
            Some(errno) => errno,
            None => libc::EIO,
        })
    }

    pub fn socket(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// What it hears, if it listens.
    pub fn with_listener<R>(&self, f: impl FnOnce(&mut Listener) -> R) -> Option<R> {
        let listener = self.listener.as_ref()?;
        Some(f(&mut listener.lock().unwrap_or_else(PoisonError::into_inner)))
    }

    /// Packets that found no room so far.
    pub fn lost(&self) -> u64 {
        let more = take_drops(self.socket()).unwrap_or(0).into();
        self.lost.fetch_add(more, Relaxed) + more
    }

    /// Whether the interface has gone. That it is down is no reason: it may come up again.
    pub fn has_gone(&self) -> bool {
        // Whatever it is but that, the socket goes on.
        let _ = self.link.take_error(self.socket());
        has_lost_interface(self.socket())
    }

    pub fn link(&self) -> &LinkWatch {
        &self.link
    }
}
