//! The parameters of netmap's module, which programs read in `/sys/module/netmap/parameters`: each is a
//! file with a number, as sysfs would have it.
//!
//! Nothing can be set by them. The sizes of the global region are the daemon's configuration, and
//! reading them asks the daemon; the others tell how Ringway works.

use std::{ffi::c_int, os::fd::OwnedFd};

use ringway_interpose::UserPath;
use ringway_ipc::Error;
use ringway_proto::{Pools, Reply, Request};
use rustix::{
    fs::{MemfdFlags, Mode, OFlags, memfd_create, open},
    io::write,
};

use crate::netmap_fd::{explain, explain_as};

const FOLDER: &[u8] = b"/sys/module/netmap/parameters/";

/// The global region, of which each user has one.
const GLOBAL: u16 = 1;

/// What a parameter's value follows from.
#[derive(Clone, Copy)]
enum Value {
    /// The pools of the user's global region.
    Region(fn(&Pools) -> u32),
    /// What is the same for everybody.
    Fixed(u32),
}
use Value::{Fixed, Region};

/// The names, with the nul at the end, and the values (S-PARAM). Those are left out that the daemon's
/// configuration knows alone, and those of what is not here.
const PARAMETERS: [(&[u8], Value); 25] = [
    (b"if_size\0", Region(|pools| pools.ifs.size)),
    (b"if_num\0", Region(|pools| pools.ifs.total)),
    (b"ring_size\0", Region(|pools| pools.rings.size)),
    (b"ring_num\0", Region(|pools| pools.rings.total)),
    (b"buf_size\0", Region(|pools| pools.bufs.size)),
    (b"buf_num\0", Region(|pools| pools.bufs.total)),
    (b"if_curr_size\0", Region(|pools| pools.ifs.size)),
    (b"if_curr_num\0", Region(|pools| pools.ifs.total)),
    (b"ring_curr_size\0", Region(|pools| pools.rings.size)),
    (b"ring_curr_num\0", Region(|pools| pools.rings.total)),
    (b"buf_curr_size\0", Region(|pools| pools.bufs.size)),
    (b"buf_curr_num\0", Region(|pools| pools.bufs.total)),
    (b"priv_if_size\0", Fixed(1024)),
    (b"priv_if_num\0", Fixed(2)),
    (b"priv_ring_size\0", Fixed(20480)),
    (b"priv_ring_num\0", Fixed(4)),
    (b"priv_buf_size\0", Fixed(2048)),
    (b"priv_buf_num\0", Fixed(4098)),
    (b"verbose\0", Fixed(0)),
    (b"no_pendintr\0", Fixed(1)),
    (b"fwd\0", Fixed(0)),
    (b"admode\0", Fixed(0)),
    (b"generic_hwcsum\0", Fixed(0)),
    (b"bridge_batch\0", Fixed(1024)),
    (b"default_pipes\0", Fixed(0)),
];

/// Opens the file of a parameter; `None` if `path` is none. ENOENT, as without the module, if there is
/// no daemon to ask.
pub fn parameter(path: UserPath, flags: c_int) -> Option<Result<OwnedFd, c_int>> {
    if !path.starts_with(FOLDER) {
        return None;
    }
    let (name, value) = PARAMETERS.iter().find(|(name, _)| {
        let whole: Vec<u8> = [FOLDER, name].concat();
        path.starts_with(&whole)
    })?;
    Some(if flags & libc::O_ACCMODE == libc::O_RDONLY { read(*value) } else { refuse(name) })
}

/// What sysfs says of a file that cannot be written, also to root.
fn refuse(name: &[u8]) -> Result<OwnedFd, c_int> {
    let name = String::from_utf8_lossy(name.strip_suffix(b"\0").unwrap_or(name));
    let text = format!(
        "{name}: netmap's parameters cannot be set here; the sizes of the global region are set in \
         the configuration of ringwayd: see ringwayd(8)"
    );
    Err(explain_as(&text, libc::EACCES))
}

fn read(value: Value) -> Result<OwnedFd, c_int> {
    let number = match value {
        Fixed(number) => number,
        Region(of) => of(&pools().map_err(|error| {
            explain(&error);
            libc::ENOENT
        })?),
    };
    file(&format!("{number}\n")).map_err(|errno| errno.raw_os_error())
}

/// The pools of the global region.
fn pools() -> Result<Pools, Error> {
    let request = Request::Pools { name: String::new(), mem_id: GLOBAL };
    match ringway_ipc::call(ringway_ipc::connect()?, &request)?.0 {
        Reply::Pools(pools) => Ok(pools),
        _ => Err(Error::Version),
    }
}

/// A file of that text, which can be read, from any place in it, and not written.
fn file(text: &str) -> rustix::io::Result<OwnedFd> {
    let memfd = memfd_create("netmap-parameter", MemfdFlags::CLOEXEC)?;
    write(&memfd, text.as_bytes())?;
    let number = std::os::fd::AsRawFd::as_raw_fd(&memfd);
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    open(format!("/proc/self/fd/{number}"), flags, Mode::empty())
}
