//! Any virtio-net header before any frame, for a receiver of any limits: what comes out is frames
//! that the receiver takes, with right checksums where they were asked for, or nothing.
#![no_main]

use libfuzzer_sys::fuzz_target;
use ringway_vnet::{Header, MAX_FRAME, Output, consume};

/// What comes before the header: the receiver's longest frame, the memory for segments, and how
/// often the frame is repeated.
const LIMITS: usize = 5;

fn run(bytes: &[u8]) -> Option<()> {
    let (&[a, b, c, d, times], bytes) = bytes.split_first_chunk::<LIMITS>()?;
    let header = Header::parse(bytes)?;
    let len = if bytes.len() < Header::LONG { Header::SHORT } else { Header::LONG };
    assert_eq!(Header::parse(&header.emit()), Some(header));
    assert_eq!(header.emit()[..len], bytes[..len]);

    let sent = bytes[len..].repeat(1 + usize::from(times));
    let max_frame = usize::from(u16::from_le_bytes([a, b]));
    let mut memory = vec![0; 4 * usize::from(u16::from_le_bytes([c, d]))];
    let mut frame = sent.clone();
    let output = consume(&header, &mut frame, max_frame, &mut memory).ok()?;
    assert!(sent.len() <= MAX_FRAME && frame.len() == sent.len());
    let asks = header.gso().expect("a header that is not understood is refused");
    match output {
        Output::InPlace => {
            assert!(asks.is_none());
            let changed = frame.iter().zip(&sent).filter(|(new, old)| new != old).count();
            assert!(changed <= 2 && (changed == 0 || !header.is_plain()), "more than a checksum");
        }
        Output::Segments(segments) => {
            assert!(asks.is_some() && frame == sent);
            let mut taken = 0;
            for segment in segments.frames(&mut memory) {
                assert!((34..=max_frame).contains(&segment.len()));
                // Addresses and types are those of the whole frame.
                assert_eq!(segment[..14], sent[..14]);
                taken += segment.len();
            }
            assert!(taken >= sent.len(), "of the frame, nothing is lost");
        }
    }
    Some(())
}

fuzz_target!(|bytes: &[u8]| {
    run(bytes);
});
