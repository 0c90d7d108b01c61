//! What a flow is, and how packets are shared out by flows.

/// Packets that [`Control::steer`](crate::Control::steer) leads to a queue.
///
/// ```
/// use ringway::{Flow, FlowError, Protocol};
///
/// let flow: Flow = "udp src host 10.0.0.1 dst port 53".parse()?;
/// assert_eq!((flow.protocol, flow.ports), (Protocol::Udp, [None, Some(53)]));
/// # Ok::<(), FlowError>(())
/// ```
#[doc(inline)]
pub use ringway_flow::Flow;

/// The protocol of a [flow](crate::Flow).
///
/// ```
/// use ringway::{Flow, FlowError, Protocol};
///
/// let flow: Flow = "ip6".parse()?;
/// assert!(flow.protocol == Protocol::Any && flow.version6);
/// # Ok::<(), FlowError>(())
/// ```
#[doc(inline)]
pub use ringway_flow::Protocol;

/// ```
/// use ringway::{Flow, FlowError};
///
/// let error: FlowError = "udp port 53".parse::<Flow>().unwrap_err();
/// println!("{error}"); // It says what is missing: src or dst.
/// ```
#[doc(inline)]
pub use ringway_flow::FlowError;

/// What packets of one flow have in common.
///
/// ```
/// use ringway::{HASHED_BYTES, flow_hash};
///
/// fn worker_of(frame: &[u8], workers: u32) -> u32 {
///     flow_hash(&frame[..frame.len().min(HASHED_BYTES)]).hash % workers
/// }
///
/// let (mut there, mut back) = ([0; 60], [0; 60]);
/// there[5] = 1; // from 0 to 1
/// back[11] = 1; // from 1 to 0
/// assert_eq!(worker_of(&there, 8), worker_of(&back, 8));
/// ```
#[doc(inline)]
pub use ringway_flow::flow_hash;

/// The answer of [`flow_hash`](crate::flow_hash).
///
/// ```
/// use ringway::{FlowHash, flow_hash};
///
/// let FlowHash { hash, is_ip } = flow_hash(&[0xff; 60]);
/// println!("{hash:08x}, made of {} addresses", if is_ip { "IP" } else { "Ethernet" });
/// ```
#[doc(inline)]
pub use ringway_flow::FlowHash;

/// How much of a packet [`flow_hash`](crate::flow_hash) needs.
///
/// ```
/// # use ringway_doc as Port;
/// use ringway::{HASHED_BYTES, flow_hash};
///
/// let mut port = Port::open("vale0:a")?;
/// for frame in port.rx(0).batch(64) {
///     let mut head = [0; HASHED_BYTES];
///     let copied = frame.copy_to(&mut head);
///     println!("{:08x}", flow_hash(&head[..copied]).hash);
/// }
/// # Ok::<(), ringway::Error>(())
/// ```
#[doc(inline)]
pub use ringway_flow::HASHED_BYTES;

/// Shares packets out among queues, as PF_RING's clusters do.
///
/// ```
/// use std::time::Duration;
/// use ringway::{Cluster, ClusterType, Headers, PARSED_BYTES};
///
/// let mut cluster = Cluster::new(ClusterType::TwoTuple, 4);
/// let (frame, now) = ([0; 60], Duration::ZERO);
/// let head = &frame[..frame.len().min(PARSED_BYTES)];
/// // Most packets take the short way; the others are parsed.
/// let queue = match cluster.queue_at_once(head) {
///     Some(queue) => queue,
///     None => cluster.queue_of(head, now).0,
/// };
/// assert_eq!(queue, cluster.queue(&Headers::parse(head), now));
/// ```
#[doc(inline)]
pub use ringway_flow::Cluster;

/// What a [cluster](crate::Cluster) goes by.
///
/// ```
/// use ringway::{ClusterType, ClusterTypeError, Headers};
///
/// let names: Vec<_> = ClusterType::names().collect();
/// let kind: ClusterType = names[0].parse()?;
/// println!("the first of {names:?} gives {:08x}", kind.hash(&Headers::default()));
/// assert_eq!(ClusterType::from_number(1), Some(ClusterType::RoundRobin));
/// # Ok::<(), ClusterTypeError>(())
/// ```
#[doc(inline)]
pub use ringway_flow::ClusterType;

/// ```
/// use ringway::{ClusterType, ClusterTypeError};
///
/// let error: ClusterTypeError = "fair".parse::<ClusterType>().unwrap_err();
/// println!("{error}"); // It has the names that there are.
/// ```
#[doc(inline)]
pub use ringway_flow::ClusterTypeError;

/// The headers of a packet, read.
///
/// ```
/// use ringway::Headers;
///
/// let arp = [&[0xff; 6], &[2, 0, 0, 0, 0, 1][..], &[8, 6]].concat();
/// let headers = Headers::parse(&arp);
/// assert_eq!(headers.macs[1], [2, 0, 0, 0, 0, 1]);
/// assert_eq!(headers.network.version, 0, "it is not IP");
/// ```
#[doc(inline)]
pub use ringway_flow::Headers;

/// The two ends, in the [headers](crate::Headers) of a packet.
///
/// ```
/// use ringway::{Headers, Network};
///
/// fn is_dns(Network { protocol, ports, .. }: &Network) -> bool {
///     *protocol == 17 && ports.contains(&53)
/// }
///
/// let network = Headers::parse(&[0; 60]).network;
/// assert!(!is_dns(&network));
/// assert_eq!(network.address_sums(), [0; 2], "it is not IP");
/// ```
#[doc(inline)]
pub use ringway_flow::Network;

/// What a [packet](crate::Network) is a part of.
///
/// ```
/// use ringway::{Fragment, Headers};
///
/// match Headers::parse(&[0; 60]).network.fragment {
///     Some(Fragment { id, is_first: false, .. }) => println!("a later part of packet {id}"),
///     _ => println!("with ports, if it is TCP, UDP or SCTP"),
/// }
/// ```
#[doc(inline)]
pub use ringway_flow::Fragment;

/// The packet inside, in the [headers](crate::Headers) of a packet.
///
/// ```
/// use ringway::{Headers, Tunnel};
///
/// if let Some(Tunnel { id, network, .. }) = Headers::parse(&[0; 60]).tunnel {
///     println!("tunnel {id}, ports {:?}", network.ports);
/// }
/// ```
#[doc(inline)]
pub use ringway_flow::Tunnel;

/// How much of a packet [`Headers::parse`](crate::Headers::parse) needs.
///
/// ```
/// # use ringway_doc as Port;
/// use ringway::{Headers, PARSED_BYTES};
///
/// let mut port = Port::open("vale0:a")?;
/// for frame in port.rx(0).batch(64) {
///     let mut head = [0; PARSED_BYTES];
///     let copied = frame.copy_to(&mut head);
///     println!("VLAN {}", Headers::parse(&head[..copied]).vlan);
/// }
/// # Ok::<(), ringway::Error>(())
/// ```
#[doc(inline)]
pub use ringway_flow::PARSED_BYTES;
