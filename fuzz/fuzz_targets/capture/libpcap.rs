//! The same by libpcap.

use std::{
    ffi::{CStr, c_char, c_int, c_long, c_uint, c_void},
    sync::OnceLock,
};

use crate::{Frame, LONGEST};

const NANOSECONDS: c_uint = 1;
const SECOND: c_long = 1_000_000_000;
const ETHERNET: c_int = 1;
const ERROR_TEXT: usize = 256;
const NEXT: c_int = 1;
const END: c_int = -2;

/// `struct pcap_pkthdr`.
#[repr(C)]
struct Header {
    seconds: c_long,
    fraction: c_long,
    captured: u32,
    length: u32,
}

type Pcap = *mut c_void;

#[derive(Clone, Copy)]
struct Library {
    open: unsafe extern "C" fn(*mut libc::FILE, c_uint, *mut c_char) -> Pcap,
    snapshot: unsafe extern "C" fn(Pcap) -> c_int,
    datalink: unsafe extern "C" fn(Pcap) -> c_int,
    next: unsafe extern "C" fn(Pcap, *mut *const Header, *mut *const u8) -> c_int,
    close: unsafe extern "C" fn(Pcap),
}

fn library() -> Library {
    static LIBRARY: OnceLock<Library> = OnceLock::new();
    *LIBRARY.get_or_init(|| {
        // SAFETY: the name ends with a zero.
        let library = unsafe { libc::dlopen(c"libpcap.so.0.8".as_ptr(), libc::RTLD_NOW) };
        assert!(!library.is_null(), "libpcap0.8 is missing");
        let find = |name: &CStr| {
            // SAFETY: the library stays, and the name ends with a zero.
            let function = unsafe { libc::dlsym(library, name.as_ptr()) };
            assert!(!function.is_null());
            function
        };
        // SAFETY: the functions are of these types.
        unsafe {
            Library {
                open: std::mem::transmute(find(c"pcap_fopen_offline_with_tstamp_precision")),
                snapshot: std::mem::transmute(find(c"pcap_snapshot")),
                datalink: std::mem::transmute(find(c"pcap_datalink")),
                next: std::mem::transmute(find(c"pcap_next_ex")),
                close: std::mem::transmute(find(c"pcap_close")),
            }
        }
    })
}

/// The frames of a file of Ethernet frames that libpcap reads to its end. Their time is 0 where it is none:
/// libpcap takes all numbers for signed, and a fraction may be more than a second.
/// And the bytes of each that it gives at most.
pub fn read(bytes: &[u8]) -> Option<(Vec<Frame>, usize)> {
    if bytes.is_empty() {
        return None;
    }
    let library = library();
    let mut error: [c_char; ERROR_TEXT] = [0; ERROR_TEXT];
    // SAFETY: the file is of bytes that are there for longer, and only read; libpcap closes it, but for one that
    // it does not open.
    let pcap = unsafe {
        let mode = c"r".as_ptr();
        let file = libc::fmemopen(bytes.as_ptr().cast_mut().cast(), bytes.len(), mode);
        assert!(!file.is_null());
        let pcap = (library.open)(file, NANOSECONDS, error.as_mut_ptr());
        if pcap.is_null() {
            libc::fclose(file);
            return None;
        }
        pcap
    };
    let mut frames = Vec::new();
    // SAFETY: it is open.
    let most = unsafe { (library.snapshot)(pcap) } as usize;
    // SAFETY: it is open.
    let ethernet = unsafe { (library.datalink)(pcap) } == ETHERNET;
    let mut last = NEXT;
    while ethernet && frames.len() <= LONGEST && last == NEXT {
        let (mut header, mut data) = (std::ptr::null(), std::ptr::null());
        // SAFETY: it is open; where there is a frame, both are there until the next call.
        unsafe {
            last = (library.next)(pcap, &raw mut header, &raw mut data);
            if last == NEXT {
                let Header { seconds, fraction, captured, length } = *header;
                let time = match (u64::try_from(seconds), fraction) {
                    (Ok(seconds), 0..SECOND) => seconds.checked_mul(SECOND as u64),
                    _ => None,
                };
                let time = time.map_or(0, |time| time + fraction as u64);
                let bytes = std::slice::from_raw_parts(data, captured as usize).to_vec();
                frames.push(Frame { time, bytes, length });
            }
        }
    }
    // SAFETY: it is open, and not used any more.
    unsafe { (library.close)(pcap) };
    (ethernet && last == END).then_some((frames, most))
}
