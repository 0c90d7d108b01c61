//! The list of options of a request (S-CTRL-5..9).
//!
//! No option is supported yet; what is here is the reading of the list, with all its errors,
//! and the reporting of a status for each.

use ringway_abi::{
    NETMAP_REQ_MAXSIZE, NETMAP_REQ_OPT_CSB, NETMAP_REQ_OPT_EXTMEM, NETMAP_REQ_OPT_MAX,
    NETMAP_REQ_OPT_OFFSETS, NETMAP_REQ_OPT_SYNC_KLOOP_EVENTFDS, NETMAP_REQ_OPT_SYNC_KLOOP_MODE,
    nmreq_option,
};

use crate::user::{self, Fault};

/// Bytes of an option's head.
const HEAD: usize = size_of::<nmreq_option>();
/// The space into which the studied implementation reads a request: it needs 8 bytes more
/// than the head for each option (S-CTRL-7).
const STAGING: usize = 4144;

/// The options of a request, with their places in the program's memory.
#[derive(Default)]
pub struct Options {
    list: Vec<(u64, nmreq_option)>,
    /// The list did not end where it had to: nothing is written back (S-CTRL-8).
    overrun: bool,
}

/// The rest of a known option, in bytes (S-CTRL-6).
fn rest(option: &nmreq_option) -> usize {
    match option.nro_reqtype {
        NETMAP_REQ_OPT_EXTMEM => 72,
        NETMAP_REQ_OPT_SYNC_KLOOP_EVENTFDS => (option.nro_size as usize).saturating_sub(HEAD),
        NETMAP_REQ_OPT_CSB => 16,
        NETMAP_REQ_OPT_SYNC_KLOOP_MODE => 8,
        NETMAP_REQ_OPT_OFFSETS => 32,
        _ => 0,
    }
}

impl Options {
    /// Reads the list that begins at `first`, behind a body of `body` bytes. The error comes
    /// with the options read so far, which are to be written back.
    pub fn read(first: u64, body: usize) -> Result<Options, (i32, Options)> {
        let mut options = Options::default();
        match options.fill(first, body) {
            Ok(()) => {
                options.list.iter_mut().for_each(|(_, o)| o.nro_status = libc::EOPNOTSUPP as u32);
                Ok(options)
            }
            Err(errno) => Err((errno, options)),
        }
    }

    fn fill(&mut self, first: u64, body: usize) -> Result<(), i32> {
        let (mut at, mut bodies) = (first, 0);
        while at != 0 {
            if body + 32 * (self.list.len() + 1) + bodies > STAGING {
                self.overrun = true;
                return Err(libc::EMSGSIZE);
            }
            let mut option: nmreq_option = user::get(at)?;
            option.nro_status = 0;
            let (kind, next) = (option.nro_reqtype, option.nro_next);
            self.list.push((at, option));
            self.check(kind, at, &mut bodies, body)?;
            at = next;
        }
        Ok(())
    }

    fn check(&mut self, kind: u32, at: u64, bodies: &mut usize, body: usize) -> Result<(), i32> {
        let last = self.list.len() - 1;
        if kind == 0 {
            self.list[last].1.nro_status = libc::EINVAL as u32;
            return Err(libc::EINVAL);
        }
        if kind >= NETMAP_REQ_OPT_MAX {
            return Ok(());
        }
        if let Some(first) = self.list[..last].iter().position(|(_, o)| o.nro_reqtype == kind) {
            for i in [first, last] {
                self.list[i].1.nro_status = libc::EINVAL as u32;
            }
            return Err(libc::EINVAL);
        }
        if self.list[last].1.nro_size > NETMAP_REQ_MAXSIZE as u64 {
            return Err(libc::EMSGSIZE);
        }
        let size = rest(&self.list[last].1);
        *bodies += size;
        let count = self.list.len();
        if body + HEAD * count + *bodies > NETMAP_REQ_MAXSIZE
            || body + 32 * count + *bodies > STAGING
        {
            return Err(libc::EMSGSIZE);
        }
        // The rest is looked at when the option is supported; it must be there even so.
        user::read(at + HEAD as u64, &mut vec![0; size])?;
        Ok(())
    }

    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// NETMAP_REQ_CSB_ENABLE without its option (S-CSB-5); with it, as yet unsupported.
    pub fn csb_enable(&mut self) -> Result<(), i32> {
        match self.list.iter().any(|(_, o)| o.nro_reqtype == NETMAP_REQ_OPT_CSB) {
            true => Err(libc::EOPNOTSUPP),
            false => Err(libc::EINVAL),
        }
    }

    /// Tells the program the status of each option (S-CTRL-4).
    pub fn write_back(&self) -> Result<(), Fault> {
        if self.overrun {
            return Ok(());
        }
        self.list.iter().try_for_each(|(at, option)| user::put(*at, option))
    }
}
