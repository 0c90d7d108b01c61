//! A hostile client: random bytes all over its region.

use std::ops::Range;

use ringway::{Error, Port};
use ringway_abi::Dir;

use crate::Random;

/// Bytes written at once.
const PAGE: usize = 4096;
/// Bytes that are written or spared together: what rings and control blocks are aligned to.
const PIECE: usize = 64;

/// Opens port `name` and writes random bytes over its region for ever; says "scribbleing" when it
/// has done so once. A sender sends all the while. A receiver does not, and leaves its transmit
/// ring whole: what it receives could otherwise come back as a forgery.
pub fn scribble(name: &str, receives: bool) -> Result<(), Error> {
    let mut random = Random::seeded();
    let options = if receives { Port::options() } else { Port::options().tx_only() };
    let mut port = options.open(name)?;
    let layout = *port.binding().region().layout();
    let spared = if receives { transmit_ring(&port) } else { Vec::new() };
    let buffers = layout.bufs.offset..layout.memsize();
    let mut page = [0; PAGE];
    for round in 0u64.. {
        for offset in (0..layout.total()).step_by(PAGE) {
            // Most of the region is buffers; where the rings are is where it hurts.
            if round > 0 && buffers.contains(&offset) && random.below(64) != 0 {
                continue;
            }
            random.fill(&mut page);
            // Large numbers are all refused alike. Small ones come close to right ones.
            if random.below(2) == 0 {
                for word in page.chunks_exact_mut(4) {
                    word[1] &= 0x07;
                    word[2..].fill(0);
                }
            }
            write(&port, offset, &page, &spared);
            if random.below(4) == 0 {
                use_ring(&mut port, receives, &mut random);
            }
        }
        if round == 0 {
            println!("scribbleing");
        }
    }
    Ok(())
}

/// Where the port's transmit ring, its control block and its shadow are.
fn transmit_ring(port: &Port) -> Vec<Range<u64>> {
    let layout = port.binding().region().layout();
    let ring = port.binding().rings(Dir::Tx)[0].kring().object();
    let spans = [layout.rings.object(ring), layout.block(ring), layout.shadow(ring)];
    let ends = [layout.rings.object(ring + 1), layout.block(ring + 1), layout.shadow(ring + 1)];
    let span = |(start, end): (Option<u64>, Option<u64>)| {
        start.expect("the ring is in its region")..end.unwrap_or(layout.total())
    };
    spans.into_iter().zip(ends).map(span).collect()
}

/// Writes through the memfd, behind the back of all who have it mapped.
fn write(port: &Port, offset: u64, page: &[u8], spared: &[Range<u64>]) {
    let memfd = port.binding().region().memfd();
    let overlaps = |from: u64, len: usize| {
        spared.iter().any(|span| from < span.end && span.start < from + len as u64)
    };
    let step = if overlaps(offset, page.len()) { PIECE } else { page.len() };
    for (piece, at) in page.chunks(step).zip((offset..).step_by(step)) {
        if !overlaps(at, piece.len()) {
            let written = rustix::io::pwrite(memfd, piece, at);
            assert_eq!(written, Ok(piece.len()), "cannot write to the region");
        }
    }
}

fn use_ring(port: &mut Port, receives: bool, random: &mut Random) {
    if receives {
        port.rx(0).sync();
        return;
    }
    let mut frame = [0; 60];
    random.fill(&mut frame);
    port.tx(0).push(&frame);
    port.tx(0).sync();
}
