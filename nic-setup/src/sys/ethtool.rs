//! ethtool's requests about an interface (`linux/ethtool.h`), by its name: of the network namespace of the
//! socket that they go by.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

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
