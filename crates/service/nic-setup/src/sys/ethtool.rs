//! ethtool's requests about an interface (`linux/ethtool.h`), by its name: of the network namespace of the
//! socket that they go by.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr::null_mut;

use rustix::mm::{MapFlags, MprotectFlags, ProtFlags, mmap_anonymous, mprotect, munmap};

use super::netdevice::named;

/// One request: `data` begins with the number of a command.
///
/// # Safety
/// `data` is the structure of that command, made of numbers, and as large as the counts in it say.
pub unsafe fn ethtool<T>(socket: BorrowedFd<'_>, name: &str, data: &mut [T]) -> io::Result<()> {
    let ifr_ifru = libc::__c_anonymous_ifr_ifru { ifru_data: data.as_mut_ptr().cast() };
    let mut ifreq = named(name, ifr_ifru)?;
    let (fd, request) = (socket.as_raw_fd(), libc::SIOCETHTOOL as _);
    // SAFETY: the kernel reads and writes `ifreq`, whose name ends with a zero, and what it points to:
    // `data`, as far as the command in it says, which is no more than it has, by the caller's promise. Both
    // are alive during the call, and nothing else refers to them.
    match unsafe { libc::ioctl(fd, request, &raw mut ifreq) } {
        result if result < 0 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

/// `struct ethtool_drvinfo`.
#[repr(C)]
struct DriverInfo {
    cmd: u32,
    driver: [u8; 32],
    rest: [u8; 160],
}
const _: () = assert!(size_of::<DriverInfo>() == 196);

/// The name of the driver.
pub fn driver(socket: BorrowedFd<'_>, name: &str) -> io::Result<String> {
    const GDRVINFO: u32 = 0x03;
    let mut info = [DriverInfo { cmd: GDRVINFO, driver: [0; 32], rest: [0; 160] }];
    // SAFETY: the structure of the command, which has no counts.
    unsafe { ethtool(socket, name, &mut info)? };
    let [DriverInfo { driver, .. }] = info;
    let driver = driver.split(|&byte| byte == 0).next().unwrap_or_default();
    Ok(String::from_utf8_lossy(driver).into_owned())
}

/// `struct ethtool_channels`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct Channels {
    cmd: u32,
    max: [u32; 4],
    pub rx: u32,
    pub tx: u32,
    other: u32,
    pub combined: u32,
}
const _: () = assert!(size_of::<Channels>() == 36);

/// The queues that are in use.
pub fn channels(socket: BorrowedFd<'_>, name: &str) -> io::Result<Channels> {
    const GCHANNELS: u32 = 0x3c;
    let mut channels = [Channels { cmd: GCHANNELS, ..Channels::default() }];
    // SAFETY: the structure of the command, which has no counts.
    unsafe { ethtool(socket, name, &mut channels)? };
    let [channels] = channels;
    Ok(channels)
}

/// What a stack can leave to the hardware.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Offload {
    Checksums = 0x17,
    /// And with it all segmentation that needs it.
    ScatterGather = 0x19,
    TcpSegmentation = 0x1f,
    /// The stack's own, late.
    Segmentation = 0x24,
    /// A set of flags: VLAN tags beside the frame, and others.
    Flags = 0x26,
}

/// Turns it off.
pub fn turn_off(socket: BorrowedFd<'_>, name: &str, offload: Offload) -> io::Result<()> {
    // `struct ethtool_value`.
    let mut value = [offload as u32, 0];
    // SAFETY: two words are the structure of all these commands.
    unsafe { ethtool(socket, name, &mut value) }
}

/// Statistics of a driver, at most: more are not read.
const STATISTICS: u32 = 8192;

/// Bytes of a statistic's name, with the zeros behind it.
const NAME: usize = 32;

/// Room for the names of them all, and behind it what cannot be written; both are whole pages of any size.
const ROOM: usize = 512 << 10;
const GUARD: usize = 64 << 10;

/// Memory that ends where none can be written. The kernel writes as many statistics as the driver has at that
/// moment, however many the request has room for.
struct Guarded(*mut libc::c_void);

impl Guarded {
    fn new() -> io::Result<Guarded> {
        // SAFETY: memory of the kernel's choice, which nothing else refers to.
        let guarded = Guarded(unsafe {
            mmap_anonymous(null_mut(), ROOM + GUARD, ProtFlags::empty(), MapFlags::PRIVATE)?
        });
        let flags = MprotectFlags::READ | MprotectFlags::WRITE;
        // SAFETY: the first part of what was mapped above, to which nothing refers yet.
        unsafe { mprotect(guarded.0, ROOM, flags)? };
        Ok(guarded)
    }

    fn words(&mut self) -> &mut [u32] {
        // SAFETY: ROOM bytes that can be read and written, zero or written by the kernel, aligned to a page,
        // and borrowed from their only owner.
        unsafe { std::slice::from_raw_parts_mut(self.0.cast(), ROOM / 4) }
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        // SAFETY: what was mapped in `new`, once; no reference outlives its owner. It fails for other addresses
        // alone.
        let _ = unsafe { munmap(self.0, ROOM + GUARD) };
    }
}

/// `struct ethtool_sset_info`, for one set of strings.
#[repr(C)]
struct SetInfo {
    cmd: u32,
    reserved: u32,
    sets: u64,
    count: [u32; 2],
}
const _: () = assert!(size_of::<SetInfo>() == 24);

/// Sets of strings (`ETH_SS_*`).
const OF_STATISTICS: u32 = 1;
const OF_FEATURES: u32 = 4;

/// The strings of a set. EOPNOTSUPP: there are none; EAGAIN: there are others than a moment ago.
fn strings(
    socket: BorrowedFd<'_>,
    name: &str,
    set: u32,
    memory: &mut Guarded,
) -> io::Result<Vec<String>> {
    const GSTRINGS: u32 = 0x1b;
    const GSSET_INFO: u32 = 0x37;
    let mut info = [SetInfo { cmd: GSSET_INFO, reserved: 0, sets: 1 << set, count: [0; 2] }];
    // SAFETY: the structure of the command, with room for the count of the one set that it asks for.
    unsafe { ethtool(socket, name, &mut info)? };
    let [SetInfo { count: [count, _], sets, .. }] = info;
    if sets == 0 || count == 0 {
        return Err(io::Error::from_raw_os_error(libc::EOPNOTSUPP));
    }
    if count > STATISTICS {
        return Err(io::Error::from_raw_os_error(libc::E2BIG));
    }
    let words = memory.words();
    words.fill(0);
    words[..3].copy_from_slice(&[GSTRINGS, set, count]);
    // SAFETY: `struct ethtool_gstrings`; of more strings than there is room for the kernel writes those that
    // fit, for behind the words no memory can be written.
    unsafe { ethtool(socket, name, words)? };
    if words[2] != count {
        return Err(others());
    }
    let bytes: Vec<u8> = words[3..]
        .iter()
        .take(count as usize * NAME / 4)
        .flat_map(|word| word.to_ne_bytes())
        .collect();
    let text = |name: &[u8]| {
        let name = name.split(|&byte| byte == 0).next().unwrap_or_default();
        String::from_utf8_lossy(name).trim().to_owned()
    };
    Ok(bytes.chunks_exact(NAME).map(text).collect())
}

fn others() -> io::Error {
    io::Error::from_raw_os_error(libc::EAGAIN)
}

/// The driver's own statistics, by name. EOPNOTSUPP: it has none; EAGAIN: it has others than a moment ago.
pub fn statistics(socket: BorrowedFd<'_>, name: &str) -> io::Result<Vec<(String, u64)>> {
    const GSTATS: u32 = 0x1d;
    let mut memory = Guarded::new()?;
    let names = strings(socket, name, OF_STATISTICS, &mut memory)?;
    let (count, words) = (names.len() as u32, memory.words());
    words.fill(0);
    words[..2].copy_from_slice(&[GSTATS, count]);
    // SAFETY: `struct ethtool_stats`; behind the words no memory can be written, as above.
    unsafe { ethtool(socket, name, words)? };
    if words[1] != count {
        return Err(others());
    }
    let values = words[2..].chunks_exact(2).take(names.len()).map(|pair| {
        let mut bytes = [0; 8];
        bytes[..4].copy_from_slice(&pair[0].to_ne_bytes());
        bytes[4..].copy_from_slice(&pair[1].to_ne_bytes());
        u64::from_ne_bytes(bytes)
    });
    Ok(names.into_iter().zip(values).collect())
}

/// The features of an interface that are on, by the names that `ethtool -k` has for them.
pub fn active_features(socket: BorrowedFd<'_>, name: &str) -> io::Result<Vec<String>> {
    const GFEATURES: u32 = 0x3a;
    /// Of `struct ethtool_get_features_block`: available, requested, active, never changed.
    const BLOCK: usize = 4;
    const ACTIVE: usize = 2;
    let mut memory = Guarded::new()?;
    let names = strings(socket, name, OF_FEATURES, &mut memory)?;
    let blocks = names.len().div_ceil(32);
    let words = memory.words();
    words.fill(0);
    words[..2].copy_from_slice(&[GFEATURES, blocks as u32]);
    // SAFETY: `struct ethtool_gfeatures`, of which the kernel writes as many blocks as it says, or as it has.
    unsafe { ethtool(socket, name, words)? };
    let is_on = |at: usize| words[2 + at / 32 * BLOCK + ACTIVE] >> (at % 32) & 1 == 1;
    Ok(names.into_iter().enumerate().filter(|(at, _)| is_on(*at)).map(|(_, name)| name).collect())
}
