//! The list of options of a request (S-CTRL-4..10): reading it, with all its errors, and
//! telling the program what became of each.

use ringway_abi::*;
use zerocopy::{FromBytes, Immutable, IntoBytes};

use crate::user::{self, Fault};

/// Bytes of an option's head.
const HEAD: usize = size_of::<nmreq_option>();
/// The space into which the studied implementation reads a request: it needs 8 bytes more
/// than the head for each option (S-CTRL-7).
const STAGING: usize = 4144;

/// An option's whole structure, by its type.
pub trait Known: FromBytes + IntoBytes + Immutable {
    const KIND: u32;
}

impl Known for nmreq_opt_extmem {
    const KIND: u32 = NETMAP_REQ_OPT_EXTMEM;
}
impl Known for nmreq_opt_csb {
    const KIND: u32 = NETMAP_REQ_OPT_CSB;
}
impl Known for nmreq_opt_sync_kloop_mode {
    const KIND: u32 = NETMAP_REQ_OPT_SYNC_KLOOP_MODE;
}
impl Known for nmreq_opt_offsets {
    const KIND: u32 = NETMAP_REQ_OPT_OFFSETS;
}

/// One option: its place in the program's memory, and what was read of it.
struct Element {
    at: u64,
    head: nmreq_option,
    /// What follows the head; empty if the option is not known.
    body: Vec<u8>,
}

/// The options of a request. A new status is EOPNOTSUPP until a handler has
/// [settled](Options::settle) it.
#[derive(Default)]
pub struct Options {
    list: Vec<Element>,
    /// The list did not end where it had to: nothing is written back (S-CTRL-8).
    overrun: bool,
}

/// What follows the head of a known option, in bytes (S-CTRL-6).
fn body_size(option: &nmreq_option) -> usize {
    match option.nro_reqtype {
        NETMAP_REQ_OPT_EXTMEM => size_of::<nmreq_opt_extmem>() - HEAD,
        NETMAP_REQ_OPT_SYNC_KLOOP_EVENTFDS | NETMAP_REQ_OPT_RINGWAY => {
            (option.nro_size as usize).saturating_sub(HEAD)
        }
        NETMAP_REQ_OPT_CSB => size_of::<nmreq_opt_csb>() - HEAD,
        NETMAP_REQ_OPT_SYNC_KLOOP_MODE => size_of::<nmreq_opt_sync_kloop_mode>() - HEAD,
        NETMAP_REQ_OPT_OFFSETS => size_of::<nmreq_opt_offsets>() - HEAD,
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
                let all = options.list.iter_mut();
                all.for_each(|o| o.head.nro_status = libc::EOPNOTSUPP as u32);
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
            let mut head: nmreq_option = user::get(at)?;
            head.nro_status = 0;
            self.list.push(Element { at, head, body: Vec::new() });
            self.check(&mut bodies, body)?;
            at = head.nro_next;
        }
        Ok(())
    }

    /// Checks the element that was read last, and reads its body (S-CTRL-5, S-CTRL-6, S-CTRL-7).
    fn check(&mut self, bodies: &mut usize, body: usize) -> Result<(), i32> {
        let count = self.list.len();
        let Some((last, before)) = self.list.split_last_mut() else { return Ok(()) };
        let kind = last.head.nro_reqtype;
        if kind == 0 {
            last.head.nro_status = libc::EINVAL as u32;
            return Err(libc::EINVAL);
        }
        if kind >= NETMAP_REQ_OPT_MAX && kind != NETMAP_REQ_OPT_RINGWAY {
            return Ok(());
        }
        if let Some(first) = before.iter_mut().find(|o| o.head.nro_reqtype == kind) {
            first.head.nro_status = libc::EINVAL as u32;
            last.head.nro_status = libc::EINVAL as u32;
            return Err(libc::EINVAL);
        }
        if last.head.nro_size > NETMAP_REQ_MAXSIZE as u64 {
            return Err(libc::EMSGSIZE);
        }
        let size = body_size(&last.head);
        *bodies += size;
        if body + HEAD * count + *bodies > NETMAP_REQ_MAXSIZE
            || body + 32 * count + *bodies > STAGING
        {
            return Err(libc::EMSGSIZE);
        }
        last.body = vec![0; size];
        user::read(last.at + HEAD as u64, &mut last.body)?;
        Ok(())
    }

    fn element(&mut self, kind: u32) -> Option<&mut Element> {
        self.list.iter_mut().find(|o| o.head.nro_reqtype == kind)
    }

    /// The option of type `T`, if the program gave it.
    pub fn get<T: Known>(&mut self) -> Option<T> {
        let Element { head, body, .. } = self.element(T::KIND)?;
        let mut value = T::new_zeroed();
        let (start, rest) = value.as_mut_bytes().split_at_mut(HEAD);
        start.copy_from_slice(head.as_bytes());
        rest.copy_from_slice(body);
        Some(value)
    }

    /// What the program is to read in its option, if it succeeds.
    pub fn put<T: Known>(&mut self, value: &T) {
        if let Some(option) = self.element(T::KIND) {
            option.body.copy_from_slice(&value.as_bytes()[HEAD..]);
        }
    }

    /// The size that the program named for an option, and the bytes behind its head.
    pub fn raw(&mut self, kind: u32) -> Option<(u64, Vec<u8>)> {
        self.element(kind).map(|o| (o.head.nro_size, o.body.clone()))
    }

    /// An option has been looked at: its status is that of `result`, which is handed on.
    pub fn settle<T>(&mut self, kind: u32, result: Result<T, i32>) -> Result<T, i32> {
        if let Some(option) = self.element(kind) {
            option.head.nro_status = result.as_ref().err().copied().unwrap_or(0) as u32;
        }
        result
    }

    /// EOPNOTSUPP if nobody looked at some option (S-CTRL-10).
    pub fn all_supported(&self) -> Result<(), i32> {
        // S-CTRL-11: a request looks at the options that it takes, and at no others.
        let missed = |o: &&Element| o.head.nro_status == libc::EOPNOTSUPP as u32;
        let Some(option) = self.list.iter().find(missed) else { return Ok(()) };
        let kind = option.head.nro_reqtype;
        ringway::explain(&format_args!(
            "a registration takes no option of type {kind}; leave it out (nro_status says which option is meant)"
        ));
        Err(libc::EOPNOTSUPP)
    }

    /// Tells the program the status of each option, and what the options say now that
    /// succeeded with their request (S-CTRL-4).
    pub fn write_back(&self, request_succeeded: bool) -> Result<(), Fault> {
        if self.overrun {
            return Ok(());
        }
        self.list.iter().try_for_each(|Element { at, head, body }| {
            user::put(*at, head)?;
            match request_succeeded && head.nro_status == 0 {
                true => user::write(at + HEAD as u64, body),
                false => Ok(()),
            }
        })
    }
}
