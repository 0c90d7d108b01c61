//! The libpcap of this machine, and the unsafe code that calls it.
#![allow(unsafe_code)]

use std::{
    ffi::{CStr, c_char, c_int, c_uint, c_void},
    ptr::{NonNull, null},
    sync::{Mutex, OnceLock, PoisonError},
};

use crate::{Error, Insn};

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
    validate: unsafe extern "C" fn(*const Insn, c_int) -> c_int,
    filter: unsafe extern "C" fn(*const Insn, *const u8, c_uint, c_uint) -> c_uint,
    close: unsafe extern "C" fn(*mut c_void),
}

/// Compiles an expression for Ethernet frames. The inner error is libpcap's, about the expression.
pub fn compile(expression: &CStr) -> Result<Result<Vec<Insn>, String>, Error> {
    let pcap = library().map_err(|problem| Error::NoLibrary(problem.clone()))?;
    Ok(Handle::open(pcap).and_then(|handle| handle.compile(expression)))
}

fn library() -> Result<&'static Pcap, &'static String> {
    static LOADED: OnceLock<Result<Pcap, String>> = OnceLock::new();
    LOADED.get_or_init(Pcap::load).as_ref()
}

/// A program that libpcap has found valid.
#[derive(Clone)]
pub struct Valid {
    pcap: &'static Pcap,
    insns: Vec<Insn>,
}

/// Asks libpcap whether a program is valid; `None` if it is not, or if there is no libpcap.
pub fn validate(insns: Vec<Insn>) -> Option<Valid> {
    let pcap = library().ok()?;
    let count = c_int::try_from(insns.len()).ok()?;
    // SAFETY: so many instructions are there.
    let is_valid = count > 0 && unsafe { (pcap.validate)(insns.as_ptr(), count) } != 0;
    is_valid.then_some(Valid { pcap, insns })
}

impl Valid {
    /// Runs it on a packet of which `bytes` were captured, of `length`.
    pub fn run(&self, bytes: &[u8], length: u32) -> u32 {
        let captured = c_uint::try_from(bytes.len()).unwrap_or(c_uint::MAX);
        // SAFETY: a valid program, and as many bytes as it is told.
        unsafe { (self.pcap.filter)(self.insns.as_ptr(), bytes.as_ptr(), length, captured) }
    }
}

impl Pcap {
    fn load() -> Result<Pcap, String> {
        // SAFETY: the names are C strings; what libpcap runs when it is loaded needs nothing of ours.
        let open = |name: &CStr| unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW) };
        let library = NAMES.into_iter().map(open).find_map(NonNull::new).ok_or_else(last_error)?;
        // SAFETY: each is a function of libpcap's public interface, `pcap/pcap.h`, with the
        // parameters given in `Pcap`; the library is not closed.
        unsafe {
            Ok(Pcap {
                open_dead: function(library, c"pcap_open_dead")?,
                compile: function(library, c"pcap_compile")?,
                geterr: function(library, c"pcap_geterr")?,
                freecode: function(library, c"pcap_freecode")?,
                validate: function(library, c"bpf_validate")?,
                filter: function(library, c"bpf_filter")?,
                close: function(library, c"pcap_close")?,
            })
        }
    }
}

/// A `pcap_t` without a source of packets, which this thread alone uses.
struct Handle<'a> {
    pcap: &'a Pcap,
    pcap_t: NonNull<c_void>,
}

impl Handle<'_> {
    fn open(pcap: &Pcap) -> Result<Handle<'_>, String> {
        // SAFETY: the function takes any numbers.
        let pcap_t = unsafe { (pcap.open_dead)(DLT_EN10MB, SNAPLEN) };
        let pcap_t = NonNull::new(pcap_t).ok_or("libpcap is out of memory")?;
        Ok(Handle { pcap, pcap_t })
    }

    fn compile(&self, expression: &CStr) -> Result<Vec<Insn>, String> {
        // Before 1.8, libpcap's compiler keeps its state in global variables.
        static COMPILER: Mutex<()> = Mutex::new(());
        let alone = COMPILER.lock().unwrap_or_else(PoisonError::into_inner);
        let mut program = BpfProgram { len: 0, insns: null() };
        let (handle, text) = (self.pcap_t.as_ptr(), expression.as_ptr());
        // SAFETY: an open handle, a string that ends with a zero, and a program to fill in, all alive
        // during the call.
        let result =
            unsafe { (self.pcap.compile)(handle, &mut program, text, 1, PCAP_NETMASK_UNKNOWN) };
        drop(alone);
        if result != 0 {
            // SAFETY: the handle is open, and its last call failed: it holds a text about it, that ends
            // with a zero and is copied before another call.
            let text = unsafe { CStr::from_ptr((self.pcap.geterr)(handle)) };
            return Err(text.to_string_lossy().into_owned());
        }
        // SAFETY: the call has filled in the program: an array of `len` instructions, at least one (each
        // program ends with a `ret`), that nothing else refers to.
        let insns =
            unsafe { std::slice::from_raw_parts(program.insns, program.len as usize) }.to_vec();
        // SAFETY: filled in by `compile`, freed once, and its instructions were copied.
        unsafe { (self.pcap.freecode)(&mut program) };
        Ok(insns)
    }
}

impl Drop for Handle<'_> {
    fn drop(&mut self) {
        // SAFETY: opened by `open`, closed here alone.
        unsafe { (self.pcap.close)(self.pcap_t.as_ptr()) };
    }
}

/// # Safety
/// `library` is open and is never closed; `F` is the type of a pointer to this function.
unsafe fn function<F: Copy>(library: NonNull<c_void>, name: &CStr) -> Result<F, String> {
    const { assert!(size_of::<F>() == size_of::<*mut c_void>()) };
    // SAFETY: the library is open, as the caller promises; the name is a C string.
    let address = unsafe { libc::dlsym(library.as_ptr(), name.as_ptr()) };
    if address.is_null() {
        return Err(last_error());
    }
    // SAFETY: an address that is not null, of a function with F's parameters, as the caller promises.
    Ok(unsafe { std::mem::transmute_copy::<*mut c_void, F>(&address) })
}

fn last_error() -> String {
    // SAFETY: the call takes nothing.
    let text = unsafe { libc::dlerror() };
    if text.is_null() {
        return "unknown error".into();
    }
    // SAFETY: the text ends with a zero and stays until this thread's next call of its kind.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}
