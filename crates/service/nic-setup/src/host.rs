//! The stack behind an interface that programs have: what it sends is redirected, and what programs
//! send to it is injected, without a kernel module.
//!
//! ```text
//!                stack
//!      sends       |     receives
//!   [redirect]--+   |   +-----------> (as if X had received it)
//!      X       |   |   |
//!              v   |   | [inject]
//!              s ======= a            a private pair; at `a`: AF_XDP, the host rings
//! ```
//!
//! Both programs are [attached](crate::tc) for as long as they have holders, so all is as before when those have gone. What
//! programs send through X itself passes neither. With a filter, what does not match goes through X
//! as if there were no redirection.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use aya::maps::Map;
use serde::{Deserialize, Serialize};

use crate::generate::{self, Target};
use crate::operation::{BeginEgressRedirect, LoadEgressFilter, MakeHostEnd};
use crate::pair::{self, OuterEnd, Pair, PairConfig, PrivatePair};
use crate::parcel::Fd;
use crate::tc::{Attachment, Hook, Lease, refused};
use crate::{Error, Filter, Interface, Mark, helper, object, sys};

const OBJECT: &[u8] = aya::include_bytes_aligned!(concat!(env!("OUT_DIR"), "/host.bpf.o"));

/// Keys of `settings` in `host.bpf.c`.
const PAIR: u32 = 0;
const INTERFACE: u32 = 1;
const MARKED: u32 = 2;
const QUEUES: u32 = 3;
const RINGS: u32 = 4;
/// The first of four.
const MARK: u32 = 5;

/// What all that an interface receives must pass, what programs send to the stack included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InjectMark {
    /// Nothing that is in the way.
    None,
    /// Our XDP program in generic mode, which lets pass what has this mark in front.
    GenericXdp(Mark),
    /// A [`IngressDrop`](crate::IngressDrop), and sockets that leave out [`INJECTED`](crate::INJECTED).
    IngressDrop,
}

impl InjectMark {
    /// Its number in `host.bpf.c`.
    fn number(self) -> u32 {
        match self {
            InjectMark::None => 0,
            InjectMark::GenericXdp(_) => 1,
            InjectMark::IngressDrop => 2,
        }
    }
}

/// Takes from an interface what the stack sends through it: to host rings, or else to nowhere, which it counts.
///
/// It stops with [`EgressRedirect::end`], or with the last holder of its link.
#[derive(Serialize, Deserialize)]
pub struct EgressRedirect {
    interface: String,
    attachment: Attachment,
    /// Without a filter.
    plain: Fd,
    settings: Fd,
    dropped: Fd,
    #[serde(skip)]
    filtered: Option<(Target, Arc<Filter>)>,
}

/// A filter of what the stack sends, as a program that is loaded for one [`HostEnd`].
pub struct EgressFilter {
    filter: Arc<Filter>,
    target: Target,
    program: Fd,
}

impl EgressFilter {
    /// What is to be loaded: another thread may call [`EgressFilterLoad::load`], which takes as long as
    /// the verifier does.
    pub fn of(interface: &Interface, to: &HostEnd, filter: &Arc<Filter>) -> EgressFilterLoad {
        EgressFilterLoad {
            interface: interface.name.clone(),
            target: to.target(interface.tx_queues),
            filter: filter.clone(),
        }
    }

    /// The filter that was loaded.
    pub fn filter(&self) -> &Arc<Filter> {
        &self.filter
    }
}

/// See [`EgressFilter::of`].
#[derive(Clone)]
pub struct EgressFilterLoad {
    interface: String,
    target: Target,
    filter: Arc<Filter>,
}

impl EgressFilterLoad {
    /// Loads it. The kernel refuses what is too much for its verifier.
    pub fn load(self) -> Result<EgressFilter, Error> {
        let EgressFilterLoad { interface, target, filter } = self;
        let program = helper::run(LoadEgressFilter { interface, target, filter: filter.clone() })?;
        Ok(EgressFilter { filter, target, program })
    }
}

impl EgressRedirect {
    /// For an interface of the calling thread's network namespace; it drops what the stack sends,
    /// until [`redirect`](Self::redirect). Needs CAP_BPF and CAP_NET_ADMIN.
    pub fn begin(interface: &Interface) -> Result<EgressRedirect, Error> {
        EgressRedirect::begin_with(interface, None)
    }

    /// The same for what a filter takes, which is redirected at once to the host end that it was loaded
    /// for.
    pub fn begin_filtered(
        interface: &Interface,
        filter: &EgressFilter,
    ) -> Result<EgressRedirect, Error> {
        EgressRedirect::begin_with(interface, Some(filter))
    }

    fn begin_with(
        interface: &Interface,
        filter: Option<&EgressFilter>,
    ) -> Result<EgressRedirect, Error> {
        let copy = |loaded: &EgressFilter| loaded.program.as_fd().try_clone_to_owned().map(Fd);
        let program = filter.map(copy).transpose().map_err(refused(interface))?;
        let lease = Lease::new(interface, Hook::Egress)?;
        let interface = interface.clone();
        let begun = helper::run(BeginEgressRedirect { interface, program, lease })?;
        let filtered = filter.map(|loaded| (loaded.target, loaded.filter.clone()));
        Ok(EgressRedirect { filtered, ..begun })
    }

    #[cfg(feature = "simulated")]
    pub(crate) fn of_parts(
        interface: String,
        attachment: Attachment,
        plain: Fd,
        [settings, dropped]: [Fd; 2],
    ) -> EgressRedirect {
        EgressRedirect { interface, attachment, plain, settings, dropped, filtered: None }
    }

    pub(crate) fn begin_here(
        interface: &Interface,
        program: Option<BorrowedFd<'_>>,
        lease: Option<Lease>,
    ) -> Result<EgressRedirect, Error> {
        let maps = ["settings", "dropped"];
        let (plain, [settings, dropped]) = load_with(interface, OBJECT, "ringway_redirect", maps)?;
        set(&settings, QUEUES, interface.tx_queues);
        let attached = program.unwrap_or(plain.as_fd());
        let attachment = Attachment::new(attached, interface, Hook::Egress, lease)?;
        let (interface, plain) = (interface.name.clone(), Fd(plain));
        Ok(EgressRedirect { interface, attachment, plain, settings, dropped, filtered: None })
    }

    /// Frames that the stack has sent while there was no host end to take them.
    pub fn dropped(&self) -> u64 {
        // In a map that is ours: the kernel refuses nothing.
        sys::map_count(self.dropped.as_fd(), 0).unwrap_or(0)
    }

    /// From now on the stack's packets go to `host`, those of them that `filter` takes if there is
    /// one; where there is no host they are dropped. What the stack would send by queue k arrives at
    /// queue k, modulo the queues that there are. After an error all is as before.
    pub fn redirect(
        &mut self,
        host: Option<&HostEnd>,
        filter: Option<&EgressFilter>,
    ) -> Result<(), Error> {
        let wanted = host.and(filter);
        let same = match (wanted, &self.filtered) {
            (Some(EgressFilter { filter, target, .. }), Some((now, present))) => {
                target == now && Arc::ptr_eq(filter, present)
            }
            (wanted, now) => wanted.is_none() && now.is_none(),
        };
        set(&self.settings, RINGS, host.map_or(0, |host| host.queues));
        set(&self.settings, PAIR, host.map_or(0, |host| host.pair.outer().index));
        if !same {
            let program = wanted.map_or(self.plain.as_fd(), |loaded| loaded.program.as_fd());
            self.attachment.update(program).map_err(unfit(&self.interface))?;
            self.filtered = wanted.map(|loaded| (loaded.target, loaded.filter.clone()));
        }
        Ok(())
    }

    /// The link: pass a copy to the process that shall keep the stack away.
    pub fn link_fd(&self) -> BorrowedFd<'_> {
        self.attachment.link_fd()
    }

    /// From now on the stack's packets go through the interface, even if other processes have the link.
    pub fn end(self) {
        self.attachment.end();
    }
}

/// The program's end of an interface's stack: an interface by itself, for AF_XDP sockets that are
/// made with [`HostEnd::inside`]. Dropping it removes it, as soon as no other has the pair.
pub struct HostEnd {
    pair: Arc<PrivatePair>,
    queues: u32,
    inject: Attachment,
    settings: Fd,
}

/// The same in whatever process.
#[derive(Serialize, Deserialize)]
pub(crate) struct HostParts {
    pair: Pair,
    queues: u32,
    inject: Attachment,
    settings: Fd,
}

#[cfg(feature = "simulated")]
impl HostParts {
    pub fn new(pair: Pair, queues: u32, inject: Attachment, settings: Fd) -> HostParts {
        HostParts { pair, queues, inject, settings }
    }
}

impl HostEnd {
    /// For an interface of the calling thread's network namespace; with `queues` queues. Needs
    /// CAP_SYS_ADMIN, CAP_NET_ADMIN and CAP_BPF.
    ///
    /// The namespace gets an interface `rwhost<index>` as long as this exists.
    pub fn new(interface: &Interface, queues: u32) -> Result<HostEnd, Error> {
        HostEnd::with(interface, queues, OuterEnd::Internal)
    }

    /// The same with one queue, and for frames as they are; see [`OuterEnd::Whole`].
    pub(crate) fn whole(interface: &Interface) -> Result<HostEnd, Error> {
        HostEnd::with(interface, 1, OuterEnd::Whole)
    }

    fn with(interface: &Interface, queues: u32, outer: OuterEnd) -> Result<HostEnd, Error> {
        let HostParts { pair, queues, inject, settings } =
            helper::run(MakeHostEnd { interface: interface.clone(), queues, outer })?;
        Ok(HostEnd { pair: Arc::new(pair.into()), queues, inject, settings })
    }

    fn target(&self, queues: u32) -> Target {
        Target { pair: self.pair.outer().index, rings: self.queues, queues }
    }

    /// Says who is in the way of what the interface receives: what is sent to the stack is marked
    /// then, and let through.
    pub fn set_inject_mark(&mut self, mark: InjectMark) {
        if let InjectMark::GenericXdp(mark) = mark {
            for (key, word) in (MARK..).zip(mark.words()) {
                set(&self.settings, key, word);
            }
        }
        set(&self.settings, MARKED, mark.number());
    }

    /// Runs `f` with what sockets for the host rings are bound to, in its namespace.
    pub fn inside<T: Send>(
        &self,
        f: impl FnOnce(&Interface) -> Result<T, Error> + Send,
    ) -> Result<T, Error> {
        self.pair.inside(f)
    }

    /// The pair behind it, for a thread that makes a socket there.
    pub fn pair(&self) -> &Arc<PrivatePair> {
        &self.pair
    }

    /// The link of the program that gives the stack what is sent: pass a copy to the process that shall keep
    /// it.
    pub fn inject_fd(&self) -> BorrowedFd<'_> {
        self.inject.link_fd()
    }
}

/// What [`HostEnd::new`] makes. The caller removes the pair.
pub(crate) fn make_here(
    interface: &Interface,
    queues: u32,
    outer: OuterEnd,
) -> Result<HostParts, Error> {
    let name = format!("{}{}", pair::TO_HOST, interface.index);
    let mtu = interface.mtu;
    let config = PairConfig { name: &name, mtu, mac: None, queues, outer };
    let pair = pair::make_here(&config).map_err(|e| e.made_for(&interface.name))?;
    let inject = || -> Result<_, Error> {
        let (program, settings) = load(interface, OBJECT, "ringway_inject")?;
        set(&settings, INTERFACE, interface.index);
        let lease = Lease::of_pair().map_err(refused(interface))?;
        let attached = Attachment::new(program.as_fd(), pair.outer(), Hook::Ingress, lease)?;
        Ok((attached, settings))
    };
    let (inject, settings) = inject().inspect_err(|_| pair.remove())?;
    Ok(HostParts { pair, queues, inject, settings })
}

/// The program that a filter makes for the egress of an interface.
pub(crate) fn load_filter_here(
    interface: &str,
    target: Target,
    filter: &Filter,
) -> Result<Fd, Error> {
    filter_program(filter, target).map(Fd).map_err(unfit(interface))
}

fn filter_program(filter: &Filter, target: Target) -> io::Result<OwnedFd> {
    let insns = generate::egress_redirect(filter, target).map_err(io::Error::other)?;
    sys::load_classifier(&insns, "ringway_filter")
}

fn unfit(interface: &str) -> impl FnOnce(io::Error) -> Error {
    Error::refused(
        interface,
        "the filter cannot be put in the way of what the stack sends",
        "ask for less at once; `ringway doctor` tells what the kernel lacks",
    )
}

/// Sets a number of a program.
pub(crate) fn set(settings: &Fd, key: u32, value: u32) {
    // The kernel has room for it, in a map that is ours: it refuses nothing.
    let _ = sys::map_update(settings.as_fd(), key, &value.to_ne_bytes());
}

/// The program `name` of an object, and its settings.
pub(crate) fn load(
    interface: &Interface,
    object: &[u8],
    name: &str,
) -> Result<(OwnedFd, Fd), Error> {
    load_with(interface, object, name, ["settings"])
        .map(|(program, [settings])| (program, settings))
}

/// The program `name` of an object, and its arrays `maps`.
fn load_with<const N: usize>(
    interface: &Interface,
    object: &[u8],
    name: &str,
    maps: [&str; N],
) -> Result<(OwnedFd, [Fd; N]), Error> {
    let load = || -> io::Result<_> {
        let mut object = object::load(object)?;
        let program = object::classifier(&mut object, name)?;
        let mut array = |name: &str| match object.take_map(name) {
            Some(Map::Array(array)) => array.fd().as_fd().try_clone_to_owned().map(Fd),
            _ => Err(io::Error::other("no such map in the object")),
        };
        let arrays = maps.iter().map(|name| array(name)).collect::<io::Result<Vec<Fd>>>()?;
        let arrays = arrays.try_into().map_err(|_| io::Error::other("not as many maps"))?;
        Ok((program, arrays))
    };
    load().map_err(refused(interface))
}
