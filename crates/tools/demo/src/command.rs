//! Running commands that do not outlive the demo.

use std::{
    io::{BufRead, BufReader},
    path::PathBuf,
    process::{Child, ChildStdout, Command, Stdio},
};

use serde_json::Value;

use crate::{Result, sys::mortal};

/// `ringway`, from where this program is.
pub fn ringway(args: &[&str]) -> Result<Command> {
    let mut path: PathBuf = std::env::current_exe()?;
    path.set_file_name("ringway");
    let mut command = Command::new(path);
    command.args(args);
    Ok(command)
}

/// Runs a command to its end, and gives what it prints; fails when it does.
pub fn output(command: Command) -> Result<String> {
    let mut command = mortal(command);
    let shown = format!("{command:?}");
    let done = command.stdin(Stdio::null()).stderr(Stdio::piped()).output();
    let done = done.map_err(|e| format!("{shown}: {e}"))?;
    if !done.status.success() {
        let said = String::from_utf8_lossy(&done.stderr);
        return Err(format!("{shown} failed: {}", said.trim()).into());
    }
    Ok(String::from_utf8(done.stdout)?)
}

/// Runs a shell command line; `set -e` holds.
pub fn sh(line: &str) -> Result<String> {
    let mut command = Command::new("sh");
    command.args(["-ec", line]);
    output(command)
}

/// A `ringway gen` or `recv` at work, whose JSON is read as it comes.
pub struct Running {
    child: Child,
    lines: BufReader<ChildStdout>,
}

impl Running {
    /// Starts it; returns when its port is open.
    pub fn start(args: &[&str]) -> Result<Running> {
        let mut command = mortal(ringway(args)?);
        command.arg("--json").stdin(Stdio::null()).stdout(Stdio::piped());
        let mut child = command.spawn()?;
        let stdout = child.stdout.take().ok_or("no output")?;
        let mut running = Running { child, lines: BufReader::new(stdout) };
        running.object("open")?;
        Ok(running)
    }

    /// Waits for its summary and its end.
    pub fn summary(mut self) -> Result<Value> {
        let summary = self.object("summary")?;
        self.child.wait()?;
        Ok(summary)
    }

    fn object(&mut self, kind: &str) -> Result<Value> {
        let mut line = String::new();
        while self.lines.read_line(&mut line)? != 0 {
            let object: Value = serde_json::from_str(&line)?;
            if object["type"] == kind {
                return Ok(object);
            }
            line.clear();
        }
        let status = self.child.wait()?;
        Err(format!("ringway ended early ({status})").into())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // One that has ended cannot be killed, which is as well.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
