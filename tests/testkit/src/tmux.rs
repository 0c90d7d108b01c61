//! A terminal with a shell in it: keys in, screen out.

use std::path::PathBuf;
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use crate::Folder;

/// How long anything here may take on a machine that is busy with other things.
const LIMIT: Duration = Duration::from_secs(30);
/// Between two looks at the screen.
const LOOK: Duration = Duration::from_millis(20);

/// A tmux server of its own, with one window of 80 columns and 24 lines; ended on drop.
pub struct Tmux {
    folder: Folder,
}

impl Tmux {
    /// Starts it, and waits for the shell.
    pub fn new() -> Tmux {
        let tmux = Tmux { folder: Folder::new() };
        let config = tmux.folder.path().join("config");
        std::fs::write(&config, "set -g escape-time 0\nset -g status off\n")
            .expect("a file can be written");
        let config = config.display().to_string();
        let size = ["-x", "80", "-y", "24"];
        let shell = ["env", "PS1=$ ", "ENV=", "sh"];
        tmux.run(&[&["-f", &config, "new-session", "-d"], &size[..], &shell].concat());
        tmux.wait_for(|text| text.starts_with('$'));
        tmux
    }

    fn socket(&self) -> PathBuf {
        self.folder.path().join("tmux")
    }

    fn run(&self, args: &[&str]) -> Output {
        let mut command = Command::new("tmux");
        command.arg("-S").arg(self.socket()).args(args).env_remove("TMUX");
        let output = command.output().expect("tmux is installed: `make test` does it");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "tmux {args:?}: {said}");
        output
    }

    /// Presses keys, under tmux's names: `q`, `Enter`, `C-c`, `Down`.
    pub fn press(&self, keys: &[&str]) {
        self.run(&[&["send-keys"], keys].concat());
    }

    /// Types a text, and Enter.
    pub fn type_line(&self, text: &str) {
        self.run(&["send-keys", "-l", text]);
        self.press(&["Enter"]);
    }

    /// Makes the terminal that large.
    pub fn resize(&self, width: u16, height: u16) {
        let [width, height] = [width, height].map(|n| n.to_string());
        self.run(&["resize-window", "-x", &width, "-y", &height]);
    }

    /// What is on the screen.
    pub fn screen(&self) -> String {
        String::from_utf8_lossy(&self.run(&["capture-pane", "-p"]).stdout).into_owned()
    }

    /// Waits until the screen is as asked for, and returns it; panics with it if that takes too long.
    pub fn wait_for(&self, is_there: impl Fn(&str) -> bool) -> String {
        let deadline = Instant::now() + LIMIT;
        loop {
            let text = self.screen();
            if is_there(&text) {
                return text;
            }
            assert!(Instant::now() < deadline, "waited in vain, the screen is:\n{text}");
            std::thread::sleep(LOOK);
        }
    }
}

impl Default for Tmux {
    fn default() -> Tmux {
        Tmux::new()
    }
}

impl Drop for Tmux {
    fn drop(&mut self) {
        let mut command = Command::new("tmux");
        // The server of this socket, which is this test's own.
        let _ = command.arg("-S").arg(self.socket()).arg("kill-server").output();
    }
}
