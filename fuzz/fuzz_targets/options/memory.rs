//! The memory of a program, with none behind it.

use std::{collections::BTreeSet, sync::OnceLock};

use rustix::mm::{MapFlags, MprotectFlags, ProtFlags, mmap_anonymous, mprotect};

/// Bytes of the memory.
pub const SIZE: usize = 8192;
const PAGE: usize = 4096;
/// Where there is nothing.
const NOWHERE: u64 = 8;

/// All there is of it: one at a time.
pub struct Memory(());

/// Where it begins.
fn base() -> u64 {
    static BASE: OnceLock<u64> = OnceLock::new();
    *BASE.get_or_init(|| {
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a fresh mapping.
        let at = unsafe {
            mmap_anonymous(std::ptr::null_mut(), SIZE + PAGE, access, MapFlags::PRIVATE).unwrap()
        };
        // SAFETY: the last page of it, which nobody uses.
        unsafe { mprotect(at.byte_add(SIZE), PAGE, MprotectFlags::empty()).unwrap() };
        at.addr() as u64
    })
}

impl Memory {
    /// Memory that begins with `bytes`, and has zeros behind them.
    pub fn of(bytes: &[u8]) -> Memory {
        let mut all = vec![0; SIZE];
        let len = bytes.len().min(SIZE);
        all[..len].copy_from_slice(&bytes[..len]);
        Memory::filled(&all)
    }

    /// The same, where the pointers of a request whose header is at its beginning, and of its
    /// options, lead to places in the memory, or nowhere.
    pub fn of_request(bytes: &[u8]) -> Memory {
        let memory = Memory::of(bytes);
        let mut all = memory.bytes();
        let mut mended = BTreeSet::new();
        mend(&mut all, 80, &mut mended);
        let mut at = 72;
        // Each word is mended once, so this ends.
        while let Some(next) = mend(&mut all, at, &mut mended) {
            at = next;
        }
        Memory::filled(&all)
    }

    fn filled(all: &[u8]) -> Memory {
        // SAFETY: the memory has as many bytes, and nobody else uses it.
        unsafe { std::ptr::copy_nonoverlapping(all.as_ptr(), base() as *mut u8, SIZE) };
        Memory(())
    }

    /// Its address.
    pub fn base(&self) -> u64 {
        base()
    }

    /// What it holds.
    pub fn bytes(&self) -> Vec<u8> {
        let mut all = vec![0; SIZE];
        // SAFETY: the memory has as many bytes, and nobody writes it meanwhile.
        unsafe { std::ptr::copy_nonoverlapping(base() as *const u8, all.as_mut_ptr(), SIZE) };
        all
    }

    /// The place of an address, if `len` bytes are there.
    pub fn place(&self, address: u64, len: usize) -> Option<usize> {
        let at = usize::try_from(address.checked_sub(base())?).ok()?;
        (at.checked_add(len)? <= SIZE).then_some(at)
    }
}

/// Makes a pointer of the word at `at`. Returns the place that it leads to, if it is new.
fn mend(all: &mut [u8], at: usize, mended: &mut BTreeSet<usize>) -> Option<usize> {
    let word = all.get_mut(at..at + 8)?;
    if !mended.insert(at) {
        return None;
    }
    let number = u64::from_ne_bytes((&*word).try_into().ok()?);
    let place = number as usize % SIZE & !7;
    let pointer = match number {
        0 => 0,
        _ if number & 7 == 7 => NOWHERE,
        _ => base() + place as u64,
    };
    word.copy_from_slice(&pointer.to_ne_bytes());
    (pointer > NOWHERE).then_some(place)
}
