//! Two ports that exchange numbered frames, window by window.

use std::time::{Duration, Instant};

use ringway::{Error, Port};

use crate::frame::{self, Seen};

/// Frames each way in one exchange: far fewer than a ring has slots.
const WINDOW: u64 = 32;
/// How long frames that have not come may still be under way.
const PATIENCE: Duration = Duration::from_millis(250);

/// Two open ports that reach each other.
pub struct Pair {
    ends: [Port; 2],
    flow: u32,
    window: u64,
    patience: Duration,
    next: u64,
    bytes: Vec<u8>,
    spare: Vec<u8>,
}

impl Pair {
    /// Opens both ports. Frames of other flows may reach them; they are ignored.
    pub fn open(one: &str, other: &str, flow: u32) -> Result<Pair, Error> {
        Ok(Pair::of([Port::open(one)?, Port::open(other)?], flow))
    }

    /// Of two ports that are open.
    pub fn of(ends: [Port; 2], flow: u32) -> Pair {
        let (window, patience) = (WINDOW, PATIENCE);
        Pair { ends, flow, window, patience, next: 0, bytes: Vec::new(), spare: Vec::new() }
    }

    /// With windows of so many frames, which are waited for so long.
    pub fn with(self, window: u64, patience: Duration) -> Pair {
        Pair { window, patience, ..self }
    }

    /// Sends a window of frames each way; returns how many arrived of the two windows. Panics at
    /// a frame that is damaged, or not the next.
    pub fn exchange(&mut self) -> Result<u64, Error> {
        let arrived = self.one_way(0, 1)? + self.one_way(1, 0)?;
        Ok(arrived)
    }

    /// Exchanges until `frames` have arrived.
    pub fn exchange_some(&mut self, frames: u64) -> Result<(), Error> {
        let mut arrived = 0;
        for _ in 0..100 + frames / self.window {
            arrived += self.exchange()?;
            if arrived >= frames {
                return Ok(());
            }
        }
        panic!("nearly nothing arrives: {arrived} frames of {frames}");
    }

    fn one_way(&mut self, from: usize, to: usize) -> Result<u64, Error> {
        let numbers = self.next..self.next + self.window;
        self.next = numbers.end;
        let (src, dst) = (frame::mac(self.flow, from as u8), frame::mac(self.flow, to as u8));
        for number in numbers.clone() {
            frame::build(&mut self.bytes, dst, src, self.flow, number);
            while !self.ends[from].tx(0).push(&self.bytes) {
                self.ends[from].wait_tx(None)?;
            }
        }
        self.ends[from].tx(0).sync();

        let (mut next, mut arrived) = (numbers.start, 0);
        let deadline = Instant::now() + self.patience;
        while next < numbers.end {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() || !self.ends[to].wait_rx(Some(left))? {
                break;
            }
            for received in self.ends[to].rx(0).batch(64) {
                match frame::look(&received.to_vec(), &mut self.spare) {
                    Seen::Wrong => panic!("a damaged frame: {:?}", received.to_vec()),
                    // Of an earlier exchange, which did not wait for it: a bridge was busy.
                    Seen::Ours { flow, number } if flow == self.flow && number < numbers.start => {}
                    Seen::Ours { flow, number } if flow == self.flow => {
                        let expected = next..numbers.end;
                        assert!(expected.contains(&number), "{number} is not in {expected:?}");
                        next = number + 1;
                        arrived += 1;
                    }
                    _ => {}
                }
            }
        }
        Ok(arrived)
    }
}
