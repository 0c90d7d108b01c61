//! Whether a process lives.

use std::fs;

use rustix::{
    io::Errno,
    process::{Pid, getpid, test_kill_process},
};

/// Of a process's flags: it is at its end (`PF_EXITING` of the kernel).
const EXITING: u32 = 4;

/// Whether a process has ended, by its first thread. A process that was killed can have others for a while, or for
/// ever, which wait in the kernel and keep its descriptors open. What cannot be looked at has not ended.
pub fn has_ended(pid: u32) -> bool {
    let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) else { return false };
    if test_kill_process(pid) == Err(Errno::SRCH) {
        return true;
    }
    // Of another pid namespace, it would tell of another process.
    let own = fs::read_link("/proc/self").ok();
    let is_own = own.is_some_and(|own| own.to_str() == Some(&getpid().to_string()));
    let stat = fs::read_to_string(format!("/proc/{pid}/stat"));
    is_own && stat.is_ok_and(|stat| is_ending(&stat).unwrap_or(false))
}

/// By what `proc_pid_stat(5)` has of it.
fn is_ending(stat: &str) -> Option<bool> {
    // The name may have anything in it.
    let (_, behind) = stat.rsplit_once(')')?;
    let mut fields = behind.split_whitespace();
    let state = fields.next()?;
    let flags: u32 = fields.nth(5)?.parse().ok()?;
    Some(matches!(state, "Z" | "X" | "x") || flags & EXITING != 0)
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn a_process_ends_before_it_is_waited_for() {
        assert!(!has_ended(std::process::id()));
        let mut child = Command::new("cat").stdin(std::process::Stdio::piped()).spawn().unwrap();
        let pid = child.id();
        assert!(!has_ended(pid));
        child.kill().unwrap();
        let pidfd = rustix::process::pidfd_open(
            Pid::from_raw(pid as i32).unwrap(),
            rustix::process::PidfdFlags::empty(),
        )
        .unwrap();
        let mut fds = [rustix::event::PollFd::new(&pidfd, rustix::event::PollFlags::IN)];
        assert_eq!(rustix::event::poll(&mut fds, None), Ok(1));
        assert!(has_ended(pid), "it is a zombie");
        child.wait().unwrap();
        assert!(has_ended(pid), "it has gone");
        assert!(!has_ended(0) && !has_ended(u32::MAX));
    }

    #[test]
    fn the_state_and_the_flags_tell() {
        let stat = |state, flags| format!("7 (a) Z (b) {state} 1 7 7 0 -1 {flags} 0 0");
        for (state, flags, ending) in
            [("S", 0x40_0140, false), ("Z", 0x40_0040, true), ("R", 0x40_0144, true)]
        {
            assert_eq!(is_ending(&stat(state, flags)), Some(ending), "{state} {flags:x}");
        }
        assert_eq!(is_ending("7 (a"), None);
    }
}
