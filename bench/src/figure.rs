//! What one run of an experiment gives.

use crate::usage::Usage;

/// A figure in the experiment's unit and, where it was measured, what the contestant's own code
/// cost.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Figure {
    pub value: f64,
    pub own_code: Option<OwnCode>,
}

/// What the contestant's processes spent outside the kernel.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OwnCode {
    /// Of all the CPU time that they spent.
    pub percent: f64,
    /// Nanoseconds for each packet.
    pub per_packet: f64,
}

impl Figure {
    /// A figure of a contestant that needed `usage` for `packets`.
    pub fn new(value: f64, usage: Usage, packets: f64) -> Figure {
        let per_packet = usage.user as f64 / packets;
        let own_code = usage.user_percent().filter(|_| packets > 0.0);
        Figure { value, own_code: own_code.map(|percent| OwnCode { percent, per_packet }) }
    }
}

impl From<f64> for Figure {
    fn from(value: f64) -> Figure {
        Figure { value, own_code: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_code_is_told_where_something_was_spent() {
        let figure = Figure::new(2.0, Usage { user: 500, system: 9500 }, 100.0);
        assert_eq!(figure.own_code, Some(OwnCode { percent: 5.0, per_packet: 5.0 }));
        assert_eq!(Figure::new(0.0, Usage::default(), 0.0), Figure::from(0.0));
    }
}
