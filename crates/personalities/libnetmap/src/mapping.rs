//! Mappings of regions, one for all ports of a context that are in the region.

use std::{
    ffi::{c_int, c_void},
    ptr::null_mut,
};

use ringway_abi::netmap_if;

use crate::{
    ctx::Ctx,
    errno::{self, Cause, Errno, status},
    request::name,
    types::{nmem_d, nmport_d},
};

/// Some bytes of mapped memory, which others write to as well.
#[derive(Clone, Copy)]
pub struct Area {
    start: usize,
    size: usize,
}

impl Area {
    pub fn of(mem: &nmem_d) -> Area {
        Area { start: mem.mem.addr(), size: mem.size }
    }

    /// Whether `size` bytes from `address` on lie within.
    pub fn holds(&self, address: usize, size: usize) -> bool {
        let at = address.wrapping_sub(self.start);
        at <= self.size && size <= self.size - at
    }
}

/// # Safety
/// A port.
pub unsafe fn map(d: *mut nmport_d) -> Result<(), Errno> {
    // SAFETY: by the contract above.
    let (ctx, hdr) = unsafe { (Ctx::new((*d).ctx), (*d).hdr) };
    let ctx = ctx.about(name(&hdr));
    let wrong = |problem: &str| ctx.fail(libc::EINVAL, format_args!("{problem}"));
    // SAFETY: by the contract above. What the offset names is used only if it is within the mapping, and
    // aligned; the registration is the program's to change.
    unsafe {
        if (*d).mmap_done != 0 {
            return wrong("mapped already");
        }
        if (*d).register_done == 0 {
            return wrong("to be registered before it is mapped");
        }
        let mem = ctx.with_mappings(|mappings| take(d, mappings, ctx))?;
        let area = Area::of(&*mem);
        let nifp: *mut netmap_if = (*mem).mem.wrapping_byte_add((*d).reg.nr_offset as usize).cast();
        (*d).mem = mem;
        if !area.holds(nifp.addr(), size_of::<netmap_if>()) || !nifp.is_aligned() {
            unmap(d);
            return wrong("its interface is outside of its region");
        }
        (*d).nifp = nifp;
        set_rings(&mut *d, area);
        (*d).mmap_done = 1;
    }
    Ok(())
}

/// The mapping of the port's region, with one more user.
///
/// # Safety
/// A registered port, and the list of its context.
unsafe fn take(
    d: *mut nmport_d,
    mappings: &mut *mut nmem_d,
    ctx: Ctx,
) -> Result<*mut nmem_d, Errno> {
    // SAFETY: by the contract above; elements of the list are valid.
    unsafe {
        let mut mem = *mappings;
        while !mem.is_null() && (*mem).mem_id != (*d).reg.nr_mem_id {
            mem = (*mem).next;
        }
        if mem.is_null() {
            mem = ctx.zeroed("a mapping")?;
            if let Err(errno) = fill(d, mem) {
                ctx.free(mem);
                let (size, cause) = ((*d).reg.nr_memsize, Cause(errno));
                return ctx.fail(errno, format_args!("cannot map {size} bytes: {cause}"));
            }
            (*mem).next = *mappings;
            if let Some(second) = mappings.as_mut() {
                second.prev = mem;
            }
            *mappings = mem;
        }
        (*mem).refcount += 1;
        Ok(mem)
    }
}

/// Describes the memory of a port, which is mapped unless it is the program's own.
///
/// # Safety
/// A registered port, and a new mapping, all of zeroes.
unsafe fn fill(d: *const nmport_d, mem: *mut nmem_d) -> Result<(), Errno> {
    // SAFETY: by the contract above; the kernel chooses the address.
    unsafe {
        (*mem).mem_id = (*d).reg.nr_mem_id;
        if let Some(extmem) = (*d).extmem.as_ref() {
            (*mem).mem = extmem.nro_usrptr as *mut c_void;
            (*mem).size = extmem.nro_info.nr_memsize as usize;
            (*mem).is_extmem = 1;
            return Ok(());
        }
        let (size, access) = ((*d).reg.nr_memsize as usize, libc::PROT_READ | libc::PROT_WRITE);
        match libc::mmap(null_mut(), size, access, libc::MAP_SHARED, (*d).fd, 0) {
            libc::MAP_FAILED => Err(errno::get()),
            address => {
                (*mem).mem = address;
                (*mem).size = size;
                Ok(())
            }
        }
    }
}

/// Finds the first run of bound rings of each kind.
///
/// # Safety
/// A port whose interface is within the area, and aligned.
unsafe fn set_rings(d: &mut nmport_d, area: Area) {
    // SAFETY: by the contract above; others who map the region may write there, so each is read once.
    let (host_tx, host_rx) = unsafe {
        (
            (&raw const (*d.nifp).ni_host_tx_rings).read_volatile(),
            (&raw const (*d.nifp).ni_host_rx_rings).read_volatile(),
        )
    };
    let tx = (d.reg.nr_tx_rings as u32).saturating_add(host_tx);
    let rx = (d.reg.nr_rx_rings as u32).saturating_add(host_rx);
    let bound = |index: u32| ring_offset(d.nifp, area, index as usize).is_some();
    (d.first_tx_ring, d.last_tx_ring) = run(tx, bound);
    (d.first_rx_ring, d.last_rx_ring) = run(rx, |index| tx.checked_add(index).is_some_and(bound));
    d.cur_tx_ring = d.first_tx_ring;
    d.cur_rx_ring = d.first_rx_ring;
}

/// First and last index of the first run; without one, `count` and the index before it.
fn run(count: u32, bound: impl Fn(u32) -> bool) -> (u16, u16) {
    let first = (0..count).find(|index| bound(*index)).unwrap_or(count);
    let end = (first..count).find(|index| !bound(*index)).unwrap_or(count);
    (first as u16, (end as u16).wrapping_sub(1))
}

/// Where ring `index` of all is, from its interface on; `None` when it is not bound.
///
/// Tells the truth about the past only: others can write to the region.
pub fn ring_offset(nifp: *const netmap_if, area: Area, index: usize) -> Option<usize> {
    let entry: *const isize = nifp.wrapping_add(1).cast::<isize>().wrapping_add(index);
    if !area.holds(entry.addr(), size_of::<isize>()) || !entry.is_aligned() {
        return None;
    }
    // SAFETY: within the mapping, and behind an interface, which is aligned.
    let offset = unsafe { entry.read_volatile() };
    (offset != 0).then_some(offset as usize)
}

/// Takes a port off its mapping, which goes with its last port.
///
/// # Safety
/// A port.
pub unsafe fn unmap(d: *mut nmport_d) {
    // SAFETY: by the contract above; the mapping is in the list of the port's context.
    unsafe {
        let (ctx, mem) = (Ctx::new((*d).ctx), (*d).mem);
        if mem.is_null() {
            return;
        }
        ctx.with_mappings(|mappings| {
            (*mem).refcount -= 1;
            if (*mem).refcount > 0 {
                return;
            }
            match (*mem).prev.as_mut() {
                Some(prev) => prev.next = (*mem).next,
                None => *mappings = (*mem).next,
            }
            if let Some(next) = (*mem).next.as_mut() {
                next.prev = (*mem).prev;
            }
            if (*mem).is_extmem == 0 {
                libc::munmap((*mem).mem, (*mem).size);
            }
            ctx.free(mem);
        });
        let d = &mut *d;
        (d.mem, d.nifp, d.mmap_done) = (null_mut(), null_mut(), 0);
        (d.first_tx_ring, d.last_tx_ring, d.cur_tx_ring) = (0, 0, 0);
        (d.first_rx_ring, d.last_rx_ring, d.cur_rx_ring) = (0, 0, 0);
    }
}

/// # Safety
/// A port.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nmport_mmap(d: *mut nmport_d) -> c_int {
    // SAFETY: by the contract above.
    status(unsafe { map(d) })
}

/// # Safety
/// A port.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nmport_undo_mmap(d: *mut nmport_d) {
    // SAFETY: by the contract above.
    unsafe { unmap(d) };
}
