//! Programs beside the traffic control of an interface: at the ingress and the egress of its stack.
//!
//! Linux 6.6 and newer attach a program by a link of its own (tcx). Older kernels attach it by a filter of the
//! qdisc `clsact`, which belongs to nobody and stays when its maker has gone. So what is attached there is a
//! program of two instructions that calls whatever is in a [slot](Slot):
//!
//! ```text
//!   filter ---> call of the slot ---> our program
//!                     |
//!                  holders: a socket, handed to all who keep the program attached; the slot's descriptor
//!                     |     waits in its queue, so that it lives as long as they do
//!                   guard: the other end of the socket
//! ```
//!
//! When the last holder has gone, whatever ended it, the kernel empties the slot: the filter lets everything
//! pass. The [guard](Guard), which hears of the same by its end of the socket, removes the filter, and the qdisc if
//! that was made for it. Where the guard was killed as well, a filter without an effect stays until the next
//! program is attached there.

mod clsact;
mod guard;

use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::OnceLock;

use rustix::net::{
    AddressFamily, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketFlags, SocketType,
    sendmsg, socketpair,
};
use serde::{Deserialize, Serialize};

use crate::once::ask_once;
use crate::operation::HasTcx;
use crate::parcel::Fd;
use crate::{AttachedProgram, Error, Interface, helper, privileges, sys};

pub(crate) use clsact::{SLOT, Slot};
pub use guard::{Guard, TcFilter, use_guard};

/// Where a program is attached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Hook {
    Ingress,
    Egress,
}

impl Hook {
    fn tcx(self) -> u32 {
        match self {
            Hook::Ingress => sys::BPF_TCX_INGRESS,
            Hook::Egress => sys::BPF_TCX_EGRESS,
        }
    }
}

/// A program that is attached, until the last descriptor of its [link](Attachment::link_fd) is closed.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Attachment {
    Tcx(Fd),
    Clsact { holders: Fd, slot: Slot },
}

/// What a program is attached with where the kernel has no tcx. It is made before the filter: so the guard knows
/// of each filter that there ever is.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Lease {
    name: String,
    /// The two ends of the socket.
    holders: Fd,
    guard: Fd,
}

impl Lease {
    /// For a program at an interface of the calling thread's network namespace; `None`: the kernel has tcx.
    pub fn new(interface: &Interface, hook: Hook) -> Result<Option<Lease>, Error> {
        if has_tcx() {
            return Ok(None);
        }
        let make = || -> io::Result<Lease> {
            let lease = Lease::unguarded()?;
            let filter = TcFilter { ifindex: interface.index, hook, name: lease.name.clone() };
            guard::keep(filter, lease.guard.0.try_clone()?)?;
            Ok(lease)
        };
        make().map(Some).map_err(refused(interface))
    }

    /// The same at an interface that goes with its last holder.
    pub fn of_pair() -> io::Result<Option<Lease>> {
        if has_tcx_here() { Ok(None) } else { Lease::unguarded().map(Some) }
    }

    /// From now on its holders have `fd`.
    fn hold(&self, fd: BorrowedFd<'_>) -> io::Result<()> {
        let fds = [fd];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut beside = SendAncillaryBuffer::new(&mut space);
        beside.push(SendAncillaryMessage::ScmRights(&fds));
        sendmsg(&self.guard, &[IoSlice::new(&[0])], &mut beside, SendFlags::DONTWAIT)?;
        Ok(())
    }

    fn unguarded() -> io::Result<Lease> {
        let flags = SocketFlags::CLOEXEC;
        let (holders, guard) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
        let name = clsact::new_name()?;
        Ok(Lease { name, holders: Fd(holders), guard: Fd(guard) })
    }
}

impl Attachment {
    /// Attaches a program behind others that are there.
    ///
    /// [`Error::Occupied`]: without tcx, another daemon has one there.
    pub fn new(
        program: BorrowedFd<'_>,
        interface: &Interface,
        hook: Hook,
        lease: Option<Lease>,
    ) -> Result<Attachment, Error> {
        let Some(lease) = lease else {
            let link = sys::link_create_tcx(program, interface.index, hook.tcx());
            return link.map(|link| Attachment::Tcx(Fd(link))).map_err(refused(interface));
        };
        let attached = clsact::attach(program, interface.index, hook, &lease);
        match attached.map_err(refused(interface))? {
            Ok(slot) => Ok(Attachment::Clsact { holders: lease.holders, slot }),
            Err(program) => Err(Error::Occupied { interface: interface.name.clone(), program }),
        }
    }

    /// The link: pass a copy to a process that shall keep the program attached.
    pub fn link_fd(&self) -> BorrowedFd<'_> {
        match self {
            Attachment::Tcx(link) => link.as_fd(),
            Attachment::Clsact { holders, .. } => holders.as_fd(),
        }
    }

    /// The same where it is a link of the kernel's, which needs no other process.
    pub fn kernel_link(&self) -> Option<BorrowedFd<'_>> {
        match self {
            Attachment::Tcx(link) => Some(link.as_fd()),
            Attachment::Clsact { .. } => None,
        }
    }

    /// Puts another program in the place of this one, between two frames.
    pub fn update(&self, program: BorrowedFd<'_>) -> io::Result<()> {
        match self {
            Attachment::Tcx(link) => sys::link_update(link.as_fd(), program),
            Attachment::Clsact { slot, .. } => slot.fill(program),
        }
    }

    /// From now on the program sees nothing, even if other processes have the link.
    pub fn end(&self) {
        // Refused when the interface has gone.
        let _ = match self {
            Attachment::Tcx(link) => sys::link_detach(link.as_fd()),
            Attachment::Clsact { slot, .. } => slot.empty(),
        };
    }
}

/// The program that has the only place for one at `hook`, if the kernel has no tcx.
pub(crate) fn occupant(index: u32, hook: Hook) -> io::Result<Option<AttachedProgram>> {
    clsact::occupant(index, hook)
}

/// Whether programs are attached by links, which the kernel ends.
static HAS_TCX: OnceLock<bool> = OnceLock::new();

fn has_tcx() -> bool {
    // A helper that does not answer says so when it is to attach one.
    ask_once(&HAS_TCX, || helper::run(HasTcx)).unwrap_or(true)
}

/// Descriptors that a program which is attached by a filter takes besides its link: its slot, and what its guard is
/// told of it with. 0 where the kernel has tcx, and before the first is attached.
pub fn tc_filter_descriptors() -> usize {
    if HAS_TCX.get() == Some(&false) { 3 } else { 0 }
}

/// The same, asked by a process with the privileges.
pub(crate) fn has_tcx_here() -> bool {
    // The first interface of each namespace is its loopback. EPERM is another matter.
    let asked = sys::tcx_programs(1, sys::BPF_TCX_INGRESS);
    asked.err().is_none_or(|e| e.raw_os_error() != Some(libc::EINVAL))
}

pub(crate) fn refused(interface: &Interface) -> impl FnOnce(io::Error) -> Error {
    let interface = interface.name.clone();
    // What loads objects has no number of its own for a map that the kernel refuses.
    let is_for_privileges =
        |cause: &io::Error| matches!(cause.raw_os_error(), None | Some(libc::EPERM));
    move |cause| match privileges() {
        Err(missing) if is_for_privileges(&cause) => Error::Privileges { interface, missing },
        _ => Error::refused(
            &interface,
            "the host's stack cannot be reached",
            "the kernel needs tcx (6.6 and newer, CONFIG_NET_XGRESS) or clsact (CONFIG_NET_SCH_INGRESS, \
             CONFIG_NET_CLS_BPF); see `ringway doctor`",
        )(cause),
    }
}
