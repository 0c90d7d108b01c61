//! The system's libpcap: what is asked of it, and how it is found without meeting this library.
//!
//! This library is loaded under libpcap's own name, and may lie where libpcap lay. So the other is looked
//! for by path, in the directories of the system, and is whatever is a libpcap there and not this file.
//! It is loaded at the first call that needs it.

use std::{
    ffi::{CStr, CString, OsStr, c_char, c_int, c_long, c_uint, c_void},
    fs,
    os::unix::{
        ffi::{OsStrExt, OsStringExt},
        fs::MetadataExt,
    },
    path::{Path, PathBuf},
    ptr::{null, null_mut},
    sync::{
        OnceLock,
        atomic::{AtomicPtr, Ordering::Relaxed},
    },
};

use libc::FILE;
use ringway_filter::Insn;

use crate::{abi::*, dlopen::real_dlopen};

/// Names the one file that is looked at.
const VARIABLE: &str = "RINGWAY_LIBPCAP";

/// Where distributions put libraries. `%` stands for the machine's triplet on Debian.
const DIRECTORIES: [&str; 7] = [
    "/usr/lib/%-linux-gnu",
    "/lib/%-linux-gnu",
    "/usr/lib64",
    "/lib64",
    "/usr/local/lib",
    "/usr/lib",
    "/lib",
];

/// Why there is none.
pub fn missing() -> String {
    match named() {
        Some(path) if path.is_relative() => format!(
            "{VARIABLE} names {}, a relative path; write all of it, from / on",
            path.display()
        ),
        Some(path) => format!(
            "{VARIABLE} names {}, which is no libpcap of the system's; correct it, or unset it",
            path.display()
        ),
        None => format!(
            "there is no libpcap of the system's here; `apt-get install libpcap0.8`, or name it in {VARIABLE}"
        ),
    }
}

/// What the environment names.
fn named() -> Option<PathBuf> {
    let named = ringway_environment::variable(VARIABLE)?;
    (!named.is_empty()).then(|| named.into())
}

/// The library, which is never closed.
fn library() -> Option<*mut c_void> {
    struct Library(*mut c_void);
    // SAFETY: what `dlopen` returns may be used by any thread.
    unsafe impl Send for Library {}
    // SAFETY: as above.
    unsafe impl Sync for Library {}
    static LIBRARY: OnceLock<Option<Library>> = OnceLock::new();
    LIBRARY.get_or_init(|| find().map(Library)).as_ref().map(|library| library.0)
}

fn find() -> Option<*mut c_void> {
    let own = own_file();
    let own = own.as_deref().and_then(identity);
    let is_other = |path: &PathBuf| identity(path).is_some_and(|file| Some(file) != own);
    match named() {
        Some(path) => (path.is_absolute() && is_other(&path)).then(|| open(&path))?,
        None => candidates().filter(is_other).find_map(|path| open(&path)),
    }
}

fn identity(path: &Path) -> Option<(u64, u64)> {
    fs::metadata(path).ok().map(|file| (file.dev(), file.ino()))
}

/// The file that this code was loaded from.
pub fn own_file() -> Option<PathBuf> {
    // SAFETY: all fields are pointers, which may be null.
    let mut info: libc::Dl_info = unsafe { std::mem::zeroed() };
    // SAFETY: an address of this library, and room for the answer.
    let known = unsafe { libc::dladdr(own_file as *const c_void, &mut info) } != 0;
    // SAFETY: the name is a C string that stays as long as this library is loaded.
    let name =
        (known && !info.dli_fname.is_null()).then(|| unsafe { CStr::from_ptr(info.dli_fname) })?;
    Some(OsStr::from_bytes(name.to_bytes()).into())
}

/// All files that are called like libpcap, the most usual name first.
fn candidates() -> impl Iterator<Item = PathBuf> {
    DIRECTORIES.into_iter().flat_map(|directory| {
        let directory = PathBuf::from(directory.replace('%', std::env::consts::ARCH));
        let usual = ["libpcap.so.0.8", "libpcap.so.1"].map(|name| directory.join(name));
        // Where this library has taken the usual name, the other still has that of its version.
        let mut versions: Vec<PathBuf> = fs::read_dir(&directory)
            .map(|entries| entries.flatten().map(|entry| entry.path()).collect())
            .unwrap_or_default();
        versions.retain(|path| {
            path.file_name().is_some_and(|name| name.as_bytes().starts_with(b"libpcap.so."))
        });
        versions.sort();
        usual.into_iter().chain(versions.into_iter().rev())
    })
}

/// Loads a file, if it is a libpcap.
fn open(path: &Path) -> Option<*mut c_void> {
    let path = CString::new(path.as_os_str().to_owned().into_vec()).ok()?;
    // SAFETY: a path; what libpcap runs when it is loaded needs nothing of ours.
    let library = unsafe { real_dlopen(&path, libc::RTLD_NOW | libc::RTLD_LOCAL) };
    let is_libpcap = !library.is_null() && !symbol(library, c"pcap_activate").is_null();
    is_libpcap.then_some(library)
}

fn symbol(library: *mut c_void, name: &CStr) -> *mut c_void {
    // SAFETY: an open library and a C string.
    unsafe { libc::dlsym(library, name.as_ptr()) }
}

/// A function of the system's, looked up once.
struct Function {
    name: &'static CStr,
    address: AtomicPtr<c_void>,
}

impl Function {
    const fn new(name: &'static CStr) -> Function {
        Function { name, address: AtomicPtr::new(null_mut()) }
    }

    /// `None` where there is no library, or an older one.
    fn address(&self) -> Option<*mut c_void> {
        let known = self.address.load(Relaxed);
        if !known.is_null() {
            return Some(known);
        }
        let found = symbol(library()?, self.name);
        self.address.store(found, Relaxed);
        (!found.is_null()).then_some(found)
    }
}

/// The null-terminated name of a function.
macro_rules! c_name {
    ($name:ident) => {
        match CStr::from_bytes_with_nul(concat!(stringify!($name), "\0").as_bytes()) {
            Ok(name) => name,
            Err(_) => panic!("a name has no zero byte"),
        }
    };
}

/// The functions, and what each returns where the system has none.
macro_rules! system {
    ($(fn $name:ident($($arg:ident: $kind:ty),*) $(-> $result:ty)? = $missing:expr;)*) => {$(
        /// # Safety
        /// As libpcap says of the function of this name.
        pub unsafe fn $name($($arg: $kind),*) $(-> $result)? {
            static FUNCTION: Function = Function::new(c_name!($name));
            match FUNCTION.address() {
                Some(address) => {
                    type Signature = unsafe extern "C-unwind" fn($($kind),*) $(-> $result)?;
                    // SAFETY: the address of the function of this name in a libpcap, which has these
                    // parameters.
                    let function = unsafe { std::mem::transmute::<*mut c_void, Signature>(address) };
                    // SAFETY: the caller keeps libpcap's rules for it.
                    unsafe { function($($arg),*) }
                }
                None => $missing,
            }
        }
    )*};
}

/// The same for functions with which this library has nothing to do: they are exported as they are.
macro_rules! passed_on {
    ($(fn $name:ident($($arg:ident: $kind:ty),*) $(-> $result:ty)? = $missing:expr;)*) => {
        system! { $(fn $name($($arg: $kind),*) $(-> $result)? = $missing;)* }

        mod exported {
            use super::*;
            $(
                /// # Safety
                /// As libpcap says of it.
                #[unsafe(no_mangle)]
                pub unsafe extern "C-unwind" fn $name($($arg: $kind),*) $(-> $result)? {
                    // SAFETY: the caller keeps libpcap's rules.
                    unsafe { super::$name($($arg),*) }
                }
            )*
        }
    };
}

/// Says in a buffer for errors why there is nothing.
fn told<T>(errbuf: *mut c_char, result: T) -> T {
    // SAFETY: a buffer for errors of libpcap's has 256 bytes, or is null.
    unsafe { crate::text::store(errbuf, &missing()) };
    result
}

passed_on! {
    // SAFETY: a list of libpcap's is memory of `malloc`, or null.
    fn pcap_free_datalinks(list: *mut c_int) = unsafe { libc::free(list.cast()) };
    // SAFETY: as above.
    fn pcap_free_tstamp_types(list: *mut c_int) = unsafe { libc::free(list.cast()) };
    fn pcap_freecode(program: *mut bpf_program) = ();
    fn bpf_dump(program: *const bpf_program, option: c_int) = ();
    fn bpf_filter(insns: *const Insn, packet: *const u8, length: c_uint, caplen: c_uint) -> c_uint = 0;
    fn bpf_image(insn: *const Insn, number: c_int) -> *mut c_char = null_mut();
    fn bpf_validate(insns: *const Insn, count: c_int) -> c_int = 0;
    fn pcap_compile_nopcap(snaplen: c_int, linktype: c_int, program: *mut bpf_program, text: *const c_char, optimize: c_int, mask: c_uint) -> c_int = -1;
    fn pcap_datalink_name_to_val(name: *const c_char) -> c_int = -1;
    fn pcap_datalink_val_to_description(value: c_int) -> *const c_char = null();
    fn pcap_datalink_val_to_description_or_dlt(value: c_int) -> *const c_char = null();
    fn pcap_datalink_val_to_name(value: c_int) -> *const c_char = null();
    fn pcap_dump(dumper: *mut u8, header: *const pcap_pkthdr, packet: *const u8) = ();
    fn pcap_dump_close(dumper: *mut pcap_dumper_t) = ();
    fn pcap_dump_file(dumper: *mut pcap_dumper_t) -> *mut FILE = null_mut();
    fn pcap_dump_flush(dumper: *mut pcap_dumper_t) -> c_int = -1;
    fn pcap_dump_ftell(dumper: *mut pcap_dumper_t) -> c_long = -1;
    fn pcap_dump_ftell64(dumper: *mut pcap_dumper_t) -> i64 = -1;
    fn pcap_ether_aton(text: *const c_char) -> *mut u8 = null_mut();
    fn pcap_ether_hostton(name: *const c_char) -> *mut u8 = null_mut();
    fn pcap_fopen_offline(file: *mut FILE, errbuf: *mut c_char) -> *mut pcap_t = told(errbuf, null_mut());
    fn pcap_fopen_offline_with_tstamp_precision(file: *mut FILE, precision: c_uint, errbuf: *mut c_char) -> *mut pcap_t = told(errbuf, null_mut());
    fn pcap_init(options: c_uint, errbuf: *mut c_char) -> c_int = told(errbuf, -1);
    fn pcap_lookupdev(errbuf: *mut c_char) -> *mut c_char = told(errbuf, null_mut());
    fn pcap_nametoaddr(name: *const c_char) -> *mut *mut c_uint = null_mut();
    fn pcap_nametoaddrinfo(name: *const c_char) -> *mut libc::addrinfo = null_mut();
    fn pcap_nametoeproto(name: *const c_char) -> c_int = -1;
    fn pcap_nametollc(name: *const c_char) -> c_int = -1;
    fn pcap_nametonetaddr(name: *const c_char) -> c_uint = 0;
    fn pcap_nametoport(name: *const c_char, port: *mut c_int, protocol: *mut c_int) -> c_int = 0;
    fn pcap_nametoportrange(name: *const c_char, first: *mut c_int, last: *mut c_int, protocol: *mut c_int) -> c_int = 0;
    fn pcap_nametoproto(name: *const c_char) -> c_int = -1;
    fn pcap_next_etherent(file: *mut FILE) -> *mut c_void = null_mut();
    fn pcap_offline_filter(program: *const bpf_program, header: *const pcap_pkthdr, packet: *const u8) -> c_int = 0;
    fn pcap_open_dead(linktype: c_int, snaplen: c_int) -> *mut pcap_t = null_mut();
    fn pcap_open_dead_with_tstamp_precision(linktype: c_int, snaplen: c_int, precision: c_uint) -> *mut pcap_t = null_mut();
    fn pcap_open_offline(path: *const c_char, errbuf: *mut c_char) -> *mut pcap_t = told(errbuf, null_mut());
    fn pcap_open_offline_with_tstamp_precision(path: *const c_char, precision: c_uint, errbuf: *mut c_char) -> *mut pcap_t = told(errbuf, null_mut());
    fn pcap_tstamp_type_name_to_val(name: *const c_char) -> c_int = -1;
    fn pcap_tstamp_type_val_to_description(value: c_int) -> *const c_char = null();
    fn pcap_tstamp_type_val_to_name(value: c_int) -> *const c_char = null();
}

system! {
    fn pcap_activate(p: *mut pcap_t) -> c_int = PCAP_ERROR;
    fn pcap_breakloop(p: *mut pcap_t) = ();
    fn pcap_bufsize(p: *mut pcap_t) -> c_int = PCAP_ERROR;
    fn pcap_can_set_rfmon(p: *mut pcap_t) -> c_int = PCAP_ERROR;
    fn pcap_close(p: *mut pcap_t) = ();
    fn pcap_compile(p: *mut pcap_t, program: *mut bpf_program, text: *const c_char, optimize: c_int, mask: c_uint) -> c_int = PCAP_ERROR;
    fn pcap_create(device: *const c_char, errbuf: *mut c_char) -> *mut pcap_t = told(errbuf, null_mut());
    fn pcap_datalink(p: *mut pcap_t) -> c_int = PCAP_ERROR;
    fn pcap_datalink_ext(p: *mut pcap_t) -> c_int = PCAP_ERROR;
    fn pcap_dispatch(p: *mut pcap_t, count: c_int, callback: pcap_handler, user: *mut u8) -> c_int = PCAP_ERROR;
    fn pcap_dump_fopen(p: *mut pcap_t, file: *mut FILE) -> *mut pcap_dumper_t = null_mut();
    fn pcap_dump_open(p: *mut pcap_t, path: *const c_char) -> *mut pcap_dumper_t = null_mut();
    fn pcap_dump_open_append(p: *mut pcap_t, path: *const c_char) -> *mut pcap_dumper_t = null_mut();
    fn pcap_file(p: *mut pcap_t) -> *mut FILE = null_mut();
    fn pcap_fileno(p: *mut pcap_t) -> c_int = PCAP_ERROR;
    fn pcap_findalldevs(list: *mut *mut pcap_if_t, errbuf: *mut c_char) -> c_int = told(errbuf, PCAP_ERROR);
    fn pcap_freealldevs(list: *mut pcap_if_t) = ();
    fn pcap_get_required_select_timeout(p: *mut pcap_t) -> *const libc::timeval = null();
    fn pcap_get_selectable_fd(p: *mut pcap_t) -> c_int = PCAP_ERROR;
    fn pcap_get_tstamp_precision(p: *mut pcap_t) -> c_int = PCAP_ERROR;
    fn pcap_geterr(p: *mut pcap_t) -> *mut c_char = null_mut();
    fn pcap_getnonblock(p: *mut pcap_t, errbuf: *mut c_char) -> c_int = PCAP_ERROR;
    fn pcap_inject(p: *mut pcap_t, bytes: *const c_void, size: usize) -> c_int = PCAP_ERROR;
    fn pcap_is_swapped(p: *mut pcap_t) -> c_int = PCAP_ERROR;
    fn pcap_lib_version() -> *const c_char = c"libpcap of Ringway, without the system's".as_ptr();
    fn pcap_list_datalinks(p: *mut pcap_t, list: *mut *mut c_int) -> c_int = PCAP_ERROR;
    fn pcap_list_tstamp_types(p: *mut pcap_t, list: *mut *mut c_int) -> c_int = PCAP_ERROR;
    fn pcap_lookupnet(device: *const c_char, net: *mut c_uint, mask: *mut c_uint, errbuf: *mut c_char) -> c_int = told(errbuf, PCAP_ERROR);
    fn pcap_loop(p: *mut pcap_t, count: c_int, callback: pcap_handler, user: *mut u8) -> c_int = PCAP_ERROR;
    fn pcap_major_version(p: *mut pcap_t) -> c_int = PCAP_ERROR;
    fn pcap_minor_version(p: *mut pcap_t) -> c_int = PCAP_ERROR;
    fn pcap_next(p: *mut pcap_t, header: *mut pcap_pkthdr) -> *const u8 = null();
    fn pcap_next_ex(p: *mut pcap_t, header: *mut *mut pcap_pkthdr, packet: *mut *const u8) -> c_int = PCAP_ERROR;
    fn pcap_open_live(device: *const c_char, snaplen: c_int, promisc: c_int, timeout: c_int, errbuf: *mut c_char) -> *mut pcap_t = told(errbuf, null_mut());
    fn pcap_perror(p: *mut pcap_t, prefix: *const c_char) = ();
    fn pcap_sendpacket(p: *mut pcap_t, bytes: *const u8, size: c_int) -> c_int = PCAP_ERROR;
    fn pcap_set_buffer_size(p: *mut pcap_t, size: c_int) -> c_int = PCAP_ERROR;
    fn pcap_set_datalink(p: *mut pcap_t, linktype: c_int) -> c_int = PCAP_ERROR;
    fn pcap_set_immediate_mode(p: *mut pcap_t, on: c_int) -> c_int = PCAP_ERROR;
    fn pcap_set_promisc(p: *mut pcap_t, on: c_int) -> c_int = PCAP_ERROR;
    fn pcap_set_protocol_linux(p: *mut pcap_t, protocol: c_int) -> c_int = PCAP_ERROR;
    fn pcap_set_rfmon(p: *mut pcap_t, on: c_int) -> c_int = PCAP_ERROR;
    fn pcap_set_snaplen(p: *mut pcap_t, snaplen: c_int) -> c_int = PCAP_ERROR;
    fn pcap_set_timeout(p: *mut pcap_t, milliseconds: c_int) -> c_int = PCAP_ERROR;
    fn pcap_set_tstamp_precision(p: *mut pcap_t, precision: c_int) -> c_int = PCAP_ERROR;
    fn pcap_set_tstamp_type(p: *mut pcap_t, kind: c_int) -> c_int = PCAP_ERROR;
    fn pcap_setdirection(p: *mut pcap_t, direction: c_int) -> c_int = PCAP_ERROR;
    fn pcap_setfilter(p: *mut pcap_t, program: *mut bpf_program) -> c_int = PCAP_ERROR;
    fn pcap_setnonblock(p: *mut pcap_t, on: c_int, errbuf: *mut c_char) -> c_int = PCAP_ERROR;
    fn pcap_snapshot(p: *mut pcap_t) -> c_int = PCAP_ERROR;
    fn pcap_stats(p: *mut pcap_t, stats: *mut pcap_stat) -> c_int = PCAP_ERROR;
    fn pcap_statustostr(code: c_int) -> *const c_char = c"libpcap error".as_ptr();
    fn pcap_strerror(errno: c_int) -> *const c_char = c"system error".as_ptr();
}
