//! The XDP program that hands frames to sockets, and the link that keeps it attached.

use std::fmt;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use aya::maps::Map;
use aya::programs::Xdp;
use ringway_region::Timestamps;
use ringway_xdp::XskSocket;
use serde::{Deserialize, Serialize};

use crate::generate::{self, Place};
use crate::loader::{Entry, InstalledRules, Installer, Loader, beyond};
use crate::operation::AttachProgram;
use crate::parcel::Fd;
use crate::rtnl::Message;
use crate::rule::{QueueRules, same};
use crate::tags::Tags;
use crate::timestamps::{Clock, Stamp};
use crate::{
    Error, InjectMark, Interface, Mark, QueueRule, action, attached, helper, in_netns, object,
    privileges::privileges, sys,
};

/// Queues the programs of an interface know; those beyond stay with the stack. The maps in `redirect.bpf.c` and
/// `ingress_drop.bpf.c` have room for as many, and so has the largest interface object of a region, both ways and with
/// host rings.
pub const QUEUES: u32 = 224;

/// Fails if the last of some queues is beyond those that programs know: `queues` is the number behind its own. It is
/// asked before anything is attached.
///
/// # Errors
/// [`Error::Refused`], with the command that gives the interface fewer queues.
pub fn check_queues(interface: &Interface, queues: u32) -> Result<(), Error> {
    let what = "it has more queues than Ringway opens at once";
    let too_many = || beyond(&interface.name, what)(io::Error::from_raw_os_error(libc::E2BIG));
    if queues <= QUEUES { Ok(()) } else { Err(too_many()) }
}

const OBJECT: &[u8] = aya::include_bytes_aligned!(concat!(env!("OUT_DIR"), "/redirect.bpf.o"));

/// Where the program runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum AttachMode {
    /// In the driver, before the kernel has made an skb.
    Native,
    /// In the stack, on an skb: works on every interface.
    Generic,
}

impl fmt::Display for AttachMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            AttachMode::Native => "native",
            AttachMode::Generic => "generic",
        })
    }
}

/// The attached program. It detaches when the last descriptor of its link is closed: this one, and
/// the copies of [`XdpProgram::link_fd`] that other processes hold. Kernel 5.9 and newer.
///
/// ```no_run
/// use ringway_nic_setup::{Interface, XdpProgram};
///
/// let program = XdpProgram::attach(&Interface::by_name("veth0")?)?;
/// println!("attached in {} mode", program.mode());
/// # Ok::<(), ringway_nic_setup::Error>(())
/// ```
#[derive(Serialize, Deserialize)]
pub struct XdpProgram {
    link: Arc<Fd>,
    native_refused: Option<String>,
    loader: Arc<XdpLoader>,
    /// That its map has.
    mark: Option<Mark>,
    /// See [`XdpProgram::take_time_flag`].
    time_flag: Option<Fd>,
    /// None yet where it is attached.
    #[serde(skip)]
    rules: QueueRules,
}

/// Makes the XDP programs of an interface.
#[derive(Serialize, Deserialize)]
pub(crate) struct XdpLoader {
    interface: String,
    mode: AttachMode,
    /// Its programs take frames of several buffers where the driver has them.
    frags: bool,
    maker: Maker,
    /// Where a program that is for one interface alone has to be loaded.
    netns: Option<Fd>,
    /// Those of `redirect.bpf.c`.
    maps: Maps,
}

impl XdpProgram {
    /// Loads the plain program and attaches it, natively where the driver can, else in generic mode.
    ///
    /// Must run in the interface's network namespace. Always by a BPF link, never by netlink: a
    /// netlink attachment outlives its maker and silently replaces another's program.
    ///
    /// Errors: [`Error::Privileges`]; [`Error::Occupied`] when another program is attached in
    /// either mode, or another daemon has the interface in packet mode; [`Error::Attach`] when neither mode works.
    pub fn attach(interface: &Interface) -> Result<XdpProgram, Error> {
        helper::run(AttachProgram {
            interface: interface.clone(),
            modes: vec![AttachMode::Native, AttachMode::Generic],
            what: Made::Plain,
        })
    }

    /// As [`attach`](XdpProgram::attach), in the first of `modes` that works, and with `timestamps` in
    /// front of frames. Those of the hardware there are in native mode alone. There, frames have the
    /// VLAN tags that the driver tells of, but on their way to the stack, which has them anyway.
    pub fn attach_as(
        interface: &Interface,
        modes: &[AttachMode],
        timestamps: Option<Timestamps>,
    ) -> Result<XdpProgram, Error> {
        helper::run(AttachProgram {
            interface: interface.clone(),
            modes: modes.to_vec(),
            what: Made::Timed(timestamps),
        })
    }

    /// As [`attach_as`](XdpProgram::attach_as), and with timestamps of software in front of frames as
    /// long as they are [asked for](XdpProgram::take_time_flag). Kernels before 6.1 have none.
    pub fn attach_for_switch(
        interface: &Interface,
        modes: &[AttachMode],
    ) -> Result<XdpProgram, Error> {
        helper::run(AttachProgram {
            interface: interface.clone(),
            modes: modes.to_vec(),
            what: Made::TimedOnDemand,
        })
    }

    #[cfg(feature = "simulated")]
    pub(crate) fn of_parts(
        interface: &Interface,
        mode: AttachMode,
        link: Fd,
        sockets: Fd,
        marks: Fd,
    ) -> XdpProgram {
        let maps = Maps { sockets, marks };
        let (interface, maker) = (interface.name.clone(), Maker::plain(interface));
        let loader = XdpLoader { interface, mode, frags: true, maker, netns: None, maps };
        XdpProgram {
            link: Arc::new(link),
            native_refused: None,
            loader: Arc::new(loader),
            mark: None,
            time_flag: None,
            rules: Vec::new(),
        }
    }

    pub(crate) fn attach_here(
        interface: &Interface,
        modes: &[AttachMode],
        what: Made,
    ) -> Result<XdpProgram, Error> {
        let mut maker = Maker::plain(interface);
        if what != Made::Plain && modes.contains(&AttachMode::Native) {
            maker.tags = Tags::of(interface);
        }
        if let Made::Timed(Some(asked)) = what {
            maker.clock = Some(Clock::find(interface, asked)?);
        }
        let name = &interface.name;
        privileges().map_err(|missing| Error::Privileges { interface: name.clone(), missing })?;
        attached::check_no_ingress_drop(interface)?;
        let (mut programs, maps) = load(name)?;
        // A kernel that does not let programs ask for tags is as one that knows of none.
        if maker.tags.is_some() && programs.remake(maker, &maps, modes, None).is_err() {
            maker.tags = None;
        }
        if maker.clock.is_some() && maker.tags.is_none() {
            programs.remake(maker, &maps, modes, None).map_err(Error::refused(
                name,
                "the XDP program cannot have timestamps",
                "open it without them; those of hardware take Linux 6.3, those of software 6.1",
            ))?;
        }
        let mut time_flag = None;
        if what == Made::TimedOnDemand
            && let Ok(flag) = sys::shared_word()
            && programs.remake(maker, &maps, modes, Some(flag.as_fd())).is_ok()
        {
            time_flag = Some(Fd(flag));
        }
        let here = || File::open("/proc/thread-self/ns/net").map(OwnedFd::from).map(Fd);
        let netns = maker.is_bound().then(here).transpose().map_err(Error::refused(
            name,
            "its network namespace cannot be kept in mind",
            "raise the limit of open files, and see that /proc is there",
        ))?;
        let mut refused: Vec<(AttachMode, io::Error)> = Vec::new();
        for &mode in modes {
            match programs.attach(interface, mode) {
                Ok((link, frags)) => {
                    let loader =
                        XdpLoader { interface: name.clone(), mode, frags, maker, netns, maps };
                    return Ok(XdpProgram {
                        link: Arc::new(Fd(link)),
                        native_refused: refused
                            .pop()
                            .map(|(_, error)| programs.native_refusal(interface, &error)),
                        loader: Arc::new(loader),
                        mark: None,
                        time_flag,
                        rules: Vec::new(),
                    });
                }
                Err(error) => refused.push((mode, error)),
            }
        }
        Err(refusal(interface, &programs, refused))
    }

    /// Whether it is for this interface alone, and so keeps a descriptor of its network namespace.
    pub fn is_bound(&self) -> bool {
        self.loader.netns.is_some()
    }

    /// The map of one word by which timestamps are asked for while it is not 0; `None` where the program
    /// has none to give. A program with rules has none, either.
    pub fn take_time_flag(&mut self) -> Option<OwnedFd> {
        self.time_flag.take().map(|Fd(flag)| flag)
    }

    /// Which hook was taken.
    pub fn mode(&self) -> AttachMode {
        self.loader.mode
    }

    /// Whether frames that are longer than a buffer come by, for sockets that take them
    /// ([`XskSocket::frags`]).
    pub fn frags(&self) -> bool {
        // In generic mode the stack makes one piece of a frame before the program looks at it.
        self.loader.frags || self.loader.mode == AttachMode::Generic
    }

    /// Why the driver's hook was refused, when the mode is generic because of that.
    pub fn native_refused(&self) -> Option<&str> {
        self.native_refused.as_deref()
    }

    /// The link: pass a copy (SCM_RIGHTS) to the process that shall keep the program attached.
    pub fn link_fd(&self) -> BorrowedFd<'_> {
        self.link.as_fd()
    }

    /// Takes the program off the interface at once, even if other processes have the link.
    pub fn detach(&self) {
        // Refused when the interface has gone.
        let _ = sys::link_detach(self.link.as_fd());
    }

    /// From now on frames that arrive on `queue` go to `socket`, which is bound to that queue. The
    /// entry goes when the socket goes; until a new one is set the queue belongs to the stack.
    pub fn set_queue(&mut self, queue: u32, socket: &XskSocket) -> Result<(), Error> {
        let value = socket.fd.as_raw_fd() as u32;
        sys::map_update(self.loader.maps.sockets.as_fd(), queue, &value.to_ne_bytes())
            .map_err(|e| self.loader.no_place(e))
    }

    /// From now on frames that arrive on `queue` go to the stack.
    pub fn unset_queue(&mut self, queue: u32) {
        // Fails when there is no entry, which is what was asked for.
        let _ = sys::map_delete(self.loader.maps.sockets.as_fd(), queue);
    }

    /// Whether programs send to the stack from now on. Where the XDP program sees that, in generic mode, it
    /// lets pass what has a mark in front: a new one each time that this begins, and none where nothing is
    /// sent.
    pub fn set_injected(&mut self, injected: bool) -> Result<InjectMark, Error> {
        let wanted = injected && self.loader.mode == AttachMode::Generic;
        if wanted != self.mark.is_some() {
            let mark = wanted.then(Mark::new).transpose();
            self.mark = mark.and_then(|mark| self.set_mark(mark)).map_err(Error::refused(
                &self.loader.interface,
                "the XDP program cannot let pass what programs send to the stack",
                "do without host rings",
            ))?;
        }
        Ok(self.inject_mark())
    }

    /// What is to be in front of what programs send to the stack: see [`set_injected`](Self::set_injected).
    pub fn inject_mark(&self) -> InjectMark {
        self.mark.map_or(InjectMark::None, InjectMark::GenericXdp)
    }

    fn set_mark(&mut self, mark: Option<Mark>) -> io::Result<Option<Mark>> {
        let words = mark.map_or([0; 2], Mark::doubles).map(u64::to_ne_bytes);
        sys::map_update(self.loader.maps.marks.as_fd(), 0, words.as_flattened()).map(|()| mark)
    }

    /// From now on `rules` say what becomes of the frames of each queue: what they let pass goes to its
    /// socket. All change at once, between two frames; after an error none has.
    pub fn set_rules(&mut self, rules: QueueRules) -> Result<(), Error> {
        if !same(&self.rules, &rules) {
            let installed = self.installer().install(rules)?;
            self.adopt(installed);
        }
        Ok(())
    }

    /// What does the same on any thread: it takes as long as the verifier does, and waits for whoever changes
    /// interfaces. Until its result is [adopted](Self::adopt) no other is to be at work.
    pub fn installer(&self) -> Installer {
        Installer::new(Entry::Xdp(self.link.clone()), self.loader(), self.rules.clone())
    }

    /// From now on these are its rules, which were installed for it.
    pub fn adopt(&mut self, installed: InstalledRules) {
        self.rules = installed.adopted();
    }

    /// Whether it is the program that these were installed for.
    pub fn is_of(&self, installed: &InstalledRules) -> bool {
        installed.are_by(&self.loader())
    }

    /// What loads rules.
    pub fn loader(&self) -> Loader {
        Loader::from(&self.loader)
    }

    /// By queue; see [`XdpProgram::set_rules`].
    pub fn rules(&self) -> &[QueueRule] {
        &self.rules
    }

    /// Whether these are the rules that are installed.
    pub fn has_rules(&self, rules: &[QueueRule]) -> bool {
        same(&self.rules, rules)
    }
}

impl XdpLoader {
    pub fn interface(&self) -> &str {
        &self.interface
    }

    pub fn too_many_queues(&self) -> Error {
        self.no_place(io::Error::from_raw_os_error(libc::E2BIG))
    }

    fn no_place(&self, cause: io::Error) -> Error {
        beyond(&self.interface, "the XDP program cannot serve this queue")(cause)
    }

    /// The program with these rules.
    pub fn program(&self, places: &[Place<'_>]) -> io::Result<OwnedFd> {
        let make = || self.maker.make(&self.maps, self.mode, self.frags, places, None);
        match &self.netns {
            Some(netns) => match in_netns(netns.as_fd(), make) {
                // A thread that may not go there is there, or gets the kernel's refusal.
                Err(e) if e.raw_os_error() == Some(libc::EPERM) => make(),
                made => made?,
            },
            None => make(),
        }
    }
}

/// What a program does beside handing frames to sockets.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Made {
    /// No more than `redirect.bpf.c`.
    Plain,
    /// Tags, and such timestamps.
    Timed(Option<Timestamps>),
    /// Tags, and timestamps of software while a word is set.
    TimedOnDemand,
}

/// What all programs of an interface have in common that are made for it.
#[derive(Clone, Copy, Serialize, Deserialize)]
struct Maker {
    ifindex: u32,
    clock: Option<Clock>,
    /// In native mode.
    tags: Option<Tags>,
}

impl Maker {
    /// Of programs that do no more than `redirect.bpf.c`.
    fn plain(interface: &Interface) -> Maker {
        Maker { ifindex: interface.index, clock: None, tags: None }
    }

    /// Whether a program calls its driver's functions: then it is for that interface alone.
    fn is_bound(self) -> bool {
        self.tags.is_some() || self.clock.is_some_and(Clock::is_bound)
    }

    /// The program for this mode, and for frames of several buffers in the driver. `time_flag`: frames have
    /// timestamps while that is set.
    fn make(
        self,
        maps: &Maps,
        mode: AttachMode,
        frags: bool,
        places: &[Place<'_>],
        time_flag: Option<BorrowedFd<'_>>,
    ) -> io::Result<OwnedFd> {
        let marks = (mode == AttachMode::Generic).then(|| maps.marks.as_fd());
        let this = Maker { tags: self.tags.filter(|_| mode == AttachMode::Native), ..self };
        let clock = this.clock.or(time_flag.map(|_| Clock::Helper));
        let stamp = clock.map(|clock| Stamp { clock, on_demand: time_flag });
        let insns = generate::program(maps.sockets.as_fd(), marks, stamp, this.tags, places);
        let mut flags = if frags { sys::BPF_F_XDP_HAS_FRAGS } else { 0 };
        let mut ifindex = 0;
        if this.is_bound() {
            flags |= sys::BPF_F_XDP_DEV_BOUND_ONLY;
            ifindex = self.ifindex;
        }
        let insns = insns.map_err(io::Error::other)?;
        match places.iter().any(|place| place.action.is_some()) {
            true => action::load(&insns, "ringway_made", flags, ifindex),
            false => sys::load_xdp(&insns, "ringway_made", flags, ifindex),
        }
    }
}

/// Those of `redirect.bpf.c`, which all programs of an interface have.
#[derive(Serialize, Deserialize)]
struct Maps {
    /// `xsks`.
    sockets: Fd,
    /// `marks`.
    marks: Fd,
}

/// Of `IFLA_XDP` (`linux/if_link.h`).
const IFLA_XDP_FD: u16 = 1;
const IFLA_XDP_FLAGS: u16 = 3;

/// One for each way to attach.
struct Programs {
    /// Native, for frames of several buffers too. `None` where the kernel knows no such programs.
    frags: Option<OwnedFd>,
    native: OwnedFd,
    generic: OwnedFd,
}

impl Programs {
    /// Makes others in their place, as far as these modes need them; after an error none.
    fn remake(
        &mut self,
        maker: Maker,
        maps: &Maps,
        modes: &[AttachMode],
        time_flag: Option<BorrowedFd<'_>>,
    ) -> io::Result<()> {
        let make = |mode, frags| {
            let wanted = modes.contains(&mode);
            wanted.then(|| maker.make(maps, mode, frags, &[], time_flag)).transpose()
        };
        let native = make(AttachMode::Native, false)?;
        let generic = make(AttachMode::Generic, false)?;
        if let Some(native) = native {
            self.frags = make(AttachMode::Native, true).ok().flatten();
            self.native = native;
        }
        if let Some(generic) = generic {
            self.generic = generic;
        }
        Ok(())
    }

    /// The link that attaches the program for this mode, and whether that is for frames of several
    /// buffers in the driver.
    fn attach(&self, interface: &Interface, mode: AttachMode) -> io::Result<(OwnedFd, bool)> {
        let ifindex = interface.index;
        if let Some(why) = interface.unfit_for(mode) {
            return Err(io::Error::other(why));
        }
        let (flags, plain) = match mode {
            AttachMode::Native => (sys::XDP_FLAGS_DRV_MODE, &self.native),
            AttachMode::Generic => (sys::XDP_FLAGS_SKB_MODE, &self.generic),
        };
        let create = |program: &OwnedFd| sys::link_create_xdp(program.as_fd(), ifindex, flags);
        let frags = self.frags.as_ref().filter(|_| mode == AttachMode::Native);
        let attached = match frags.map(create) {
            Some(Ok(link)) => (link, true),
            _ => (create(plain)?, false),
        };
        // With the link the program goes.
        match interface.outgrown().filter(|_| mode == AttachMode::Native) {
            Some(why) => Err(io::Error::other(why)),
            None => Ok(attached),
        }
    }

    /// Why a driver has refused the program. What it says of that in words the kernel tells by netlink
    /// alone: so the program is attached that way once more, and taken off again should it be accepted
    /// now.
    fn native_refusal(&self, interface: &Interface, refused: &io::Error) -> String {
        // The driver was not asked.
        if refused.raw_os_error().is_none() {
            return refused.to_string();
        }
        let request = |program: i32| {
            Message::new(libc::RTM_SETLINK, 0, interface.index).nest(libc::IFLA_XDP, &[], |xdp| {
                let flags = sys::XDP_FLAGS_DRV_MODE | sys::XDP_FLAGS_UPDATE_IF_NOEXIST;
                xdp.number(IFLA_XDP_FD, program as u32).number(IFLA_XDP_FLAGS, flags)
            })
        };
        match request(self.native.as_raw_fd()).carry_out_or_say() {
            Err(Some(words)) => return format!("{refused}: {words}"),
            Err(None) => {}
            Ok(()) => drop(request(-1).carry_out()),
        }
        refused.to_string()
    }
}

/// The programs, and the maps that all have.
fn load(interface: &str) -> Result<(Programs, Maps), Error> {
    let load = || -> Result<_, io::Error> {
        let mut object = object::load(OBJECT)?;
        let mut load_one = |name| -> Result<OwnedFd, io::Error> {
            let program: &mut Xdp = object
                .program_mut(name)
                .ok_or_else(|| io::Error::other("no such program in the object"))?
                .try_into()
                .map_err(io::Error::other)?;
            program.load().map_err(io::Error::other)?;
            program.fd().map_err(io::Error::other)?.as_fd().try_clone_to_owned()
        };
        let programs = Programs {
            frags: load_one("ringway_frags").ok(),
            native: load_one("ringway_xdp")?,
            generic: load_one("ringway_generic")?,
        };
        let mut take = |name| match object.take_map(name) {
            Some(Map::XskMap(map) | Map::Array(map)) => {
                map.fd().as_fd().try_clone_to_owned().map(Fd)
            }
            _ => Err(io::Error::other("no such map in the object")),
        };
        let maps = Maps { sockets: take("xsks")?, marks: take("marks")? };
        Ok((programs, maps))
    };
    let remedy = "the kernel needs CONFIG_BPF_SYSCALL and CONFIG_XDP_SOCKETS: see `ringway doctor`";
    load().map_err(Error::refused(interface, "the XDP program cannot be loaded", remedy))
}

/// EBUSY (same mode) and EEXIST (the other mode) mean that someone was first, if someone is there.
fn refusal(
    interface: &Interface,
    programs: &Programs,
    refused: Vec<(AttachMode, io::Error)>,
) -> Error {
    let name = interface.name.clone();
    let taken = |e: &io::Error| matches!(e.raw_os_error(), Some(libc::EBUSY | libc::EEXIST));
    match attached::attached_to(interface.index) {
        Ok(Some(program)) if refused.iter().any(|(_, e)| taken(e)) => {
            Error::Occupied { interface: name, program }
        }
        // The kernel has said EINVAL.
        Err(cause) if cause.raw_os_error() == Some(libc::ENODEV) => {
            Error::refused(&name, "the XDP program cannot be attached", "")(cause)
        }
        _ => {
            let told = |(mode, error): (AttachMode, io::Error)| match mode {
                AttachMode::Native => (mode, programs.native_refusal(interface, &error)),
                AttachMode::Generic => (mode, error.to_string()),
            };
            Error::Attach { interface: name, refused: refused.into_iter().map(told).collect() }
        }
    }
}
