//! A region as a program finds it: by netmap's structures, at their places in the memfd.

use std::{
    mem::offset_of,
    sync::{Arc, atomic::Ordering::Relaxed},
};

use ringway_abi::{Dir, netmap_if, netmap_ring};
use ringway_region::{
    BLOCK_SIZE, Error, LAYOUT_VERSION, Layout, LayoutError, Mapping, NetifView, Region, RingInit,
    RingOffsets, RingView, Sizes, collapse,
};
use rustix::{
    fs::{MemfdFlags, SealFlags, fcntl_add_seals, ftruncate, memfd_create},
    io::{Errno, FdFlags, fcntl_getfd},
};

const SLOTS: u32 = 16;
const HEADROOM: u32 = 256;

fn region_with(headroom: u32) -> Arc<Region> {
    let sizes = Sizes::private([2, 2], [SLOTS; 2], 0, 0);
    Arc::new(Region::create(7, Layout::new(&sizes, headroom).unwrap()).unwrap())
}

/// What another process reads there.
fn bytes<const N: usize>(region: &Region, at: u64) -> [u8; N] {
    let mut bytes = [0; N];
    assert_eq!(rustix::io::pread(region.memfd(), &mut bytes, at), Ok(N));
    bytes
}

fn word(region: &Region, at: u64) -> u32 {
    u32::from_ne_bytes(bytes(region, at))
}

fn scribble(region: &Region, at: u64, len: usize) {
    assert_eq!(rustix::io::pwrite(region.memfd(), &vec![0xa5; len], at), Ok(len));
}

/// S-NIFP-1 to 3.
#[test]
fn an_interface_says_what_it_has() {
    let region = region_with(0);
    let layout = *region.layout();
    assert!(NetifView::new(&region, layout.ifs.total).is_none());
    let netif = NetifView::new(&region, 1).unwrap();
    let at = netif.offset();
    assert_eq!((netif.object(), at), (1, layout.ifs.object(1).unwrap()));
    scribble(&region, at, layout.ifs.size as usize);
    let rings = RingOffsets {
        tx: vec![Some(3), None],
        rx: vec![Some(0), Some(1), Some(2)],
        host_tx: vec![Some(4)],
        host_rx: vec![None, Some(5)],
    };
    netif.init("a name of 20 letters", 0x77, &rings);
    assert_eq!(&bytes::<16>(&region, at), b"a name of 20 le\0");
    let field = |offset: usize| word(&region, at + offset as u64);
    assert_eq!(field(offset_of!(netmap_if, ni_version)), 0);
    assert_eq!(field(offset_of!(netmap_if, ni_flags)), 0x77);
    assert_eq!(field(offset_of!(netmap_if, ni_tx_rings)), 2);
    assert_eq!(field(offset_of!(netmap_if, ni_rx_rings)), 3);
    assert_eq!(field(offset_of!(netmap_if, ni_bufs_head)), 0);
    assert_eq!(field(offset_of!(netmap_if, ni_host_tx_rings)), 1);
    assert_eq!(field(offset_of!(netmap_if, ni_host_rx_rings)), 2);
    let spare = at + offset_of!(netmap_if, ni_spare1) as u64;
    assert_eq!(bytes::<12>(&region, spare), [0; 12]);
    let found = [3, u32::MAX, 4, 0, 1, 2, u32::MAX, 5]
        .map(|object| layout.rings.object(object).map_or(0, |ring| ring.wrapping_sub(at)));
    let offsets = at + size_of::<netmap_if>() as u64;
    for (n, expected) in (0..).zip(found) {
        let offset = u64::from_ne_bytes(bytes(&region, offsets + 8 * n));
        assert_eq!(offset, expected, "ring {n}");
    }
    netif.set_bufs_head(9);
    assert_eq!((netif.bufs_head(), field(offset_of!(netmap_if, ni_bufs_head))), (9, 9));
    let most = (layout.ifs.size as usize - size_of::<netmap_if>()) / 8;
    assert!(NetifView::fits(&region, most) && !NetifView::fits(&region, most + 1));
}

/// S-NIFP-4, but for the slots' buffers.
#[test]
fn a_ring_says_where_its_buffers_are() {
    for headroom in [0, HEADROOM] {
        let region = region_with(headroom);
        let layout = *region.layout();
        for (object, dir, tail) in [(1, Dir::Tx, SLOTS - 1), (2, Dir::Rx, 0)] {
            let at = layout.rings.object(object).unwrap();
            scribble(&region, at, size_of::<netmap_ring>());
            let ring = RingView::new(&region, object, SLOTS).unwrap();
            // The slots stay as they are.
            ring.set_slot(0, 5, 6, 7);
            ring.init(object, &RingInit { dir, ringid: 0x102, num_slots: SLOTS });
            assert_eq!(ring.slot_words(0), [7 << 48 | 6 << 32 | 5, 0]);
            let field = |offset: usize| word(&region, at + offset as u64);
            let buf_ofs = offset_of!(netmap_ring, buf_ofs) as u64;
            let buf_ofs = i64::from_ne_bytes(bytes(&region, at + buf_ofs));
            let size = field(offset_of!(netmap_ring, nr_buf_size));
            let first = at.wrapping_add_signed(buf_ofs);
            assert_eq!((first, size), (layout.bufs.offset + u64::from(headroom), layout.bufs.size));
            // What a program writes into buffer 3 is what is read there.
            let third = first + 3 * u64::from(size);
            rustix::io::pwrite(region.memfd(), b"third", third).unwrap();
            assert_eq!(ring.buf(3).unwrap().read(0), Some(*b"third"));
            assert_eq!(ring.bufs().get(3).unwrap().read(0), Some(*b"third"));
            assert_eq!(field(offset_of!(netmap_ring, num_slots)), SLOTS);
            assert_eq!(field(offset_of!(netmap_ring, nr_data_size)), size - headroom);
            let ringid = at + offset_of!(netmap_ring, ringid) as u64;
            assert_eq!(bytes(&region, ringid), 0x102u16.to_ne_bytes());
            let way = at + offset_of!(netmap_ring, dir) as u64;
            assert_eq!(bytes(&region, way), dir.abi().to_ne_bytes());
            let cursors = [
                offset_of!(netmap_ring, head),
                offset_of!(netmap_ring, cur),
                offset_of!(netmap_ring, tail),
            ];
            assert_eq!(cursors.map(field), [0, 0, tail]);
            assert_eq!((ring.head(), ring.cur(), ring.tail(), ring.flags()), (0, 0, tail, 0));
            ring.set_head(1);
            ring.set_cur(2);
            ring.set_tail(3);
            assert_eq!(cursors.map(field), [1, 2, 3]);
            assert_eq!((ring.head(), ring.cur(), ring.tail()), (1, 2, 3));
            ring.set_ts(-5, 999_999);
            let ts = at + offset_of!(netmap_ring, ts) as u64;
            assert_eq!(bytes(&region, ts), (-5i64).to_ne_bytes());
            assert_eq!(bytes(&region, ts + 8), 999_999i64.to_ne_bytes());
            ring.set_offset_mask(0xff00);
            let mask = at + offset_of!(netmap_ring, offset_mask) as u64;
            assert_eq!(bytes(&region, mask), 0xff00u64.to_ne_bytes());
            let flags = at + offset_of!(netmap_ring, flags) as u64;
            rustix::io::pwrite(region.memfd(), &6u32.to_ne_bytes(), flags).unwrap();
            assert_eq!((ring.flags(), ring.num_slots()), (6, SLOTS));
        }
    }
}

#[test]
fn a_slot_has_its_place_and_its_shadow() {
    let region = region_with(0);
    let layout = *region.layout();
    let ring = RingView::new(&region, 1, SLOTS).unwrap();
    let slots = layout.rings.object(1).unwrap() + size_of::<netmap_ring>() as u64;
    for at in 0..SLOTS {
        ring.set_slot(at, 0x0102_0304 + at, 0x506, 0x708);
        ring.set_slot_ptr(at, u64::from(at) << 40);
        ring.shadow(at).store(at + 1, Relaxed);
    }
    for at in 0..SLOTS {
        let place = slots + 16 * u64::from(at);
        assert_eq!(word(&region, place), 0x0102_0304 + at);
        assert_eq!(bytes(&region, place + 4), 0x506u16.to_ne_bytes());
        assert_eq!(bytes(&region, place + 6), 0x708u16.to_ne_bytes());
        assert_eq!(bytes(&region, place + 8), (u64::from(at) << 40).to_ne_bytes());
        let (slot, plain) = (ring.slot(at), ring.plain_slot(at));
        let parts = (0x0102_0304 + at, 0x506, 0x708);
        assert_eq!((slot.buf_idx, slot.len, slot.flags), parts);
        assert_eq!((plain.buf_idx, plain.len, plain.flags), parts);
        assert_eq!((slot.ptr, plain.ptr), (u64::from(at) << 40, 0));
        let [first, second] = ring.slot_words(at);
        assert_eq!(first, 0x708 << 48 | 0x506 << 32 | u64::from(0x0102_0304 + at));
        assert_eq!(second, u64::from(at) << 40);
        assert_eq!(ring.shadow(at).load(Relaxed), at + 1);
        assert_eq!(word(&region, layout.shadow(1).unwrap() + 4 * u64::from(at)), at + 1);
    }
    ring.set_slot_words(2, [u64::MAX, 7]);
    let slot = ring.slot(2);
    let parts = (slot.buf_idx, slot.len, slot.flags, slot.ptr);
    assert_eq!(parts, (u32::MAX, u16::MAX, u16::MAX, 7));
    assert!(RingView::new(&region, 1, layout.max_slots()).is_some());
    assert!(RingView::new(&region, 1, layout.max_slots() + 1).is_none());
    assert!(RingView::new(&region, 1, 0).is_none());
    assert!(RingView::new(&region, layout.rings.total, SLOTS).is_none());
}

#[test]
fn buffers_have_their_places() {
    for headroom in [0, HEADROOM] {
        let region = region_with(headroom);
        let layout = *region.layout();
        let (total, bufs) = (layout.bufs.total, region.bufs());
        for none in [0, 1, total, total + 1, u32::MAX] {
            assert!(region.buf(none).is_none() && bufs.get(none).is_none(), "{none}");
        }
        for index in [2, 3, total - 1] {
            let (one, other) = (region.buf(index).unwrap(), bufs.get(index).unwrap());
            assert_eq!((one.as_ptr(), one.size()), (other.as_ptr(), other.size()));
            assert_eq!(one.size(), layout.bufs.size - headroom);
            let marker = index.to_ne_bytes();
            assert!(one.store(0, marker));
            let at = layout.bufs.object(index).unwrap() + u64::from(headroom);
            assert_eq!(bytes(&region, at), marker);
            let rest = one.skip(3).unwrap();
            assert_eq!((rest.size(), rest.read(0)), (one.size() - 3, Some([marker[3]])));
            assert_eq!(one.skip(one.size()).map(|end| end.size()), Some(0));
            assert!(one.skip(one.size() + 1).is_none());
        }
        let area = region.buffer_area();
        assert_eq!(area.len(), (layout.bufs.size * total) as usize);
        let first = headroom as usize + 2 * layout.bufs.size as usize;
        assert_eq!(area[first].as_ptr(), region.buf(2).unwrap().as_ptr());
        // In front of the data lies the headroom, if there is one.
        let front = region.in_front::<16>(2);
        assert_eq!(front.is_some(), headroom > 0);
        if let Some(front) = front {
            assert!(front.store(0, *b"in front of data"));
            let at = layout.bufs.object(2).unwrap() + u64::from(headroom) - 16;
            assert_eq!(&bytes::<16>(&region, at), b"in front of data");
            assert!(region.in_front::<256>(2).is_some() && region.in_front::<257>(2).is_none());
            assert!(region.in_front::<16>(1).is_none());
        }
    }
}

#[test]
fn blocks_are_those_of_rings() {
    let region = region_with(0);
    let layout = *region.layout();
    type Block = [std::sync::atomic::AtomicU64; BLOCK_SIZE / 8];
    for object in [0, layout.rings.total - 1] {
        let block = region.block::<Block>(object).unwrap();
        block[1].store(0x1234, Relaxed);
        let at = layout.memsize() + u64::from(object) * BLOCK_SIZE as u64;
        assert_eq!(bytes(&region, at + 8), 0x1234u64.to_ne_bytes());
        assert!(Arc::ptr_eq(block.region(), &region));
    }
    let none = layout.rings.total;
    assert!(region.block::<Block>(none).is_none());
    assert_eq!((layout.block(none), layout.shadow(none)), (None, None));
}

/// A second mapping of the same memfd is the same memory; another region is another.
#[test]
fn a_region_is_opened_by_its_memfd() {
    let (region, other) = (region_with(0), region_with(0));
    let open = |region: &Region, layout| {
        Region::open(region.memfd().try_clone_to_owned().unwrap(), 9, layout)
    };
    let again = open(&region, *region.layout()).unwrap();
    assert_eq!((region.mem_id(), again.mem_id()), (7, 9));
    assert!(region.is_same(&again) && again.is_same(&region) && !region.is_same(&other));
    assert!(region.identity().is_some() && region.identity() != other.identity());
    region.buf(5).unwrap().store(0, *b"seen");
    assert_eq!(again.buf(5).unwrap().read(0), Some(*b"seen"));
    let size = rustix::fs::fstat(again.memfd()).unwrap().st_size;
    assert_eq!(size as u64, region.layout().total());
    // A layout that says more than there is.
    let larger = Layout::new(&Sizes::private([8, 8], [1024; 2], 0, 0), 0).unwrap();
    assert!(matches!(open(&region, larger), Err(Error::Open { mem_id: 9, .. })));
    // One of another version may mean anything.
    let mut newer = *region.layout();
    newer.version = LAYOUT_VERSION + 1;
    let error = open(&region, newer).unwrap_err().to_string();
    assert!(error.contains("its layout has version 2, and this is 1"), "{error}");
}

/// What another process sends is refused before anything is computed of it.
#[test]
fn a_layout_that_is_none_is_refused() {
    let region = region_with(0);
    let mut layout = *region.layout();
    layout.headroom = layout.bufs.size;
    let fd = region.memfd().try_clone_to_owned().unwrap();
    for error in [Region::open(fd, 9, layout).unwrap_err(), Region::create(9, layout).unwrap_err()]
    {
        assert!(error.to_string().contains("its layout is none"), "{error}");
    }
}

/// Those who have it can change what is in it, and nothing else. No other user opens it once more.
#[test]
fn a_memfd_keeps_its_size_its_seals_and_its_mode() {
    let region = region_with(0);
    let (fd, size) = (region.memfd(), region.layout().total());
    for other in [0, size - 4096, size + 4096] {
        assert_eq!(ftruncate(fd, other), Err(Errno::PERM), "{other}");
    }
    assert_eq!(fcntl_add_seals(fd, SealFlags::WRITE), Err(Errno::PERM));
    let stat = rustix::fs::fstat(fd).unwrap();
    assert_eq!((stat.st_size as u64, stat.st_mode & 0o7777), (size, 0o600));
    assert!(fcntl_getfd(fd).unwrap().contains(FdFlags::CLOEXEC));
}

/// What its holders could shorten would take our memory away.
#[test]
fn only_a_memfd_that_cannot_shrink_is_mapped() {
    let len = 8192;
    let file = memfd_create("not-sealed", MemfdFlags::ALLOW_SEALING).unwrap();
    ftruncate(&file, len as u64).unwrap();
    assert!(Mapping::open(&file, len).is_err());
    fcntl_add_seals(&file, SealFlags::GROW).unwrap();
    assert!(Mapping::open(&file, len).is_err(), "the wrong seal");
    fcntl_add_seals(&file, SealFlags::SHRINK).unwrap();
    assert!(Mapping::open(&file, 0).is_err() && Mapping::open(&file, len + 1).is_err());
    assert_eq!(Mapping::open(&file, len).unwrap().bytes().len(), len);
}

/// A mapping takes its addresses back with it.
#[test]
fn nothing_stays_mapped() {
    let mapped = |name: &str| {
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        maps.lines().filter(|line| line.contains(name)).count()
    };
    // Without and with room for huge pages.
    for (name, len) in [("stays-small", 4096), ("stays-large", (5 << 20) + 1)] {
        let (_fd, mapping) = Mapping::create(name, len).unwrap();
        assert_eq!(mapped(name), 1);
        collapse(std::ptr::NonNull::slice_from_raw_parts(
            std::ptr::NonNull::from(mapping.bytes()).cast(),
            len,
        ));
        assert!(mapping.bytes().iter().step_by(4096).all(|byte| byte.load(Relaxed) == 0));
        drop(mapping);
        assert_eq!(mapped(name), 0, "{name}");
    }
}

/// S-MEM-5: each limit by itself, at its two ends.
#[test]
fn limits_are_where_they_are_said_to_be() {
    let with = |change: &dyn Fn(&mut Sizes)| {
        let mut sizes = Sizes { if_num: 1, ring_num: 2, buf_num: 4, ..Sizes::PRIVATE };
        change(&mut sizes);
        Layout::new(&sizes, 0)
    };
    type Set = fn(&mut Sizes, u32);
    let limits: [(Set, u32, u32); 6] = [
        (|sizes, to| sizes.if_size = to, 56, 4096),
        (|sizes, to| sizes.if_num = to, 1, 10_000),
        (|sizes, to| sizes.ring_size = to, 256, 131_072),
        (|sizes, to| sizes.ring_num = to, 2, 1024),
        (|sizes, to| sizes.buf_size = to, 64, 65_536),
        (|sizes, to| sizes.buf_num = to, 4, 1_000_000),
    ];
    for (n, (set, least, most)) in limits.into_iter().enumerate() {
        for to in [least, most] {
            assert!(with(&|sizes| set(sizes, to)).is_ok(), "{n}: {to}");
        }
        for to in [least - 1, most + 1] {
            let error = with(&|sizes| set(sizes, to)).unwrap_err();
            let LayoutError::Limit { value, min, max, .. } = error else { panic!("{error}") };
            assert_eq!((value, min, max), (to, least, most), "{n}");
        }
    }
    for (headroom, is_ok) in [(0, true), (1984, true), (1985, false)] {
        assert_eq!(Layout::new(&Sizes::PRIVATE, headroom).is_ok(), is_ok, "{headroom}");
    }
}
