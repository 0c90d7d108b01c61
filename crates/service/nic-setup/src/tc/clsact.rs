//! The qdisc `clsact` and its filters, by rtnetlink.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::thread;
use std::time::{Duration, Instant};

use ringway_filter::{Assembler, Operand, reg::*};
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use super::{Hook, Lease};
use crate::attached::{AttachedProgram, holder_of_map};
use crate::netns::netns_here;
use crate::parcel::Fd;
use crate::rtnl::{Message, TcHeader, find};
use crate::sys;

/// `struct tcmsg`: where the qdisc is, and what its number is.
const PARENT: u32 = 0xffff_fff1;
const HANDLE: u32 = 0xffff_0000;
/// Where its filters are.
const INGRESS: u32 = 0xffff_fff2;
const EGRESS: u32 = 0xffff_fff3;
/// The place of ours among them. Only one of them has it, so the kernel lets one of several who come at the same
/// moment have it.
const PRIORITY: u32 = 7;
const FILTER: u32 = 1;
const ALL_PROTOCOLS: u32 = (libc::ETH_P_ALL as u16).to_be() as u32;
/// Attributes.
const TCA_KIND: u16 = 1;
const TCA_OPTIONS: u16 = 2;
const TCA_BPF_FD: u16 = 6;
const TCA_BPF_NAME: u16 = 7;
const TCA_BPF_FLAGS: u16 = 8;
const TCA_BPF_ID: u16 = 11;
/// The program's result is what is done with the frame.
const DIRECT_ACTION: u32 = 1;

/// Begins the names of filters of ours, and ends those of filters with which the qdisc goes.
const OURS: &str = "ringway-";
const MADE_QDISC: char = '+';

/// The kernel's helper.
const TAIL_CALL: u32 = 12;
/// The next filter decides.
const UNSPEC: u32 = -1i32 as u32;

/// Name of the program that a filter runs.
pub(crate) const SLOT: &str = "ringway_slot";

/// What a filter calls; empty, it lets everything pass.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Slot(Fd);

impl Slot {
    fn new() -> io::Result<Slot> {
        sys::program_array().map(|map| Slot(Fd(map)))
    }

    pub fn fill(&self, program: BorrowedFd<'_>) -> io::Result<()> {
        sys::map_update(self.0.as_fd(), 0, &program.as_raw_fd().to_ne_bytes())
    }

    pub fn empty(&self) -> io::Result<()> {
        sys::map_delete(self.0.as_fd(), 0)
    }

    /// The program that a filter runs.
    fn call(&self) -> io::Result<OwnedFd> {
        let mut asm = Assembler::new();
        asm.set_map(R2, self.0.0.as_raw_fd());
        asm.set(R3, Operand::Constant(0));
        asm.call(TAIL_CALL);
        asm.set(R0, Operand::Constant(UNSPEC));
        asm.exit();
        let insns = asm.finish().map_err(io::Error::other)?;
        sys::load_classifier(&insns, SLOT)
    }
}

/// The name of a filter to be.
pub(super) fn new_name() -> io::Result<String> {
    let random = u128::from_ne_bytes(sys::random()?);
    Ok(format!("{OURS}{random:032x}"))
}

/// A filter as the kernel lists it.
struct Listed {
    name: String,
    /// Of its program.
    id: Option<u32>,
    /// It is at [`PRIORITY`], and has the number [`FILTER`].
    at_our_place: bool,
}

impl Listed {
    fn is_ours(&self) -> bool {
        self.at_our_place && self.name.starts_with(OURS)
    }

    /// The program that it runs; `None`: its slot is empty. A slot that cannot be read counts as occupied.
    fn occupant(&self) -> Option<AttachedProgram> {
        let id = self.id.unwrap_or_default();
        let map = match sys::maps_of_program(id) {
            // The filter has gone meanwhile.
            Err(e) if e.raw_os_error() == Some(libc::ENOENT) => return None,
            maps => maps.ok().and_then(|maps| maps.first().copied()),
        };
        if map.is_some_and(|map| sys::is_empty_slot(map).unwrap_or(false)) {
            return None;
        }
        let holder = map.and_then(holder_of_map);
        Some(AttachedProgram { mode: None, id, name: Some(SLOT.into()), holder })
    }
}

fn header(index: u32, parent: u32) -> TcHeader {
    TcHeader { index, parent, ..TcHeader::default() }
}

fn place(index: u32, hook: Hook) -> TcHeader {
    let parent = match hook {
        Hook::Ingress => INGRESS,
        Hook::Egress => EGRESS,
    };
    TcHeader { handle: FILTER, info: PRIORITY << 16 | ALL_PROTOCOLS, ..header(index, parent) }
}

/// All filters at a hook of an interface: none where there is no qdisc.
fn list(index: u32, hook: Hook) -> io::Result<Vec<Listed>> {
    let place = place(index, hook);
    let question = Message::tc(libc::RTM_GETTFILTER, 0, header(index, place.parent));
    let answers = question.dump()?;
    let read = |body: &Vec<u8>| {
        let header = TcHeader::read(body)?;
        let attributes = body.get(TcHeader::LEN..)?;
        let options = find(attributes, TCA_OPTIONS).unwrap_or_default();
        let text = |bytes: &[u8]| {
            String::from_utf8_lossy(bytes.strip_suffix(&[0]).unwrap_or(bytes)).into_owned()
        };
        let number = |bytes: &[u8]| Some(u32::from_ne_bytes(bytes.try_into().ok()?));
        // A kind of filter is listed before its filters, with the number 0.
        (header.handle != 0 && header.index == index).then(|| Listed {
            name: find(options, TCA_BPF_NAME).map(text).unwrap_or_default(),
            id: find(options, TCA_BPF_ID).and_then(number),
            at_our_place: header.handle == FILTER && header.info >> 16 == PRIORITY,
        })
    };
    Ok(answers.iter().filter_map(read).collect())
}

fn ours(index: u32, hook: Hook) -> io::Result<Option<Listed>> {
    Ok(list(index, hook)?.into_iter().find(Listed::is_ours))
}

/// The program that occupies the place at a hook.
pub(super) fn occupant(index: u32, hook: Hook) -> io::Result<Option<AttachedProgram>> {
    Ok(ours(index, hook)?.and_then(|filter| filter.occupant()))
}

/// Attaches a program. The inner error is the program that occupies the place.
pub(super) fn attach(
    program: BorrowedFd<'_>,
    index: u32,
    hook: Hook,
    lease: &Lease,
) -> io::Result<Result<Slot, AttachedProgram>> {
    let slot = Slot::new()?;
    slot.fill(program)?;
    let call = slot.call()?;
    let _lock = lock()?;
    let mut name = lease.name.clone();
    if make_qdisc(index)? || goes_with_ours(index)? {
        name.push(MADE_QDISC);
    }
    if let Some(present) = ours(index, hook)? {
        match present.occupant() {
            Some(occupant) => return Ok(Err(occupant)),
            // Its guard was killed, or has not come to it yet.
            None => remove_filter(index, hook)?,
        }
    }
    // The lease holds the slot before anything calls it.
    lease.hold(slot.0.as_fd())?;
    let flags = libc::NLM_F_CREATE | libc::NLM_F_EXCL;
    Message::tc(libc::RTM_NEWTFILTER, flags, place(index, hook))
        .text(TCA_KIND, "bpf")
        .nest(TCA_OPTIONS, &[], |options| {
            options
                .number(TCA_BPF_FD, call.as_raw_fd() as u32)
                .text(TCA_BPF_NAME, &name)
                .number(TCA_BPF_FLAGS, DIRECT_ACTION)
        })
        .carry_out()?;
    Ok(Ok(slot))
}

/// Whether the qdisc goes with the last filter of ours.
fn goes_with_ours(index: u32) -> io::Result<bool> {
    let mut all = list(index, Hook::Ingress)?;
    all.extend(list(index, Hook::Egress)?);
    Ok(all.iter().any(|filter| filter.is_ours() && filter.name.ends_with(MADE_QDISC)))
}

/// Whether it was missing.
fn make_qdisc(index: u32) -> io::Result<bool> {
    let flags = libc::NLM_F_CREATE | libc::NLM_F_EXCL;
    let header = TcHeader { handle: HANDLE, ..header(index, PARENT) };
    let made = Message::tc(libc::RTM_NEWQDISC, flags, header).text(TCA_KIND, "clsact").carry_out();
    match made {
        Ok(()) => Ok(true),
        Err(e) if e.raw_os_error() == Some(libc::EEXIST) => has_clsact(index).map(|()| false),
        Err(e) => Err(e),
    }
}

/// Fails if the qdisc there is the other one of that place, which has no egress.
fn has_clsact(index: u32) -> io::Result<()> {
    let answers = Message::tc(libc::RTM_GETQDISC, 0, header(index, 0)).dump()?;
    let is_other = |body: &Vec<u8>| {
        let header = TcHeader::read(body)?;
        let kind = find(body.get(TcHeader::LEN..)?, TCA_KIND)?;
        Some(header.index == index && header.parent == PARENT && kind != b"clsact\0")
    };
    match answers.iter().any(|body| is_other(body).unwrap_or(false)) {
        false => Ok(()),
        true => Err(io::Error::other(
            "it has a qdisc `ingress` in the place of `clsact`, which has ingress and egress: \
             `tc qdisc del dev NAME ingress`",
        )),
    }
}

fn remove_filter(index: u32, hook: Hook) -> io::Result<()> {
    let place = place(index, hook);
    Message::tc(libc::RTM_DELTFILTER, 0, place).text(TCA_KIND, "bpf").carry_out()
}

/// Removes the filter of that name, and the qdisc, if that was made for it and nobody else uses it.
pub(super) fn remove(index: u32, hook: Hook, name: &str) -> io::Result<()> {
    if !name.starts_with(OURS) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let _lock = lock()?;
    let Some(filter) = ours(index, hook)?.filter(|filter| filter.name.starts_with(name)) else {
        return Ok(());
    };
    remove_filter(index, hook)?;
    if filter.name.ends_with(MADE_QDISC)
        && list(index, Hook::Ingress)?.is_empty()
        && list(index, Hook::Egress)?.is_empty()
    {
        let header = TcHeader { handle: HANDLE, ..header(index, PARENT) };
        Message::tc(libc::RTM_DELQDISC, 0, header).text(TCA_KIND, "clsact").carry_out()?;
    }
    Ok(())
}

/// As long as it takes somebody to attach or remove a filter, many times over.
const PATIENCE: Duration = Duration::from_secs(1);

/// Keeps others of us from the filters of the calling thread's network namespace. It is a lock of the file that
/// the namespace is, which goes with its holder; and as any process there may lock it, one that does so for
/// long is taken no notice of.
fn lock() -> io::Result<OwnedFd> {
    let file = netns_here()?;
    let begin = Instant::now();
    while flock(&file, FlockOperation::NonBlockingLockExclusive) == Err(Errno::WOULDBLOCK)
        && begin.elapsed() < PATIENCE
    {
        thread::sleep(Duration::from_millis(1));
    }
    Ok(file)
}
