//! Names and what they mean: the reference's table, and what it leaves open.

use ringway_portspec::{Body, Error, Flags, Rings, header, option, register};

/// `None`: the header is refused.
type Header = Option<(&'static str, Mode)>;

enum Mode {
    /// The error; the rest is then what the header left.
    Refused(Error, &'static str),
    /// Rest, rings, flags, region.
    Read(&'static str, Rings, Flags, u16),
}
use Mode::*;
use Rings::*;

fn check(spec: &str, expected: &Header) {
    match (header(spec.as_bytes()), expected) {
        (Err(_), None) => {}
        (Ok((name, rest)), Some((expected_name, mode))) => {
            assert_eq!(name, expected_name.as_bytes(), "{spec}");
            match (register(rest, 0), mode) {
                (Err(error), Refused(expected, left)) => {
                    assert_eq!((error, rest), (*expected, left.as_bytes()), "{spec}");
                }
                (Ok((how, rest)), Read(left, rings, flags, mem_id)) => {
                    assert_eq!(rest, left.as_bytes(), "{spec}");
                    assert_eq!(
                        (how.rings, how.flags, how.mem_id),
                        (*rings, *flags, *mem_id),
                        "{spec}"
                    );
                }
                (read, _) => panic!("{spec}: {read:?}"),
            }
        }
        (read, _) => panic!("{spec}: {read:?}"),
    }
}

const NO: Flags = Flags {
    exclusive: false,
    rx_only: false,
    tx_only: false,
    monitor_tx: false,
    monitor_rx: false,
    zero_copy_monitor: false,
};
const EXCLUSIVE: Flags = Flags { exclusive: true, ..NO };
const MONITOR: Flags = Flags { monitor_tx: true, monitor_rx: true, zero_copy_monitor: true, ..NO };

#[test]
fn reference() {
    let tx = Flags { tx_only: true, exclusive: true, ..NO };
    let rx = Flags { rx_only: true, ..NO };
    let table: &[(&str, Header)] = &[
        ("netmap:eth0", Some(("eth0", Read("", All, NO, 0)))),
        ("netmap:eth0-1", Some(("eth0", Read("", One(1), NO, 0)))),
        ("netmap:eth0-", Some(("eth0", Refused(Error::Ring, "-")))),
        ("netmap:eth0-2/Tx", Some(("eth0", Read("", One(2), tx, 0)))),
        ("netmap:eth0~1", Some(("eth0", Read("", One(1), rx, 0)))),
        ("netmap:eth0~", Some(("eth0", Refused(Error::Queue, "~")))),
        ("netmap:eth0*", Some(("eth0", Read("", AllAndHost, NO, 0)))),
        ("netmap:eth0^", Some(("eth0", Read("", Host, NO, 0)))),
        ("netmap:eth0@2/R", Some(("eth0", Read("", All, rx, 2)))),
        ("netmap:eth0@2/R@2", Some(("eth0", Read("", All, rx, 2)))),
        ("netmap:eth0@2/R@3", Some(("eth0", Refused(Error::OtherRegion, "@2/R@3")))),
        ("netmap:eth0@netmap:lo/R", Some(("eth0", Read("@netmap:lo/R", All, NO, 0)))),
        ("netmap:eth0/R@xxx", Some(("eth0", Read("@xxx", All, rx, 0)))),
        ("netmap:eth0@", Some(("eth0", Refused(Error::Region, "@")))),
        ("vale0:0@", Some(("vale0:0", Refused(Error::Region, "@")))),
        ("netmap:", None),
        ("netmap:^", None),
        ("netmap:{", None),
        ("", None),
        ("eth0", None),
        ("netmapXXX:eth0", None),
        ("netmap:pipe{1}2", None),
        ("netmap:vale0:0", None),
        ("netmap:eth0&", None),
        ("netmap:pipe{in-7", Some(("pipe{in", Read("", One(7), NO, 0)))),
        ("vale0:0{0", Some(("vale0:0{0", Read("", All, NO, 0)))),
        ("vale:0", Some(("vale:0", Read("", All, NO, 0)))),
        ("valeXXX:YYY-4", Some(("valeXXX:YYY", Read("", One(4), NO, 0)))),
        ("vale0:0/Tx@opt", Some(("vale0:0", Read("@opt", All, tx, 0)))),
        ("vale0:0-3@opt", Some(("vale0:0", Read("@opt", One(3), NO, 0)))),
    ];
    for (spec, expected) in table {
        check(spec, expected);
    }
}

#[test]
fn further_names() {
    let table: &[(&str, Header)] = &[
        ("netmap:pipe{-3", Some(("pipe{", Read("", One(3), NO, 0)))),
        ("netmap:{x", Some(("{x", Read("", All, NO, 0)))),
        ("netmap:eth0.7}a_1", Some(("eth0.7}a_1", Read("", All, NO, 0)))),
        ("netmap:a{x.y", None),
        ("netmap:a}", None),
        ("vale0:a{", None),
        ("vale0:{/x", Some(("vale0:{", Read("", All, EXCLUSIVE, 0)))),
        ("vale0:", Some(("vale0:", Read("", All, NO, 0)))),
        ("vale0", None),
        ("vale.0:a", None),
        ("vale-0:a", None),
        ("netmap", None),
        ("netmap0:a", None),
        ("netmap:eth0+", None),
        ("netmap:eth0^3", Some(("eth0", Read("", OneHost(3), NO, 0)))),
        ("netmap:eth0^4095", Some(("eth0", Refused(Error::HostRing, "^4095")))),
        ("netmap:eth0^x", Some(("eth0", Refused(Error::Mode, "^x")))),
        ("netmap:eth0^@2", Some(("eth0", Read("", Host, NO, 2)))),
        ("netmap:eth0*1", Some(("eth0", Refused(Error::Mode, "*1")))),
        ("netmap:eth0-4094", Some(("eth0", Read("", One(4094), NO, 0)))),
        ("netmap:eth0-4095", Some(("eth0", Refused(Error::Ring, "-4095")))),
        ("netmap:eth0-99999999999", Some(("eth0", Refused(Error::Ring, "-99999999999")))),
        ("netmap:eth0-007", Some(("eth0", Read("", One(7), NO, 0)))),
        ("netmap:eth0-", Some(("eth0", Refused(Error::Ring, "-")))),
        ("netmap:eth0-/x", Some(("eth0", Refused(Error::Ring, "-/x")))),
        ("netmap:veth-a", Some(("veth-a", Read("", All, NO, 0)))),
        ("netmap:veth-a-2@3", Some(("veth-a", Read("", One(2), NO, 3)))),
        ("netmap:br-1a2b3c4d5e6f", Some(("br-1a2b3c4d5e6f", Read("", All, NO, 0)))),
        ("vale0:veth-a^", Some(("vale0:veth-a", Read("", Host, NO, 0)))),
        ("netmap:eth0--1", Some(("eth0", Refused(Error::Ring, "--1")))),
        ("netmap:eth0-1-2", Some(("eth0", Refused(Error::Mode, "-1-2")))),
        ("netmap:eth0/", Some(("eth0", Refused(Error::Flag, "/")))),
        ("netmap:eth0/q", Some(("eth0", Refused(Error::Flag, "/q")))),
        ("netmap:eth0/x/R", Some(("eth0", Refused(Error::Flag, "/x/R")))),
        ("netmap:eth0/@5", Some(("eth0", Read("", All, NO, 5)))),
        ("netmap:eth0/@o", Some(("eth0", Read("@o", All, NO, 0)))),
        ("netmap:eth0/zzrt", { Some(("eth0", Read("", All, MONITOR, 0))) }),
        ("netmap:eth0@0", Some(("eth0", Refused(Error::Region, "@0")))),
        ("netmap:eth0@65535", Some(("eth0", Read("", All, NO, 65535)))),
        ("netmap:eth0@65536", Some(("eth0", Refused(Error::Region, "@65536")))),
        ("netmap:eth0@2x", Some(("eth0", Refused(Error::Mode, "@2x")))),
        ("netmap:eth0@2@", Some(("eth0", Refused(Error::Region, "@2@")))),
        ("netmap:eth0@2/", Some(("eth0", Refused(Error::Flag, "@2/")))),
    ];
    for (spec, expected) in table {
        check(spec, expected);
    }
}

#[test]
fn length_of_a_name() {
    for (subsystem, counted) in [("netmap:", 0), ("vale0:", 6)] {
        let name = |length: usize| format!("{subsystem}{}-1", "x".repeat(length - counted));
        assert!(header(name(63).as_bytes()).is_ok());
        assert_eq!(header(name(64).as_bytes()), Err(Error::Length));
    }
}

#[test]
fn region_that_the_port_has() {
    assert_eq!(register(b"", 3).map(|(how, _)| how.mem_id), Ok(3));
    assert_eq!(register(b"@3", 3).map(|(how, _)| how.mem_id), Ok(3));
    assert_eq!(register(b"@4", 3), Err(Error::OtherRegion));
}

#[test]
fn options() {
    let list = b"@share=vale0:a,b@conf:host-rings=1,slots=,x@plain";
    let (share, rest) = option(list).unwrap();
    assert_eq!((share.name, share.body), (&b"share"[..], Body::Default(b"vale0:a,b")));
    let (conf, rest) = option(rest).unwrap();
    let Body::Keys(keys) = conf.body else { panic!("{conf:?}") };
    let keys: Vec<_> = keys.map(Result::unwrap).collect();
    assert!(keys[0].is(b"host_rings") && keys[0].value == Some(b"1"));
    assert!(keys[1].is(b"slots") && keys[1].value == Some(b""));
    assert!(keys[2].is(b"x") && keys[2].value.is_none());
    assert!(!keys[2].is(b"slots") && keys.len() == 3);
    let (plain, rest) = option(rest).unwrap();
    assert_eq!((plain.name, plain.body, rest), (&b"plain"[..], Body::None, &b""[..]));

    assert_eq!(option(b""), Err(Error::List));
    assert_eq!(option(b"share"), Err(Error::List));
    for empty in [&b"@"[..], b"@@share", b"@=1", b"@:a=1"] {
        assert_eq!(option(empty), Err(Error::Option));
    }
    for no_key in [&b"@conf:"[..], b"@conf:a=1,", b"@conf:,a=1", b"@conf:=1"] {
        let Body::Keys(mut keys) = option(no_key).unwrap().0.body else { panic!() };
        assert!(keys.any(|key| key == Err(Error::Key)));
    }
}
