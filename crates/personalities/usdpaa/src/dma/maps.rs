//! The maps of this process.

use std::{
    ffi::c_void,
    io,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, AtomicUsize, Ordering::*},
    },
};

use rustix::mm::{MapFlags, ProtFlags, mmap, mmap_anonymous, munmap};

use super::{allocator::Allocator, shared::Shared};
use crate::memory::Area;

/// Maps that there are at most.
const MAPS: usize = 64;
/// Addresses of frames are below this.
const LIMIT: usize = 1 << 40;
/// Where maps are put: from 4 GiB on; under AddressSanitizer, which has that for itself, below 2 GiB.
const PLACES: [(usize, usize, usize); 2] =
    [(1 << 32, LIMIT, 1 << 32), (0x1000_0000, 0x7000_0000, 1 << 20)];

/// `DMA_MAP_FLAG_*`.
const SHARED: u32 = 1;
const NEW: u32 = 2;
const LAZY: u32 = 4;
const READONLY: u32 = 8;
pub const ALLOC: u32 = 0x10;

/// `struct dma_mem`: a place in a table that stays, as programs translate addresses with what it begins with.
#[repr(C)]
pub struct Map {
    phys: AtomicU64,
    virt: AtomicUsize,
    /// 0: the place is free.
    length: AtomicUsize,
    inner: Mutex<Inner>,
}

#[derive(Default)]
pub struct Inner {
    pub flags: u32,
    /// With the zero that ends it.
    pub name: Vec<u8>,
    pub allocator: Allocator,
    pub shared: Option<Shared>,
}

static TABLE: [Map; MAPS] = [const {
    Map {
        phys: AtomicU64::new(0),
        virt: AtomicUsize::new(0),
        length: AtomicUsize::new(0),
        inner: Mutex::new(Inner {
            flags: 0,
            name: Vec::new(),
            allocator: Allocator::None,
            shared: None,
        }),
    }
}; MAPS];

/// How many places of the table were ever in use.
static USED: AtomicUsize = AtomicUsize::new(0);

/// The map that a program means, if it is one.
pub fn find_ref(map: *const Map) -> Option<&'static Map> {
    let offset = (map as usize).checked_sub(TABLE.as_ptr() as usize)?;
    let place = TABLE.get(offset / size_of::<Map>())?;
    (offset % size_of::<Map>() == 0 && place.length() > 0).then_some(place)
}

fn all() -> impl Iterator<Item = &'static Map> {
    TABLE.iter().take(USED.load(Acquire)).filter(|map| map.length() > 0)
}

/// The map that an address is in.
pub fn find(address: usize) -> Option<&'static Map> {
    all().find(|map| address.wrapping_sub(map.address()) < map.length())
}

/// Bytes that are free, and all bytes, of maps that are allocated from.
pub fn totals() -> (u64, u64) {
    all().fold((0, 0), |(free, total), map| {
        let inner = map.inner();
        let own = if inner.flags & ALLOC != 0 { map.length() } else { 0 };
        (free + inner.counts().0 as u64, total + own as u64)
    })
}

fn check(flags: u32, name: Option<&str>) -> Result<(), &'static str> {
    let has = |flag| flags & flag != 0;
    match name {
        _ if flags & !(SHARED | NEW | LAZY | READONLY | ALLOC) != 0 => {
            Err("there are no such flags")
        }
        Some(_) if !has(SHARED) => Err("a private map has no name"),
        None if has(SHARED) => Err("a shared map has a name"),
        Some(name) if !(1..16).contains(&name.len()) => Err("a name has 1 to 15 bytes"),
        _ if has(NEW) && !has(SHARED) => Err("only a shared map is new"),
        _ if has(LAZY) && !(has(SHARED) && has(NEW)) => {
            Err("only a shared map that may be new is lazy")
        }
        _ if has(READONLY) && (!has(SHARED) || has(ALLOC)) => {
            Err("only a shared map that is not allocated from is read-only")
        }
        _ => Ok(()),
    }
}

/// Makes a map.
///
/// # Errors
/// What is wrong, for a user.
pub fn create(flags: u32, name: Option<&str>, length: usize) -> Result<&'static Map, String> {
    check(flags, name)?;
    // A shared map that is there has a length already.
    let least = usize::from(flags & SHARED == 0);
    let length =
        length.checked_next_multiple_of(4096).filter(|length| (least..LIMIT).contains(length));
    let length = length.ok_or("its length is 0, or beyond what frames can address")?;
    static CREATING: Mutex<()> = Mutex::new(());
    let _creating = CREATING.lock().unwrap_or_else(PoisonError::into_inner);
    let place = TABLE.iter().position(|map| map.length() == 0);
    let place = place.ok_or("there are 64 maps: destroy one")?;
    let shared = name.map(|name| {
        let opened = super::shared::open(name, length, flags & NEW != 0, flags & LAZY != 0);
        opened.map_err(|error| format!("the shared map {name}: {error}"))
    });
    let shared = shared.transpose()?;
    let length = shared.as_ref().map_or(length, |shared| shared.length);
    let file = shared.as_ref().map(|shared| &shared.file);
    let none = |error: io::Error| {
        format!(
            "no memory for {length} bytes: {error}; ask for less, or raise the limit (`ulimit -v`)"
        )
    };
    let address = put(file, length, flags & READONLY != 0).map_err(none)?;
    let map = &TABLE[place];
    let allocator = match flags & ALLOC {
        0 => Allocator::None,
        _ => Allocator::new(address, length, shared.as_ref())
            .inspect_err(|_| unmap(address, length))
            .map_err(none)?,
    };
    {
        let mut inner = map.inner();
        inner.flags = flags;
        inner.name = name.map_or_else(Vec::new, |name| [name.as_bytes(), &[0]].concat());
        inner.allocator = allocator;
        inner.shared = shared;
    }
    map.phys.store(address as u64, Relaxed);
    map.virt.store(address, Relaxed);
    map.length.store(length, Release);
    crate::memory::add(Area {
        address: address as u64,
        bytes: length as u64,
        is_shared: flags & SHARED != 0,
        is_read_only: flags & READONLY != 0,
    });
    USED.fetch_max(place + 1, Release);
    Ok(map)
}

/// Maps memory where frames can address it.
fn put(file: Option<&std::fs::File>, length: usize, is_read_only: bool) -> io::Result<usize> {
    let flags = MapFlags::FIXED_NOREPLACE;
    let protection = match is_read_only {
        true => ProtFlags::READ,
        false => ProtFlags::READ | ProtFlags::WRITE,
    };
    let mut last = io::Error::from(io::ErrorKind::OutOfMemory);
    for (first, end, step) in PLACES {
        for begin in (first..end).step_by(step) {
            if begin + length > end {
                break;
            }
            let wanted: *mut c_void = std::ptr::without_provenance_mut(begin);
            // SAFETY: a new mapping, which takes the place of none.
            let got = unsafe {
                match file {
                    Some(file) => {
                        mmap(wanted, length, protection, flags | MapFlags::SHARED, file, 0)
                    }
                    None => mmap_anonymous(
                        wanted,
                        length,
                        protection,
                        flags | MapFlags::PRIVATE | MapFlags::NORESERVE,
                    ),
                }
            };
            match got {
                Ok(place) if place.addr() == begin => return Ok(place.expose_provenance()),
                // A kernel that does not know the flag puts it elsewhere.
                Ok(place) => {
                    // SAFETY: the mapping that was made just now.
                    let _ = unsafe { munmap(place, length) };
                }
                Err(
                    rustix::io::Errno::EXIST | rustix::io::Errno::NOMEM | rustix::io::Errno::PERM,
                ) => {}
                Err(error) => last = error.into(),
            }
        }
    }
    Err(last)
}

/// Undoes `put`.
fn unmap(address: usize, length: usize) {
    // SAFETY: the mapping of `put`, which nobody uses any more.
    let _ = unsafe { munmap(std::ptr::with_exposed_provenance_mut(address), length) };
}

impl Map {
    pub fn ptr(&'static self) -> *mut Map {
        (&raw const *self).cast_mut()
    }

    pub fn address(&self) -> usize {
        self.virt.load(Relaxed)
    }

    pub fn length(&self) -> usize {
        self.length.load(Acquire)
    }

    pub fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes it away. Nobody uses its memory any more, as the program promises.
    pub fn destroy(&self) {
        let mut inner = self.inner();
        let length = self.length.swap(0, AcqRel);
        if length == 0 {
            return;
        }
        // Interfaces look at it no more when this returns.
        crate::memory::remove(self.address() as u64);
        unmap(self.address(), length);
        *inner = Inner::default();
    }
}
