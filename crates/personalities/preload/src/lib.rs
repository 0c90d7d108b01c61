//! `libringway_preload.so`: the foreign APIs that live behind descriptors, for unmodified programs.
//!
//! Preloaded, or linked before libc, it takes the place of the libc functions through which a program
//! speaks to such a descriptor. `libringway_netmap.so` is another name for it.
//!
//! Here are only the names. Each is a jump to a hook of `ringway_interpose`, and nothing else is
//! compiled into this object file: so the linker resolves what the rest of the library calls by one of
//! these names as what it is, a call of libc's, and puts a system call in its place (`build.rs`).

use std::arch::naked_asm;

use ringway_interpose::{Personality, hooks};
use ringway_netmap::NETMAP;
use ringway_tpacket4::TPACKET4;

static PERSONALITIES: &[&dyn Personality] = &[&NETMAP, &TPACKET4];

/// Runs when the library is loaded.
#[used]
#[unsafe(link_section = ".init_array")]
static AT_LOAD: extern "C" fn() = {
    extern "C" fn at_load() {
        ringway_interpose::start(&PERSONALITIES);
    }
    at_load
};

macro_rules! export {
    ($($name:ident = $hook:ident;)*) => {$(
        /// # Safety
        /// As the function of libc, whose arguments it has.
        #[unsafe(no_mangle)]
        #[unsafe(naked)]
        pub unsafe extern "C" fn $name() {
            #[cfg(target_arch = "x86_64")]
            naked_asm!("jmp {}", sym hooks::$hook);
            #[cfg(target_arch = "aarch64")]
            naked_asm!("b {}", sym hooks::$hook);
        }
    )*};
}

export! {
    open = open;
    open64 = open64;
    __open = open;
    __open64 = open64;
    __open_2 = __open_2;
    __open64_2 = __open64_2;
    openat = openat;
    openat64 = openat64;
    __openat_2 = __openat_2;
    __openat64_2 = __openat64_2;
    creat = creat;
    creat64 = creat64;
    fopen = fopen;
    fopen64 = fopen64;
    freopen = freopen;
    freopen64 = freopen64;
    fclose = fclose;
    stat = stat;
    stat64 = stat64;
    lstat = lstat;
    lstat64 = lstat64;
    fstatat = fstatat;
    fstatat64 = fstatat64;
    __xstat = __xstat;
    __xstat64 = __xstat64;
    __lxstat = __lxstat;
    __lxstat64 = __lxstat64;
    __fxstatat = __fxstatat;
    __fxstatat64 = __fxstatat64;
    statx = statx;
    access = access;
    eaccess = eaccess;
    euidaccess = euidaccess;
    faccessat = faccessat;
    socket = socket;
    bind = bind;
    close = close;
    __close = close;
    close_range = close_range;
    closefrom = closefrom;
    dup = dup;
    dup2 = dup2;
    __dup2 = dup2;
    dup3 = dup3;
    fcntl = fcntl;
    fcntl64 = fcntl64;
    __fcntl = fcntl;
    ioctl = ioctl;
    getsockname = getsockname;
    getsockopt = getsockopt;
    setsockopt = setsockopt;
    read = read;
    __read = read;
    __read_chk = __read_chk;
    pread = pread;
    pread64 = pread64;
    __pread64 = pread64;
    __pread_chk = __pread_chk;
    __pread64_chk = __pread64_chk;
    readv = readv;
    preadv = preadv;
    preadv64 = preadv64;
    preadv2 = preadv2;
    preadv64v2 = preadv64v2;
    write = write;
    __write = write;
    pwrite = pwrite;
    pwrite64 = pwrite64;
    __pwrite64 = pwrite64;
    writev = writev;
    pwritev = pwritev;
    pwritev64 = pwritev64;
    pwritev2 = pwritev2;
    pwritev64v2 = pwritev64v2;
    send = send;
    __send = __send;
    sendto = sendto;
    sendmsg = sendmsg;
    recv = recv;
    __recv_chk = __recv_chk;
    recvfrom = recvfrom;
    __recvfrom_chk = __recvfrom_chk;
    recvmsg = recvmsg;
    recvmmsg = recvmmsg;
    mmap = mmap;
    mmap64 = mmap64;
    munmap = munmap;
    mprotect = mprotect;
    mremap = mremap;
    poll = poll;
    __poll = poll;
    __poll_chk = __poll_chk;
    ppoll = ppoll;
    __ppoll_chk = __ppoll_chk;
    select = select;
    __select = select;
    pselect = pselect;
    epoll_create = epoll_create;
    epoll_create1 = epoll_create1;
    epoll_ctl = epoll_ctl;
    epoll_wait = epoll_wait;
    epoll_pwait = epoll_pwait;
    epoll_pwait2 = epoll_pwait2;
    if_nametoindex = if_nametoindex;
    if_indextoname = if_indextoname;
}
