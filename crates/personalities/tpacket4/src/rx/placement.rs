//! Which CPU the mover runs on.
//!
//! The kernel wakes a thread on an idle CPU, if there is one. If there is none, the mover stays where packets have woken it
//! first, on the CPU of their sender or of the interface's work, and takes its time from these: fewer packets come. A
//! program that looks at its ring all the time, on the other CPU, has nothing to look at until the mover was there.
//!
//! So the mover goes to the CPU on which the program's thread runs. It does so only while it rests between many packets, when
//! nothing but its own clock wakes it, and it is free to go at once: what CPUs it may use stays as it was. Where a CPU is idle
//! the kernel takes it there at its next wake-up, so this has an effect where all CPUs are busy, and then the program pays
//! for what is done for it, and no one else.

use rustix::{
    fs::{Mode, OFlags, open},
    io::read,
    thread::{CpuSet, Pid, gettid, sched_getaffinity, sched_getcpu, sched_setaffinity},
};

/// How often it is looked after: nanoseconds.
const EVERY: u64 = 10_000_000;

/// See the file's description.
pub struct Placement {
    /// The program's thread.
    program: Pid,
    /// When it is looked after next.
    next: u64,
}

impl Placement {
    /// For a mover that works for the calling thread.
    pub fn beside_caller() -> Placement {
        Placement { program: gettid(), next: 0 }
    }

    /// The calling thread is a mover that is about to rest, at `now` nanoseconds.
    pub fn look_after(&mut self, now: u64) {
        if now < self.next {
            return;
        }
        self.next = now + EVERY;
        if let Some(cpu) = running_on(self.program).filter(|cpu| *cpu != sched_getcpu()) {
            // Where it may not, it stays where it is.
            let _ = move_to(cpu);
        }
    }
}

/// Takes the calling thread to a CPU, if it may use that. It may use the same CPUs as before.
fn move_to(cpu: usize) -> rustix::io::Result<()> {
    let allowed = sched_getaffinity(None)?;
    if cpu >= CpuSet::MAX_CPU || !allowed.is_set(cpu) {
        return Ok(());
    }
    let mut there = CpuSet::new();
    there.set(cpu);
    sched_setaffinity(None, &there)?;
    sched_setaffinity(None, &allowed)
}

/// The CPU that a thread of this process runs on, if it does.
fn running_on(thread: Pid) -> Option<usize> {
    let path = format!("/proc/self/task/{}/stat", thread.as_raw_nonzero());
    let file = open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).ok()?;
    let mut text = [0; 1024];
    let len = read(&file, &mut text).ok()?;
    parse(text.get(..len)?)
}

/// `proc_pid_stat(5)`: behind the name, which is in parentheses, the state is the first field and the CPU the 37th.
fn parse(stat: &[u8]) -> Option<usize> {
    let name_ends = stat.iter().rposition(|byte| *byte == b')')?;
    let mut fields = stat.get(name_ends + 2..)?.split(|byte| *byte == b' ');
    fields.next().filter(|state| *state == b"R")?;
    let digits = fields.nth(35)?;
    Some(digits.iter().fold(0, |number, digit| number * 10 + usize::from(digit.wrapping_sub(b'0'))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_goes_to_a_cpu_and_may_leave_it() {
        let allowed = sched_getaffinity(None).unwrap();
        for cpu in (0..CpuSet::MAX_CPU).filter(|cpu| allowed.is_set(*cpu)) {
            move_to(cpu).unwrap();
            assert_eq!(sched_getaffinity(None).unwrap(), allowed);
            assert!(allowed.is_set(running_on(gettid()).unwrap()));
        }
        assert!(move_to(usize::MAX).is_ok());
    }

    #[test]
    fn a_cpu_that_a_thread_may_not_use_is_left_alone() {
        let allowed = sched_getaffinity(None).unwrap();
        let mut cpus = (0..CpuSet::MAX_CPU).filter(|cpu| allowed.is_set(*cpu));
        let (Some(one), Some(other)) = (cpus.next(), cpus.next()) else { return };
        let mut only = CpuSet::new();
        only.set(one);
        sched_setaffinity(None, &only).unwrap();
        move_to(other).unwrap();
        assert_eq!(sched_getaffinity(None).unwrap(), only);
        assert_eq!(running_on(gettid()), Some(one));
    }

    #[test]
    fn a_thread_that_sleeps_runs_nowhere() {
        let fields = |state: &str| {
            let others: Vec<String> = (4..=52).map(|n| n.to_string()).collect();
            format!("77 (a) R b) {state} {}\n", others.join(" "))
        };
        assert_eq!(parse(fields("R").as_bytes()), Some(39));
        assert_eq!(parse(fields("S").as_bytes()), None);
        assert_eq!(parse(b"77 (a"), None);
        assert_eq!(parse(b"77 (a) R 1"), None);
    }
}
