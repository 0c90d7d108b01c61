//! Attacks by memory and descriptors that a client shares with the daemon, or keeps.

use std::{fs, process};

use ringway::{Error, Port};
use ringway_testkit::StuckWrite;
use rustix::{
    fd::OwnedFd,
    fs::{FallocateFlags, fallocate},
    process::{PidfdFlags, PidfdGetfdFlags, getpid, pidfd_getfd, pidfd_open},
};

use super::{Attacker, as_many};

/// Extra buffers that one port asks for, and regions that are kept.
const EXTRA: u32 = 5000;
const KEPT: usize = 64;
const PAGE: u64 = 4096;
/// Pages that are taken away in a round.
const HOLES: usize = 2000;

/// Holds the lock of its region's inode while it has the daemon use the region in every way.
pub(super) fn stuck_write(attacker: &Attacker) -> Result<String, Error> {
    let name = attacker.port("");
    let port = Port::options().extra_bufs(8).open(&name)?;
    let region = port.binding().region().clone();
    let stuck = StuckWrite::into(region.memfd(), region.layout().memsize() - 1)
        .map_err(|source| Error::System { what: "userfaultfd", source })?;
    let names = ["{1", "}1", "/t"].map(|suffix| format!("{name}{suffix}"));
    let (ports, got) = as_many(&Port::options(), names.into_iter());
    let in_region = Port::options().region(region.mem_id()).open(&attacker.port("2"))?;
    drop((ports, in_region, port));
    attacker.settle()?;
    drop(stuck);
    Ok(got)
}

/// Lets ports with extra buffers go, and keeps their memory.
pub(super) fn extra_buffers(attacker: &Attacker) -> Result<String, Error> {
    let (mut kept, mut bytes) = (Vec::new(), 0);
    for n in 0..KEPT {
        let port = match Port::options().extra_bufs(EXTRA).open(&attacker.port(n)) {
            Ok(port) => port,
            Err(error) => return Ok(format!("{n} regions, {bytes} bytes, then {error}")),
        };
        let region = port.binding().region();
        bytes += u64::from(EXTRA) * PAGE / 2;
        kept.push(region.memfd().try_clone_to_owned());
    }
    Ok(format!("{} regions, {bytes} bytes", kept.len()))
}

/// Takes pages of its region away while the daemon uses them.
pub(super) fn holes(attacker: &Attacker) -> Result<String, Error> {
    let mut port = Port::open(&attacker.port(""))?;
    let region = port.binding().region().clone();
    let pages = region.layout().total() / PAGE;
    for n in 0..HOLES {
        let mode = FallocateFlags::KEEP_SIZE | FallocateFlags::PUNCH_HOLE;
        let offset = attacker.below(pages) * PAGE;
        if let Err(error) = fallocate(region.memfd(), mode, offset, PAGE) {
            return Ok(format!("{n} pages, then {error}"));
        }
        port.tx(0).push(&[0xff; 60]);
        port.tx(0).sync();
        port.rx(0).sync();
    }
    Ok(format!("{HOLES} pages"))
}

/// Copies of all descriptors of this process, made by the kernel: the numbers alone are known.
fn own_descriptors() -> Vec<OwnedFd> {
    let Ok(me) = pidfd_open(getpid(), PidfdFlags::empty()) else { return Vec::new() };
    let fds = fs::read_dir(format!("/proc/{}/fd", process::id())).into_iter().flatten().flatten();
    let numbers = fds.filter_map(|fd| fd.file_name().to_str()?.parse().ok());
    numbers.filter_map(|fd| pidfd_getfd(&me, fd, PidfdGetfdFlags::empty()).ok()).collect()
}

/// Opens ports with some name and closes them; keeps all that it was given.
pub(super) fn keep_descriptors(name: impl Fn(usize) -> String) -> String {
    let mut kept = Vec::new();
    for n in 0..KEPT / 4 {
        let port = match Port::open(&name(n)) {
            Ok(port) => port,
            Err(error) => return format!("{} descriptors, then {error}", kept.len()),
        };
        let before = kept.len();
        kept.extend(own_descriptors());
        // Not twice those that were kept already.
        kept.truncate(before + 64);
        drop(port);
    }
    format!("{} descriptors", kept.len())
}

pub(super) fn kept(attacker: &Attacker) -> Result<String, Error> {
    // Other names in each round: the daemon may still have those of the last.
    let round = attacker.below(10_000);
    let pipes = keep_descriptors(|n| format!("kept{round}x{n}{{1"));
    let ports = keep_descriptors(|n| attacker.port(format_args!("{round}x{n}")));
    Ok(format!("pipes: {pipes}; switch: {ports}"))
}
