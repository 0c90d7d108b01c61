//! What the whole-program tests share.
//!
//! A test that opens ports runs [isolated]: in a process of its own, whose daemon lives in a
//! directory of its own. Further client processes are the program `traffic`, and the C
//! programs of `tests/c`, built by [`compile`]. All speak [numbered frames](frame).
#![forbid(unsafe_code)]
#![allow(clippy::disallowed_methods, reason = "tests are told by variables what to do")]

pub mod attacks;
pub mod bystanders;
pub mod c;
pub mod capture;
mod connectivity;
pub mod echo;
pub mod frame;
mod home;
mod isolated;
mod kills;
mod launch;
pub mod packet;
mod pair;
mod receive;
pub mod resources;
pub mod scribbler;
mod serial;
pub mod source;
pub mod stream;
mod unprivileged;
pub mod usdpaa;
mod wait;
pub mod wire;

pub use c::compile;
pub use connectivity::assert_connected;
pub use home::{Home, connect, fill_queue};
pub use isolated::{isolated, isolated_for, isolated_with_system};
pub use kills::{kills, kills_limit};
pub use launch::{inside, started_by};
pub use pair::Pair;
pub use receive::receive;
pub use serial::{beside_others, one_at_a_time};
pub use unprivileged::{GROUP, NOBODY, as_nobody, as_nobody_with, become_another, give_capability};
pub use wait::{ends, until};

/// Pseudo-random numbers that a printed seed repeats (xorshift64*).
pub struct Random(u64);

impl Random {
    /// Seeded from `RINGWAY_SEED`, else from the clock; prints the seed.
    pub fn seeded() -> Random {
        let given = std::env::var("RINGWAY_SEED").ok().and_then(|seed| seed.parse().ok());
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        let seed = given.unwrap_or(now.map_or(1, |t| t.as_nanos() as u64));
        println!("RINGWAY_SEED={seed} repeats this run");
        Random::new(seed)
    }

    pub fn new(seed: u64) -> Random {
        Random(seed.max(1))
    }

    pub fn draw(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// A number below `limit`.
    pub fn below(&mut self, limit: u64) -> u64 {
        self.draw() % limit
    }

    pub fn fill(&mut self, bytes: &mut [u8]) {
        for chunk in bytes.chunks_mut(8) {
            chunk.copy_from_slice(&self.draw().to_ne_bytes()[..chunk.len()]);
        }
    }
}

/// Does something at the end of a scope, also when the scope panics.
pub struct OnDrop<F: Fn()>(pub F);

impl<F: Fn()> Drop for OnDrop<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}
