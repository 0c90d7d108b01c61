//! Numbered frames whose every byte follows from their flow and number, so that any damage
//! shows.
//!
//! ```text
//! 0    dst   6    src   12 88b5   14 magic   22 flow   26 number   34 pattern ...
//! ```

/// Marks our frames among foreign ones.
const MAGIC: [u8; 8] = *b"ringway!";
const ETHERTYPE: [u8; 2] = [0x88, 0xb5];
const HEADER: usize = 34;

pub const BROADCAST: [u8; 6] = [0xff; 6];

/// The address of one side, 0 to 255, of a flow.
pub fn mac(flow: u32, side: u8) -> [u8; 6] {
    let [a, b, c, d] = flow.to_be_bytes();
    [0x02 | a << 4, side, a, b, c, d]
}

/// Length of the frame with that number: all kinds of them, 60 to 1514 bytes.
pub fn length(number: u64) -> usize {
    60 + (number.wrapping_mul(389) % 1455) as usize
}

/// Writes the frame into `bytes`.
pub fn build(bytes: &mut Vec<u8>, dst: [u8; 6], src: [u8; 6], flow: u32, number: u64) {
    bytes.clear();
    bytes.extend(dst);
    bytes.extend(src);
    bytes.extend(ETHERTYPE);
    bytes.extend(MAGIC);
    bytes.extend(flow.to_be_bytes());
    bytes.extend(number.to_be_bytes());
    let mut state = (u64::from(flow) << 40) ^ number;
    while bytes.len() < length(number) {
        // splitmix64
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = state;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bytes.extend((word ^ (word >> 31)).to_be_bytes());
    }
    bytes.truncate(length(number));
}

/// What a received frame is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seen {
    /// Not one of ours.
    Foreign,
    /// One of ours, intact.
    Ours { flow: u32, number: u64 },
    /// One of ours, damaged.
    Wrong,
}

/// Looks at a frame; `spare` is memory to compare with.
pub fn look(bytes: &[u8], spare: &mut Vec<u8>) -> Seen {
    if bytes.len() < HEADER || bytes[14..22] != MAGIC {
        return Seen::Foreign;
    }
    let flow = u32::from_be_bytes(part(bytes, 22));
    let number = u64::from_be_bytes(part(bytes, 26));
    build(spare, part(bytes, 0), part(bytes, 6), flow, number);
    if spare == bytes { Seen::Ours { flow, number } } else { Seen::Wrong }
}

fn part<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    *bytes[at..].first_chunk().expect("within the header")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_damage_shows() {
        let (mut frame, mut spare) = (Vec::new(), Vec::new());
        build(&mut frame, BROADCAST, mac(7, 1), 7, 123);
        assert_eq!(look(&frame, &mut spare), Seen::Ours { flow: 7, number: 123 });
        for i in 12..frame.len() {
            frame[i] ^= 1;
            assert_ne!(look(&frame, &mut spare), Seen::Ours { flow: 7, number: 123 }, "byte {i}");
            frame[i] ^= 1;
        }
        frame.pop();
        assert_eq!(look(&frame, &mut spare), Seen::Wrong);
    }
}
