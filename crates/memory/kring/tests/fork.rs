//! Locks of rings between processes: forked ones, killed ones, and those of other pid namespaces.
#![cfg(not(loom))]

use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering::SeqCst},
};

use ringway_abi::Dir;
use ringway_kring::{Kring, epoch};
use ringway_region::{Layout, Region, RingInit, Sizes};
use ringway_testkit::skip_without_root;
use rustix::thread::futex;

/// Kills at random moments.
const ROUNDS: u32 = 300;

/// A ring in memory that forked children share.
fn ring() -> Kring {
    let sizes = Sizes::private([1, 1], [16, 16], 0, 0);
    let region = Arc::new(Region::create(9, Layout::new(&sizes, 0).unwrap()).unwrap());
    let init = RingInit { dir: Dir::Tx, ringid: 0, num_slots: 16 };
    Kring::create(&region, 0, &init, &[]).unwrap()
}

/// How far the children are: a word of the shared memory.
fn stage(ring: &Kring) -> &AtomicU32 {
    &ring.owner().driver_cursor
}

fn reach(ring: &Kring, number: u32) {
    stage(ring).store(number, SeqCst);
    let _ = futex::wake(stage(ring), futex::Flags::empty(), u32::MAX >> 1);
}

fn await_stage(ring: &Kring, number: u32) {
    loop {
        let now = stage(ring).load(SeqCst);
        if now == number {
            return;
        }
        let _ = futex::wait(stage(ring), futex::Flags::empty(), now, None);
    }
}

/// A process that does `work`, and ends with what that says.
fn fork(work: impl FnOnce() -> bool) -> libc::pid_t {
    // SAFETY: the child takes no lock of libc's or of the test harness's, and leaves by `_exit`.
    match unsafe { libc::fork() } {
        0 => {
            let good = work();
            // SAFETY: ends the child at once, without the parent's destructors.
            unsafe { libc::_exit(i32::from(!good)) }
        }
        child => {
            assert!(child > 0);
            child
        }
    }
}

/// The same behind libc's back.
fn raw_fork(work: impl FnOnce() -> bool) -> libc::pid_t {
    // SAFETY: as above; and the child calls nothing that asks libc for its process.
    match unsafe { libc::syscall(libc::SYS_clone, libc::SIGCHLD, 0, 0, 0, 0) } {
        0 => {
            work();
            // SAFETY: as above.
            unsafe { libc::_exit(0) }
        }
        child => {
            assert!(child > 0);
            child as libc::pid_t
        }
    }
}

fn kill(child: libc::pid_t) {
    // SAFETY: a child of ours, which has not been waited for.
    unsafe { libc::kill(child, libc::SIGKILL) };
    status(child);
}

fn status(child: libc::pid_t) -> i32 {
    let mut status = 0;
    // SAFETY: waits for a child of ours; `status` outlives the call.
    assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
    status
}

fn hold(ring: &Kring, number: u32) -> bool {
    let guard = ring.try_lock();
    reach(ring, if guard.is_some() { number } else { u32::MAX });
    loop {
        // SAFETY: sleeps until it is killed.
        unsafe { libc::pause() };
    }
}

#[test]
fn a_child_has_another_epoch() {
    let here = epoch();
    assert!(here != 0 && epoch() == here);
    assert_eq!(status(fork(|| epoch() != here && epoch() == epoch())), 0);
    assert_eq!(epoch(), here);
}

#[test]
fn a_lock_of_a_child_is_the_childs() {
    let ring = ring();
    // What the thread knows of itself, it knows before it forks.
    drop(ring.try_lock());
    for behind_libc in [false, true] {
        let child = match behind_libc {
            false => fork(|| hold(&ring, 1)),
            true => raw_fork(|| hold(&ring, 1)),
        };
        await_stage(&ring, 1);
        assert!(ring.try_lock().is_none(), "the child lives, and holds it");
        kill(child);
        assert!(ring.try_lock().is_some(), "the child has died");
        reach(&ring, 0);
    }
}

#[test]
fn a_lock_of_the_parent_is_not_the_childs() {
    let ring = ring();
    let guard = ring.try_lock();
    assert_eq!(status(fork(|| ring.try_lock().is_none())), 0);
    drop(guard);
    assert_eq!(status(fork(|| ring.try_lock().is_some())), 0);
}

/// Killed anywhere in taking, holding and giving back.
#[test]
fn a_child_that_is_killed_leaves_the_lock() {
    let ring = ring();
    drop(ring.try_lock());
    let mut moment = 0x9e37_79b9u32;
    for round in 0..ROUNDS {
        let child = fork(|| {
            loop {
                let _guard = ring.try_lock();
                reach(&ring, 1);
            }
        });
        await_stage(&ring, 1);
        moment = moment.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        for _ in 0..moment >> 20 {
            std::hint::spin_loop();
        }
        kill(child);
        assert!(ring.try_lock().is_some(), "round {round}: nobody has it");
        reach(&ring, 0);
    }
}

/// The worker that it was to wake sleeps until somebody else does.
#[test]
fn a_child_that_is_killed_at_the_doorbell_leaves_the_kick() {
    let ring = ring();
    let csb = ring.csb();
    csb.service.arm();
    let dies = || {
        // SAFETY: a signal to itself, which ends it.
        csb.service.kick(&csb.app, || _ = unsafe { libc::raise(libc::SIGKILL) })
    };
    assert_eq!(status(fork(dies)), libc::SIGKILL);
    let mut notified = 0;
    (0..3).for_each(|_| _ = csb.service.kick(&csb.app, || notified += 1));
    assert_eq!(notified, 1);
}

/// Runs `work` as the first process of a new pid namespace, and returns a process with which it
/// ends.
fn in_new_namespace(work: impl FnOnce() -> bool) -> libc::pid_t {
    fork(|| {
        // SAFETY: concerns the children of this process alone.
        if unsafe { libc::unshare(libc::CLONE_NEWPID) } != 0 {
            return false;
        }
        let child = fork(|| {
            // SAFETY: the kernel kills this process when its parent dies.
            unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
            work()
        });
        status(child) == 0
    })
}

/// Both are thread 1 of their namespaces, and neither can ask for a thread of the other's, or of ours.
#[test]
fn threads_of_two_pid_namespaces_are_told_apart() {
    if skip_without_root("threads_of_two_pid_namespaces_are_told_apart") {
        return;
    }
    let ring = ring();
    let holder = in_new_namespace(|| hold(&ring, 1));
    await_stage(&ring, 1);
    assert!(ring.try_lock().is_none(), "the holder lives");
    let other = in_new_namespace(|| ring.try_lock().is_none());
    assert_eq!(status(other), 0, "the thread of the same number in the other namespace lives");
    kill(holder);
    // It dies with its parent, but nobody can wait for it.
    while ring.try_lock().is_none() {
        std::thread::yield_now();
    }
    let other = in_new_namespace(|| ring.try_lock().is_some());
    assert_eq!(status(other), 0);
}
