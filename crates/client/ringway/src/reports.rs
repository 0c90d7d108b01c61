//! What a daemon says of its ports, switches and events.

/// The daemon, as [`Control::daemon`](crate::Control::daemon) has it.
///
/// ```no_run
/// // Needs a daemon: a registry inside the program has no such figures.
/// let daemon = ringway::Control::connect_running()?.daemon()?;
/// println!("ringwayd {}, {} bytes for each user", daemon.version, daemon.memory_per_user);
/// for (request, durations) in &daemon.requests {
///     println!("{request}: {} requests", durations.counts.iter().sum::<u64>());
/// }
/// # Ok::<(), ringway::Error>(())
/// ```
#[doc(inline)]
pub use ringway_proto::DaemonInfo;

/// A histogram of times.
///
/// ```
/// use ringway::Durations;
///
/// let mut durations = Durations::default();
/// durations.add(3);
/// durations.add(15_000);
/// let longest = durations.counts.iter().rposition(|count| *count > 0).unwrap_or(0);
/// assert_eq!(Durations::BOUNDS.get(longest), Some(&20_000));
/// ```
#[doc(inline)]
pub use ringway_proto::Durations;

/// The level of an event.
///
/// ```
/// use ringway::Level;
///
/// let level: Level = "warn".parse()?;
/// assert_eq!((level, level.name()), (Level::Warn, "warn"));
/// assert!(Level::Error < level, "an error matters more");
/// assert!("loud".parse::<Level>().is_err());
/// # Ok::<(), ringway::Error>(())
/// ```
#[doc(inline)]
pub use ringway_proto::Level;

/// An event of the daemon's log.
///
/// ```no_run
/// // Needs a daemon: a registry inside the program has no log.
/// use ringway::{Control, Event, Level};
///
/// fn line(event: &Event) -> String {
///     let whose = event.uid.map_or(String::new(), |uid| format!(" (user {uid})"));
///     format!("{} {} {}{whose}", event.level, event.kind, event.text)
/// }
///
/// let page = Control::connect()?.events(0, false)?;
/// for event in page.events.iter().filter(|event| event.level <= Level::Warn) {
///     eprintln!("{}", line(event));
/// }
/// # Ok::<(), ringway::Error>(())
/// ```
#[doc(inline)]
pub use ringway_proto::Event;

/// The kinds of events.
///
/// ```
/// use ringway::EventKind;
///
/// assert_eq!(EventKind::LinkLost.name(), "link-lost");
/// assert!(EventKind::ALL.contains(&(EventKind::LinkLost, "link-lost")));
/// ```
#[doc(inline)]
pub use ringway_proto::EventKind;

/// Events of the log, page by page, as [`Control::events`](crate::Control::events) has them.
///
/// ```no_run
/// // Needs a daemon: a registry inside the program has no log.
/// let control = ringway::Control::connect()?;
/// let mut from = 0;
/// loop {
///     let page = control.events(from, false)?;
///     if page.missed > 0 {
///         println!("{} events are not there any more", page.missed);
///     }
///     page.events.iter().for_each(|event| println!("{}", event.text));
///     from = page.next;
///     if !page.more {
///         break;
///     }
/// }
/// # Ok::<(), ringway::Error>(())
/// ```
#[doc(inline)]
pub use ringway_proto::EventPage;

/// A port, as [`Control::ports`](crate::Control::ports) lists it.
///
/// ```
/// # use ringway_doc as Port; use ringway_doc as Control;
/// let _port = Port::open("vale0:a")?;
/// for port in Control::connect()?.ports()? {
///     println!("{} ({}), opened {} times", port.name, port.kind, port.users);
/// }
/// # Ok::<(), ringway::Error>(())
/// ```
#[doc(inline)]
pub use ringway_proto::PortInfo;

/// A kind of port.
///
/// ```
/// # use ringway_doc as Port;
/// use ringway::PortKind;
///
/// assert_eq!(Port::open("p{1")?.kind(), PortKind::Pipe);
/// assert_eq!(Port::open("vale0:a")?.kind().to_string(), "vale");
/// # Ok::<(), ringway::Error>(())
/// ```
#[doc(inline)]
pub use ringway_proto::PortKind;

/// A ring, as [`Control::rings`](crate::Control::rings) lists it.
///
/// ```
/// # use ringway_doc as Port; use ringway_doc as Control;
/// let _port = Port::open("vale0:a")?;
/// let control = Control::connect()?;
/// for port in control.ports()? {
///     for ring in control.rings(&port)? {
///         let direction = if ring.receives { "rx" } else { "tx" };
///         println!("{} {direction} {}: {}/{}", port.name, ring.index, ring.fill, ring.slots);
///     }
/// }
/// # Ok::<(), ringway::Error>(())
/// ```
#[doc(inline)]
pub use ringway_proto::RingInfo;

/// A region, as [`Control::regions`](crate::Control::regions) lists it.
///
/// ```
/// # use ringway_doc as Port; use ringway_doc as Control;
/// let port = Port::open("vale0:a")?;
/// let regions = Control::connect()?.regions()?;
/// let region = regions.iter().find(|region| region.mem_id == port.mem_id());
/// assert!(region.is_some_and(|region| region.free_bufs < region.bufs));
/// # Ok::<(), ringway::Error>(())
/// ```
#[doc(inline)]
pub use ringway_proto::RegionInfo;

/// A counter of an interface, as [`Control::device_counters`](crate::Control::device_counters) lists it.
///
/// ```
/// # use ringway_doc as Control;
/// use ringway::DeviceCounter;
///
/// fn line(counter: &DeviceCounter) -> String {
///     let whose = if counter.driver { "driver" } else { "interface" };
///     format!("{} ({whose}): {}", counter.name, counter.count)
/// }
///
/// let control = Control::connect()?;
/// for port in control.ports()? {
///     control.device_counters(&port)?.iter().for_each(|counter| println!("{}", line(counter)));
/// }
/// # Ok::<(), ringway::Error>(())
/// ```
#[doc(inline)]
pub use ringway_proto::DeviceCounter;

/// A name that was refused, as [`Control::name_conflicts`](crate::Control::name_conflicts) lists it.
///
/// ```
/// # use ringway_doc as Control;
/// for conflict in Control::connect()?.name_conflicts()? {
///     println!("user {} asked for {} {} times", conflict.asked_by, conflict.name, conflict.count);
/// }
/// # Ok::<(), ringway::Error>(())
/// ```
#[doc(inline)]
pub use ringway_proto::NameConflict;

/// A switch, as [`Control::switches`](crate::Control::switches) lists it.
///
/// ```
/// # use ringway_doc as Port; use ringway_doc as Control;
/// let _port = Port::open("vale0:a")?;
/// for switch in Control::connect()?.switches()? {
///     println!("{} has {} ports", switch.name, switch.ports.len());
/// }
/// # Ok::<(), ringway::Error>(())
/// ```
#[doc(inline)]
pub use ringway_proto::BridgeInfo;

/// A port of a switch, in the list of its [switch](crate::BridgeInfo).
///
/// ```
/// # use ringway_doc as Port; use ringway_doc as Control;
/// let _port = Port::open("vale0:a")?;
/// for port in Control::connect()?.switches()?.iter().flat_map(|switch| &switch.ports) {
///     println!("{}: {} packets sent", port.name, port.totals.sent_packets);
///     assert!(!port.absent, "{} has a program", port.name);
/// }
/// # Ok::<(), ringway::Error>(())
/// ```
#[doc(inline)]
pub use ringway_proto::BridgePortInfo;

/// What a [port of a switch](crate::BridgePortInfo) has counted.
///
/// ```
/// # use ringway_doc as Port; use ringway_doc as Control;
/// use ringway::PortTotals;
///
/// fn packets(totals: &PortTotals) -> [u64; 2] {
///     [totals.sent_packets, totals.received_packets]
/// }
///
/// let _port = Port::open("vale0:a")?;
/// for port in Control::connect()?.switches()?.iter().flat_map(|switch| &switch.ports) {
///     assert_eq!(packets(&port.totals), [0, 0]);
/// }
/// # Ok::<(), ringway::Error>(())
/// ```
#[doc(inline)]
pub use ringway_proto::PortTotals;

/// Why a switch has dropped packets, in the [totals](crate::PortTotals) of a port.
///
/// ```
/// # use ringway_doc as Port; use ringway_doc as Control;
/// let _port = Port::open("vale0:a")?;
/// for port in Control::connect()?.switches()?.iter().flat_map(|switch| &switch.ports) {
///     for (reason, packets) in port.totals.drops.reasons() {
///         if packets > 0 {
///             println!("{} has lost {packets} packets: {reason}", port.name);
///         }
///     }
/// }
/// # Ok::<(), ringway::Error>(())
/// ```
#[doc(inline)]
pub use ringway_proto::PortDrops;

/// What the kernel has counted, in the [ring](crate::RingInfo) of an interface.
///
/// ```
/// # use ringway_doc as Control;
/// let control = Control::connect()?;
/// for port in control.ports()? {
///     // Rings of switches and pipes have none.
///     for kernel in control.rings(&port)?.iter().filter_map(|ring| ring.kernel) {
///         println!("{}: {} dropped", port.name, kernel.rx_dropped + kernel.rx_ring_full);
///     }
/// }
/// # Ok::<(), ringway::Error>(())
/// ```
#[doc(inline)]
pub use ringway_proto::KernelCounters;

/// How an interface is attached, in its [port of a switch](crate::BridgePortInfo).
///
/// ```
/// # use ringway_doc as Control;
/// for port in Control::connect()?.switches()?.iter().flat_map(|switch| &switch.ports) {
///     // Ports of programs have none.
///     if let Some(attachment) = port.attachment {
///         println!("{}: with the stack: {}", port.name, attachment.stack);
///     }
/// }
/// # Ok::<(), ringway::Error>(())
/// ```
#[doc(inline)]
pub use ringway_proto::AttachmentInfo;

/// A querier, a router or a member of a group, as [`Control::switch_groups`](crate::Control::switch_groups) lists it.
///
/// ```
/// # use ringway_doc as Port; use ringway_doc as Control;
/// let _port = Port::open("vale0:a")?;
/// for found in Control::connect()?.switch_groups("vale0")? {
///     println!("{found:?}");
/// }
/// # Ok::<(), ringway::Error>(())
/// ```
#[doc(inline)]
pub use ringway_proto::GroupInfo;

/// A mirror, in its [switch](crate::BridgeInfo).
///
/// ```
/// # use ringway_doc as Control;
/// for switch in Control::connect()?.switches()? {
///     for mirror in &switch.mirrors {
///         println!("{}: {} waits for {:?}", mirror.name, mirror.to, mirror.absent);
///     }
/// }
/// # Ok::<(), ringway::Error>(())
/// ```
#[doc(inline)]
pub use ringway_proto::SwitchMirrorInfo;

/// What has become of the copies of a [mirror](crate::SwitchMirrorInfo).
///
/// ```
/// # use ringway_doc as Control;
/// for switch in Control::connect()?.switches()? {
///     for mirror in &switch.mirrors {
///         let lost = mirror.totals.drops().map(|(_, count)| count).iter().sum::<u64>();
///         println!("{}: {} copied, {lost} lost", mirror.name, mirror.totals.copied_packets);
///     }
/// }
/// # Ok::<(), ringway::Error>(())
/// ```
#[doc(inline)]
pub use ringway_proto::MirrorTotals;

/// A filter, in the [port](crate::PortInfo) of an interface.
///
/// ```
/// # use ringway_doc as Control;
/// for port in Control::connect()?.ports()? {
///     for filter in &port.filters {
///         println!("{}: {} of {} frames", filter.text, filter.taken, filter.matched);
///     }
/// }
/// # Ok::<(), ringway::Error>(())
/// ```
#[doc(inline)]
pub use ringway_proto::FilterInfo;

/// An action program, in the [port](crate::PortInfo) of an interface.
///
/// ```
/// # use ringway_doc as Control;
/// for port in Control::connect()?.ports()? {
///     for action in &port.actions {
///         println!("{}: {} dropped, {} redirected", action.text, action.dropped, action.redirected);
///     }
/// }
/// # Ok::<(), ringway::Error>(())
/// ```
#[doc(inline)]
pub use ringway_proto::ActionInfo;

/// An address, as [`Control::switch_addresses`](crate::Control::switch_addresses) lists it.
///
/// ```
/// # use ringway_doc as Port; use ringway_doc as Control;
/// use ringway::mac_text;
///
/// let _port = Port::open("vale0:a")?;
/// let control = Control::connect()?;
/// control.switch_address_add("vale0", [2, 0, 0, 0, 0, 7], 0, "a")?;
/// for address in control.switch_addresses("vale0")? {
///     assert_eq!(address.age_seconds, None, "it is static");
///     println!("{} is behind {}", mac_text(address.mac), address.port);
/// }
/// # Ok::<(), ringway::Error>(())
/// ```
#[doc(inline)]
pub use ringway_proto::AddressInfo;

/// What the configuration has to do with a [switch](crate::BridgeInfo) or its port.
///
/// ```
/// # use ringway_doc as Port; use ringway_doc as Control;
/// use ringway::Declared;
///
/// let _port = Port::open("vale0:a")?;
/// for switch in Control::connect()?.switches()? {
///     match switch.declared {
///         Declared::No => println!("{} was made by hand", switch.name),
///         Declared::Yes => println!("{} is as declared", switch.name),
///         Declared::Changed => println!("{}: see {:?}", switch.name, switch.declared_at),
///     }
/// }
/// # Ok::<(), ringway::Error>(())
/// ```
#[doc(inline)]
pub use ringway_proto::Declared;

/// Whose programs may open a [port of a switch](crate::BridgePortInfo).
///
/// ```
/// # use ringway_doc as Port; use ringway_doc as Control;
/// use ringway::DeclaredFor;
///
/// let _port = Port::open("vale0:a")?;
/// for port in Control::connect()?.switches()?.iter().flat_map(|switch| &switch.ports) {
///     match port.declared_for {
///         DeclaredFor::User(uid) => println!("{} is for user {uid} alone", port.name),
///         DeclaredFor::Anyone => println!("{} is for all that may have the name", port.name),
///         DeclaredFor::Untold => println!("{}: the daemon is too old to tell", port.name),
///     }
///     assert_eq!(port.declared_for.user(), None, "nothing is declared here");
/// }
/// # Ok::<(), ringway::Error>(())
/// ```
#[doc(inline)]
pub use ringway_proto::DeclaredFor;

/// What [`Control::steer`](crate::Control::steer) has changed.
///
/// ```no_run
/// // Needs a network card with an RSS table.
/// let control = ringway::Control::connect()?;
/// let flow: ringway::Flow = "udp dst port 53".parse().map_err(std::io::Error::other)?;
/// let steered = control.steer("eth0", 3, &[flow])?;
/// println!("{} of {} places were moved", steered.moved, steered.table);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[doc(inline)]
pub use ringway_proto::Steered;
