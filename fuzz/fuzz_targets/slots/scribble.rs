//! What a hostile program writes into the memory that it has.

use ringway_kring::Kring;
use ringway_region::Region;

/// Writes eight bytes anywhere but into the buffers.
pub fn scribble(region: &Region, number: u32, word: u64) {
    let layout = region.layout();
    let bufs = &layout.bufs;
    let after = bufs.offset + u64::from(bufs.size) * u64::from(bufs.total);
    let behind = layout.total() - after - 8;
    let at = u64::from(number) % (bufs.offset + behind);
    let at = if at < bufs.offset { at } else { after + at - bufs.offset };
    rustix::io::pwrite(region.memfd(), &word.to_le_bytes(), at).unwrap();
}

/// Writes a slot of a ring.
pub fn set_slot(region: &Region, kring: &Kring, at: u8, number: u32, word: u64) {
    let ring = kring.ring();
    // Buffers that there are come more often than by chance.
    let index = match number & 0xf000_0000 {
        0 => number,
        _ => number % (region.layout().bufs.total + 2),
    };
    let words = [u64::from(index) | word << 32, word >> 32];
    ring.set_slot_words(u32::from(at) % ring.num_slots(), words);
}
