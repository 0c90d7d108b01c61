//! The options that a port's name may carry: `@conf:rings=2,slots=512`, `@share=vale0:a` and
//! [Ringway's own](OwnOptions).

use ringway_portspec::{Body, Key, Keys, option};
use ringway_proto::Registration;

use crate::own_options::{NAMES, OwnOptions, given_twice};

/// The options of capture files.
const OF_FILES: [&str; 10] = [
    "read", "write", "speed", "loop", "max-gap", "dst-mac", "src-mac", "rotate", "files", "snaplen",
];

/// Options that are no part of the registration proper.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Named {
    /// The port whose region is to be shared.
    pub share: Option<String>,
    pub own: OwnOptions,
}

/// Applies the options to `reg`; returns the others. Errors say which part is wrong.
pub(crate) fn apply(list: &[u8], reg: &mut Registration) -> Result<Named, String> {
    let mut named = Named::default();
    let mut given = Vec::new();
    let mut rest = list;
    while !rest.is_empty() {
        let (opt, others) = option(rest).map_err(|e| e.to_string())?;
        rest = others;
        if named.own.take(&opt)? {
            continue;
        }
        match (opt.name, opt.body) {
            (b"conf", Body::Keys(keys)) => conf(keys, reg, &mut given)?,
            (b"conf", _) => return Err("write conf as @conf:rings=2,slots=512".into()),
            (b"share", Body::Default(_)) if named.share.is_some() => {
                return Err(given_twice("share"));
            }
            (b"share", Body::Default(port)) => named.share = Some(text(port)),
            (b"share", _) => return Err("write share as @share=vale0:a".into()),
            (other, _) if OF_FILES.iter().any(|name| name.as_bytes() == other) => {
                return Err(format!(
                    "option {}: capture files alone have it (file:x.pcap); leave it out",
                    text(other)
                ));
            }
            (other, _) => {
                return Err(format!(
                    "option `{}`: not one of conf, share, {}",
                    text(other),
                    NAMES.join(", ")
                ));
            }
        }
    }
    Ok(named)
}

/// A number of a registration: which of rings, slots and host rings, and whether to receive; `None`: both.
type Counted = (i32, Option<usize>);

/// Applies the keys of one option; `given` are those of options before it.
fn conf(keys: Keys<'_>, reg: &mut Registration, given: &mut Vec<Counted>) -> Result<(), String> {
    // The number for one direction comes before that for both, wherever it stands.
    let (mut both, mut one): (Vec<_>, Vec<_>) = (Vec::new(), Vec::new());
    for key in keys {
        let key = key.map_err(|e| e.to_string())?;
        let value = number(&key)?;
        let known = [("rings", 0), ("slots", 1), ("host_rings", 2)].into_iter();
        if let Some((_, what)) = known.clone().find(|(name, _)| key.is(name.as_bytes())) {
            note(given, (what, None), &key)?;
            both.extend([(what, 0, value), (what, 1, value)]);
            continue;
        }
        let sided = known.flat_map(|(name, what)| {
            let host = name.strip_prefix("host_");
            ["tx", "rx"].into_iter().enumerate().map(move |(side, dir)| match host {
                Some(name) => (format!("host_{dir}_{name}"), what, side),
                None => (format!("{dir}_{name}"), what, side),
            })
        });
        let found = sided.into_iter().find(|(name, ..)| key.is(name.as_bytes()));
        let (_, what, side) =
            found.ok_or_else(|| format!("conf has no key `{}`", text(key.name)))?;
        note(given, (what, Some(side)), &key)?;
        one.push((what, side, value));
    }
    for (what, side, value) in both.into_iter().chain(one) {
        let is_slots = what == 1;
        let Some(small) = u16::try_from(value).ok().or(is_slots.then_some(0)) else {
            return Err(format!("conf: no port has {value} rings; write @conf:rings=2"));
        };
        match (what, side) {
            (0, 0) => reg.tx_rings = small,
            (0, _) => reg.rx_rings = small,
            (1, 0) => reg.tx_slots = value,
            (1, _) => reg.rx_slots = value,
            (_, 0) => reg.host_tx_rings = small,
            (..) => reg.host_rx_rings = small,
        }
    }
    Ok(())
}

/// Refuses a key that is given already.
fn note(given: &mut Vec<Counted>, counted: Counted, key: &Key<'_>) -> Result<(), String> {
    if given.contains(&counted) {
        return Err(given_twice(&format!("conf:{}", text(key.name))));
    }
    given.push(counted);
    Ok(())
}

fn number(key: &Key<'_>) -> Result<u32, String> {
    let value = key.value.and_then(|value| str::from_utf8(value).ok()?.parse().ok());
    // In a request 0 stands for the default, which is what a name says by leaving the key out.
    let value = value.filter(|&value| value != 0);
    value.ok_or_else(|| format!("conf needs a number from 1: {}=4", text(key.name)))
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(list: &str) -> Result<(Registration, Named), String> {
        let mut reg = Registration::default();
        apply(list.as_bytes(), &mut reg).map(|named| (reg, named))
    }

    #[test]
    fn one_direction_comes_before_both() {
        let (reg, asked) = read("@conf:tx-rings=3,rings=2,slots=512@share=vale0:a").unwrap();
        assert_eq!((reg.tx_rings, reg.rx_rings), (3, 2));
        assert_eq!((reg.tx_slots, reg.rx_slots), (512, 512));
        assert_eq!(asked, Named { share: Some("vale0:a".into()), ..Named::default() });
        let own = OwnOptions { mode: Some(ringway_proto::NicMode::Packet), ..Default::default() };
        assert_eq!(read("@mode=packet").unwrap().1.own, own);
        let (reg, _) = read("@conf:host-rings=2,host_rx_rings=3,rx_slots=7").unwrap();
        assert_eq!((reg.host_tx_rings, reg.host_rx_rings, reg.rx_slots), (2, 3, 7));
    }

    #[test]
    fn what_is_no_option_is_refused() {
        for bad in [
            "@conf=4",
            "@conf",
            "@conf:x=1",
            "@conf:rings",
            "@conf:slots=0",
            "@conf:host-rings=0",
            "@conf:rings=65537",
            "@share",
            "@other=1",
            "@",
            "@filter",
            "@sample=0",
            "@mode=x",
            "@mode",
            "@buffers=big",
            "@buffers",
            "@share=vale0:a@share=vale0:a",
            "@conf:rings=1,rings=2",
            "@conf:tx-rings=1@conf:slots=64,tx_rings=2",
        ] {
            assert!(read(bad).is_err(), "{bad}");
        }
        for of_files in ["@speed=1", "@rotate", "@write"] {
            let said = read(of_files).unwrap_err();
            assert!(
                said.ends_with("capture files alone have it (file:x.pcap); leave it out"),
                "{said}"
            );
        }
    }
}
