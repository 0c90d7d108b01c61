//! Programs of libpcap: one that counts packets behind a filter, by Ringway's library or the system's.

use std::path::{Path, PathBuf};
use std::{env, io};

use clap::{Args, ValueEnum};
use rustix::event::PollFlags;

use crate::cpu;
use crate::sys::Capture;
use crate::traffic;
use crate::turn::{NAP, sleep, turn};

/// What is counted: all packets that are sent.
pub const FILTER: &str = "udp port 9";

/// Whose library it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Library {
    Ringway,
    System,
}

/// A program that counts.
#[derive(Args)]
pub struct Counter {
    #[arg(long)]
    library: Library,
    #[arg(long)]
    device: String,
    /// Polls in place of waiting in libpcap: the system's may wait for ever when nothing comes any more
    #[arg(long)]
    poll: bool,
    /// Lets a switch learn where it is
    #[arg(long)]
    introduce: bool,
}

impl Library {
    fn file(self) -> io::Result<PathBuf> {
        let file = match self {
            Library::System => return Ok(Path::new("libpcap.so.0.8").into()),
            Library::Ringway => env::current_exe()?.with_file_name("libringway_pcap.so"),
        };
        match file.exists() {
            true => Ok(file),
            false => {
                let missing = format!("{} is missing; build it with `make build`", file.display());
                Err(io::Error::other(missing))
            }
        }
    }

    /// The arguments of a role that counts on `device`.
    pub fn arguments(self, device: &str) -> Vec<String> {
        let library = self.to_possible_value().map_or(String::new(), |v| v.get_name().to_owned());
        vec!["pcap".into(), format!("--library={library}"), format!("--device={device}")]
    }
}

pub fn play(cpu: Option<usize>, counter: &Counter) -> io::Result<()> {
    let file = counter.library.file()?;
    let mut capture = Capture::open(&file, &counter.device, FILTER, NAP.as_millis() as i32)?;
    if counter.introduce {
        capture.inject(&traffic::introduction(0))?;
    }
    // Only now: a daemon that was started by the opening is to have all CPUs.
    cpu.map_or(Ok(()), cpu::pin)?;
    let polled = if counter.poll { Some(capture.poll_instead()?) } else { None };
    let mut failure = Ok(());
    let count = |capture: &mut Capture| {
        let ready = polled.map_or(Ok(true), |fd| sleep(fd, PollFlags::IN));
        ready.and_then(|_| capture.dispatch()).unwrap_or_else(|error| {
            failure = Err(error);
            0
        })
    };
    // A read that has found nothing has waited, or the poll before it.
    turn(capture, 0, count, |_| Ok(()))?;
    failure
}
