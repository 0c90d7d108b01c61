//! Where a ring's packets come from, and where its program's go: one of the devices that it was opened on.

use std::{
    ffi::c_int,
    io,
    sync::{Arc, Mutex, OnceLock, PoisonError, atomic::AtomicBool},
};

use ringway::{Error, Port, PortKind};
use ringway_filter::Insn;
use ringway_live_capture::{
    Live, Opened, Promiscuous, Settings, Signals, Tap,
    abi::{PCAP_D_IN, PCAP_D_INOUT, PCAP_D_OUT},
    name::{self, Found},
};
use rustix::fd::BorrowedFd;

use crate::{
    abi::*,
    device::{Element, Target},
    interface::{self, Interface},
    name::index_of,
    ring::try_lock,
    send::Sender,
};

/// Bytes of a ring: room for PF_RING's 4096 packets of full length.
const RING: c_int = 8 << 20;
/// The same where packets may be longer than this, so that there are as many blocks for a quarter of a second.
const LONG_RING: c_int = 32 << 20;
const LONG_PACKET: c_int = 30 << 10;

/// What names of capture files begin with.
const FILE: &str = "file:";

/// One device.
pub struct Source {
    pub name: String,
    pub index: c_int,
    pub is_port: bool,
    pub vlan: Option<u16>,
    pub channels: u64,
    pub opened: Opened,
    pub signals: Arc<Signals>,
    pub settings: Settings,
    /// Queues that it receives by.
    pub queues: u8,
    pub mtu_at_open: u32,
    sender: OnceLock<Sender>,
    promiscuous: Mutex<Option<Promiscuous>>,
    /// Nothing comes from it any more, and the ring goes on with its other devices.
    pub is_left_out: AtomicBool,
    /// Packets that were lost before the ring was enabled, and as of the last look.
    lost: Mutex<Lost>,
}

#[derive(Default)]
struct Lost {
    last: u32,
    all: u64,
}

/// Why a device cannot be opened.
pub struct Refused(pub c_int);

impl From<io::Error> for Refused {
    fn from(error: io::Error) -> Refused {
        Refused(error.raw_os_error().unwrap_or(libc::ENODEV))
    }
}

/// The number that the program sees; with `RINGWAY_VERBOSE` set, standard error gets the sentence.
impl From<Error> for Refused {
    fn from(error: Error) -> Refused {
        use ringway::Cause;
        ringway::explain(&error);
        Refused(match error.cause() {
            Cause::Denied => libc::EPERM,
            Cause::Busy => libc::EBUSY,
            Cause::Invalid => libc::EINVAL,
            _ => libc::ENODEV,
        })
    }
}

/// Opens a list of devices.
pub fn open(elements: &[Element], caplen: u32, flags: u32) -> Result<Vec<Source>, Refused> {
    let mut sources = Vec::new();
    for element in elements {
        match &element.target {
            Target::Any => {
                for interface in interface::all() {
                    let target = Target::Interface(interface);
                    let element = Element { target, ..element.clone() };
                    // One without Ethernet's headers, or that has just gone, is none of them.
                    sources.extend(Source::open(&element, caplen, flags).ok());
                }
            }
            _ => sources.push(Source::open(element, caplen, flags)?),
        }
    }
    Ok(sources)
}

impl Source {
    fn open(element: &Element, caplen: u32, flags: u32) -> Result<Source, Refused> {
        let settings = Settings {
            // Rules, VLANs and clusters go by whole packets; the program gets what it has asked for.
            snaplen: (caplen as c_int).max(LONG_PACKET),
            immediate: true,
            nanoseconds: true,
            filters_with_tags: true,
            buffer_size: RING,
            ..Settings::default()
        };
        let (name, is_port) = match &element.target {
            Target::Interface(name) => (name.clone(), false),
            Target::Port(name) => (name.clone(), true),
            Target::Any => return Err(Refused(libc::ENODEV)),
        };
        let opened = match is_port {
            true => open_port(&name, &settings)?,
            false => {
                let settings = match settings.snaplen > LONG_PACKET {
                    true => Settings { buffer_size: LONG_RING, ..settings },
                    false => settings,
                };
                Opened::Tap(Box::new(Tap::new(&name, PCAP_D_INOUT, &settings)?))
            }
        };
        let index = match is_port {
            true => index_of(&name),
            false => {
                Interface::new(&name).and_then(|of| of.index()).ok_or(Refused(libc::ENODEV))?
            }
        };
        let queues =
            if is_port { 1 } else { Interface::new(&name).map_or(1, |of| of.rx_channels()) };
        let mut source = Source::over(name, is_port, index, opened, settings)?;
        (source.vlan, source.channels, source.queues) = (element.vlan, element.channels, queues);
        let is_watched = match &source.opened {
            Opened::Port(live) => live.port().kind() != PortKind::Nic,
            Opened::Tap(_) => false,
        };
        source.set_promiscuous(flags & PROMISC != 0 && !is_watched)?;
        Ok(source)
    }

    /// Of what is open, with one queue.
    pub fn over(
        name: String,
        is_port: bool,
        index: c_int,
        opened: Opened,
        settings: Settings,
    ) -> io::Result<Source> {
        let signals = Arc::new(Signals::default());
        signals.arm()?;
        let mut source = Source {
            name,
            index,
            is_port,
            vlan: None,
            channels: u64::MAX,
            opened,
            signals,
            settings,
            queues: 1,
            mtu_at_open: 0,
            sender: OnceLock::new(),
            promiscuous: Mutex::default(),
            is_left_out: AtomicBool::new(false),
            lost: Mutex::default(),
        };
        source.mtu_at_open = source.mtu();
        Ok(source)
    }

    /// The descriptor that is readable while there are packets. From now on that is exact.
    pub fn watch(&self) -> BorrowedFd<'_> {
        // SAFETY: a descriptor of the device, which is open as long as this.
        unsafe { BorrowedFd::borrow_raw(self.opened.watch()) }
    }

    /// Whether it is a capture file.
    pub fn is_file(&self) -> bool {
        self.name.starts_with(FILE)
    }

    pub fn set_direction(&self, direction: c_int) {
        self.opened.set_direction(match direction {
            RX_ONLY => PCAP_D_IN,
            TX_ONLY => PCAP_D_OUT,
            _ => PCAP_D_INOUT,
        });
    }

    pub fn set_filter(&self, insns: &[Insn]) -> Result<(), Error> {
        self.opened.set_filter(insns, &self.signals)
    }

    /// Holds promiscuous mode of the interface, if it is one, or lets go of it.
    pub fn set_promiscuous(&self, on: bool) -> io::Result<()> {
        let mut held = self.promiscuous.lock().unwrap_or_else(PoisonError::into_inner);
        match (on, held.is_some(), self.interface()) {
            (true, false, Some(interface)) => *held = Some(Promiscuous::set(interface)?),
            (false, true, _) => *held = None,
            _ => {}
        }
        Ok(())
    }

    /// Whether what is sent by it goes out.
    pub fn sends(&self) -> bool {
        match &self.opened {
            Opened::Port(live) => !self.is_file() && sends(&live.port()),
            Opened::Tap(_) => !self.is_port,
        }
    }

    /// The interface, if it is one.
    pub fn interface(&self) -> Option<&str> {
        interface_of(&self.name)
    }

    /// Bytes of a packet without Ethernet's header.
    pub fn mtu(&self) -> u32 {
        const OF_PORTS: u32 = 65_536 - 18;
        let of_interface = self.interface().and_then(|name| Interface::new(name)?.mtu());
        of_interface.filter(|mtu| *mtu > 0).unwrap_or(OF_PORTS)
    }

    /// Packets that found no room since the ring was enabled. `None` where that is changing.
    pub fn lost(&self) -> Option<u64> {
        let mut lost = try_lock(&self.lost)?;
        let now = self.opened.try_stats()?.ps_drop;
        lost.all += u64::from(now.wrapping_sub(lost.last));
        lost.last = now;
        Some(lost.all)
    }

    /// Those before do not count.
    pub fn forget_lost(&self) {
        let last = self.opened.stats().ps_drop;
        *self.lost.lock().unwrap_or_else(PoisonError::into_inner) = Lost { last, all: 0 };
    }

    /// Sends a packet; an error number else.
    pub fn send(&self, packet: &[u8]) -> Result<(), c_int> {
        if self.is_port {
            return self.opened.inject(packet, true).map_err(|error| match error.errno {
                libc::EAGAIN => libc::ENOBUFS,
                errno => errno,
            });
        }
        let sender = match self.sender.get() {
            Some(sender) => sender,
            None => {
                let index = u32::try_from(self.index).map_err(|_| libc::ENODEV)?;
                let sender = Sender::new(index).map_err(|error| Refused::from(error).0)?;
                self.sender.get_or_init(|| sender)
            }
        };
        sender.send(packet)
    }
}

/// Whether what is sent by a port goes out: not by a monitor, which a ring has while another ring, or another program,
/// has the port.
pub fn sends(port: &Port) -> bool {
    port.kind() != PortKind::Monitor && port.tx_rings() > 0
}

/// The interface that a device is, or that a port is of.
pub fn interface_of(device: &str) -> Option<&str> {
    match device.strip_prefix("netmap:") {
        Some(rest) if name::is_interface(device) => rest.split(['@', '^', '-', '/', '*']).next(),
        None if !name::is_port(device) && !device.starts_with(FILE) => Some(device),
        _ => None,
    }
}

/// A port: that of a file is played once, as fast as it is read.
fn open_port(port: &str, settings: &Settings) -> Result<Opened, Refused> {
    let whole = Settings { snaplen: MAX_CAPLEN as c_int, ..*settings };
    let live = |port| Ok(Opened::Port(Arc::new(Live::new(port, &whole, None)?)));
    if port.starts_with(FILE) {
        return live(Port::open(port)?);
    }
    match name::open(port, settings)? {
        Found::Port(port) => live(*port),
        Found::Unused { interface, direction } => {
            Ok(Opened::Tap(Box::new(Tap::new(&interface, direction, settings)?)))
        }
    }
}
