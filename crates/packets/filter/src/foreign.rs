//! Filters that the [`Interpreter`](crate::Interpreter) does not take, because they loop (`protochain`): for the
//! libpcap of this machine.

use crate::{Insn, sys};

/// A filter that libpcap runs.
#[derive(Clone)]
pub struct Foreign(Option<sys::Valid>);

impl Foreign {
    /// A filter that libpcap finds invalid matches nothing; so does each filter on a machine without libpcap.
    pub fn new(insns: Vec<Insn>) -> Foreign {
        Foreign(sys::validate(insns))
    }

    /// What it returns of a packet of `length` bytes, of which some were captured.
    pub fn run(&self, packet: &[u8], length: u32) -> u32 {
        self.0.as_ref().map_or(0, |valid| valid.run(packet, length))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn insn(code: u16, jt: u8, jf: u8, k: u32) -> Insn {
        Insn { code, jt, jf, k }
    }

    #[test]
    fn a_loop_runs_until_it_ends_or_the_packet_does() {
        // The first byte that is not 0: ldx #0; 1: ldb [x]; jeq #0, 0, 4; txa; add #1; tax; ja 1; ret a
        let first_byte = Foreign::new(vec![
            insn(0x01, 0, 0, 0),
            insn(0x50, 0, 0, 0),
            insn(0x15, 0, 4, 0),
            insn(0x87, 0, 0, 0),
            insn(0x04, 0, 0, 1),
            insn(0x07, 0, 0, 0),
            insn(0x05, 0, 0, 6u32.wrapping_neg()),
            insn(0x16, 0, 0, 0),
        ]);
        let cases: [(&[u8], u32); 4] = [(&[0, 0, 9, 4], 9), (&[200], 200), (&[0, 0], 0), (&[], 0)];
        for (packet, expected) in cases {
            assert_eq!(first_byte.run(packet, 1500), expected, "{packet:?}");
        }
    }

    #[test]
    fn the_length_is_that_on_the_wire() {
        let length = Foreign::new(vec![insn(0x80, 0, 0, 0), insn(0x16, 0, 0, 0)]);
        assert_eq!(length.run(&[1, 2], 1500), 1500);
    }

    #[test]
    fn what_is_no_filter_matches_nothing() {
        for insns in [vec![], vec![insn(0xffff, 0, 0, 0)], vec![insn(0x00, 0, 0, 7)]] {
            assert_eq!(Foreign::new(insns.clone()).run(&[1, 2, 3], 3), 0, "{insns:?}");
        }
        assert_eq!(Foreign::new(vec![insn(0x06, 0, 0, 7)]).run(&[], 0), 7);
    }
}
