//! What a program asks a daemon for, and the kinds of refusals.

/// The kind of an [error](crate::Error::cause), for a program that goes on by it.
///
/// ```
/// # use ringway_doc as Port;
/// use ringway::Cause;
///
/// let _alone = Port::options().exclusive().open("vale0:a")?;
/// match Port::open("vale0:a") {
///     Err(error) if error.cause() == Cause::Busy => println!("later, then: {error}"),
///     other => drop(other?),
/// }
/// let full = std::io::Error::from_raw_os_error(28);
/// assert_eq!(Cause::of(&full), Cause::System(28));
/// # Ok::<(), ringway::Error>(())
/// ```
#[doc(inline)]
pub use ringway_proto::Cause;

/// An instruction of an [action program](crate::Action::instructions).
///
/// ```
/// use ringway::{Action, Ebpf};
///
/// // r0 = 2 (XDP_PASS); exit
/// let result = Ebpf { code: 0xb7, registers: 0, offset: 0, immediate: 2 };
/// let exit = Ebpf { code: 0x95, registers: 0, offset: 0, immediate: 0 };
/// assert_eq!(result.source(), 0, "it has a constant, and no source");
/// let all_to_the_port = Action::instructions("all", vec![result, exit]);
/// # drop(all_to_the_port);
/// ```
#[doc(inline)]
pub use ringway_proto::Ebpf;

/// An instruction of a [compiled filter](crate::Filter::classic).
///
/// ```
/// use ringway::{Filter, Insn};
///
/// let all = Filter::classic("all", vec![Insn { code: 0x06, jt: 0, jf: 0, k: u32::MAX }]);
/// assert_eq!(all.insns().len(), 1);
/// ```
#[doc(inline)]
pub use ringway_filter::Insn;

/// How a switch forwards: see [`Control::switch_forward`](crate::Control::switch_forward).
///
/// ```
/// # use ringway_doc as Port; use ringway_doc as Control;
/// use ringway::Forwarding;
///
/// let _port = Port::open("vale0:a")?;
/// let control = Control::connect()?;
/// control.switch_forward("vale0", Forwarding::Learning { ageing_seconds: 60 })?;
/// // A hub:
/// control.switch_forward("vale0", Forwarding::Flood)?;
/// // As it was:
/// control.switch_forward("vale0", Forwarding::default())?;
/// # Ok::<(), ringway::Error>(())
/// ```
#[doc(inline)]
pub use ringway_proto::Forwarding;

/// Changes of a port of a switch, for [`Control::switch_port`](crate::Control::switch_port).
///
/// ```
/// # use ringway_doc as Port; use ringway_doc as Control;
/// use ringway::{Filter, PortSettings, RateLimit};
///
/// let _port = Port::open("vale0:a")?;
/// let settings = PortSettings {
///     isolated: Some(true),
///     rate: Some(Some(RateLimit::new(100_000_000))),
///     storm: Some(None), // as much as it likes
///     ..PortSettings::default() // all else stays
/// };
/// Control::connect()?.switch_port("vale0:a", settings)?;
/// # let _ = |filter: Filter| PortSettings { filter_in: Some(Some(filter.into())), ..Default::default() };
/// # Ok::<(), ringway::Error>(())
/// ```
#[doc(inline)]
pub use ringway_proto::PortSettings;

/// VLANs of a port, in its [settings](crate::PortSettings).
///
/// ```
/// # use ringway_doc as Port; use ringway_doc as Control;
/// use ringway::{PortSettings, Vlan, parse_vids};
///
/// let (_host, _uplink) = (Port::open("vale0:host")?, Port::open("vale0:uplink")?);
/// let control = Control::connect()?;
/// let in_vlan = |vlan| PortSettings { vlan: Some(vlan), ..PortSettings::default() };
/// control.switch_port("vale0:host", in_vlan(Vlan::Access(10)))?;
/// let allowed = parse_vids("10,20-29")?;
/// control.switch_port("vale0:uplink", in_vlan(Vlan::Trunk { allowed, native: None }))?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[doc(inline)]
pub use ringway_proto::Vlan;

/// Which addresses a port may send with, in its [settings](crate::PortSettings).
///
/// ```
/// # use ringway_doc as Port; use ringway_doc as Control;
/// use ringway::{PortSettings, SourceAddresses};
///
/// let _port = Port::open("vale0:a")?;
/// let sources = Some(SourceAddresses::Only(vec![[2, 0, 0, 0, 0, 1]]));
/// Control::connect()?.switch_port("vale0:a", PortSettings { sources, ..Default::default() })?;
/// # Ok::<(), ringway::Error>(())
/// ```
#[doc(inline)]
pub use ringway_proto::SourceAddresses;

/// Has others wait for a port, in its [settings](crate::PortSettings).
///
/// ```
/// # use ringway_doc as Port; use ringway_doc as Control;
/// use ringway::{Lossless, PortSettings};
///
/// let _port = Port::open("vale0:a")?;
/// let lossless = Some(Some(Lossless { patience_ms: 200 }));
/// Control::connect()?.switch_port("vale0:a", PortSettings { lossless, ..Default::default() })?;
/// # Ok::<(), ringway::Error>(())
/// ```
#[doc(inline)]
pub use ringway_proto::Lossless;

/// How much of one kind of frame a port may flood, in its [settings](crate::PortSettings).
///
/// ```
/// # use ringway_doc as Port; use ringway_doc as Control;
/// use ringway::{FloodLimit, PortSettings};
///
/// let _port = Port::open("vale0:a")?;
/// let limit = FloodLimit { burst_frames: 500, ..FloodLimit::new(100) };
/// let settings = PortSettings { storm_broadcast: Some(Some(limit)), ..PortSettings::default() };
/// Control::connect()?.switch_port("vale0:a", settings)?;
/// # Ok::<(), ringway::Error>(())
/// ```
#[doc(inline)]
pub use ringway_proto::FloodLimit;

/// Whether a router for groups is behind a port, in its [settings](crate::PortSettings).
///
/// ```
/// # use ringway_doc as Port; use ringway_doc as Control;
/// use ringway::{MulticastRouter, PortSettings};
///
/// let _port = Port::open("vale0:a")?;
/// let multicast_router = Some(MulticastRouter::Always);
/// let settings = PortSettings { multicast_router, ..PortSettings::default() };
/// Control::connect()?.switch_port("vale0:a", settings)?;
/// assert_eq!(MulticastRouter::Always.name(), "always");
/// assert!(MulticastRouter::default().is_auto());
/// # Ok::<(), ringway::Error>(())
/// ```
#[doc(inline)]
pub use ringway_proto::MulticastRouter;

/// A rate, in the [settings](crate::PortSettings) of a port.
///
/// ```
/// use ringway::RateLimit;
///
/// let rate = RateLimit::new(1_000_000_000);
/// assert_eq!(rate.burst_bytes, 31_250_000, "a quarter of a second");
/// let steady = RateLimit { burst_bytes: 100_000, ..rate };
/// # drop(steady);
/// ```
#[doc(inline)]
pub use ringway_proto::RateLimit;

/// Processors that poll, for [`Control::vale_poll`](crate::Control::vale_poll).
///
/// ```no_run
/// // Needs a network interface that is attached to a switch.
/// use ringway::{Control, Polling};
///
/// let control = Control::connect()?;
/// control.vale_poll("vale0:eth1", true, Polling::OneCpu { cpu: 3, count: 1 })?;
/// # Ok::<(), ringway::Error>(())
/// ```
#[doc(inline)]
pub use ringway_proto::Polling;

/// How packets travel between an interface and its rings: see [`OpenOptions::mode`](crate::OpenOptions::mode).
///
/// ```
/// use ringway::NicMode;
///
/// let mode: NicMode = "copy".parse()?;
/// assert_eq!((mode, mode.name()), (NicMode::Copy, "copy"));
/// println!("from the best on: {:?}", NicMode::ALL);
/// # Ok::<(), String>(())
/// ```
#[doc(inline)]
pub use ringway_proto::NicMode;

/// Timestamps of an interface: see [`OpenOptions::timestamps`](crate::OpenOptions::timestamps).
///
/// ```
/// use ringway::Timestamps;
///
/// let timestamps: Timestamps = "software".parse()?;
/// assert_eq!((timestamps, timestamps.name()), (Timestamps::Software, "software"));
/// # Ok::<(), String>(())
/// ```
#[doc(inline)]
pub use ringway_proto::Timestamps;

/// Numbers of rings and slots: see [`Control::port_config`](crate::Control::port_config).
///
/// ```
/// # use ringway_doc as Port; use ringway_doc as Control;
/// use ringway::PortShape;
///
/// let port = Port::options().tx_rings(2).tx_slots(512).open("vale0:a")?;
/// let (PortShape { tx_rings, tx_slots, .. }, _) = Control::connect()?.port_config("vale0:a")?;
/// assert_eq!((tx_rings, tx_slots), (2, 512));
/// # Ok::<(), ringway::Error>(())
/// ```
#[doc(inline)]
pub use ringway_proto::PortShape;

/// How a port is opened, as a [name](crate::PortSpec) says it.
///
/// ```
/// use ringway::{PortSpec, Registration};
///
/// let spec = PortSpec::parse("vale0:a/x@conf:tx_slots=512")?;
/// let Registration { exclusive, tx_slots, .. } = spec.registration;
/// assert!(exclusive && tx_slots == 512);
/// # Ok::<(), ringway::Error>(())
/// ```
#[doc(inline)]
pub use ringway_proto::Registration;

/// Which rings a [name](crate::PortSpec) means.
///
/// ```
/// use ringway::{PortSpec, RingSelection};
///
/// let rings = |name| PortSpec::parse(name).map(|spec| spec.registration.rings);
/// assert_eq!(rings("netmap:eth0")?, RingSelection::All);
/// assert_eq!(rings("netmap:eth0-3")?, RingSelection::One(3));
/// assert_eq!(rings("netmap:eth0^")?, RingSelection::Host);
/// # Ok::<(), ringway::Error>(())
/// ```
#[doc(inline)]
pub use ringway_proto::RingSelection;

/// What a [name](crate::PortSpec) says of a monitor.
///
/// ```
/// use ringway::{Monitor, PortSpec};
///
/// let Monitor { tx, rx, zero_copy } = PortSpec::parse("vale0:a/rt")?.registration.monitor;
/// assert!(tx && rx && !zero_copy);
/// let none = PortSpec::parse("vale0:a")?.registration.monitor;
/// assert!(!none.is_asked());
/// # Ok::<(), ringway::Error>(())
/// ```
#[doc(inline)]
pub use ringway_proto::Monitor;

/// What a switch does with frames for groups: see [`Control::switch_multicast`](crate::Control::switch_multicast).
///
/// ```
/// # use ringway_doc as Port; use ringway_doc as Control;
/// use ringway::Multicast;
///
/// let _port = Port::open("vale0:a")?;
/// let control = Control::connect()?;
/// control.switch_multicast("vale0", Multicast::Querier)?;
/// assert_eq!(Multicast::Querier.name(), "querier");
/// control.switch_multicast("vale0", Multicast::default())?;
/// assert!(Multicast::default().is_flood());
/// # Ok::<(), ringway::Error>(())
/// ```
#[doc(inline)]
pub use ringway_proto::Multicast;

/// A mirror of a switch: see [`Control::switch_mirror_add`](crate::Control::switch_mirror_add).
///
/// ```
/// # use ringway_doc as Port; use ringway_doc as Control;
/// use ringway::{Filter, MirrorDirection, SwitchMirror};
///
/// let _port = Port::open("vale0:a")?;
/// let of_names = SwitchMirror {
///     name: "names".into(),
///     from: None,
///     direction: MirrorDirection::Sent,
///     to: "probe".into(),
///     user: None,
///     filter: Some(Filter::new("udp port 53")?.into()),
/// };
/// Control::connect()?.switch_mirror_add("vale0", of_names)?;
/// # Ok::<(), ringway::Error>(())
/// ```
#[doc(inline)]
pub use ringway_proto::SwitchMirror;

/// What a [mirror](crate::SwitchMirror) copies of a port's frames.
///
/// ```
/// use ringway::MirrorDirection;
///
/// assert!(MirrorDirection::default().is_both());
/// assert_eq!(MirrorDirection::Received.name(), "received");
/// ```
#[doc(inline)]
pub use ringway_proto::MirrorDirection;

/// The way back of [`parse_mac`](crate::parse_mac).
///
/// ```
/// assert_eq!(ringway::mac_text([2, 0, 0, 0, 0, 10]).to_string(), "02:00:00:00:00:0a");
/// ```
#[doc(inline)]
pub use ringway_proto::mac_text;

/// ```
/// use ringway::parse_mac;
///
/// assert_eq!(parse_mac("02:00:00:00:00:0a"), Some([2, 0, 0, 0, 0, 10]));
/// assert_eq!(parse_mac("2:0:0:0:0:a"), Some([2, 0, 0, 0, 0, 10]));
/// assert_eq!(parse_mac("02:00"), None);
/// ```
#[doc(inline)]
pub use ringway_proto::parse_mac;

/// ```
/// use ringway::parse_vids;
///
/// assert_eq!(Vec::from_iter(parse_vids("10,20-22")?), [10, 20, 21, 22]);
/// println!("{}", parse_vids("22-20").unwrap_err()); // It says how it is written.
/// # Ok::<(), String>(())
/// ```
#[doc(inline)]
pub use ringway_proto::parse_vids;
