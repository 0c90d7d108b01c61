//! The program of AF_PACKET V4 in zero-copy mode, on queue 0 of an interface. It knows nothing of Ringway.
//!
//! The program, which looks at its ring all the time, and the thread that fills it are where the kernel puts them.

use std::io;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use super::stage::Stage;
use crate::bench::Bench;
use crate::c_program::{self, Running};
use crate::roles::{self, Role, Seat};

const PROGRAM: &str = "examples/c/tpacket4.c";

/// How long the program goes on beside what is measured: it is opened and closed in that time.
const BESIDE: Duration = Duration::from_secs(1);

/// How long a program goes on that is ended.
const LONG: Duration = Duration::from_secs(3600);

/// The program in one of its modes.
struct Program {
    file: PathBuf,
    daemon: PathBuf,
    mode: &'static str,
    seconds: String,
}

impl Program {
    fn new(bench: &Bench, mode: &'static str, measured: Duration) -> io::Result<Program> {
        Ok(Program {
            file: c_program::build(&bench.scratch.folder("tpacket4")?, PROGRAM)?,
            daemon: bench.scratch.folder("ringwayd-near")?,
            mode,
            seconds: (measured + BESIDE).as_secs_f64().to_string(),
        })
    }

    fn start(&self, stage: &Stage) -> io::Result<Running> {
        let seat = Seat::default().inside(&stage.near);
        c_program::start(seat, &self.daemon, &self.file, &[self.mode, "near0", &self.seconds, "0"])
    }

    fn run(&self, stage: &Stage) -> io::Result<String> {
        self.start(stage)?.finish()
    }
}

/// Packets a second that it receives of what `sender` sends.
pub fn rxdrop(
    bench: &Bench,
    stage: &Stage,
    sender: Role,
    [warm_up, counting]: [Duration; 2],
) -> io::Result<f64> {
    // The program is opened meanwhile, and does not say when it is: a short time would be over before.
    let counting = counting.max(BESIDE);
    let program = Program::new(bench, "rxdrop", warm_up + counting)?;
    thread::scope(|scope| {
        let running = scope.spawn(|| program.run(stage));
        roles::run(vec![sender], warm_up, counting)?;
        let printed = running.join().map_err(|_| io::Error::other("the thread has panicked"))??;
        Ok(c_program::number_behind("rx_mpps", &printed)? * 1e6)
    })
}

/// Packets a second that it sends back of those that `pings` keeps under way.
pub fn l2fwd(
    bench: &Bench,
    stage: &Stage,
    pings: Role,
    [warm_up, counting]: [Duration; 2],
) -> io::Result<f64> {
    let _program = Program::new(bench, "l2fwd", LONG)?.start(stage)?;
    // It is opened meanwhile: pings that come before are lost, and sent anew.
    let counts = roles::run(vec![pings], warm_up + BESIDE / 2, counting)?;
    match &counts[..] {
        [count] if count.packets > 0 => Ok(count.rate()),
        _ => Err(io::Error::other("nothing came back; a message of the program may be above")),
    }
}

/// Packets a second that it sends, counted by the kernel where they arrive.
pub fn txpush(bench: &Bench, stage: &Stage, [warm_up, counting]: [Duration; 2]) -> io::Result<f64> {
    let program = Program::new(bench, "txpush", warm_up + counting)?;
    let arrived = || stage.far.received("far0");
    thread::scope(|scope| {
        let running = scope.spawn(|| program.run(stage));
        let before = arrived()?;
        while arrived()? == before && !running.is_finished() {
            thread::sleep(Duration::from_millis(1));
        }
        thread::sleep(warm_up);
        let (begin, first) = (Instant::now(), arrived()?);
        thread::sleep(counting);
        let (took, last) = (begin.elapsed(), arrived()?);
        running.join().map_err(|_| io::Error::other("the thread has panicked"))??;
        Ok((last - first) as f64 / took.as_secs_f64())
    })
}
