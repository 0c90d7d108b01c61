//! Keeping from the stack what an interface receives, where sockets only listen (AF_PACKET).

use std::os::fd::{AsFd, BorrowedFd};

use serde::{Deserialize, Serialize};

use crate::host::{load, set};
use crate::operation::BeginIngressDrop;
use crate::parcel::Fd;
use crate::tc::{Attachment, Hook, Lease, refused};
use crate::{Error, Interface, attached, helper, sys};

const OBJECT: &[u8] = aya::include_bytes_aligned!(concat!(env!("OUT_DIR"), "/ingress_drop.bpf.o"));

/// The program in `ingress_drop.bpf.c`.
pub(crate) const PROGRAM: &str = "ringway_ingress_drop";

/// Keys of `settings` in `ingress_drop.bpf.c`, which has room for [`QUEUES`](crate::QUEUES) queues.
const COUNT: u32 = 0;
const FIRST: u32 = 1;

/// Times that the interface's programs may have changed meanwhile.
const TRIES: usize = 64;

/// The kernel's mark of what programs have sent to the stack, by way of an interface that is
/// dropped: it is let through, without the mark. Sockets that listen leave it out.
pub const INJECTED: u32 = 0x7269_6e67;

/// Takes from the stack what an interface receives by some of its queues. A socket that listens before the
/// traffic control still gets it.
///
/// It stops with the last holder of its link.
#[derive(Serialize, Deserialize)]
pub struct IngressDrop {
    attachment: Attachment,
    settings: Fd,
}

impl IngressDrop {
    /// For an interface of the calling thread's network namespace; no queue is dropped yet. Needs
    /// CAP_BPF and CAP_NET_ADMIN.
    ///
    /// [`Error::Occupied`] when another daemon withholds it already, or a client that outlived its own.
    pub fn begin(interface: &Interface) -> Result<IngressDrop, Error> {
        let lease = Lease::new(interface, Hook::Ingress)?;
        helper::run(BeginIngressDrop { interface: interface.clone(), lease })
    }

    pub(crate) fn begin_here(
        interface: &Interface,
        lease: Option<Lease>,
    ) -> Result<IngressDrop, Error> {
        attached::check_no_ingress_drop(interface)?;
        let (program, settings) = load(interface, OBJECT, PROGRAM)?;
        set(&settings, COUNT, interface.rx_queues);
        let attachment = attach_alone(program.as_fd(), interface, lease)?;
        Ok(IngressDrop { attachment, settings })
    }

    #[cfg(feature = "simulated")]
    pub(crate) fn of_parts(attachment: Attachment, settings: Fd) -> IngressDrop {
        IngressDrop { attachment, settings }
    }

    /// From now on what comes in by `queue` is kept from the stack, or goes to it.
    pub fn set_queue(&mut self, queue: u32, dropped: bool) {
        // A queue beyond those that there is room for is the stack's.
        set(&self.settings, FIRST + queue, u32::from(dropped));
    }

    /// From now on the stack gets everything, even if other processes have the link.
    pub fn end(&self) {
        self.attachment.end();
    }

    /// The link: pass a copy to the process that shall keep the frames from the stack.
    pub fn link_fd(&self) -> BorrowedFd<'_> {
        self.attachment.link_fd()
    }
}

/// Attaches a program that keeps frames from the stack, where there is no other such one.
pub(crate) fn attach_alone(
    program: BorrowedFd<'_>,
    interface: &Interface,
    lease: Option<Lease>,
) -> Result<Attachment, Error> {
    if lease.is_some() {
        attached::check_no_ingress_drop(interface)?;
        return Attachment::new(program, interface, Hook::Ingress, lease);
    }
    for _ in 0..TRIES {
        // Another daemon may have come by now, or come between this look and the next call.
        let revision = attached::check_no_ingress_drop(interface)?;
        let index = interface.index;
        match sys::link_create_tcx_at(program, index, sys::BPF_TCX_INGRESS, revision) {
            Err(e) if e.raw_os_error() == Some(libc::ESTALE) => continue,
            link => return Ok(Attachment::Tcx(Fd(link.map_err(refused(interface))?))),
        }
    }
    Err(refused(interface)(std::io::Error::from_raw_os_error(libc::ESTALE)))
}
