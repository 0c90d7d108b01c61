//! Any bytes as the name of a port: read to the end, or refused, and nothing lost on the way.
#![no_main]

use libfuzzer_sys::fuzz_target;
use ringway_portspec::{Body, Error, NAME_MAX, RINGS_MAX, Rings, header, name, option, register};

fn read(spec: &[u8]) -> Result<(), Error> {
    let (port, rest) = header(spec)?;
    let base = spec.strip_prefix(b"netmap:");
    assert!(!port.is_empty() && port.len() <= NAME_MAX);
    assert_eq!(base.unwrap_or(spec), [port, rest].concat());
    if let Some(base) = base {
        assert_eq!(name(base), Ok((port, rest)));
    }

    let (how, mut list) = register(rest, 0)?;
    assert!(rest.ends_with(list));
    if let Rings::One(ring) | Rings::OneHost(ring) = how.rings {
        assert!(ring < RINGS_MAX);
    }
    // What it has read is right for a port in that region, and for no other port.
    assert_eq!(register(rest, how.mem_id), Ok((how, list)));
    let other = if how.mem_id == 1 { 2 } else { 1 };
    let elsewhere = register(rest, other);
    if how.mem_id == 0 {
        assert_eq!(elsewhere.map(|(how, list)| (how.mem_id, list)), Ok((other, list)));
    } else {
        assert_eq!(elsewhere, Err(Error::OtherRegion));
    }

    while !list.is_empty() {
        let (read, rest) = option(list)?;
        assert!(!read.name.is_empty() && list.ends_with(rest) && rest.len() < list.len());
        if let Body::Keys(keys) = read.body {
            for key in keys {
                let key = key?;
                assert!(key.is(&key.name.iter().map(underscore).collect::<Vec<_>>()));
                assert!(!key.name.contains(&b'=') && !key.value.unwrap_or(b"").contains(&b','));
            }
        }
        list = rest;
    }
    Ok(())
}

fn underscore(byte: &u8) -> u8 {
    if *byte == b'-' { b'_' } else { *byte }
}

fuzz_target!(|spec: &[u8]| {
    let _ = read(spec);
});
