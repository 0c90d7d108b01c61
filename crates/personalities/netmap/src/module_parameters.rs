//! The parameters of netmap's module, which programs read in `/sys/module/netmap/parameters`: each is a
//! file with a number, as sysfs would have it.
//!
//! Nothing can be set by them. The sizes of the global region, and what holds for all ports, are the
//! daemon's configuration, and reading them asks the daemon; the others tell how Ringway works.

use std::{
    ffi::{CStr, c_int},
    os::fd::{AsRawFd, OwnedFd},
};

use ringway_interpose::UserPath;
use ringway_ipc::{Answer, Error};
use ringway_proto::{Parameters, Pools, Request};
use rustix::{
    fs::{MemfdFlags, Mode, OFlags, fchmod, ftruncate, memfd_create, open},
    io::write,
};

use crate::netmap_fd::{explain, explain_as};

const MODULE: &[u8] = b"/sys/module/netmap";
const FOLDER: &[u8] = b"/parameters";

/// The global region, of which each user has one.
const GLOBAL: u16 = 1;

/// The size that sysfs shows of all its files.
const SHOWN_SIZE: u64 = 4096;

/// What a parameter's value follows from.
#[derive(Clone, Copy)]
enum Value {
    /// The pools of the user's global region.
    Region(fn(&Pools) -> u32),
    /// What the daemon is configured to do for all ports.
    Daemon(fn(&Parameters) -> u32),
    /// What is the same for all programs.
    Fixed(u32),
}
use Value::{Daemon, Fixed, Region};

/// The names and the values (S-PARAM). Those of what is not here have the value by which netmap does
/// not do it, or does nothing else than Ringway.
const PARAMETERS: [(&CStr, Value); 34] = [
    // S-PARAM-if_size
    (c"if_size", Region(|pools| pools.ifs.size)),
    // S-PARAM-if_num
    (c"if_num", Region(|pools| pools.ifs.total)),
    // S-PARAM-ring_size
    (c"ring_size", Region(|pools| pools.rings.size)),
    // S-PARAM-ring_num
    (c"ring_num", Region(|pools| pools.rings.total)),
    // S-PARAM-buf_size
    (c"buf_size", Region(|pools| pools.bufs.size)),
    // S-PARAM-buf_num
    (c"buf_num", Region(|pools| pools.bufs.total)),
    // S-PARAM-curr
    (c"if_curr_size", Region(|pools| pools.ifs.size)),
    (c"if_curr_num", Region(|pools| pools.ifs.total)),
    (c"ring_curr_size", Region(|pools| pools.rings.size)),
    (c"ring_curr_num", Region(|pools| pools.rings.total)),
    (c"buf_curr_size", Region(|pools| pools.bufs.size)),
    (c"buf_curr_num", Region(|pools| pools.bufs.total)),
    // S-PARAM-priv
    (c"priv_if_size", Fixed(1024)),
    (c"priv_if_num", Fixed(2)),
    (c"priv_ring_size", Fixed(20480)),
    (c"priv_ring_num", Fixed(4)),
    (c"priv_buf_size", Fixed(2048)),
    (c"priv_buf_num", Fixed(4098)),
    // S-PARAM-max_bridges
    (c"max_bridges", Daemon(|daemon| daemon.max_bridges)),
    // S-PARAM-generic_ringsize
    (c"generic_ringsize", Daemon(|daemon| daemon.nic_slots)),
    // S-PARAM-no_timestamp
    (c"no_timestamp", Daemon(|daemon| u32::from(!daemon.timestamps))),
    // S-PARAM-verbose
    (c"verbose", Fixed(0)),
    // S-PARAM-debug
    (c"debug", Fixed(0)),
    // S-PARAM-no_pendintr
    (c"no_pendintr", Fixed(1)),
    // S-PARAM-txsync_retry
    (c"txsync_retry", Fixed(0)),
    // S-PARAM-fwd
    (c"fwd", Fixed(0)),
    // S-PARAM-admode
    (c"admode", Fixed(0)),
    // S-PARAM-generic_mit
    (c"generic_mit", Fixed(0)),
    // S-PARAM-generic_rings
    (c"generic_rings", Fixed(1)),
    // S-PARAM-generic_txqdisc
    (c"generic_txqdisc", Fixed(0)),
    // S-PARAM-generic_hwcsum
    (c"generic_hwcsum", Fixed(0)),
    // S-PARAM-bridge_batch
    (c"bridge_batch", Fixed(1024)),
    // S-PARAM-default_pipes
    (c"default_pipes", Fixed(0)),
    // S-PARAM-ptnet_vnet_hdr
    (c"ptnet_vnet_hdr", Fixed(1)),
];

/// Opens the file of a parameter; `None` if `path` is none. ENOENT, as without the module, if there is
/// no daemon to ask. With `O_PATH`, which asks for no contents, the module's directories, too.
pub fn parameter(path: UserPath, flags: c_int) -> Option<Result<OwnedFd, c_int>> {
    let rest = path.behind(MODULE)?;
    let only_path = flags & libc::O_PATH != 0;
    let is_end = |path: UserPath| path.is(c"") || path.is(c"/");
    if only_path && (is_end(rest) || rest.behind(FOLDER).is_some_and(is_end)) {
        let folder = open("/sys/module", OFlags::PATH | OFlags::CLOEXEC, Mode::empty());
        return Some(folder.map_err(|errno| errno.raw_os_error()));
    }
    let name = rest.behind(FOLDER)?.behind(b"/")?;
    let (name, value) = PARAMETERS.iter().find(|(known, _)| name.is(known))?;
    Some(match flags & libc::O_ACCMODE {
        _ if only_path => file(None).map_err(|errno| errno.raw_os_error()),
        libc::O_RDONLY => read(*value),
        _ => refuse(name),
    })
}

/// What sysfs says of a file that cannot be written, also to root.
fn refuse(name: &CStr) -> Result<OwnedFd, c_int> {
    let text = format!(
        "{}: netmap's parameters cannot be set here; the sizes of the global region, max_bridges, \
         nic_slots and timestamps are set in the configuration of ringwayd: see ringwayd(8)",
        name.to_string_lossy()
    );
    Err(explain_as(&text, libc::EACCES))
}

fn read(value: Value) -> Result<OwnedFd, c_int> {
    let number = match value {
        Fixed(number) => Ok(number),
        Region(of) => pools().map(|pools| of(&pools)),
        Daemon(of) => parameters().map(|parameters| of(&parameters)),
    };
    let number = number.map_err(|error| {
        explain(&error);
        libc::ENOENT
    })?;
    file(Some(&format!("{number}\n"))).map_err(|errno| errno.raw_os_error())
}

/// The pools of the global region.
fn pools() -> Result<Pools, Error> {
    ask(&Request::Pools { name: String::new(), mem_id: GLOBAL })
}

fn parameters() -> Result<Parameters, Error> {
    ask(&Request::Parameters)
}

fn ask<T: Answer>(request: &Request) -> Result<T, Error> {
    Ok(ringway_ipc::call(ringway_ipc::connect()?, request)?.0)
}

/// A file of that text, which can be read, from any place in it, and not written; without a text, one
/// that shows what sysfs shows of such a file, and that can be neither read nor written.
fn file(text: Option<&str>) -> rustix::io::Result<OwnedFd> {
    let memfd = memfd_create("netmap-parameter", MemfdFlags::CLOEXEC)?;
    let access = match text {
        Some(text) => {
            write(&memfd, text.as_bytes())?;
            OFlags::RDONLY
        }
        None => {
            ftruncate(&memfd, SHOWN_SIZE)?;
            OFlags::PATH
        }
    };
    fchmod(&memfd, Mode::RUSR | Mode::RGRP | Mode::ROTH)?;
    let number = memfd.as_raw_fd();
    open(format!("/proc/self/fd/{number}"), access | OFlags::CLOEXEC, Mode::empty())
}
