//! What the kernel says of a network interface.

use std::ffi::c_int;

use rustix::fd::{AsRawFd, OwnedFd};

/// Asks about one interface of this network namespace.
pub struct Interface {
    socket: OwnedFd,
    name: [u8; libc::IFNAMSIZ],
}

/// `struct ethtool_cmd`.
#[repr(C)]
#[derive(Default)]
struct Settings {
    command: u32,
    supported: [u32; 2],
    speed: u16,
    more: [u8; 12],
    speed_high: u16,
    rest: [u32; 4],
}

/// `struct ethtool_channels`: at most, and now; receive, transmit, other, both.
#[repr(C)]
#[derive(Default)]
struct Channels {
    command: u32,
    most: [u32; 4],
    now: [u32; 4],
}

const ETHTOOL_GSET: u32 = 1;
const ETHTOOL_GCHANNELS: u32 = 0x3c;

impl Interface {
    /// `None` for what is no name, or without sockets.
    pub fn new(interface: &str) -> Option<Interface> {
        // Not a socket that listens: its end takes the kernel tens of milliseconds.
        let socket = rustix::net::socket_with(
            rustix::net::AddressFamily::INET,
            rustix::net::SocketType::DGRAM,
            rustix::net::SocketFlags::CLOEXEC,
            None,
        );
        let mut name = [0; libc::IFNAMSIZ];
        name.get_mut(..interface.len())?.copy_from_slice(interface.as_bytes());
        (name[libc::IFNAMSIZ - 1] == 0).then_some(Interface { socket: socket.ok()?, name })
    }

    fn request(&self) -> libc::ifreq {
        // SAFETY: numbers and bytes, which may all be 0.
        let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
        request.ifr_name = self.name.map(|byte| byte as libc::c_char);
        request
    }

    fn ask(&self, what: libc::c_ulong, request: &mut libc::ifreq) -> Option<()> {
        // SAFETY: requests of this kind read and write no more than an `ifreq`, and what it points to.
        let result = unsafe { libc::ioctl(self.socket.as_raw_fd(), what as _, request) };
        (result >= 0).then_some(())
    }

    pub fn index(&self) -> Option<c_int> {
        let mut request = self.request();
        self.ask(libc::SIOCGIFINDEX, &mut request)?;
        // SAFETY: the kernel has written a number.
        Some(unsafe { request.ifr_ifru.ifru_ifindex })
    }

    pub fn address(&self) -> Option<[u8; 6]> {
        let mut request = self.request();
        self.ask(libc::SIOCGIFHWADDR, &mut request)?;
        // SAFETY: the kernel has written an address.
        let bytes = unsafe { request.ifr_ifru.ifru_hwaddr.sa_data };
        Some(std::array::from_fn(|at| bytes[at] as u8))
    }

    pub fn mtu(&self) -> Option<u32> {
        let mut request = self.request();
        self.ask(libc::SIOCGIFMTU, &mut request)?;
        // SAFETY: the kernel has written a number.
        u32::try_from(unsafe { request.ifr_ifru.ifru_mtu }).ok()
    }

    pub fn flags(&self) -> Option<c_int> {
        let mut request = self.request();
        self.ask(libc::SIOCGIFFLAGS, &mut request)?;
        // SAFETY: the kernel has written flags.
        Some(c_int::from(unsafe { request.ifr_ifru.ifru_flags } as u16))
    }

    /// Switches promiscuous mode on or off for everybody; returns the flag as it was. `None` on a failure.
    pub fn set_promiscuous(&self, on: bool) -> Option<c_int> {
        let before = self.flags()?;
        let after = if on { before | libc::IFF_PROMISC } else { before & !libc::IFF_PROMISC };
        let mut request = self.request();
        request.ifr_ifru.ifru_flags = after as _;
        self.ask(libc::SIOCSIFFLAGS, &mut request)?;
        Some(before & libc::IFF_PROMISC)
    }

    /// Megabits a second; 0 where it is unknown.
    pub fn speed(&self) -> u32 {
        let mut settings = Settings { command: ETHTOOL_GSET, ..Settings::default() };
        let mut request = self.request();
        request.ifr_ifru.ifru_data = std::ptr::from_mut(&mut settings).cast();
        if self.ask(libc::SIOCETHTOOL, &mut request).is_none() {
            return 0;
        }
        match u32::from(settings.speed_high) << 16 | u32::from(settings.speed) {
            u32::MAX | 0xffff => 0,
            speed => speed,
        }
    }

    /// Queues that it receives by; 1 where it is unknown.
    pub fn rx_channels(&self) -> u8 {
        let [rx, _, _, both] = self.channels();
        rx.saturating_add(both).clamp(1, 64) as u8
    }

    /// Queues that it sends by; 1 where it is unknown.
    pub fn tx_channels(&self) -> u8 {
        let [_, tx, _, both] = self.channels();
        tx.saturating_add(both).clamp(1, 64) as u8
    }

    /// Receive, transmit, other, both; 0 where it is unknown.
    fn channels(&self) -> [u32; 4] {
        let mut channels = Channels { command: ETHTOOL_GCHANNELS, ..Channels::default() };
        let mut request = self.request();
        request.ifr_ifru.ifru_data = std::ptr::from_mut(&mut channels).cast();
        self.ask(libc::SIOCETHTOOL, &mut request).map_or([0; 4], |()| channels.now)
    }
}

const _: () = assert!(size_of::<Settings>() == 44 && size_of::<Channels>() == 36);

/// All interfaces with Ethernet's headers, by name.
pub fn all() -> Vec<String> {
    let mut names = Vec::new();
    // SAFETY: the list is read to its end, and freed once.
    unsafe {
        let list = libc::if_nameindex();
        let mut at = list;
        while !at.is_null() && !(*at).if_name.is_null() {
            let name = std::ffi::CStr::from_ptr((*at).if_name);
            names.push(name.to_string_lossy().into_owned());
            at = at.add(1);
        }
        if !list.is_null() {
            libc::if_freenameindex(list);
        }
    }
    names
}
