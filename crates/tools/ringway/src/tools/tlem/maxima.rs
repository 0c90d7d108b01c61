//! How far later processes of a session may change its link.

use crate::link::{Delay, Settings};
use crate::tools::emulation::{bits, time};
use crate::units::Rate;

/// The greatest delay, bandwidth and time to hold a packet, where one is given.
pub type Given = [Option<f64>; 3];

/// Memory for what is on its way in one direction: what a link without options has, and the most.
const MEMORY: (f64, f64) = ((16 << 20) as f64, (1u64 << 30) as f64);

/// What a link takes from later processes of a session, of one direction: times in nanoseconds, bits a second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Maxima {
    delay: f64,
    bandwidth: f64,
    hold: f64,
}

impl Maxima {
    /// As given; at least what the first settings of the session are.
    pub fn new(given: Given, first: &Settings) -> Maxima {
        let Maxima { delay, bandwidth, hold } = Maxima::of(first);
        let more = |given: Option<f64>, first: f64| given.map_or(first, |given| given.max(first));
        let [most_delay, most_bandwidth, most_hold] = given;
        Maxima {
            delay: more(most_delay, delay),
            bandwidth: more(most_bandwidth, bandwidth),
            hold: more(most_hold, hold),
        }
    }

    /// What settings ask for. A distribution without a greatest delay counts with its mean.
    fn of(settings: &Settings) -> Maxima {
        let delay = match settings.delay {
            Delay::Constant(time) => time,
            Delay::Uniform { max, .. } => max,
            Delay::Normal { mean, .. }
            | Delay::Exponential { mean, .. }
            | Delay::Pareto { mean, .. } => mean,
        };
        let gap = settings.gaps.map_or(0.0, |gaps| gaps.max);
        let bandwidth = settings.bandwidth.map_or(f64::INFINITY, |width| match width.rate {
            Rate::Bits(rate) | Rate::Packets(rate) => rate,
        });
        let hold = settings.hold.map_or(0.0, |hold| hold.time as f64);
        Maxima { delay: delay.max(gap), bandwidth, hold }
    }

    /// Whether later settings are within it; else why they are not.
    pub fn allow(&self, settings: &Settings) -> Result<(), String> {
        let asked = Maxima::of(settings);
        for (letter, what, asked, most) in [
            ('D', "delay", asked.delay, self.delay),
            ('B', "bandwidth", asked.bandwidth, self.bandwidth),
            ('R', "time to hold a packet", asked.hold, self.hold),
        ] {
            if asked > most {
                return Err(format!(
                    "-{letter}: more than the greatest {what} of the session; end it with -a, and \
                     begin another with -M"
                ));
            }
        }
        Ok(())
    }

    /// Bytes for all that can be on its way, twice, since a short packet takes as much as a longer one.
    pub fn memory(&self) -> usize {
        let (least, most) = MEMORY;
        if self.bandwidth.is_infinite() {
            return least as usize;
        }
        let seconds = (self.delay + self.hold) / 1e9;
        (least + 2.0 * seconds * self.bandwidth / 8.0).min(most) as usize
    }
}

/// Reads `delay[,bandwidth[,hold]]`. What is not there is `None`; a bandwidth of 0 is any.
pub fn parse(text: &str) -> Option<Given> {
    let mut maxima = [None; 3];
    for (at, value) in text.split(',').enumerate() {
        let place = maxima.get_mut(at)?;
        if value == "none" {
            continue;
        }
        *place = Some(match at {
            1 => bits(value).map(|bps| if bps > 0.0 { bps } else { f64::INFINITY })?,
            _ => time(value)?,
        });
    }
    Some(maxima)
}
