//! Waiting for what must happen; the limits only keep a broken program from hanging the tests.

use std::time::{Duration, Instant};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    process::{Pid, PidfdFlags, pidfd_open},
};

pub(crate) const LIMIT: Duration = Duration::from_secs(60);

/// Waits for the end of process `pid`, at most for `limit`. True if it has ended.
pub fn ends(pid: u32, limit: Duration) -> bool {
    let pid = Pid::from_raw(pid as i32).expect("a process id");
    let Ok(fd) = pidfd_open(pid, PidfdFlags::empty()) else { return true };
    let deadline = Instant::now() + limit;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let timeout =
            Timespec { tv_sec: left.as_secs() as i64, tv_nsec: i64::from(left.subsec_nanos()) };
        match poll(&mut [PollFd::new(&fd, PollFlags::IN)], Some(&timeout)) {
            Err(rustix::io::Errno::INTR) => continue,
            result => return result == Ok(1),
        }
    }
}

/// Looks again and again until `look` finds something, for what nobody tells. `Err` says what
/// was found instead; the last one is shown when patience ends.
pub fn until<T>(what: &str, mut look: impl FnMut() -> Result<T, String>) -> T {
    let deadline = Instant::now() + LIMIT;
    loop {
        match look() {
            Ok(found) => return found,
            Err(instead) if Instant::now() > deadline => {
                panic!("waited in vain: {what}; instead: {instead}")
            }
            Err(_) => std::thread::sleep(Duration::from_millis(1)),
        }
    }
}
