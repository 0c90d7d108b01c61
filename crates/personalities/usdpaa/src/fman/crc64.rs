//! The sum over a key: CRC-64 with ECMA-182's polynomial, its bits reversed, eight bytes at a time.
//!
//! Programs compute the same by the functions of `fsl_fman.h`, and so know which frame queue a flow comes by.

const POLYNOMIAL: u64 = 0xC96C_5795_D787_0F42;

/// `TABLES[n][byte]`: what a byte adds that has `n` others behind it.
static TABLES: [[u64; 256]; 8] = tables();

const fn tables() -> [[u64; 256]; 8] {
    let mut tables = [[0; 256]; 8];
    let mut byte = 0;
    while byte < 256 {
        let (mut sum, mut bit) = (byte as u64, 0);
        while bit < 8 {
            sum = sum >> 1 ^ (if sum & 1 == 1 { POLYNOMIAL } else { 0 });
            bit += 1;
        }
        tables[0][byte] = sum;
        byte += 1;
    }
    let mut n = 1;
    while n < 8 {
        let mut byte = 0;
        while byte < 256 {
            let before: u64 = tables[n - 1][byte];
            tables[n][byte] = tables[0][(before & 0xff) as usize] ^ before >> 8;
            byte += 1;
        }
        n += 1;
    }
    tables
}

/// The sum over `key`.
#[inline]
pub fn crc64(key: &[u8]) -> u64 {
    let (words, rest) = key.as_chunks::<8>();
    let mut crc = !0;
    for word in words {
        let word = (crc ^ u64::from_le_bytes(*word)).to_le_bytes();
        crc = (0..8).fold(0, |sum, n| sum ^ TABLES[7 - n][usize::from(word[n])]);
    }
    for byte in rest {
        crc = TABLES[0][usize::from(crc as u8 ^ byte)] ^ crc >> 8;
    }
    !crc
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sum_is_that_of_the_standard() {
        assert_eq!(TABLES[0][1], 0xB32E_4CBE_03A7_5F6F);
        assert_eq!(crc64(b"123456789"), 0x995D_C9BB_DF19_39FA);
        let whole = *b"one byte after the other";
        let slow = |key: &[u8]| {
            !key.iter().fold(!0u64, |crc, byte| TABLES[0][usize::from(crc as u8 ^ byte)] ^ crc >> 8)
        };
        for length in 0..=whole.len() {
            assert_eq!(crc64(&whole[..length]), slow(&whole[..length]));
        }
    }
}
