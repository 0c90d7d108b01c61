//! libpcap, whichever file it is in.

use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_void};
use std::os::fd::BorrowedFd;
use std::path::Path;
use std::ptr::null_mut;
use std::{hint, io};

#[repr(C)]
struct Program {
    length: c_uint,
    insns: *mut c_void,
}

/// `struct pcap_pkthdr`.
#[repr(C)]
struct Header {
    time: libc::timeval,
    captured: c_uint,
    length: c_uint,
}

type Callback = unsafe extern "C" fn(*mut u64, *const Header, *const u8);
type OpenLive =
    unsafe extern "C" fn(*const c_char, c_int, c_int, c_int, *mut c_char) -> *mut c_void;
type Compile =
    unsafe extern "C" fn(*mut c_void, *mut Program, *const c_char, c_int, c_uint) -> c_int;
type SetFilter = unsafe extern "C" fn(*mut c_void, *mut Program) -> c_int;
type Dispatch = unsafe extern "C" fn(*mut c_void, c_int, Callback, *mut u64) -> c_int;
type Inject = unsafe extern "C" fn(*mut c_void, *const c_void, usize) -> c_int;
type SetNonblock = unsafe extern "C" fn(*mut c_void, c_int, *mut c_char) -> c_int;
type GetFd = unsafe extern "C" fn(*mut c_void) -> c_int;
type GetErr = unsafe extern "C" fn(*mut c_void) -> *const c_char;

/// A device that is captured from. It is open until the process ends.
pub struct Capture {
    handle: *mut c_void,
    dispatch: Dispatch,
    inject: Inject,
    set_nonblock: SetNonblock,
    get_fd: GetFd,
    get_err: GetErr,
}

/// What a program does with a packet that counts and reads it: every byte is looked at.
///
/// # Safety
/// `packets` is a counter that nothing else uses during the call; the rest is a packet of libpcap's.
unsafe extern "C" fn count(packets: *mut u64, header: *const Header, packet: *const u8) {
    // SAFETY: the counter of the call of `dispatch` that calls this.
    unsafe { *packets += 1 };
    // SAFETY: libpcap's header is there during the call.
    let length = unsafe { (*header).captured } as usize;
    let sum = (0..length).fold(0u8, |sum, at| {
        // SAFETY: one of the bytes that were captured. Its sender may write it meanwhile: it is read once, and may be anything.
        sum ^ unsafe { packet.add(at).read_volatile() }
    });
    hint::black_box(sum);
}

impl Capture {
    /// Opens `device` by the libpcap in the file `library`, with a filter. A read ends after `timeout` ms.
    pub fn open(library: &Path, device: &str, filter: &str, timeout: i32) -> io::Result<Capture> {
        let file = CString::new(library.as_os_str().as_encoded_bytes())?;
        // SAFETY: a C string; what a libpcap does when it is loaded needs nothing of ours.
        let library = unsafe { libc::dlopen(file.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        if library.is_null() {
            return Err(io::Error::other(format!("cannot load {}", file.to_string_lossy())));
        }
        let find = |name: &CStr| {
            // SAFETY: an open library and a C string.
            let address = unsafe { libc::dlsym(library, name.as_ptr()) };
            match address.is_null() {
                true => Err(io::Error::other(format!("no {} in it", name.to_string_lossy()))),
                false => Ok(address),
            }
        };
        /// The function of that name, whose type is that of the variable.
        macro_rules! function {
            ($name:expr, $kind:ty) => {
                // SAFETY: libpcap's function of this name has this type.
                unsafe { std::mem::transmute::<*mut c_void, $kind>(find($name)?) }
            };
        }
        let open_live = function!(c"pcap_open_live", OpenLive);
        let compile = function!(c"pcap_compile", Compile);
        let set_filter = function!(c"pcap_setfilter", SetFilter);
        let (device, filter) = (CString::new(device)?, CString::new(filter)?);
        let mut error = [0; 256];
        // SAFETY: C strings, and a buffer for errors of 256 bytes.
        let handle = unsafe { open_live(device.as_ptr(), 65535, 1, timeout, error.as_mut_ptr()) };
        if handle.is_null() {
            // SAFETY: libpcap has written a C string into it.
            let text = unsafe { CStr::from_ptr(error.as_ptr()) };
            return Err(io::Error::other(text.to_string_lossy().into_owned()));
        }
        let capture = Capture {
            handle,
            dispatch: function!(c"pcap_dispatch", Dispatch),
            inject: function!(c"pcap_inject", Inject),
            set_nonblock: function!(c"pcap_setnonblock", SetNonblock),
            get_fd: function!(c"pcap_get_selectable_fd", GetFd),
            get_err: function!(c"pcap_geterr", GetErr),
        };
        let mut program = Program { length: 0, insns: null_mut() };
        // SAFETY: an open handle, room for a program, a C string.
        let done = unsafe {
            match compile(handle, &mut program, filter.as_ptr(), 1, u32::MAX) {
                0 => set_filter(handle, &mut program),
                code => code,
            }
        };
        if done < 0 { Err(capture.error()) } else { Ok(capture) }
    }

    /// Has packets counted, all that are there; returns how many. It waits if there is none.
    pub fn dispatch(&mut self) -> io::Result<u64> {
        let mut packets = 0;
        // SAFETY: an open handle; the callback has the counter, which is alive during the call.
        match unsafe { (self.dispatch)(self.handle, -1, count, &mut packets) } {
            0.. => Ok(packets),
            _ => Err(self.error()),
        }
    }

    /// From now on reads do not wait; returns what to poll in their place.
    pub fn poll_instead(&mut self) -> io::Result<BorrowedFd<'static>> {
        let mut error = [0; 256];
        // SAFETY: an open handle, and a buffer for errors of 256 bytes.
        let fd = unsafe {
            (self.set_nonblock)(self.handle, 1, error.as_mut_ptr());
            (self.get_fd)(self.handle)
        };
        match fd {
            // SAFETY: the handle's descriptor, open until the process ends.
            0.. => Ok(unsafe { BorrowedFd::borrow_raw(fd) }),
            _ => Err(io::Error::other("the device has no descriptor to poll")),
        }
    }

    /// Sends a packet.
    pub fn inject(&mut self, packet: &[u8]) -> io::Result<()> {
        // SAFETY: an open handle, and a packet of that length.
        match unsafe { (self.inject)(self.handle, packet.as_ptr().cast(), packet.len()) } {
            0.. => Ok(()),
            _ => Err(self.error()),
        }
    }

    fn error(&self) -> io::Error {
        // SAFETY: an open handle has a C string of its last error.
        let text = unsafe { CStr::from_ptr((self.get_err)(self.handle)) };
        io::Error::other(text.to_string_lossy().into_owned())
    }
}
