//! A frame's way through a program of USDPAA: from a pipe into a buffer and its frame queue, by a portal to a callback,
//! which exchanges the addresses and sends it, and back into the pipe. The far end is not counted.

use ringway_doc::open;
use usdpaa::stepped::Reflector;

use crate::{cases::PACKETS, counted};

/// Turns that are not counted: all slots were used then.
const WARM_UP: u32 = 1024;
const BUFFERS: u32 = 256;

/// With `batch` frames at once, of eight flows.
pub fn reflect(batch: u32) {
    let reflector = Reflector::new(open("netmap:u{1").expect("a pipe"), BUFFERS);
    let mut far = open("netmap:u}1").expect("its other end");
    for turn in 0..WARM_UP + PACKETS / batch {
        for number in 0..batch {
            assert!(far.tx(0).push(&frame(number as u8 % 8)));
        }
        far.tx(0).sync();
        let reflect = || reflector.turn(batch);
        if turn < WARM_UP {
            reflect()
        } else {
            counted(reflect)
        }
        far.rx(0).sync();
        assert_eq!(far.rx(0).batch(batch as usize).count(), batch as usize);
    }
}

/// IPv4 of 60 bytes, of one of the flows.
fn frame(flow: u8) -> [u8; 60] {
    let mut frame = [0; 60];
    frame[..12].copy_from_slice(&[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2]);
    frame[12..15].copy_from_slice(&[8, 0, 0x45]);
    frame[26..34].copy_from_slice(&[10, 0, 0, flow, 10, 1, 0, 1]);
    frame
}
