//! A handle of ours: what a program has asked for, and the port once it is activated.

use std::{
    cell::UnsafeCell,
    ffi::c_int,
    io,
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
};

use ringway::{Cause, Error, Port, PortKind};

use ringway_live_capture::{
    Live, Opened, Promiscuous, Settings, Signals, Tap,
    name::{self, Found},
};

use crate::{abi::*, shadow::Shadow, text::ErrorText};

pub const NOT_ACTIVATED: &str = "This handle hasn't been activated yet";
pub const ACTIVATED: &str = "can't perform  operation on activated capture";

/// One handle.
pub struct Handle {
    pub name: String,
    settings: Mutex<Settings>,
    live: OnceLock<Opened>,
    shadow: OnceLock<Option<Shadow>>,
    pub nonblocking: AtomicBool,
    pub signals: Signals,
    pub error: ErrorText,
    /// What `pcap_next_ex` hands out.
    header: UnsafeCell<pcap_pkthdr>,
}

// SAFETY: all fields but `header` are for any thread. That is written by the program's call of
// `pcap_next_ex` or `pcap_next` and read by the program until the next: libpcap's rule is that it makes no two
// such calls at once.
unsafe impl Sync for Handle {}

/// A code of libpcap's that is not a success; its text is in the handle.
pub type Code = c_int;

impl Handle {
    /// A handle for the port of that name, which may not be there.
    pub fn new(name: &str) -> Handle {
        Handle {
            name: name.into(),
            settings: Mutex::default(),
            live: OnceLock::new(),
            shadow: OnceLock::new(),
            nonblocking: AtomicBool::new(false),
            signals: Signals::default(),
            error: ErrorText::new(),
            header: UnsafeCell::default(),
        }
    }

    /// Where `pcap_next_ex` puts the header of its packet.
    pub fn header(&self) -> *mut pcap_pkthdr {
        self.header.get()
    }

    /// Notes why something failed.
    pub fn fail(&self, code: Code, text: &str) -> Code {
        self.error.set(text);
        code
    }

    /// The port, once the handle is activated.
    pub fn live(&self) -> Result<&Opened, Code> {
        self.live.get().ok_or_else(|| self.fail(PCAP_ERROR_NOT_ACTIVATED, NOT_ACTIVATED))
    }

    /// The port, without a word where there is none.
    pub fn try_live(&self) -> Option<&Opened> {
        self.live.get()
    }

    pub fn settings(&self) -> MutexGuard<'_, Settings> {
        self.settings.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes what is asked for, unless it is too late.
    pub fn set(&self, change: impl FnOnce(&mut Settings)) -> c_int {
        if self.live.get().is_some() {
            return self.fail(PCAP_ERROR_ACTIVATED, ACTIVATED);
        }
        change(&mut self.settings());
        0
    }

    /// Opens the port. A positive result is a warning.
    pub fn activate(&self) -> c_int {
        if self.live.get().is_some() {
            return self.fail(PCAP_ERROR_ACTIVATED, ACTIVATED);
        }
        let settings = *self.settings();
        if settings.rfmon {
            return PCAP_ERROR_RFMON_NOTSUP;
        }
        if let Err(error) = self.signals.arm() {
            return self
                .fail(PCAP_ERROR, &format!("cannot make a descriptor: {error}; see `ulimit -n`"));
        }
        let (opened, warning) = match name::open(&self.name, &settings) {
            Ok(Found::Port(port)) => match self.port(*port, &settings) {
                Ok((live, warning)) => (Opened::Port(Arc::new(live)), warning),
                Err(code) => return code,
            },
            Ok(Found::Unused { interface, direction }) => {
                match Tap::new(&interface, direction, &settings) {
                    Ok(tap) => (Opened::Tap(Box::new(tap)), 0),
                    Err(error) => return self.cannot_listen(&interface, &error),
                }
            }
            Err(error) => return self.fail(code_of(&error), &error.to_string()),
        };
        match self.live.set(opened) {
            Ok(()) => warning,
            Err(_) => self.fail(PCAP_ERROR_ACTIVATED, ACTIVATED),
        }
    }

    /// A handle's port, and a warning or 0.
    fn port(&self, port: Port, settings: &Settings) -> Result<(Live, c_int), Code> {
        // Of what is attached elsewhere, or monitored, nothing is changed.
        let promiscuous = match settings.promiscuous && port.kind() == PortKind::Nic {
            true => Some(Promiscuous::set(port.name())),
            false => None,
        };
        let (promiscuous, warning) = match promiscuous.transpose() {
            Ok(promiscuous) => (promiscuous, 0),
            Err(error) => {
                let text = format!(
                    "{}: promiscuous mode needs CAP_NET_RAW ({error}): what is for other \
                     addresses may be missing; capture without it (tcpdump -p), or set it by `ip link`",
                    self.name
                );
                (None, self.fail(PCAP_WARNING_PROMISC_NOTSUP, &text))
            }
        };
        match Live::new(port, settings, promiscuous) {
            Ok(live) => Ok((live, warning)),
            Err(error) => Err(self.fail(code_of(&error), &error.to_string())),
        }
    }

    fn cannot_listen(&self, interface: &str, error: &io::Error) -> Code {
        let name = &self.name;
        let (code, remedy) = match error.raw_os_error() {
            Some(libc::EPERM | libc::EACCES) => {
                (PCAP_ERROR_PERM_DENIED, "run with CAP_NET_RAW, or monitor what a program has open")
            }
            Some(libc::ENODEV | libc::ENXIO) => (PCAP_ERROR_NO_SUCH_DEVICE, "see `ip -br link`"),
            Some(libc::ENOMEM) => (PCAP_ERROR, "ask for a smaller buffer (tcpdump -B)"),
            Some(libc::EAFNOSUPPORT) => {
                (PCAP_ERROR, "it has no Ethernet headers; capture from it by its own name")
            }
            _ => (PCAP_ERROR, "see `ringway doctor`"),
        };
        self.fail(code, &format!("{name}: cannot listen to {interface}: {error}; {remedy}"))
    }

    /// A handle of the system's that stands for this one where packets play no part: for the compiler of
    /// filters, and for capture files. `None` without the system's library.
    pub fn shadow(&self) -> Option<&Shadow> {
        let live = self.live.get()?;
        self.shadow.get_or_init(|| Shadow::new(live.snaplen(), live.nanoseconds())).as_ref()
    }

    pub fn is_nonblocking(&self) -> bool {
        self.nonblocking.load(Relaxed)
    }
}

fn code_of(error: &Error) -> Code {
    match error.cause() {
        Cause::NoPort | Cause::NotFound | Cause::NoDevice => PCAP_ERROR_NO_SUCH_DEVICE,
        Cause::Denied => PCAP_ERROR_PERM_DENIED,
        _ => PCAP_ERROR,
    }
}
