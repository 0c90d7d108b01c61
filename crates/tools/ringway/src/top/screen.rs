//! The terminal: taken over, written to where it changes, and given back, however the program ends.

use crate::printable::printable;
use crossterm::cursor::{Hide, MoveTo, Show};
use crossterm::style::{Attribute, Print, SetAttribute};
use crossterm::terminal::{
    self, Clear, ClearType, DisableLineWrap, EnableLineWrap, EnterAlternateScreen,
    LeaveAlternateScreen,
};
use crossterm::{execute, queue};
use signal_hook::consts::{SIGCONT, SIGTSTP};
use signal_hook::low_level::{emulate_default_handler, pipe};
use std::io::{self, Read, Stdout, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// A line of the screen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Line {
    pub text: String,
    /// In reverse: a heading, or what is selected.
    pub stands_out: bool,
}

/// Given back when it is dropped.
pub struct Screen {
    out: Stdout,
    shown: Vec<Line>,
    size: (u16, u16),
}

/// Whether the terminal is taken over.
static TAKEN: AtomicBool = AtomicBool::new(false);

impl Screen {
    pub fn enter() -> io::Result<Screen> {
        // What a panic says is to be read on the screen that stays.
        static HOOK: Once = Once::new();
        HOOK.call_once(|| {
            let told = std::panic::take_hook();
            std::panic::set_hook(Box::new(move |panic| {
                let _ = give_back();
                told(panic);
            }));
        });
        let mut screen = Screen { out: io::stdout(), shown: Vec::new(), size: (0, 0) };
        screen.take()?;
        Ok(screen)
    }

    fn take(&mut self) -> io::Result<()> {
        terminal::enable_raw_mode()?;
        TAKEN.store(true, Relaxed);
        self.forget();
        execute!(self.out, EnterAlternateScreen, Hide, DisableLineWrap)
    }

    /// Gives the terminal back as it was.
    pub fn leave(&mut self) -> io::Result<()> {
        give_back()
    }

    /// Writes everything again, the next time.
    pub fn forget(&mut self) {
        self.size = (0, 0);
    }

    /// Shows these lines, which fit; writes those that are not shown already.
    pub fn draw(&mut self, lines: Vec<Line>, size: (u16, u16)) -> io::Result<()> {
        if self.size != size {
            queue!(self.out, Clear(ClearType::All))?;
            (self.shown, self.size) = (Vec::new(), size);
        }
        let blank = Line::default();
        for (row, line) in (0..size.1).zip(lines.iter().chain(std::iter::repeat(&blank))) {
            if self.shown.get(usize::from(row)).unwrap_or(&blank) == line {
                continue;
            }
            // Behind the last column there is nothing to clear.
            queue!(self.out, MoveTo(0, row), Clear(ClearType::UntilNewLine))?;
            if line.stands_out {
                queue!(self.out, SetAttribute(Attribute::Reverse))?;
            }
            queue!(self.out, Print(printable(&line.text, &[])), SetAttribute(Attribute::Reset))?;
        }
        self.shown = lines;
        self.out.flush()
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        let _ = self.leave();
    }
}

fn give_back() -> io::Result<()> {
    if !TAKEN.swap(false, Relaxed) {
        return Ok(());
    }
    // Who sees the shell's screen may type: by then the terminal takes lines again.
    let cooked = terminal::disable_raw_mode();
    execute!(io::stdout(), EnableLineWrap, Show, LeaveAlternateScreen)?;
    cooked
}

/// Being stopped and going on, as a shell asks for it.
pub struct JobControl {
    stop: UnixStream,
    go_on: UnixStream,
    both: UnixStream,
}

impl JobControl {
    /// Takes over SIGTSTP and SIGCONT.
    pub fn install() -> io::Result<JobControl> {
        let (both, notify) = UnixStream::pair()?;
        let signal = |signal| {
            let (read, write) = UnixStream::pair()?;
            read.set_nonblocking(true)?;
            pipe::register(signal, write)?;
            pipe::register(signal, notify.try_clone()?)?;
            Ok::<_, io::Error>(read)
        };
        let (stop, go_on) = (signal(SIGTSTP)?, signal(SIGCONT)?);
        both.set_nonblocking(true)?;
        Ok(JobControl { stop, go_on, both })
    }

    /// Does what signals have asked for.
    pub fn follow(&mut self, screen: &mut Screen) -> io::Result<()> {
        take(&mut self.both);
        if take(&mut self.stop) {
            return self.suspend(screen);
        }
        if take(&mut self.go_on) {
            // The shell may have set the terminal as it likes it.
            screen.leave()?;
            screen.take()?;
        }
        Ok(())
    }

    /// Stops this process; on the terminal as it was.
    pub fn suspend(&mut self, screen: &mut Screen) -> io::Result<()> {
        screen.leave()?;
        emulate_default_handler(SIGTSTP)?;
        take(&mut self.go_on);
        screen.take()
    }
}

impl AsFd for JobControl {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.both.as_fd()
    }
}

/// Whether a signal has come.
fn take(pipe: &mut UnixStream) -> bool {
    matches!(pipe.read(&mut [0; 64]), Ok(1..))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ringway_testkit::Tmux;

    /// Which of the tests runs in the terminal, and is to panic there.
    const PANICS: &str = "RINGWAY_TEST_PANICS";

    #[test]
    fn a_panic_leaves_the_terminal_as_it_was() {
        if std::env::var_os(PANICS).is_some() {
            let mut screen = Screen::enter().unwrap();
            let line = Line { text: "taken over".into(), stands_out: true };
            screen.draw(vec![line], (80, 24)).unwrap();
            panic!("in the middle of it");
        }
        let this = std::env::current_exe().unwrap();
        let tmux = Tmux::new();
        tmux.type_line("before=$(stty -g)");
        tmux.type_line(&format!(
            "{PANICS}=1 RUST_BACKTRACE=0 {} --exact top::screen::tests::a_panic_leaves_the_terminal_as_it_was \
             --nocapture; [ \"$before\" = \"$(stty -g)\" ] && echo as it was",
            this.display()
        ));
        let text = tmux.wait_for(|text| text.lines().any(|line| line == "as it was"));
        assert!(text.contains("in the middle of it"), "{text}");
        assert!(!text.contains("taken over"), "{text}");
    }
}
