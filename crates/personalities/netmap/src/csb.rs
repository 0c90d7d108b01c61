//! CSB mode: a program's cursors in two arrays of its own memory (S-CSB).
//!
//! It is the ordinary path with another [`View`]: where a ring has `head`, `cur` and `tail`,
//! there are two entries, `atok` that only the program writes and `ktoa` that only we write.

use std::{
    mem::offset_of,
    sync::atomic::{AtomicU32, Ordering::*, fence},
};

use ringway::Binding;
use ringway_abi::{Dir, nm_csb_atok, nm_csb_ktoa, nmreq_opt_csb};
use ringway_kring::{Cursors, Kring, View};

use crate::{
    netmap_fd::{NetmapFd, explain_as},
    sys,
    user::{self, Fault},
};

/// Bytes of an entry, and its alignment.
const ENTRY: usize = 64;

const _: () = assert!(size_of::<nm_csb_atok>() == ENTRY && size_of::<nm_csb_ktoa>() == ENTRY);

/// The entries of one ring. The program has promised that the memory stays: to unmap it while
/// the loop runs faults, as it would in the program's own code.
#[derive(Debug)]
pub struct Entry {
    atok: usize,
    ktoa: usize,
}

/// The entries of ring `index` (tx before rx) in the arrays at `addresses`.
// S-CSB-1.
fn entry([atok, ktoa]: [u64; 2], index: usize) -> Entry {
    let at = |array: u64| array as usize + index * ENTRY;
    Entry { atok: at(atok), ktoa: at(ktoa) }
}

/// The entries of all rings of a binding, where the program named them in this process.
pub fn entries(netmap: &NetmapFd) -> Option<impl Iterator<Item = Entry> + use<>> {
    let addresses = netmap.csb()?;
    Some((0..).map(move |index| entry(addresses, index)))
}

/// Enters CSB mode (S-CSB-2, S-CSB-3, S-CSB-6).
pub fn enable(netmap: &NetmapFd, binding: &Binding, csb: &nmreq_opt_csb) -> Result<(), i32> {
    let rings = binding.all_rings().count();
    if rings == 0 {
        return Ok(());
    }
    let wrong = |errno, problem| {
        explain_as(&format_args!("{}, CSB mode: {problem}", binding.name()), errno)
    };
    let shared = "the rings have to be the program's alone; register them with NR_EXCLUSIVE";
    let mode = binding.csb_mode().ok_or_else(|| wrong(libc::EINVAL, shared))?;
    if mode.is_running() {
        return Err(wrong(libc::EBUSY, "a loop runs already; stop it first"));
    }
    let addresses = [csb.csb_atok, csb.csb_ktoa];
    if addresses.iter().any(|at| at % ENTRY as u64 != 0) {
        let problem = "entries have 64 bytes; align csb_atok and csb_ktoa to that";
        return Err(wrong(libc::EINVAL, problem));
    }
    let missing = "not all entries are there to be written; map memory for one of each ring";
    let checked = addresses.iter().try_for_each(|&at| check(at, rings * ENTRY));
    checked.map_err(|fault| wrong(fault.into(), missing))?;
    user::write(csb.csb_ktoa, &vec![0; rings * ENTRY])?;
    netmap.set_csb(addresses);
    for (index, ring) in binding.all_rings().enumerate() {
        let entry = entry(addresses, index);
        entry.begin(ring.kring());
        ring.kring().enter_csb(&entry);
    }
    Ok(())
}

/// Whether memory can be read and written.
fn check(address: u64, len: usize) -> Result<(), Fault> {
    let mut bytes = vec![0; len];
    user::read(address, &mut bytes)?;
    user::write(address, &bytes)
}

impl Entry {
    fn atok(&self, offset: usize) -> &AtomicU32 {
        sys::word(self.atok + offset)
    }

    fn ktoa(&self, offset: usize) -> &AtomicU32 {
        sys::word(self.ktoa + offset)
    }

    /// What says so already is not written: the program's core may be reading the line.
    #[inline]
    fn update(&self, offset: usize, value: u32) {
        let field = self.ktoa(offset);
        if field.load(Relaxed) != value {
            field.store(value, Release);
        }
    }

    fn begin(&self, kring: &Kring) {
        let [head, _] = kring.reconciled();
        self.atok(offset_of!(nm_csb_atok, head)).store(head, Relaxed);
        self.atok(offset_of!(nm_csb_atok, cur)).store(head, Relaxed);
        self.atok(offset_of!(nm_csb_atok, appl_need_kick)).store(1, Relaxed);
        self.atok(offset_of!(nm_csb_atok, sync_flags)).store(1, Relaxed);
        self.ktoa(offset_of!(nm_csb_ktoa, kern_need_kick)).store(1, Relaxed);
    }

    /// Whether the program asks to be told of news. Call it when they are published.
    #[inline]
    pub fn wants_kick(&self) -> bool {
        fence(SeqCst);
        self.atok(offset_of!(nm_csb_atok, appl_need_kick)).load(Relaxed) != 0
    }

    /// Asks the program to tell of its news from now on, or not to. Look for news once more
    /// before sleeping.
    #[inline]
    pub fn ask_for_kicks(&self, wanted: bool) {
        self.ktoa(offset_of!(nm_csb_ktoa, kern_need_kick)).store(wanted.into(), Relaxed);
        fence(SeqCst);
    }
}

impl View for Entry {
    #[inline]
    fn cursors(&self) -> Cursors {
        let head = self.atok(offset_of!(nm_csb_atok, head)).load(Acquire);
        Cursors { head, cur: self.atok(offset_of!(nm_csb_atok, cur)).load(Acquire) }
    }

    fn tail(&self) -> u32 {
        self.ktoa(offset_of!(nm_csb_ktoa, hwtail)).load(Relaxed)
    }

    /// The entry that has the cursors is the program's alone: it may put them right itself.
    fn repair(&self, _at: u32) {}

    /// The program reads in the opposite order, so that its `hwcur` is never older than its
    /// `hwtail`.
    #[inline]
    fn publish_tail(&self, kring: &Kring, hwtail: u32) {
        // What was received and released is free at once, whenever a worker will look at it.
        let hwcur = match kring.dir() {
            Dir::Tx => kring.hwcur(),
            Dir::Rx => kring.reconciled()[0],
        };
        self.update(offset_of!(nm_csb_ktoa, hwcur), hwcur);
        self.update(offset_of!(nm_csb_ktoa, hwtail), hwtail);
    }
}
