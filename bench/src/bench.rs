//! What every run of every experiment shares.

use std::path::PathBuf;
use std::time::Duration;

use crate::roles::Seat;
use crate::scratch::Scratch;

/// Made once, for all of them.
pub struct Bench {
    pub scratch: Scratch,
    /// Folder of the private daemon that serves the experiments, and no other program.
    pub daemon: PathBuf,
    /// CPUs to put processes on; one is used twice when there are too few.
    pub cpus: Vec<usize>,
    pub warm_up: Duration,
    pub counting: Duration,
}

impl Bench {
    /// The CPU for the experiment's n-th process.
    pub fn cpu(&self, process: usize) -> usize {
        self.cpus[process % self.cpus.len()]
    }

    /// The seats of a switch's sender and receiver. With two CPUs the kernel sees to it where they run beside the
    /// switch, which does most of the work.
    pub fn on_switch(&self) -> [Seat<'static>; 2] {
        match self.cpus.len() {
            3.. => [Seat::on(self.cpu(0)), Seat::on(self.cpu(1))],
            _ => [Seat::default(); 2],
        }
    }
}
