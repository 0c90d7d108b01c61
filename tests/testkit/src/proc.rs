//! A child process that cannot outlive its test.

use std::io::Read;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};

use crate::sys::with_default_signals;

/// What a child has printed so far, and whether both its pipes are closed.
#[derive(Default)]
struct Printed {
    text: String,
    open_pipes: u32,
}

/// A running child: its output is collected while it runs, and it is killed on drop.
pub struct Proc {
    child: Child,
    what: String,
    printed: Arc<(Mutex<Printed>, Condvar)>,
    readers: Vec<JoinHandle<()>>,
}

impl Proc {
    /// Starts `command` with its standard output and error collected into one text. SIGINT ends it, also
    /// where this process has it ignored.
    pub fn spawn(mut command: Command) -> Proc {
        let what = format!("{command:?}");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        with_default_signals(&mut command);
        let mut child = command.spawn().unwrap_or_else(|e| panic!("cannot start {what}: {e}"));
        let printed =
            Arc::new((Mutex::new(Printed { open_pipes: 2, ..Default::default() }), Condvar::new()));
        let readers = vec![
            collect(child.stdout.take().expect("stdout is piped"), printed.clone()),
            collect(child.stderr.take().expect("stderr is piped"), printed.clone()),
        ];
        Proc { child, what, printed, readers }
    }

    /// The child's process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Everything printed so far.
    pub fn output(&self) -> String {
        self.printed.0.lock().unwrap().text.clone()
    }

    /// Waits until the output contains `text` and returns the output; panics when the child closes
    /// its output, or `limit` passes, without it.
    pub fn wait_for(&self, text: &str, limit: Duration) -> String {
        let deadline = Instant::now() + limit;
        let (lock, changed) = &*self.printed;
        let mut printed = lock.lock().unwrap();
        loop {
            if printed.text.contains(text) {
                return printed.text.clone();
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if printed.open_pipes == 0 || left.is_zero() {
                panic!("{}: waited for {text:?} in vain, it printed:\n{}", self.what, printed.text);
            }
            printed = changed.wait_timeout(printed, left).unwrap().0;
        }
    }

    /// Sends `signal`.
    pub fn signal(&self, signal: Signal) {
        let pid = Pid::from_child(&self.child);
        kill_process(pid, signal).unwrap_or_else(|e| panic!("cannot signal {}: {e}", self.what));
    }

    /// Stops the child: when this returns it does nothing more, until it gets SIGCONT.
    pub fn stop(&self) {
        self.signal(Signal::STOP);
        let id = WaitId::Pid(Pid::from_child(&self.child));
        waitid(id, WaitIdOptions::STOPPED).unwrap_or_else(|e| panic!("{} goes on: {e}", self.what));
    }

    /// Whether the child still runs.
    pub fn is_running(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// How many file descriptors the child has open.
    pub fn open_fds(&self) -> usize {
        std::fs::read_dir(format!("/proc/{}/fd", self.pid())).map_or(0, |fds| fds.count())
    }

    /// Waits for the end of the child; returns its status and all that it printed.
    pub fn wait(mut self) -> (ExitStatus, String) {
        let status = self.child.wait().expect("cannot wait for a child");
        for reader in self.readers.drain(..) {
            reader.join().expect("a reader never panics");
        }
        (status, self.output())
    }

    /// Kills the child with SIGKILL and waits until it is gone.
    pub fn kill(mut self) {
        self.end();
    }

    fn end(&mut self) {
        // Both fail when the child has ended by itself and been waited for: that is the aim.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Proc {
    fn drop(&mut self) {
        self.end();
    }
}

fn collect(
    mut pipe: impl Read + Send + 'static,
    printed: Arc<(Mutex<Printed>, Condvar)>,
) -> JoinHandle<()> {
    std::thread::spawn(move || {
        let mut bytes = [0; 4096];
        // Of a line that a full buffer has cut: what the other pipe has must not come into it.
        let mut held = 0;
        loop {
            let read = bytes.get_mut(held..).map_or(0, |room| pipe.read(room).unwrap_or(0));
            let full = held + read == bytes.len();
            let there = bytes.get(..held + read).unwrap_or_default();
            let newline = there.iter().rposition(|byte| *byte == b'\n').filter(|_| full);
            let whole = newline.map_or(there.len(), |at| at + 1);
            let mut into = printed.0.lock().unwrap();
            into.text.push_str(&String::from_utf8_lossy(&there[..whole]));
            into.open_pipes -= u32::from(read == 0);
            printed.1.notify_all();
            if read == 0 {
                return;
            }
            held = there.len() - whole;
            bytes.copy_within(whole..whole + held, 0);
        }
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;

    use super::*;

    /// Lines of one pipe are whole, also while the other has something.
    #[test]
    fn lines_are_not_cut() {
        const SCRIPT: &str = "i=0; while [ $i -lt 3000 ]; do echo got $i; i=$((i + 1)); done & \
            i=0; while [ $i -lt 300 ]; do echo a note >&2; i=$((i + 1)); done; wait; printf end";
        let mut shell = Command::new("sh");
        shell.args(["-c", SCRIPT]);
        let (status, said) = Proc::spawn(shell).wait();
        assert!(status.success() && said.contains("end"), "{said}");
        let whole = |line: &str| ["a note", "end"].contains(&line) || line.starts_with("got ");
        let count = |line: &str| said.lines().filter(|said| *said == line).count();
        assert!(said.lines().all(whole), "{said}");
        assert!((0..3000).all(|number| count(&format!("got {number}")) == 1), "{said}");
    }

    /// Also where its parent ignores SIGINT, as what a shell starts with `&` does.
    #[test]
    fn sigint_ends_a_child() {
        const IGNORING: &str = "RINGWAY_TEST_IGNORING";
        if std::env::var_os(IGNORING).is_none() {
            let mut ignoring = Command::new("env");
            let this = std::env::current_exe().expect("this program has a path");
            ignoring.arg("--ignore-signal=INT,QUIT").arg(this).arg("sigint_ends_a_child");
            assert!(ignoring.env(IGNORING, "1").status().expect("env starts").success());
            return;
        }
        let mut sleep = Command::new("sleep");
        sleep.arg("30");
        let child = Proc::spawn(sleep);
        child.signal(Signal::INT);
        let (status, said) = child.wait();
        assert_eq!(status.signal(), Some(libc::SIGINT), "{status}: {said}");
    }
}
