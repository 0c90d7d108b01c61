//! Memory, by user.

use super::family::Family;
use super::scrape::Scrape;

pub fn families(scrape: &Scrape) -> Vec<Family> {
    let mut regions = Family::gauge("ringway_regions", "Regions that a user has");
    let mut memory = Family::gauge(
        "ringway_region_memory_bytes",
        "Bytes of a user's regions, of which most may never have been touched",
    );
    let mut buffers = Family::gauge("ringway_region_buffers", "Buffers of a user's regions");
    let mut free = Family::gauge(
        "ringway_region_free_buffers",
        "Buffers of a user's regions that no ring and no program has",
    );
    let mut asked = Family::gauge(
        "ringway_region_asked_bytes",
        "Bytes of the rings and buffers of a user that were ever in use at once, which memory_per_user limits",
    );
    for user in &scrape.users {
        let of = vec![("uid", user.uid.to_string())];
        regions.put(&of, &[], user.regions);
        memory.put(&of, &[], user.bytes);
        asked.put(&of, &[], user.asked);
        buffers.put(&of, &[], user.bufs);
        free.put(&of, &[], user.free_bufs);
    }
    vec![regions, memory, asked, buffers, free]
}
