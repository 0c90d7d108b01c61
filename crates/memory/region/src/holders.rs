//! Whether other processes still hold a region's memory.
//!
//! The kernel counts how often a file is open for writing, and refuses a read lease while it is. A memfd
//! itself is not in that count; so what is handed out is a second opening of it, which is, and which
//! every descriptor and every mapping of another process goes back to. A user other than the daemon's own
//! cannot open the memfd once more: its mode allows that to its owner alone. None of the calls here
//! takes the inode's lock, which another process may hold for as long as it likes.
#![allow(unsafe_code)]

use std::io;

use rustix::{
    fd::{AsFd, AsRawFd, OwnedFd},
    fs::{Mode, OFlags, fstat, open},
};

/// Opens a memfd of this process once more. It takes `/proc`.
pub(crate) fn open_again(memfd: impl AsFd, access: OFlags) -> io::Result<OwnedFd> {
    let path = format!("/proc/self/fd/{}", memfd.as_fd().as_raw_fd());
    Ok(open(path, access | OFlags::CLOEXEC, Mode::empty())?)
}

/// Lets the creator of a region tell whether a process still maps it.
#[derive(Debug)]
pub struct HolderProbe {
    /// Open for reading alone, as the kernel asks of a read lease.
    fd: OwnedFd,
}

impl HolderProbe {
    pub(crate) fn new(memfd: impl AsFd) -> io::Result<HolderProbe> {
        open_again(memfd, OFlags::RDONLY).map(|fd| HolderProbe { fd })
    }

    /// Whether any process has a descriptor of what was handed out, or a mapping. Where the kernel has no
    /// leases to give: no.
    pub fn is_held(&self) -> bool {
        let lease = |kind: libc::c_int| {
            // SAFETY: a call on an open descriptor, with a number.
            unsafe { libc::fcntl(self.fd.as_raw_fd(), libc::F_SETLEASE, kind) }
        };
        if lease(libc::F_RDLCK) == 0 {
            lease(libc::F_UNLCK);
            return false;
        }
        io::Error::last_os_error().raw_os_error() == Some(libc::EAGAIN)
    }

    /// Bytes of the region that are in memory, or swapped out.
    pub fn resident(&self) -> u64 {
        /// What `st_blocks` counts.
        const BLOCK: u64 = 512;
        fstat(&self.fd).map_or(0, |stat| (stat.st_blocks as u64).saturating_mul(BLOCK))
    }
}

#[cfg(all(test, not(miri)))]
mod tests {
    use rustix::fs::{fcntl_getfl, ftruncate};

    use crate::{Layout, Mapping, Region, Sizes};

    #[test]
    fn a_region_is_held_by_descriptors_and_by_mappings() {
        let layout = Layout::new(&Sizes::PRIVATE, 0).unwrap();
        let region = Region::create(2, layout).unwrap();
        let probe = region.holder_probe().unwrap();
        assert!(fcntl_getfl(region.memfd()).is_ok() && ftruncate(region.memfd(), 0).is_err());
        let handed_out = region.memfd().try_clone_to_owned().unwrap();
        // What is mapped here is none of what others hold.
        let own = region.retire();
        assert!(probe.is_held());
        let theirs = Mapping::open(&handed_out, layout.total() as usize).unwrap();
        drop(handed_out);
        assert!(probe.is_held());
        drop(theirs);
        assert!(!probe.is_held() && !probe.is_held());
        let before = probe.resident();
        own.bytes()[1 << 20].store(1, std::sync::atomic::Ordering::Relaxed);
        assert_eq!(probe.resident(), before + 4096);
    }
}
