//! NIOCCTRL: the envelope (S-CTRL).

use std::os::fd::RawFd;

use ringway_abi::*;

use crate::{
    request::{
        body::{self, Asked},
        options::Options,
    },
    table::InUse,
    user,
};

/// Answers the request whose header is at `arg`.
pub fn answer(netmap: &InUse, fd: RawFd, arg: u64) -> Result<(), i32> {
    let mut header: nmreq_header = user::get(arg)?;
    let result = process(netmap, fd, &mut header);
    // The argument is copied back also when the request fails (S-LIFE-11).
    user::put(arg, &header)?;
    result
}

fn process(netmap: &InUse, fd: RawFd, header: &mut nmreq_header) -> Result<(), i32> {
    if !(NETMAP_MIN_API..=NETMAP_MAX_API).contains(&header.nr_version) || header.nr_reserved != 0 {
        return Err(libc::EINVAL);
    }
    header.nr_name[NETMAP_REQ_IFNAMSIZ - 1] = 0;
    let size = body::size(header.nr_reqtype);
    if (header.nr_body != 0) != (size != 0) {
        return Err(libc::EINVAL);
    }
    let mut bytes = [0u8; 64];
    let body = &mut bytes[..size];
    user::read(header.nr_body, body)?;

    let mut options = match Options::read(header.nr_options, size) {
        Ok(options) => options,
        Err((errno, options)) => {
            options.write_back(false)?;
            return Err(errno);
        }
    };
    let mut asked = Asked { netmap, fd, name: name_of(&header.nr_name) };
    let result = asked.carry_out(header.nr_reqtype, body, &mut options);
    options.write_back(result.is_ok())?;
    result?;
    user::write(header.nr_body, body)?;
    if header.nr_reqtype == NETMAP_REQ_VALE_LIST {
        put_name(&mut header.nr_name, &asked.name);
    }
    Ok(())
}

/// The bytes before the first nul; what is not UTF-8 names no port.
pub fn name_of(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|b| *b == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}

/// Stores a name with its nul.
pub fn put_name(bytes: &mut [u8], name: &str) {
    let n = name.len().min(bytes.len() - 1);
    bytes.fill(0);
    bytes[..n].copy_from_slice(&name.as_bytes()[..n]);
}
