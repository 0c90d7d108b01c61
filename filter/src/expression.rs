//! Filter expressions, as `pcap-filter(7)` describes them, by the libpcap of this machine.
//!
//! It is loaded when the first expression is compiled: programs that filter nothing do without it.
#![allow(unsafe_code)]

use std::{
    ffi::{CStr, CString, c_char, c_int, c_uint, c_void},
    ptr::NonNull,
    sync::OnceLock,
};

use crate::{Error, Insn, Program};

const DLT_EN10MB: c_int = 1;
const PCAP_NETMASK_UNKNOWN: c_uint = 0xffff_ffff;
/// Longest frame, for `pcap_open_dead`: what a filter returns for a match, and no more.
const SNAPLEN: c_int = 0xffff;
/// libpcap's names: on Debian, and elsewhere.
const NAMES: [&CStr; 2] = [c"libpcap.so.0.8", c"libpcap.so.1"];

/// `struct bpf_program`.
#[repr(C)]
struct BpfProgram {
    len: c_uint,
    insns: *const Insn,
}

/// libpcap's functions; it stays loaded.
struct Pcap {
    open_dead: unsafe extern "C" fn(c_int, c_int) -> *mut c_void,
    compile:
        unsafe extern "C" fn(*mut c_void, *mut BpfProgram, *const c_char, c_int, c_uint) -> c_int,
    geterr: unsafe extern "C" fn(*mut c_void) -> *const c_char,
    freecode: unsafe extern "C" fn(*mut BpfProgram),
    close: unsafe extern "C" fn(*mut c_void),
}

/// Compiles an expression for Ethernet frames; an empty one matches everything.
///
/// ```no_run
/// let filter = ringway_filter::compile("udp port 53")?;
/// # Ok::<(), ringway_filter::Error>(())
/// ```
pub fn compile(expression: &str) -> Result<Program, Error> {
    let wrong = |problem: String| Error::Expression { expression: expression.into(), problem };
    let text = CString::new(expression).map_err(|_| wrong("it has a zero byte".into()))?;
    Program::new(Pcap::get()?.compile(&text).map_err(wrong)?)
}

impl Pcap {
    fn get() -> Result<&'static Pcap, Error> {
        static LOADED: OnceLock<Result<Pcap, String>> = OnceLock::new();
        LOADED.get_or_init(Pcap::load).as_ref().map_err(|problem| Error::NoLibrary(problem.clone()))
    }

    fn load() -> Result<Pcap, String> {
        // SAFETY: the names are C strings; libpcap has no initializers that need anything.
        let open = |name: &CStr| unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW) };
        let library = NAMES.into_iter().map(open).find_map(NonNull::new).ok_or_else(last_error)?;
        // SAFETY: each is a function of libpcap's public interface, `pcap/pcap.h`, with the
        // parameters given above.
        unsafe {
            Ok(Pcap {
                open_dead: function(library, c"pcap_open_dead")?,
                compile: function(library, c"pcap_compile")?,
                geterr: function(library, c"pcap_geterr")?,
                freecode: function(library, c"pcap_freecode")?,
                close: function(library, c"pcap_close")?,
            })
        }
    }

    fn compile(&self, text: &CStr) -> Result<Vec<Insn>, String> {
        // SAFETY: the handle is used between opening and closing it, by this thread alone;
        // `program` is read if it was filled in, before it is freed; the error's text is copied
        // before the handle that owns it goes.
        unsafe {
            let handle = (self.open_dead)(DLT_EN10MB, SNAPLEN);
            if handle.is_null() {
                return Err("libpcap is out of memory".into());
            }
            let mut program = BpfProgram { len: 0, insns: std::ptr::null() };
            let code = text.as_ptr();
            let result = match (self.compile)(handle, &mut program, code, 1, PCAP_NETMASK_UNKNOWN) {
                0 => {
                    let len = program.len as usize;
                    let insns = std::slice::from_raw_parts(program.insns, len).to_vec();
                    (self.freecode)(&mut program);
                    Ok(insns)
                }
                _ => Err(CStr::from_ptr((self.geterr)(handle)).to_string_lossy().into_owned()),
            };
            (self.close)(handle);
            result
        }
    }
}

/// # Safety
/// `library` is open and is never closed; `F` is the type of a pointer to this function.
unsafe fn function<F: Copy>(library: NonNull<c_void>, name: &CStr) -> Result<F, String> {
    const { assert!(size_of::<F>() == size_of::<*mut c_void>()) };
    // SAFETY: the caller's promise.
    unsafe {
        let address = libc::dlsym(library.as_ptr(), name.as_ptr());
        if address.is_null() {
            return Err(last_error());
        }
        Ok(std::mem::transmute_copy::<*mut c_void, F>(&address))
    }
}

fn last_error() -> String {
    // SAFETY: the text, if there is one, stays until this thread's next call of its kind.
    let text = unsafe {
        let text = libc::dlerror();
        (!text.is_null()).then(|| CStr::from_ptr(text).to_string_lossy().into_owned())
    };
    text.unwrap_or_else(|| "unknown error".into())
}
