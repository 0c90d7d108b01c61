//! NIOCCTRL: the envelope (S-CTRL).

use std::fmt::Display;

use ringway_abi::*;

use crate::{request::options::Options, user};

/// Bytes of the body of a request type (S-CTRL-2).
pub fn size(reqtype: u16) -> usize {
    match reqtype {
        NETMAP_REQ_REGISTER => size_of::<nmreq_register>(),
        NETMAP_REQ_PORT_INFO_GET => size_of::<nmreq_port_info_get>(),
        NETMAP_REQ_VALE_ATTACH => size_of::<nmreq_vale_attach>(),
        NETMAP_REQ_VALE_DETACH => size_of::<nmreq_vale_detach>(),
        NETMAP_REQ_VALE_LIST => size_of::<nmreq_vale_list>(),
        NETMAP_REQ_PORT_HDR_SET | NETMAP_REQ_PORT_HDR_GET => size_of::<nmreq_port_hdr>(),
        NETMAP_REQ_VALE_NEWIF => size_of::<nmreq_vale_newif>(),
        NETMAP_REQ_VALE_POLLING_ENABLE | NETMAP_REQ_VALE_POLLING_DISABLE => {
            size_of::<nmreq_vale_polling>()
        }
        NETMAP_REQ_POOLS_INFO_GET => size_of::<nmreq_pools_info>(),
        NETMAP_REQ_SYNC_KLOOP_START => size_of::<nmreq_sync_kloop_start>(),
        _ => 0,
    }
}

/// Who carries out a request: is told its type, and may change the port's name, the body, which has
/// [`size`] bytes, and the options.
pub type CarryOut<'a> =
    dyn FnMut(u16, &mut String, &mut [u8], &mut Options) -> Result<(), i32> + 'a;

/// Answers the request whose header is at `arg`.
pub fn answer(arg: u64, carry_out: &mut CarryOut<'_>) -> Result<(), i32> {
    let mut header: nmreq_header = user::get(arg)?;
    let result = process(&mut header, carry_out);
    // The argument is copied back also when the request fails (S-LIFE-11).
    user::put(arg, &header)?;
    result
}

fn process(header: &mut nmreq_header, carry_out: &mut CarryOut<'_>) -> Result<(), i32> {
    // S-CTRL-1.
    if !(NETMAP_MIN_API..=NETMAP_MAX_API).contains(&header.nr_version) {
        return Err(other_version(header.nr_version.into()));
    }
    if header.nr_reserved != 0 {
        return Err(malformed(&"nr_reserved is not 0; clear the header before you fill it in"));
    }
    header.nr_name[NETMAP_REQ_IFNAMSIZ - 1] = 0;
    let size = size(header.nr_reqtype);
    // S-CTRL-3. An unknown type has no body, and is refused when it is carried out.
    if (header.nr_body != 0) != (size != 0) {
        let reqtype = header.nr_reqtype;
        return Err(match size {
            0 => malformed(&format_args!(
                "request {reqtype} is not known, or has no body; leave nr_body 0"
            )),
            _ => malformed(&format_args!(
                "request {reqtype} has a body of {size} bytes; put its address into nr_body"
            )),
        });
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
    let result = name_of(&header.nr_name).and_then(|mut name| {
        carry_out(header.nr_reqtype, &mut name, body, &mut options).map(|()| name)
    });
    options.write_back(result.is_ok())?;
    let name = result?;
    user::write(header.nr_body, body)?;
    if header.nr_reqtype == NETMAP_REQ_VALE_LIST {
        put_name(&mut header.nr_name, &name);
    }
    Ok(())
}

/// EINVAL, for a program that was built for a version of netmap's API that there is no more.
pub fn other_version(version: u32) -> i32 {
    malformed(&format_args!(
        "the program asks in version {version} of netmap's API; build it with headers of version \
         {NETMAP_MIN_API} or {NETMAP_MAX_API}, such as Ringway's"
    ))
}

/// EINVAL, for a request that says what no request can.
fn malformed(problem: &dyn Display) -> i32 {
    ringway::explain(problem);
    libc::EINVAL
}

/// The bytes before the first nul. EINVAL if they are not UTF-8: names of ports are.
pub fn name_of(bytes: &[u8]) -> Result<String, i32> {
    let end = bytes.iter().position(|b| *b == 0).unwrap_or(bytes.len());
    let name = str::from_utf8(&bytes[..end]);
    name.map(String::from).map_err(|_| {
        malformed(&format_args!(
            "the name \"{}\" is not UTF-8; write it so",
            bytes[..end].escape_ascii()
        ))
    })
}

/// Stores a name with its nul.
pub fn put_name(bytes: &mut [u8], name: &str) {
    let n = name.len().min(bytes.len() - 1);
    bytes.fill(0);
    bytes[..n].copy_from_slice(&name.as_bytes()[..n]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_text() {
        assert_eq!(name_of(b"vale0:\xc3\xa9\0\xff").as_deref(), Ok("vale0:\u{e9}"));
        for bad in [&b"vale0:\xe8\0"[..], b"vale0:\xe9\0"] {
            assert_eq!(name_of(bad), Err(libc::EINVAL));
        }
    }
}
