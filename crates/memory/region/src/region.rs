//! One memfd, its map, and checked pointers into it.
#![allow(unsafe_code)]

use std::{
    io,
    marker::PhantomData,
    ptr::NonNull,
    sync::{Arc, atomic::AtomicU8},
};

use rustix::fd::{AsFd, BorrowedFd, OwnedFd};

use crate::{
    buf::Buf,
    holders::HolderProbe,
    huge_pages::collapse_at,
    layout::{LAYOUT_VERSION, Layout},
    mapping::Mapping,
    shared::{Shared, View},
};

/// Bytes of a ring's control block: eight cache lines, laid out by `ringway-kring`.
pub const BLOCK_SIZE: usize = 512;

/// Why a region cannot be used.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)] // The messages say what the fields are.
pub enum Error {
    /// The memory could not be had.
    #[error("cannot create a region of {bytes} bytes: {source}; {}", create_remedy(source))]
    Create { bytes: u64, source: io::Error },
    /// Somebody's fd is not what they say it is, or of a version that this code does not know. The caller knows the
    /// remedy: it is another daemon's, or another program's.
    #[error("cannot map region {mem_id}: {source}")]
    Open { mem_id: u16, source: io::Error },
}

/// What to do where memory could not be had. A limit counts for the process that makes the region: the daemon.
fn create_remedy(source: &io::Error) -> &'static str {
    match source.raw_os_error() {
        Some(libc::EFBIG) => {
            "raise the limit of file sizes that ringwayd has (ulimit -f, RLIMIT_FSIZE)"
        }
        Some(libc::ENOMEM) => {
            "free memory, shrink its pools, or raise the limit that ringwayd has (ulimit -v, RLIMIT_AS)"
        }
        _ => "free memory or shrink its pools",
    }
}

/// A mapped region. Shared by `Arc`: every ring, kring and buffer view holds one.
#[derive(Debug)]
pub struct Region {
    fd: OwnedFd,
    map: Mapping,
    layout: Layout,
    mem_id: u16,
    /// Device and inode of the memfd.
    identity: Option<(u64, u64)>,
}

/// The buffers of a region. What finds one is in the value itself: a loop need not read it again for each.
#[derive(Clone, Copy, Debug)]
pub struct Bufs<'r> {
    /// The data of buffer 0.
    first: NonNull<u8>,
    total: u32,
    /// Bytes from one to the next.
    size: u32,
    data_size: u32,
    region: PhantomData<&'r Region>,
}

impl<'r> Bufs<'r> {
    /// The buffer's data, behind the headroom. `None` for the reserved indices 0 and 1 and
    /// for any index past the pool.
    #[inline]
    pub fn get(&self, index: u32) -> Option<Buf<'r>> {
        if index < 2 || index >= self.total {
            return None;
        }
        // SAFETY: `index < total`: the pool lies inside the mapping, which `'r` keeps, and so does this
        // buffer's data. The bytes may change at any time, which a `Buf` allows for.
        Some(unsafe {
            Buf::new(self.first.add(index as usize * self.size as usize), self.data_size)
        })
    }
}

fn identity(fd: &OwnedFd) -> Option<(u64, u64)> {
    rustix::fs::fstat(fd).ok().map(|stat| (stat.st_dev, stat.st_ino))
}

/// A layout comes from another process: all that this file computes of it holds.
fn sound(layout: &Layout) -> io::Result<()> {
    let error = |why: String| Err(io::Error::new(io::ErrorKind::InvalidData, why));
    match layout.version {
        LAYOUT_VERSION if layout.is_sound() => Ok(()),
        LAYOUT_VERSION => error("its layout is none".into()),
        other => error(format!("its layout has version {other}, and this is {LAYOUT_VERSION}")),
    }
}

impl Region {
    /// A new region: all zero, nothing allocated in it.
    pub fn create(mem_id: u16, layout: Layout) -> Result<Region, Error> {
        let bytes = layout.total();
        sound(&layout).map_err(|source| Error::Create { bytes, source })?;
        let (fd, map) = Mapping::create(&format!("ringway-{mem_id}"), bytes as usize)
            .map_err(|source| Error::Create { bytes, source })?;
        Ok(Region { identity: identity(&fd), fd, map, layout, mem_id })
    }

    /// Device and inode of the memfd: what tells its mappings in `/proc/self/maps`.
    pub fn identity(&self) -> Option<(u64, u64)> {
        self.identity
    }

    /// Maps a region that another process created.
    pub fn open(fd: OwnedFd, mem_id: u16, layout: Layout) -> Result<Region, Error> {
        let map = sound(&layout)
            .and_then(|()| Mapping::open(&fd, layout.total() as usize))
            .map_err(|source| Error::Open { mem_id, source })?;
        Ok(Region { identity: identity(&fd), fd, map, layout, mem_id })
    }

    /// Asks for huge pages where `least` of these offsets or more lie in one, as far as the kernel has some.
    pub fn use_huge_pages(&self, offsets: impl IntoIterator<Item = u64>, least: usize) {
        collapse_at(self.map.bytes(), offsets, least);
    }

    /// The memfd: to send to a client, or to map for a program.
    pub fn memfd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// The map.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The region's id; ports with the same id can exchange buffers.
    pub fn mem_id(&self) -> u16 {
        self.mem_id
    }

    /// Whether two mappings are of the same memory. Their buffers can then be exchanged.
    pub fn is_same(&self, other: &Region) -> bool {
        self.identity.is_some() && self.identity == other.identity
    }

    /// The buffer's data, behind the headroom. `None` for the reserved indices 0 and 1 and
    /// for any index past the pool.
    #[inline]
    pub fn buf(&self, index: u32) -> Option<Buf<'_>> {
        if index < 2 || index >= self.layout.bufs.total {
            return None;
        }
        // As in `bufs`, but for what pays for many only.
        let at = self.layout.bufs.offset
            + u64::from(index) * u64::from(self.layout.bufs.size)
            + u64::from(self.layout.headroom);
        // SAFETY: as in `Bufs::get`.
        Some(unsafe { Buf::new(self.map.base().add(at as usize), self.layout.data_size()) })
    }

    /// All buffers, for a loop that finds many of them.
    #[inline]
    pub fn bufs(&self) -> Bufs<'_> {
        let Layout { bufs, headroom, .. } = &self.layout;
        let first = (bufs.offset + u64::from(*headroom)) as usize;
        Bufs {
            // SAFETY: the layout is sound (it was checked when the region was made): the pool lies inside
            // the mapping, and the headroom is smaller than a buffer.
            first: unsafe { self.map.base().add(first) },
            total: bufs.total,
            size: bufs.size,
            data_size: self.layout.data_size(),
            region: PhantomData,
        }
    }

    /// The `N` bytes right in front of the buffer's data: part of its headroom. `None` where there is
    /// no such buffer, or no such headroom.
    #[inline]
    pub fn in_front<const N: usize>(&self, index: u32) -> Option<Buf<'_>> {
        let room = self.layout.headroom as usize >= N;
        // SAFETY: there is that much headroom in front of the data, inside the same buffer.
        self.buf(index).filter(|_| room).map(|buf| unsafe { buf.in_front(N as u32) })
    }

    /// Moves a frame of `len` bytes that begins `begin` bytes into the buffer, headroom included, to where the
    /// data begins, and with it the timestamp in front of it. False, with nothing moved, if it does not fit
    /// there, does not end in the buffer, or has no room for a timestamp in front.
    pub fn settle(&self, index: u32, begin: u32, len: u32) -> bool {
        const TIMESTAMP: u32 = 8;
        let headroom = self.layout.headroom;
        // SAFETY: as above.
        let whole = self.buf(index).map(|buf| unsafe { buf.with_front(headroom) });
        let places = begin.checked_sub(TIMESTAMP).zip(headroom.checked_sub(TIMESTAMP));
        let (Some(whole), Some((from, to))) = (whole, places) else { return false };
        whole.move_within(from, to, len.saturating_add(TIMESTAMP))
    }

    /// The umem: all bytes of the buffer pool, headrooms included.
    pub fn buffer_area(&self) -> &[AtomicU8] {
        let bufs = &self.layout.bufs;
        let start = bufs.offset as usize;
        &self.map.bytes()[start..start + bufs.size as usize * bufs.total as usize]
    }

    /// The control block of ring object `ring`, or its beginning: a `T` of up to [`BLOCK_SIZE`]
    /// bytes. `None` where there is no such ring.
    pub fn block<T: Shared>(self: &Arc<Self>, ring: u32) -> Option<View<T>> {
        const { assert!(size_of::<T>() <= BLOCK_SIZE) };
        View::new(self, self.layout.block(ring)?)
    }

    /// Lets its creator tell whether a process still maps it.
    ///
    /// # Errors
    /// Those of `open(2)`.
    pub fn holder_probe(&self) -> io::Result<HolderProbe> {
        HolderProbe::new(&self.fd)
    }

    /// Closes the descriptor that is handed out; the mapping is what this process still has.
    pub fn retire(self) -> Mapping {
        self.map
    }

    /// Whether the kernel had no page for an address of it; see [`LostPages`](crate::LostPages).
    pub fn has_lost_pages(&self) -> bool {
        self.map.has_lost_pages()
    }

    pub(crate) fn mapping(&self) -> &Mapping {
        &self.map
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The remedy of a limit is another one than that of a machine without memory.
    #[test]
    fn limits_are_named() {
        let said = |errno| {
            let source = io::Error::from_raw_os_error(errno);
            Error::Create { bytes: 4096, source }.to_string()
        };
        assert!(said(libc::EFBIG).contains("ulimit -f"));
        assert!(said(libc::ENOMEM).contains("ulimit -v"));
        assert!(said(libc::ENOSPC).ends_with("; free memory or shrink its pools"));
    }
}
