//! Any filter in classic BPF, over any packet, of which only the first bytes may be there: what the
//! interpreter returns is what libpcap's `bpf_filter` returns, and the classic machine as its rules say.
#![no_main]

#[path = "../../crates/packets/filter/tests/machines/mod.rs"]
mod machines;

use libfuzzer_sys::fuzz_target;
use machines::{filter, pcap_run};
use ringway_filter::{Insn, Interpreter, Program};

/// Words of scratch memory, and the instruction that stores A, which is 0 in the beginning, into one.
const SCRATCH: u32 = 16;
const STORE: u16 = 0x02;

fn run(bytes: &[u8]) -> Option<()> {
    let (&[filter_len, longer, repeat], bytes) = bytes.split_first_chunk()?;
    let (code, frame) = bytes.split_at_checked(8 * usize::from(filter_len & 0x3f))?;
    let frame = frame.repeat(1 + usize::from(repeat & 7));
    let length = frame.len() as u32 + u32::from(longer);

    let (raw, _) = code.as_chunks::<8>();
    let raw = raw.iter().map(|&[c, d, jt, jf, k @ ..]| Insn {
        code: u16::from_le_bytes([c, d]),
        jt,
        jf,
        k: u32::from_le_bytes(k),
    });
    // The scratch memory of libpcap's machine holds anything before it is written.
    let clear = (0..SCRATCH).map(|k| Insn { code: STORE, jt: 0, jf: 0, k });
    let made = Program::new(clear.clone().chain(filter(code)).collect());
    let made = made.expect("the filter was made to fit");
    for program in Program::new(clear.chain(raw).collect()).into_iter().chain([made]) {
        let returned = Interpreter::new(&program).run(&frame.as_slice(), length);
        assert_eq!(returned, pcap_run(program.insns(), &frame, length), "{program:?}");
    }
    Some(())
}

fuzz_target!(|bytes: &[u8]| {
    run(bytes);
});
