//! Redirecting to a program some of what an interface receives, beside the traffic control: what stays with the
//! stack costs no more than a look at it.
//!
//! ```text
//!   X --> [ingress redirect] --what is not a program's--> stack
//!                |
//!                '--> a ====== s       a private pair; at `s`: an AF_PACKET socket for each queue
//! ```
//!
//! An XDP program on a veth pair, or in generic mode, has each frame converted, those too that it lets pass.
//! This one sees the kernel's own buffers, and hands over what it takes as it is: with the tag beside it, the
//! checksum not computed yet, many frames in one. The driver of the sockets (`ringway-packet`) finishes them.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::generate::{self, Place};
use crate::host::set;
use crate::ingress_drop::attach_alone;
use crate::loader::{Entry, InstalledRules, Installer, Loader, beyond};
use crate::operation::BeginIngressRedirect;
use crate::pair::{OF_RECEIVER, OuterEnd, PairConfig};
use crate::parcel::Fd;
use crate::rule::{QueueRules, same};
use crate::tc::{Attachment, Hook, Lease, refused};
use crate::{Error, Interface, PrivatePair, QUEUES, QueueRule, attached, helper, sys};

/// The name of the programs, in 15 bytes, as the kernel keeps them: that of what drops in their place.
const PROGRAM: &str = "ringway_ingress";

/// Takes from the stack what an interface receives by some of its queues, all or what filters take, and leads it
/// into a private pair, for sockets that are made [inside](IngressRedirect::pair). Kernel 5.10 and newer.
///
/// It stops when it is dropped, or with the last holder of its link. The pair goes with the last of its sockets.
pub struct IngressRedirect {
    attachment: Arc<Attachment>,
    pair: Arc<PrivatePair>,
    loader: Arc<RedirectLoader>,
    rules: QueueRules,
}

/// Makes its programs.
#[derive(Serialize, Deserialize)]
pub(crate) struct RedirectLoader {
    interface: String,
    queues: u32,
    /// For each queue whether its frames are redirected; and behind them, the number of the pair's outer end.
    settings: Fd,
}

/// What it is in the process that has the privileges.
#[derive(Serialize, Deserialize)]
pub(crate) struct RedirectParts {
    attachment: Attachment,
    settings: Fd,
}

#[cfg(feature = "simulated")]
impl RedirectParts {
    pub fn new(attachment: Attachment, settings: Fd) -> RedirectParts {
        RedirectParts { attachment, settings }
    }
}

impl IngressRedirect {
    /// For an interface of the calling thread's network namespace, which gets an interface `rwrecv<index>` as long as
    /// this exists; no queue is redirected yet. `beside_xdp`: a Ringway program in XDP, which gets frames before this
    /// one, is no obstacle; another project's is none anyway. Needs CAP_BPF, CAP_NET_ADMIN and CAP_SYS_ADMIN.
    ///
    /// [`Error::Occupied`] when another daemon keeps frames from the stack already, or a client that outlived its
    /// own.
    pub fn begin(interface: &Interface, beside_xdp: bool) -> Result<IngressRedirect, Error> {
        let lease = Lease::new(interface, Hook::Ingress)?;
        let begin = BeginIngressRedirect { interface: interface.clone(), beside_xdp, lease };
        let RedirectParts { attachment, settings } = helper::run(begin)?;
        let name = format!("{OF_RECEIVER}{}", interface.index);
        let (mtu, outer) = (interface.mtu, OuterEnd::Internal);
        let pair = PrivatePair::new(&PairConfig { name: &name, mtu, mac: None, queues: 1, outer })
            .inspect_err(|_| attachment.end())
            .map_err(|e| e.made_for(&interface.name))?;
        set(&settings, QUEUES, pair.outer().index);
        let (interface, queues) = (interface.name.clone(), interface.rx_queues);
        let loader = Arc::new(RedirectLoader { interface, queues, settings });
        let (attachment, pair) = (Arc::new(attachment), Arc::new(pair));
        Ok(IngressRedirect { attachment, pair, loader, rules: Vec::new() })
    }

    pub(crate) fn begin_here(
        interface: &Interface,
        beside_xdp: bool,
        lease: Option<Lease>,
    ) -> Result<RedirectParts, Error> {
        if !beside_xdp {
            attached::check_no_program_but_foreign(interface)?;
        }
        let make = || -> io::Result<_> {
            let settings = Fd(sys::array(QUEUES + 1)?);
            let program = load(&settings, interface.rx_queues, &[])?;
            Ok((settings, program))
        };
        let (settings, program) = make().map_err(refused(interface))?;
        let attachment = attach_alone(program.as_fd(), interface, lease)?;
        Ok(RedirectParts { attachment, settings })
    }

    /// Where sockets for the queues are made: the number of a frame's queue stays what it was at the interface.
    pub fn pair(&self) -> &Arc<PrivatePair> {
        &self.pair
    }

    /// From now on what comes in by `queue` is redirected, as its rule says, or goes to the stack.
    pub fn set_queue(&mut self, queue: u32, redirected: bool) {
        // A queue beyond those that there is room for is the stack's.
        if queue < QUEUES {
            set(&self.loader.settings, queue, u32::from(redirected));
        }
    }

    /// What installs rules; see [`XdpProgram::installer`](crate::XdpProgram::installer).
    pub fn installer(&self) -> Installer {
        Installer::new(Entry::Tc(self.attachment.clone()), self.loader(), self.rules.clone())
    }

    /// From now on these are its rules, which were installed for it.
    pub fn adopt(&mut self, installed: InstalledRules) {
        self.rules = installed.adopted();
    }

    /// Whether these were installed for it.
    pub fn is_of(&self, installed: &InstalledRules) -> bool {
        installed.are_by(&self.loader())
    }

    /// What loads rules.
    pub fn loader(&self) -> Loader {
        Loader::from(&self.loader)
    }

    /// By queue.
    pub fn rules(&self) -> &[QueueRule] {
        &self.rules
    }

    /// Whether these are the rules that are installed.
    pub fn has_rules(&self, rules: &[QueueRule]) -> bool {
        same(&self.rules, rules)
    }

    /// From now on the stack gets everything, even if other processes have the link.
    pub fn end(&self) {
        self.attachment.end();
    }

    /// The link: pass a copy to the process that shall go on receiving.
    pub fn link_fd(&self) -> BorrowedFd<'_> {
        self.attachment.link_fd()
    }
}

impl Drop for IngressRedirect {
    fn drop(&mut self) {
        // Before the pair goes: what is redirected to nowhere is lost.
        self.end();
    }
}

impl RedirectLoader {
    pub fn interface(&self) -> &str {
        &self.interface
    }

    pub fn too_many_queues(&self) -> Error {
        let error = io::Error::from_raw_os_error(libc::E2BIG);
        beyond(&self.interface, "what this queue receives cannot be redirected")(error)
    }

    /// The program with these rules.
    pub fn program(&self, places: &[Place<'_>]) -> io::Result<OwnedFd> {
        if places.iter().any(|place| place.action.is_some()) {
            return Err(io::ErrorKind::Unsupported.into());
        }
        load(&self.settings, self.queues, places)
    }
}

fn load(settings: &Fd, queues: u32, places: &[Place<'_>]) -> io::Result<OwnedFd> {
    let insns = generate::ingress_redirect(settings.as_fd(), queues, places);
    sys::load_classifier(&insns.map_err(io::Error::other)?, PROGRAM)
}
