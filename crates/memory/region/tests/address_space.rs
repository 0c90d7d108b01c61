//! Mappings take no more of the address space than they say. It is a program of its own: others map memory at any time.

use std::sync::atomic::Ordering::Relaxed;

use ringway_region::Mapping;

/// Bytes of address space that the process has.
fn address_space() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages = statm.split_whitespace().next().unwrap();
    pages.parse::<usize>().unwrap() * rustix::param::page_size()
}

#[test]
fn a_mapping_gives_its_addresses_back() {
    const HUGE: usize = 2 << 20;
    const ROUNDS: usize = 50;
    for len in [4096, HUGE - 4096, HUGE, HUGE + 4096, 2 * HUGE + 1] {
        let round = || {
            let (_fd, mapping) = Mapping::create("gives-back", len).unwrap();
            [0, len - 1].iter().for_each(|at| mapping.bytes()[*at].store(7, Relaxed));
            assert!(mapping.bytes().len() == len);
        };
        // What is made once is made by now.
        round();
        let before = address_space();
        (0..ROUNDS).for_each(|_| round());
        // A page of each round, or more, would be what stays. What the allocator does is not counted so exactly.
        let grown = address_space().saturating_sub(before);
        assert!(grown < ROUNDS * 4096, "{grown} bytes of {len}, {ROUNDS} times");
        let (_fd, mapping) = Mapping::create("takes", len).unwrap();
        let taken = address_space() - before - grown;
        assert!((len..len + (64 << 10) + 4096).contains(&taken), "{taken} for {len}");
        drop(mapping);
    }
}
