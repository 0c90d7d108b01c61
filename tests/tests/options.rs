//! The table of options in the guide, walked: each option on each kind of port works, or is refused
//! with the cause and what to do. None is ignored.

use std::{fs, path::Path};

use ringway::{Cause, Control, Filter, Interest, Port};
use ringway_testkit::{Netns, frame, skip_without_root};
use ringway_tests::{
    c::Language::C11, c::Library::Libnetmap, c::project, c::succeed, compile, isolated, wire::wire,
};

/// The kinds of ports, as the table has them.
const KINDS: [&str; 7] =
    ["interface", "host rings", "switch port", "pipe", "monitor", "file read", "file written"];

/// The kinds of ports that programs of netmap's API open, as the table of these has them.
const NETMAP_KINDS: [&str; 6] =
    ["interface", "host rings", "switch port", "pipe", "monitor", "null port"];

/// A row: the option, and whether it works on each kind.
type Row = (String, Vec<bool>);

/// The table of the guide whose first cell is `first`, and that has these kinds of ports.
fn table(first: &str, kinds: &[&str]) -> Vec<Row> {
    let text = fs::read_to_string(project().join("docs/guide/options.md")).expect("the guide");
    let cells = |line: &str| -> Vec<String> {
        line.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect()
    };
    let first = format!("| {first} |");
    let mut lines = text.lines().skip_while(|line| !line.starts_with(&first));
    assert_eq!(cells(lines.next().expect("a table"))[1..], *kinds);
    let rows = lines.skip(1).take_while(|line| line.starts_with("| `@"));
    rows.map(|line| {
        let cells = cells(line);
        let works = cells[1..].iter().map(|cell| match &**cell {
            "works" => true,
            "refused" => false,
            other => panic!("{line}: {other}"),
        });
        (cells[0].trim_matches('`').to_owned(), works.collect())
    })
    .collect()
}

/// A pcap file of frames that are numbered, every other one for port 53.
fn record(path: &Path, count: u32) {
    let words = |words: &[u32]| -> Vec<u8> { words.iter().flat_map(|w| w.to_le_bytes()).collect() };
    let mut file = words(&[0xa1b2_c3d4, 4 << 16 | 2, 0, 0, 65535, 1]);
    for number in 0..count {
        let bytes = datagram(number);
        file.extend(words(&[1, number, bytes.len() as u32, bytes.len() as u32]));
        file.extend(bytes);
    }
    fs::write(path, file).unwrap();
}

/// A UDP frame that ends with its number: those with an even one are for port 53.
fn datagram(number: u32) -> Vec<u8> {
    let mut bytes = frame(number, 60);
    bytes[12..14].copy_from_slice(&[8, 0]);
    bytes[14..34]
        .copy_from_slice(&[0x45, 0, 0, 46, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
    let port: u16 = if number.is_multiple_of(2) { 53 } else { 99 };
    bytes[34..36].copy_from_slice(&1000u16.to_be_bytes());
    bytes[36..38].copy_from_slice(&port.to_be_bytes());
    bytes[38..42].copy_from_slice(&[0, 26, 0, 0]);
    bytes[56..60].copy_from_slice(&number.to_be_bytes());
    bytes
}

fn open(netns: &Netns, name: &str) -> Port {
    netns.enter(|| Port::open(name)).unwrap_or_else(|e| panic!("{name}: {e}"))
}

/// Names of the kinds' ports, of a directory for files.
fn names(home: &Path) -> [String; 7] {
    let [read, written] = ["in.pcap", "out.pcap"].map(|name| home.join(name).display().to_string());
    [
        "netmap:n0".into(),
        "netmap:n0^".into(),
        "vale0:a".into(),
        "p{1".into(),
        "vale0:watched/r".into(),
        format!("file:{read}"),
        format!("file:{written}@write"),
    ]
}

/// What an option that was taken has not done, where that shows without packets.
fn without_effect(option: &str, port: &mut Port) -> Option<String> {
    let (is, ought) = match option {
        "@conf:slots=64" => (port.rx(0).slots().num_slots() as usize, 64),
        "@conf:host-rings=2" => (port.rx_rings(), 2),
        "@buffers=4096" => (port.max_frame(), 4096 - 256),
        "@share=vale0:other" => {
            let ports = Control::connect().unwrap().ports().unwrap();
            let other = ports.iter().find(|port| port.name == "vale0:other").expect("it is open");
            (port.mem_id().into(), other.mem_id.into())
        }
        _ => return None,
    };
    (is != ought).then(|| format!("{is} rather than {ought}"))
}

#[test]
fn every_option_on_every_kind_of_port() {
    if skip_without_root("every_option_on_every_kind_of_port") {
        return;
    }
    isolated("every_option_on_every_kind_of_port", |home| {
        let (a, _b, _pair) = wire();
        record(&home.path().join("in.pcap"), 4);
        let _others = ["vale0:watched", "vale0:other"].map(|name| open(&a, name));
        let mut wrong = Vec::new();
        // One of two would be ignored.
        for (option, row) in table("option", &KINDS) {
            let cells = KINDS.iter().zip(names(home.path())).zip(row);
            for ((kind, name), _) in cells.filter(|(_, works)| *works) {
                match a.enter(|| Port::open(&format!("{name}{option}{option}"))) {
                    Ok(_) => wrong.push(format!("{kind}, {option}: it is taken twice")),
                    Err(error) => assert!(error.to_string().contains("is given twice"), "{error}"),
                }
            }
        }
        for (option, row) in table("option", &KINDS) {
            for ((kind, name), works) in KINDS.iter().zip(names(home.path())).zip(row) {
                // What begins another file needs to know when.
                // What an option is about.
                let more = match () {
                    () if option.starts_with("@files") => "@rotate=1M",
                    () if option.starts_with("@max-gap") && works => "@speed=1",
                    () => "",
                };
                let name = format!("{name}{option}{more}");
                match a.enter(|| Port::open(&name)) {
                    Ok(mut port) if works => {
                        if let Some(problem) = without_effect(&option, &mut port) {
                            wrong.push(format!("{kind}, {option}: {problem}"));
                        }
                    }
                    Err(error) if !works => {
                        let said = error.to_string();
                        assert_ne!(error.cause(), Cause::NoPort, "{kind}: {said}");
                        assert!(said.contains(';'), "{kind}: {said}");
                        assert!(!said.contains("there is no region"), "{kind}: {said}");
                    }
                    Ok(_) => wrong.push(format!("{kind}, {option}: it is taken")),
                    Err(error) => wrong.push(format!("{kind}, {option}: {error}")),
                }
            }
        }
        assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
        // No name was taken for that of a file.
        let files = fs::read_dir(home.path()).unwrap().map(|file| file.unwrap().file_name());
        let files = files.map(|name| name.to_string_lossy().into_owned());
        assert_eq!(files.filter(|name| name.contains('@')).collect::<Vec<_>>(), [""; 0]);
    });
}

/// The same in programs of netmap's API, whose error is a number: with `RINGWAY_VERBOSE` set, standard error
/// has the cause, and what to do.
#[test]
fn every_option_in_programs_of_netmaps_api() {
    if skip_without_root("every_option_in_programs_of_netmaps_api") {
        return;
    }
    isolated("every_option_in_programs_of_netmaps_api", |home| {
        let (a, _b, _pair) = wire();
        let _watched = open(&a, "vale0:watched");
        home.install(&[("libnetmap.so", "ringway-libnetmap")]);
        let program = compile(home, "tests/c/own_options.c", C11, Libnetmap);
        let ports: [&[&str]; 6] = [
            &["netmap:n0"],
            &["netmap:n0^"],
            &["vale0:a"],
            &["netmap:p{1"],
            &["vale0:watched/r", "netmap:n0/r"],
            &["null"],
        ];
        let mut wrong = Vec::new();
        let mut try_one = |kind: &str, name: &str, works: bool| {
            let mut command = home.command(&program);
            command.arg(name).env("RINGWAY_VERBOSE", "1");
            let said = a.enter(|| succeed(command));
            let results = said.lines().filter_map(|line| line.strip_prefix("result "));
            let results: Vec<bool> = results.map(|code| code == "0").collect();
            assert!(!results.is_empty(), "{said}");
            let causes = said.lines().filter(|line| line.starts_with("ringway: "));
            let helpful = causes.filter(|cause| cause.contains(';')).count();
            if results.contains(&!works) || (!works && helpful < results.len()) {
                wrong.push(format!("{kind}, {name}: {said}"));
            }
        };
        for (option, row) in table("in netmap's API", &NETMAP_KINDS) {
            for ((kind, ports), works) in NETMAP_KINDS.iter().zip(ports).zip(row) {
                for port in ports {
                    let _watched = (*port == "netmap:n0/r").then(|| open(&a, "netmap:n0"));
                    try_one(kind, &format!("{port}{option}"), works);
                }
            }
        }
        // Files are no ports there.
        record(&home.path().join("in.pcap"), 4);
        let file = format!("file:{}@loop=3", home.path().join("in.pcap").display());
        let said = succeed({
            let mut command = home.command(&program);
            command.arg(file);
            command
        });
        assert!(!said.contains("result 0"), "{said}");
        assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
    });
}

/// A filter shows what matches and nothing else, whatever kind of port it is, in order; more frames
/// are sent than rings have slots, so that what does not match has to make room.
#[test]
fn filters_work_on_every_kind_of_port_that_receives() {
    if skip_without_root("filters_work_on_every_kind_of_port_that_receives") {
        return;
    }
    isolated("filters_work_on_every_kind_of_port_that_receives", |home| {
        const COUNT: u32 = 3000;
        let (a, b, _pair) = wire();
        let file = home.path().join("in.pcap");
        record(&file, COUNT);
        let file = format!("file:{}", file.display());
        let even: Vec<u32> = (0..COUNT).step_by(2).collect();
        let tenth: Vec<u32> = even.iter().copied().step_by(10).collect();
        let cases = [
            ("netmap:n0", Some("netmap:n1")),
            ("vale0:a", Some("vale0:b")),
            ("p{1", Some("p}1")),
            ("vale1:a/r", Some("vale1:b")),
            (&*file, None),
        ];
        // The sample is given in the name, or with the expression.
        let samples = [("", 1, &even), ("", 10, &tenth), ("@sample=10", 1, &tenth)];
        for (name, sender) in cases {
            for (in_name, sample, expected) in samples {
                let mut watched = name.contains('/').then(|| open(&a, "vale1:a"));
                let filter = Filter::new("udp port 53").unwrap().one_in(sample);
                let options = Port::options().rx_only().filter(filter);
                let spec = format!("{name}{in_name}");
                let mut port = a.enter(|| options.open(&spec)).unwrap_or_else(|e| panic!("{e}"));
                let mut sender =
                    sender.map(|name| open(if name == "netmap:n1" { &b } else { &a }, name));
                let (mut seen, mut next) = (Vec::new(), 0);
                while seen.last() != expected.last() {
                    if let Some(sender) = &mut sender {
                        let end = (next + 100).min(COUNT);
                        while next < end && sender.tx(0).push(&datagram(next)) {
                            next += 1;
                        }
                        sender.tx(0).sync();
                    } else {
                        next = COUNT;
                    }
                    // What matches of these: then nothing is lost where the receiver is slower.
                    let last = expected.iter().rev().find(|number| **number < next);
                    while seen.last() != last {
                        if let Some(watched) = &mut watched {
                            let mut rx = watched.rx(0);
                            rx.batch(1024).for_each(drop);
                            rx.sync();
                        }
                        port.poll(Interest::Rx);
                        for ring in 0..port.rx_rings() {
                            // The rest stays, and is found again.
                            for slot in port.rx(ring).batch(7) {
                                let number = slot.read::<4>(56).map(u32::from_be_bytes);
                                seen.push(number.expect("a whole frame"));
                            }
                        }
                    }
                }
                assert_eq!(&seen, expected, "{name}");
            }
        }
    });
}
