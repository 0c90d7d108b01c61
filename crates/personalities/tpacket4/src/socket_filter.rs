//! A socket's filter, of classic BPF: the kernel runs it, in copy mode.

use std::{io, os::fd::BorrowedFd, sync::Arc};

use ringway_interpose::uaccess;
use ringway_packet::socket;
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes};

/// Instructions of a filter, at most: the kernel's BPF_MAXINSNS.
const LONGEST: usize = 4096;

/// The argument of SO_ATTACH_FILTER: the kernel's `struct sock_fprog`.
#[derive(FromBytes, Immutable, IntoBytes)]
#[repr(C)]
pub struct sock_fprog {
    len: u16,
    _unused: [u16; 3],
    filter: u64,
}

/// The kernel's `struct sock_filter`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, Immutable, IntoBytes)]
#[repr(C)]
struct Insn {
    code: u16,
    jt: u8,
    jf: u8,
    k: u32,
}

const _: () = {
    assert!(size_of::<sock_fprog>() == size_of::<libc::sock_fprog>());
    assert!(size_of::<Insn>() == size_of::<libc::sock_filter>());
};

/// See the file's description.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SocketFilter(Arc<[Insn]>);

impl SocketFilter {
    /// The one that the program names. EINVAL: the kernel would not run it, which is asked of `stand_in`, a socket that
    /// nothing comes to.
    pub fn read(program: &sock_fprog, stand_in: BorrowedFd<'_>) -> Result<SocketFilter, i32> {
        let len = usize::from(program.len);
        if len == 0 || len > LONGEST {
            return Err(libc::EINVAL);
        }
        let mut insns = vec![Insn::new_zeroed(); len];
        uaccess::read(program.filter, insns.as_mut_bytes())?;
        let filter = SocketFilter(insns.into());
        let asked = filter.attach(stand_in);
        asked.map_err(|error| error.raw_os_error().unwrap_or(libc::EINVAL))?;
        Ok(filter)
    }

    /// Has the kernel run it. What passes does so whole: what a filter leaves of a packet is no packet.
    pub fn attach(&self, to: BorrowedFd<'_>) -> io::Result<()> {
        const RETURN: u16 = (libc::BPF_RET | libc::BPF_K) as u16;
        let whole = |&Insn { code, jt, jf, k }: &Insn| {
            let k = if code == RETURN && k != 0 { u32::MAX } else { k };
            libc::sock_filter { code, jt, jf, k }
        };
        socket::set_filter(to, &mut self.0.iter().map(whole).collect::<Vec<_>>())
    }
}
