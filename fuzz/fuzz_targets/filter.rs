//! Any filter in classic BPF: it is refused, or the kernel's verifier takes what it is translated
//! to, and any packet matches there if it does in the classic machine. Without root the kernel is
//! not asked.
#![no_main]

#[path = "../../crates/packets/filter/tests/machines/mod.rs"]
mod machines;

use libfuzzer_sys::fuzz_target;
use machines::{Loaded, filter, matches, may_load};
use ringway_filter::{Insn, Program};

/// Shortest and longest frame that the kernel takes in a test.
const FRAME: std::ops::RangeInclusive<usize> = 14..=3000;

fn run(bytes: &[u8]) -> Option<()> {
    let (&[filter_len, frame_len], bytes) = bytes.split_first_chunk()?;
    let (code, frame) = bytes.split_at_checked(8 * usize::from(filter_len & 0x3f))?;
    let mut frame = frame.repeat(1 + usize::from(frame_len));
    frame.resize(frame.len().clamp(*FRAME.start(), *FRAME.end()), 0);

    let (raw, _) = code.as_chunks::<8>();
    let raw = raw.iter().map(|&[c, d, jt, jf, k @ ..]| Insn {
        code: u16::from_le_bytes([c, d]),
        jt,
        jf,
        k: u32::from_le_bytes(k),
    });
    let made = Program::new(filter(code)).expect("the filter was made to fit");
    for program in Program::new(raw.collect()).into_iter().chain([made]) {
        let expected = matches(program.insns(), &frame);
        if may_load() {
            assert_eq!(Loaded::new(&program).matches(&frame), expected);
        }
    }
    Some(())
}

fuzz_target!(|bytes: &[u8]| {
    run(bytes);
});
