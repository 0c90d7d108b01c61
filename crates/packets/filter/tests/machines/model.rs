//! The classic machine, as `bpf(4)` describes it.

use ringway_filter::Insn;

/// Whether `packet` matches a valid filter.
pub fn matches(insns: &[Insn], packet: &[u8]) -> bool {
    run(insns, packet).unwrap_or(0) != 0
}

/// What it returns; `None` for a read beyond the packet, or a division by zero.
pub fn run(insns: &[Insn], packet: &[u8]) -> Option<u32> {
    let (mut a, mut x, mut memory) = (0u32, 0u32, [0u32; 16]);
    let read = |at: u64, len: u64| {
        let bytes = packet.get(usize::try_from(at).ok()?..usize::try_from(at + len).ok()?)?;
        Some(bytes.iter().fold(0, |value, &byte| value << 8 | u32::from(byte)))
    };
    let mut at = 0;
    loop {
        let Insn { code, jt, jf, k } = insns[at];
        at += 1;
        let by = if code & 0x08 == 0 { k } else { x };
        let k64 = u64::from(k);
        let indexed = k64 + u64::from(x);
        match code {
            0x00 => a = k,
            0x20 => a = read(k64, 4)?,
            0x28 => a = read(k64, 2)?,
            0x30 => a = read(k64, 1)?,
            0x40 => a = read(indexed, 4)?,
            0x48 => a = read(indexed, 2)?,
            0x50 => a = read(indexed, 1)?,
            0x60 => a = memory[k as usize],
            0x80 => a = packet.len() as u32,
            0x01 => x = k,
            0x61 => x = memory[k as usize],
            0x81 => x = packet.len() as u32,
            0xb1 => x = 4 * (read(k64, 1)? & 0xf),
            0x02 => memory[k as usize] = a,
            0x03 => memory[k as usize] = x,
            0x04 | 0x0c => a = a.wrapping_add(by),
            0x14 | 0x1c => a = a.wrapping_sub(by),
            0x24 | 0x2c => a = a.wrapping_mul(by),
            0x34 | 0x3c => a = a.checked_div(by)?,
            0x44 | 0x4c => a |= by,
            0x54 | 0x5c => a &= by,
            0x64 | 0x6c => a = a.checked_shl(by).unwrap_or(0),
            0x74 | 0x7c => a = a.checked_shr(by).unwrap_or(0),
            0x84 => a = a.wrapping_neg(),
            0x94 | 0x9c => a = a.checked_rem(by)?,
            0xa4 | 0xac => a ^= by,
            0x05 => at += k as usize,
            0x15 | 0x1d | 0x25 | 0x2d | 0x35 | 0x3d | 0x45 | 0x4d => {
                let yes = match code & 0xf0 {
                    0x10 => a == by,
                    0x20 => a > by,
                    0x30 => a >= by,
                    _ => a & by != 0,
                };
                at += usize::from(if yes { jt } else { jf });
            }
            0x06 => return Some(k),
            0x16 => return Some(a),
            0x07 => x = a,
            0x87 => a = x,
            _ => panic!("{code:#x} is no instruction"),
        }
    }
}
