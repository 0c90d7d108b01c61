//! What this process knows of one netmap descriptor.

use std::{
    ffi::c_int,
    os::fd::{OwnedFd, RawFd},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering::*},
    },
};

use ringway::{Ask, Binding, BusyPoll, CloseBarrier};
use ringway_errno::errno;
use ringway_interpose::{End, out_of_the_way};
use ringway_ipc::Answer;
use ringway_proto::{Grant, MirrorGrant, Request};

use crate::{
    stream::Stream,
    sys::{self, Bound, Connected},
};

/// An open `/dev/netmap`, in this process. With its last number, mapping and call the binding goes.
pub struct NetmapFd {
    binding: Bound,
    /// Where the program's CSB entries are, in this process: those that the program writes, and
    /// those that it reads. 0: it has named none.
    csb: [AtomicU64; 2],
    /// How it was opened: one of `O_ACCMODE`.
    access: AtomicI32,
    /// The daemon hung up.
    gone: AtomicBool,
    pub(crate) stream: Stream,
    /// Of waits for a worker; waits for slots have the binding's.
    pub(crate) busy_poll: BusyPoll,
}

impl NetmapFd {
    pub const fn new() -> NetmapFd {
        NetmapFd {
            binding: Bound::new(),
            csb: [const { AtomicU64::new(0) }; 2],
            access: AtomicI32::new(libc::O_RDWR),
            gone: AtomicBool::new(false),
            stream: Stream::new(),
            busy_poll: BusyPoll::new(),
        }
    }

    /// A new life begins, by an `open` with these flags.
    pub fn begin(&self, flags: c_int) {
        self.gone.store(false, Relaxed);
        self.stream.reset();
        self.set_csb([0, 0]);
        self.access.store(flags & libc::O_ACCMODE, Relaxed);
    }

    /// Lets go of everything. The result is to be dropped when the descriptor itself is closed.
    pub fn end(&self, unused: &End) -> Option<CloseBarrier> {
        let connected = self.binding.take(unused)?;
        CloseBarrier::to(&connected.binding)
    }

    /// The binding, if this process knows of one.
    #[inline]
    pub fn bound(&self) -> Option<&Binding> {
        self.binding.get()
    }

    /// The binding; if this process knows of none, the daemon may: another process that
    /// shares the descriptor may have registered it.
    pub fn binding(&self, fd: RawFd) -> Option<&Binding> {
        if let Some(binding) = self.bound() {
            return Some(binding);
        }
        let (grant, fds) = self.ask::<Box<Grant>>(fd, &Request::Describe).ok()?;
        self.bind(NetmapFd::map(fd, &grant, fds).ok()?).ok()
    }

    /// Maps what the daemon granted to descriptor `fd`.
    pub fn map(fd: RawFd, grant: &Grant, fds: Vec<OwnedFd>) -> Result<Connected, i32> {
        let fds = fds.into_iter().map(out_of_the_way).collect();
        let mut binding = Binding::new(grant, fds)
            .map(Binding::fetching_indirect)
            .map_err(|e| explain_as(&e, errno(e.cause())))?;
        let connection = sys::copy_of(fd).map(out_of_the_way);
        let connection = Arc::new(connection.map_err(|e| e.raw_os_error())?);
        if binding.may_ask() || binding.is_served() {
            // Others do without the daemon, and each of their syncs without a look for it.
            binding = binding.noticing(connection.clone());
        }
        if binding.may_ask() {
            binding = binding.asking(Arc::new(Connection(connection.clone())));
        }
        Ok(Connected::new(binding, connection))
    }

    /// From now on this is the descriptor's binding.
    pub fn bind(&self, connected: Connected) -> Result<&Binding, i32> {
        if connected.binding.keeps_traffic() {
            ringway_interpose::close_at_exit();
        }
        // Where another thread was faster, it has had the same answer.
        self.binding.set(connected);
        self.bound().ok_or(libc::ENXIO)
    }

    /// Asks the daemon on this descriptor. The error is the errno.
    pub fn call<T: Answer>(&self, fd: RawFd, request: &Request) -> Result<(T, Vec<OwnedFd>), i32> {
        self.ask(fd, request).map_err(|error| explain(&error))
    }

    /// As [`call`](Self::call), with all that the daemon has to say of an error.
    pub fn ask<T: Answer>(
        &self,
        fd: RawFd,
        request: &Request,
    ) -> Result<(T, Vec<OwnedFd>), ringway_ipc::Error> {
        ringway_ipc::call(sys::of_program(&fd), request)
    }

    /// Notes where the program's CSB entries are.
    pub fn set_csb(&self, addresses: [u64; 2]) {
        self.csb.iter().zip(addresses).for_each(|(at, address)| at.store(address, SeqCst));
    }

    /// Where the program's CSB entries are, if it has named them in this process.
    pub fn csb(&self) -> Option<[u64; 2]> {
        let addresses = [&self.csb[0], &self.csb[1]].map(|at| at.load(SeqCst));
        (!addresses.contains(&0)).then_some(addresses)
    }

    /// How it was opened, as far as this process knows: one of `O_ACCMODE`, which decides nothing
    /// (S-LIFE-1).
    pub fn access(&self) -> c_int {
        self.access.load(Relaxed)
    }

    /// The daemon has hung up: served rings stand still for ever.
    pub fn set_gone(&self) {
        self.gone.store(true, Relaxed);
    }

    pub fn is_gone(&self) -> bool {
        self.gone.load(Relaxed)
    }
}

/// The errno that a program sees; with `RINGWAY_VERBOSE` set, stderr gets the sentence.
pub fn explain(error: &ringway_ipc::Error) -> i32 {
    explain_as(error, errno(error.cause()))
}

/// The same for another error, with the errno that it is.
pub fn explain_as(error: &impl std::fmt::Display, errno: i32) -> i32 {
    ringway::explain(error);
    errno
}

/// A binding's own copy of the connection.
struct Connection(Arc<OwnedFd>);

impl Connection {
    fn call<T: Answer>(&self, request: Request) -> Option<(T, Vec<OwnedFd>)> {
        let (answer, fds) = ringway_ipc::call(&self.0, &request).ok()?;
        Some((answer, fds.into_iter().map(out_of_the_way).collect()))
    }
}

impl Ask for Connection {
    fn mirrors(&self, request: Request) -> Option<(Vec<MirrorGrant>, Vec<OwnedFd>)> {
        self.call(request)
    }

    fn socket(&self, request: Request) -> Option<OwnedFd> {
        self.call::<()>(request)?.1.pop()
    }
}
