//! A process goes on when pages of a region cannot be had, and the region alone is lost.

use std::{os::fd::AsRawFd, sync::Arc};

use ringway_region::{Layout, LostPages, Region, RingInit, RingView, Sizes};
use ringway_testkit::skip;
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    fd::{FromRawFd, OwnedFd},
    mm::{UserfaultfdFlags, userfaultfd},
};

/// Lets the kernel have no page for `len` bytes from `at`, as long as the result is open. `None`: it
/// takes root.
fn without_pages(at: usize, len: usize) -> Option<OwnedFd> {
    const UFFDIO_API: libc::c_ulong = 0xc018_aa3f;
    const UFFDIO_REGISTER: libc::c_ulong = 0xc020_aa00;
    const FEATURE_SIGBUS: u64 = 1 << 7;
    // SAFETY: the descriptor is new.
    let faults = unsafe { userfaultfd(UserfaultfdFlags::CLOEXEC).ok()? };
    let mut api = [0xaau64, FEATURE_SIGBUS, 0];
    let mut register = [at as u64, len as u64, 1, 0];
    // SAFETY: the arrays are as the kernel's structures; what it is about is mapped.
    unsafe {
        assert_eq!(libc::ioctl(faults.as_raw_fd(), UFFDIO_API, &mut api), 0);
        assert_eq!(libc::ioctl(faults.as_raw_fd(), UFFDIO_REGISTER, &mut register), 0);
    }
    Some(faults)
}

fn region(mem_id: u16) -> Arc<Region> {
    let layout = Layout::new(&Sizes::PRIVATE, 0).unwrap();
    Arc::new(Region::create(mem_id, layout).unwrap())
}

fn ring(region: &Arc<Region>, object: u32) -> RingView {
    let ring = RingView::new(region, object, 64).unwrap();
    ring.init(object, &RingInit { dir: ringway_abi::Dir::Tx, ringid: 0, num_slots: 64 });
    (0..64).for_each(|slot| ring.set_slot(slot, 2, 0, 0));
    ring
}

#[test]
fn a_region_without_pages_is_lost_alone() {
    let lost = LostPages::watch().unwrap();
    let is_told = || {
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        poll(&mut [PollFd::new(&lost, PollFlags::IN)], Some(&now)) == Ok(1)
    };
    let (other, hostile) = (region(2), region(3));
    let (kept, gone) = (ring(&other, 0), ring(&hostile, 0));
    let area = hostile.buffer_area();
    let first = (area.as_ptr() as usize).next_multiple_of(4096);
    let Some(_faults) = without_pages(first, 1 << 20) else {
        return skip("a_region_without_pages_is_lost_alone", "userfaultfd takes root");
    };
    assert!(!is_told() && !hostile.has_lost_pages());
    let buf = hostile.buf(100).unwrap();
    assert_eq!(buf.read::<4>(0), Some([0; 4]));
    assert!(hostile.has_lost_pages() && is_told());
    lost.drain();
    // All of it is zeros that can be written to; what others have is as it was.
    assert_eq!((gone.num_slots(), gone.slot(3).buf_idx), (64, 0));
    assert!(buf.store(0, *b"gone") && buf.read(0) == Some(*b"gone"));
    assert!(!other.has_lost_pages() && !is_told());
    assert_eq!((kept.num_slots(), kept.slot(3).buf_idx), (64, 2));
    drop((gone, hostile));
    // Addresses that are used anew are guarded anew.
    let again = region(4);
    assert!(!again.has_lost_pages());
    assert_eq!(again.buf(100).unwrap().read::<4>(0), Some([0; 4]));
}

/// SIGBUS of anything else ends the process, as ever.
#[test]
fn other_pages_are_not_guarded() {
    // SAFETY: the child makes system calls and accesses memory that it has mapped.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let _lost = LostPages::watch();
        // SAFETY: mapped, and beyond the end of the file, which is empty.
        unsafe {
            let file = OwnedFd::from_raw_fd(libc::memfd_create(c"empty".as_ptr(), 0));
            let (access, flags) = (libc::PROT_READ, libc::MAP_SHARED);
            let at = libc::mmap(std::ptr::null_mut(), 4096, access, flags, file.as_raw_fd(), 0);
            libc::alarm(60);
            let read = at.cast::<u8>().read_volatile();
            libc::_exit(i32::from(read));
        }
    }
    let mut status = 0;
    // SAFETY: our child, and a local.
    unsafe { libc::waitpid(child, &mut status, 0) };
    assert!(libc::WIFSIGNALED(status) && libc::WTERMSIG(status) == libc::SIGBUS, "{status:#x}");
}
