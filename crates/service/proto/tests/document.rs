//! `docs/control-protocol.md` and this crate say the same: the tags of requests, replies and ring
//! backends, and the bytes of whole messages.

use std::{fs, path::Path};

use ringway_abi::Dir;
use ringway_proto::{
    Cause, DaemonInfo, Error, EventKind, EventPage, Forwarding, Grant, Layout, Level,
    MirrorDirection, Multicast, NicMode, Options, Parameters, Polling, Pools, PortGeometry,
    PortKind, PortSettings, PortShape, Refusal, Refusals, RegionPosition, Registration, Reply,
    Request, RingBackend, RingGrant, RingSelection, RxSelector, Steered, SwitchMirror,
    SwitchPosition,
};
use ringway_region::Sizes;
use serde::{Serialize, de::DeserializeOwned};

const VERSION: u8 = 7;

fn document() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs/control-protocol.md");
    fs::read_to_string(path).expect("the document")
}

/// The rows `| TAG | NAME |` of the table behind `before`.
fn table(document: &str, before: &str) -> Vec<(u8, String)> {
    let (_, rest) = document.split_once(before).unwrap_or_else(|| panic!("no {before:?}"));
    let lines = rest.lines().skip_while(|line| !line.starts_with('|'));
    let rows = lines.take_while(|line| line.starts_with('|')).skip(2);
    let cells = |row: &str| -> Option<(u8, String)> {
        let mut cells = row.split('|').skip(1).map(str::trim);
        Some((cells.next()?.parse().ok()?, cells.next()?.trim_matches('`').to_string()))
    };
    rows.map(|row| cells(row).unwrap_or_else(|| panic!("no tag in {row:?}"))).collect()
}

/// The tag and the name of each value.
fn tags<T: Serialize + std::fmt::Debug>(values: &[T]) -> Vec<(u8, String)> {
    let name = |value: &T| {
        let shown = format!("{value:?}");
        shown.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default().to_string()
    };
    let tag = |value: &T| postcard::to_allocvec(value).expect("it is encoded")[0];
    values.iter().map(|value| (tag(value), name(value))).collect()
}

fn name() -> String {
    "vale0:a".into()
}

fn requests() -> Vec<Request> {
    let (name, bridge, mem_id) = (name(), "vale0".to_string(), 0);
    let all = vec![
        Request::Register {
            name: name.clone(),
            registration: Registration::default(),
            options: Box::default(),
        },
        Request::Unregister,
        Request::Describe,
        Request::Barrier,
        Request::Mirrors { dir: Dir::Tx, index: 0 },
        Request::Stack,
        Request::PortGeometry { name: name.clone(), mem_id },
        Request::Pools { name: name.clone(), mem_id },
        Request::NewInterface { name: name.clone(), shape: PortShape::default() },
        Request::DeleteInterface { name: name.clone() },
        Request::SetHeaderLen { name: name.clone(), len: 0 },
        Request::HeaderLen { name: name.clone() },
        Request::SwitchAttach {
            name: name.clone(),
            stack: false,
            all_rings: true,
            mem_id,
            mode: None,
        },
        Request::SwitchDetach { name: name.clone() },
        Request::SwitchFind { name: name.clone(), from: SwitchPosition::default() },
        Request::SwitchPoll {
            name: name.clone(),
            enable: true,
            polling: Polling::OneCpu { cpu: 0, count: 1 },
        },
        Request::SwitchNew { bridge: bridge.clone(), one_address: false },
        Request::SwitchDelete { bridge: bridge.clone() },
        Request::SwitchForward { bridge, forwarding: Forwarding::default() },
        Request::SwitchPort { name: name.clone(), settings: PortSettings::default() },
        Request::Switches { from: SwitchPosition::default() },
        Request::Ports { from: 0 },
        Request::Rings { port: 0, from: 0 },
        Request::Regions { from: RegionPosition::default() },
        Request::SetFilter { name: name.clone(), rings: RxSelector::Queues, filter: None },
        Request::RedirectQueues { name, queues: Vec::new(), to_program: true },
        Request::Steer { interface: "eth1".into(), queue: 0, flows: Vec::new() },
        Request::Parameters,
        Request::SwitchDetachAll { bridge: "vale0".into(), ports: Vec::new() },
        Request::SetAction { name: "eth1".into(), rings: RxSelector::Queues, action: None },
        Request::NameConflicts,
        Request::SwitchAddresses { bridge: "vale0".into(), from: 0 },
        Request::DeviceCounters { port: 0, from: 0 },
        Request::SwitchAddressAdd {
            bridge: "vale0".into(),
            mac: [0; 6],
            vlan: 0,
            port: "a".into(),
        },
        Request::SwitchAddressDelete { bridge: "vale0".into(), mac: [0; 6], vlan: 0 },
        Request::SwitchAddressesFlush {
            bridge: "vale0".into(),
            port: None,
            vlan: None,
            added: false,
        },
        Request::Daemon,
        Request::Events { from: 0, wait: false },
        Request::LogLevel(Level::Info),
        Request::SwitchMulticast { bridge: "vale0".into(), multicast: Multicast::default() },
        Request::SwitchGroups { bridge: "vale0".into(), from: 0 },
        Request::SwitchMirrorAdd {
            bridge: "vale0".into(),
            mirror: Box::new(SwitchMirror {
                name: "m".into(),
                from: None,
                direction: MirrorDirection::default(),
                to: "a".into(),
                user: None,
                filter: None,
            }),
        },
        Request::SwitchMirrorDelete { bridge: "vale0".into(), mirror: "m".into() },
    ];
    // One that is added here is missing above, and in the document.
    for request in &all {
        match request {
            Request::Register { .. }
            | Request::Unregister
            | Request::Describe
            | Request::Barrier
            | Request::Mirrors { .. }
            | Request::Stack
            | Request::PortGeometry { .. }
            | Request::Pools { .. }
            | Request::NewInterface { .. }
            | Request::DeleteInterface { .. }
            | Request::SetHeaderLen { .. }
            | Request::HeaderLen { .. }
            | Request::SwitchAttach { .. }
            | Request::SwitchDetach { .. }
            | Request::SwitchFind { .. }
            | Request::SwitchPoll { .. }
            | Request::SwitchNew { .. }
            | Request::SwitchDelete { .. }
            | Request::SwitchForward { .. }
            | Request::SwitchPort { .. }
            | Request::Switches { .. }
            | Request::Ports { .. }
            | Request::Rings { .. }
            | Request::Regions { .. }
            | Request::SetFilter { .. }
            | Request::RedirectQueues { .. }
            | Request::Steer { .. }
            | Request::Parameters
            | Request::SwitchDetachAll { .. }
            | Request::SetAction { .. }
            | Request::NameConflicts
            | Request::SwitchAddresses { .. }
            | Request::SwitchAddressAdd { .. }
            | Request::SwitchAddressDelete { .. }
            | Request::SwitchAddressesFlush { .. }
            | Request::DeviceCounters { .. }
            | Request::Daemon
            | Request::Events { .. }
            | Request::SwitchMulticast { .. }
            | Request::SwitchGroups { .. }
            | Request::SwitchMirrorAdd { .. }
            | Request::SwitchMirrorDelete { .. }
            | Request::LogLevel(_) => {}
        }
    }
    all
}

fn grant() -> Grant {
    let ring = |dir, object, doorbell, worker| RingGrant {
        dir,
        index: 0,
        object,
        num_slots: 1024,
        doorbell,
        link: RingBackend::Served { worker },
    };
    let registration = Registration {
        tx_slots: 1024,
        rx_slots: 1024,
        tx_rings: 1,
        rx_rings: 1,
        mem_id: 2,
        ..Registration::default()
    };
    Grant {
        name: name(),
        kind: PortKind::Vale,
        mem_id: 2,
        layout: Layout::new(&Sizes::private([2, 2], [1024, 1024], 2, 0), 0).expect("a layout"),
        netif_offset: 0,
        registration,
        options: Options::default(),
        rings: vec![ring(Dir::Tx, 0, 1, 2), ring(Dir::Rx, 1, 3, 4)],
        timestamps: true,
        extra_bufs: Vec::new(),
        switch_owner: None,
    }
}

fn replies() -> Vec<Reply> {
    let layout = grant().layout;
    let pools = Pools {
        memsize: layout.memsize(),
        mem_id: 2,
        ifs: layout.ifs,
        rings: layout.rings,
        bufs: layout.bufs,
    };
    let steered = Steered { moved: 0, table: 0, rules_turned_on: false, rules: Vec::new() };
    let all = vec![
        Reply::Done,
        Reply::Granted(Box::new(grant())),
        Reply::Mirrors(Vec::new()),
        Reply::PortGeometry(PortGeometry::default()),
        Reply::Pools(pools),
        Reply::NewInterface(PortShape::default()),
        Reply::HeaderLen(0),
        Reply::Index(0),
        Reply::SwitchFound { name: name(), at: SwitchPosition::default() },
        Reply::Switches { switches: Vec::new(), next: None },
        Reply::Ports { ports: Vec::new(), next: None },
        Reply::Rings { rings: Vec::new(), next: None },
        Reply::Regions { regions: Vec::new(), next: None },
        Reply::Steered(steered),
        Reply::Parameters(Parameters { max_bridges: 0, nic_slots: 0, timestamps: true }),
        Reply::NameConflicts(Vec::new()),
        Reply::SwitchAddresses { addresses: Vec::new(), next: None },
        Reply::DeviceCounters { counters: Vec::new(), next: None },
        Reply::Daemon(DaemonInfo::default()),
        Reply::Events(EventPage { events: Vec::new(), next: 0, more: false, missed: 0 }),
        Reply::SwitchGroups { groups: Vec::new(), next: None },
    ];
    for reply in &all {
        match reply {
            Reply::Done
            | Reply::Granted(_)
            | Reply::Mirrors(_)
            | Reply::PortGeometry(_)
            | Reply::Pools(_)
            | Reply::NewInterface(_)
            | Reply::HeaderLen(_)
            | Reply::Index(_)
            | Reply::SwitchFound { .. }
            | Reply::Switches { .. }
            | Reply::Ports { .. }
            | Reply::Rings { .. }
            | Reply::Regions { .. }
            | Reply::Steered(_)
            | Reply::Parameters(_)
            | Reply::NameConflicts(_)
            | Reply::SwitchAddresses { .. }
            | Reply::DeviceCounters { .. }
            | Reply::Daemon(_)
            | Reply::Events(_)
            | Reply::SwitchGroups { .. } => {}
        }
    }
    all
}

fn causes() -> Vec<Cause> {
    let all = vec![
        Cause::Invalid,
        Cause::Busy,
        Cause::NoRoom,
        Cause::NoPort,
        Cause::NotFound,
        Cause::NoDevice,
        Cause::Exists,
        Cause::Unsupported,
        Cause::Denied,
        Cause::HeadersNotAccepted,
        Cause::Closed,
        Cause::AlreadySo,
        Cause::BadMemory,
        Cause::TooManyDescriptors,
        Cause::TooLong,
        Cause::Unreachable,
        Cause::Untrusted,
        Cause::Gone,
        Cause::Version,
        Cause::System(0),
    ];
    for cause in &all {
        match cause {
            Cause::Invalid
            | Cause::Busy
            | Cause::NoRoom
            | Cause::NoPort
            | Cause::NotFound
            | Cause::NoDevice
            | Cause::Exists
            | Cause::Unsupported
            | Cause::Denied
            | Cause::HeadersNotAccepted
            | Cause::Closed
            | Cause::AlreadySo
            | Cause::BadMemory
            | Cause::TooManyDescriptors
            | Cause::TooLong
            | Cause::Unreachable
            | Cause::Untrusted
            | Cause::Gone
            | Cause::Version
            | Cause::System(_) => {}
        }
    }
    all
}

fn backends() -> Vec<RingBackend> {
    let all = vec![
        RingBackend::Null,
        RingBackend::Sink,
        RingBackend::Served { worker: 0 },
        RingBackend::Pipe { object: 0, num_slots: 0, doorbell: 0 },
        RingBackend::Xdp {
            queue: 0,
            socket: 0,
            program: None,
            sizes: [0; 4],
            host: false,
            frags: false,
            max_segs: None,
            is_pair: true,
            partial_csum: false,
            timestamps: false,
        },
        RingBackend::Packet {
            queue: 0,
            socket: 0,
            program: None,
            blocks: [0; 2],
            timestamps: None,
        },
        RingBackend::Monitor { served: false },
    ];
    for backend in &all {
        match backend {
            RingBackend::Null
            | RingBackend::Sink
            | RingBackend::Served { .. }
            | RingBackend::Pipe { .. }
            | RingBackend::Xdp { .. }
            | RingBackend::Packet { .. }
            | RingBackend::Monitor { .. } => {}
        }
    }
    all
}

#[test]
fn tags_are_those_of_the_tables() {
    let document = document();
    assert_eq!(table(&document, "## Requests"), tags(&requests()));
    assert_eq!(table(&document, "## Replies"), tags(&replies()));
    assert_eq!(table(&document, "what moves its packets:"), tags(&backends()));
    assert_eq!(table(&document, "`Cause` is a tag."), tags(&causes()));
}

#[test]
fn kinds_of_events_are_those_of_the_text() {
    let words: Vec<_> = document().split_whitespace().map(str::to_string).collect();
    let kinds: Vec<_> = EventKind::ALL
        .iter()
        .map(|(kind, name)| {
            let tag = postcard::to_allocvec(kind).expect("it is encoded")[0];
            format!("{tag} {name}")
        })
        .collect();
    let wanted = format!("`EventKind`: {}. ", kinds.join(", "));
    assert!(words.join(" ").contains(&wanted), "{wanted}");
}

/// The bytes of the example with that name.
fn example(document: &str, name: &str) -> Vec<u8> {
    let head = format!("```text {name}\n");
    let (_, rest) = document.split_once(&head).unwrap_or_else(|| panic!("no example {name}"));
    let (code, _) = rest.split_once("```").expect("an end");
    let numbers = code.lines().flat_map(|line| {
        line.split(';').next().unwrap_or_default().split_whitespace().map(str::to_string)
    });
    numbers.map(|number| u8::from_str_radix(&number, 16).expect("a byte")).collect()
}

/// The example is the message, and is read as such.
fn assert_example<T: Serialize + DeserializeOwned>(name: &str, message: &T) {
    let example = example(&document(), name);
    let encoded = postcard::to_allocvec(message).expect("it is encoded");
    let expected = [&[VERSION], &encoded[..]].concat();
    assert_eq!(example, expected, "{name}: as a dump: {expected:02x?}");
    let read: T = postcard::from_bytes(&example[1..]).expect("it is read");
    assert_eq!(postcard::to_allocvec(&read).expect("it is encoded"), encoded, "{name}");
}

type Answer = (Result<Reply, Error>, u32);

#[test]
fn examples_are_messages() {
    let register = |name: &str, registration, options| Request::Register {
        name: name.into(),
        registration,
        options: Box::new(options),
    };
    let defaults = (Registration::default(), Options::default());
    assert_example("register", &register("vale0:a", defaults.0, defaults.1));
    let one = Registration {
        rings: RingSelection::One(1),
        exclusive: true,
        extra_bufs: 300,
        ..Registration::default()
    };
    let packet =
        Options { mode: Some(NicMode::Packet), buf_size: Some(4096), ..Options::default() };
    assert_example("register-one", &register("eth1", one, packet));
    assert_example(
        "switch-new",
        &Request::SwitchNew { bridge: "vale0".into(), one_address: false },
    );
    let done: Answer = (Ok(Reply::Done), 0);
    assert_example("done", &done);
    let refused: Answer = (Err(Error::busy("in use").at("vale0:a").remedy("close it")), 0);
    assert_example("refused", &refused);
    let refusal = |tried: &str, problem: &str, remedy: &str| Refusal {
        tried: tried.into(),
        problem: problem.into(),
        remedy: remedy.into(),
    };
    let refusals = vec![refusal("zerocopy", "no hook", "raise it"), refusal("generic", "no", "")];
    let error = Error::new(Cause::Unsupported, "n0 cannot be opened");
    let refused: Answer = (Err(error.because(Refusals(refusals))), 0);
    assert_example("refused-modes", &refused);
    let granted: Answer = (Ok(Reply::Granted(Box::new(grant()))), 5);
    assert_example("granted", &granted);
}
