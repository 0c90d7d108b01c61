//! `ringway switch forward` and `ringway switch port`: how a switch forwards, and how its ports
//! take part.

use super::port_name::check_name;
use crate::endpoint::Mac;
use crate::error::{Error, Result};
use crate::output::note;
use crate::units::{Rate, human, number, parse_bytes, parse_whole};
use ringway::{
    BridgeInfo, BridgePortInfo, Control, Filter, FloodLimit, Forwarding, Lossless, Multicast,
    MulticastRouter, PortInfo, PortKind, PortSettings, RateLimit, SourceAddresses, Vlan,
};
use std::collections::BTreeSet;
use std::time::Duration;

#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  ringway switch forward vale0 learning --ageing 60
  ringway switch forward vale0 flood
  ringway switch forward vale0 hash --over a --over b --back uplink
  ringway switch forward vale0 static --address 02:00:00:00:00:01=a --drop-unknown")]
pub struct Forward {
    /// The switch: vale<id>
    pub switch: String,
    #[arg(value_enum)]
    function: Function,
    /// learning: forget an address that was not seen for so many seconds (or 5m), by default 300; 0: never
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    ageing: Option<u32>,
    /// static: this address is behind this port
    #[arg(long, value_name = "MAC=PORT", value_parser = address)]
    address: Vec<(Mac, String)>,
    /// static: drop what is for other addresses, in place of flooding it
    #[arg(long)]
    drop_unknown: bool,
    /// hash: a port that gets its share of what all others send; each flow stays on one
    #[arg(long, value_name = "PORT")]
    over: Vec<String>,
    /// hash: the port that gets what those ports send
    #[arg(long, value_name = "PORT")]
    back: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Function {
    /// Learn where addresses are, and flood what is for others
    Learning,
    /// Know where addresses are, and learn nothing
    Static,
    /// Spread flows over ports
    Hash,
    /// Everything to everybody
    Flood,
}

#[derive(clap::Args)]
#[command(after_help = "\
A switch that snoops listens to what hosts and routers say of groups (IGMP, MLD), and sends frames for a group
to the ports behind which it has members, and to those of routers. It does so in each VLAN, and for IPv4 and IPv6
apart, where hosts are asked for their groups: by a router, by another switch, or, with `querier`, by the switch
itself. Elsewhere it floods, as it does before hosts have answered, for groups without members, for
224.0.0.0/24 and for ff02::1. The switch asks in all VLANs that access ports and
trunks are in, where no other asks.

`ringway switch mdb SWITCH` shows what it knows. It is for a switch that learns.

Examples:
  ringway switch multicast vale0 snooping
  ringway switch multicast vale0 querier
  ringway switch multicast vale0 flood")]
pub struct Groups {
    /// The switch: vale<id>
    pub switch: String,
    #[arg(value_enum)]
    groups: ForGroups,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum ForGroups {
    /// Frames for groups go to all ports
    Flood,
    /// They go to members and routers, where hosts are asked for their groups
    Snooping,
    /// The same, and the switch asks, where no other does
    Querier,
}

impl Groups {
    pub fn multicast(&self) -> Multicast {
        match self.groups {
            ForGroups::Flood => Multicast::Flood,
            ForGroups::Snooping => Multicast::Snooping,
            ForGroups::Querier => Multicast::Querier,
        }
    }
}

#[derive(clap::Args)]
#[command(after_help = "\
Without an option the command shows how the port takes part.

A port without VLANs passes all tags on as they are. An access port is in one VLAN and knows
nothing of tags; the frames of a trunk are tagged, but for those of its native VLAN.

Examples:
  ringway switch port vale0:a
  ringway switch port vale0:a --access 10
  ringway switch port vale0:uplink --trunk 10,20-29 --native 1
  ringway switch port vale0:a --no-vlan
  ringway switch port vale0:a --mac 02:00:00:00:00:01
  ringway switch port vale0:a --max-addresses 8
  ringway switch port vale0:a --filter-in 'arp or ip src net 10.1.0.0/24'
  ringway switch port vale0:a --lossless
  ringway switch port vale0:a --isolated
  ringway switch port vale0:a --swap-buffers
  ringway switch port vale0:a --rate 100Mbit/s --burst 256kB
  ringway switch port vale0:a --storm 1000pps
  ringway switch port vale0:a --storm-broadcast 100pps --storm-broadcast-burst 500
  ringway switch port vale0:eth1 --group-forward 0x4000
  ringway switch port vale0:eth1 --multicast-router always
  ringway switch port vale0:eth1 --unblock")]
#[command(group = clap::ArgGroup::new("choice").multiple(true))]
pub struct Port {
    /// The port: vale<id>:<port>, as `ringway switch list` shows it
    pub port: String,
    /// In this VLAN alone, without tags
    #[arg(long, value_name = "VID", value_parser = vid(), group = "choice")]
    #[arg(conflicts_with_all = ["trunk", "no_vlan"])]
    access: Option<u16>,
    /// In these VLANs, with tags
    #[arg(long, value_name = "VIDS", group = "choice", value_parser = vids, conflicts_with = "no_vlan")]
    trunk: Option<Vids>,
    /// The VLAN of the trunk's frames that have no tag
    #[arg(long, value_name = "VID", value_parser = vid(), requires = "trunk", conflicts_with = "access")]
    native: Option<u16>,
    /// Take no part in VLANs
    #[arg(long, group = "choice")]
    no_vlan: bool,
    /// The source addresses that it may send with, with commas between them; what it sends with others
    /// is dropped
    #[arg(
        long, value_name = "MAC", group = "choice", value_delimiter = ',',
        conflicts_with_all = ["one_address", "any_address"]
    )]
    mac: Vec<Mac>,
    /// Only one source address: the first that it sends with
    #[arg(long, group = "choice", conflicts_with = "any_address")]
    one_address: bool,
    /// Any source address
    #[arg(long, group = "choice")]
    any_address: bool,
    /// Let senders wait when the port is full; for a port that frees nothing, so many
    /// milliseconds (or 2s) at most
    #[arg(
        long, value_name = "MS", value_parser = milliseconds, num_args = 0..=1, require_equals = true, group = "choice",
        default_missing_value = "1000", conflicts_with = "lossy"
    )]
    lossless: Option<u32>,
    /// Lose packets when the port is full
    #[arg(long, alias = "no-lossless", group = "choice")]
    lossy: bool,
    /// Of the link-local groups 01:80:c2:00:00:00 to 0f (spanning tree, LACP, LLDP), which go from an interface
    /// to no other, those that this one passes on: a bit for each, as in Linux's group_fwd_mask; 0xffff
    /// for all
    #[arg(long, value_name = "MASK", group = "choice", value_parser = mask)]
    group_forward: Option<u16>,
    /// Where the switch snoops (`ringway switch multicast`): have the port get all groups, and what hosts say of theirs,
    /// as a router's does; `auto`: if queries come by it
    #[arg(long, value_enum, value_name = "WHEN", group = "choice")]
    multicast_router: Option<Router>,
    /// Let nothing pass between the port and other isolated ports: they reach all ports that are not
    #[arg(long, group = "choice", conflicts_with = "no_isolated")]
    isolated: bool,
    /// Let it reach isolated ports again
    #[arg(long, group = "choice")]
    no_isolated: bool,
    /// Let buffers change hands between the port and other such ports, where they are in one region (vale0:a@1), in
    /// place of copying packets
    #[arg(long, group = "choice", conflicts_with = "no_swap_buffers")]
    swap_buffers: bool,
    /// Copy packets again
    #[arg(long, group = "choice")]
    no_swap_buffers: bool,
    /// Drop what the port sends and this filter expression does not match (pcap-filter(7)); it sees frames as the port
    /// sends them, with their tags
    #[arg(long, value_name = "EXPRESSION", group = "choice", conflicts_with = "no_filter_in")]
    filter_in: Option<String>,
    /// Let it send all frames again
    #[arg(long, group = "choice")]
    no_filter_in: bool,
    /// Drop what is for the port and this filter expression does not match; it sees frames as the port is to get them
    #[arg(long, value_name = "EXPRESSION", group = "choice", conflicts_with = "no_filter_out")]
    filter_out: Option<String>,
    /// Let it get all frames again
    #[arg(long, group = "choice")]
    no_filter_out: bool,
    /// Drop what the port sends with further addresses than so many (1 to 1024); an address that was not seen for the ageing time makes room
    #[arg(long, value_name = "COUNT", value_parser = number(1..=1024u16, 4))]
    #[arg(group = "choice", conflicts_with = "no_max_addresses")]
    max_addresses: Option<u16>,
    /// Let it send with as many addresses as the switch can learn of a port again
    #[arg(long, group = "choice")]
    no_max_addresses: bool,
    /// Drop what the port sends over so many bits a second, 100Mbit/s or 100Mbps; without CRC
    #[arg(long, value_name = "RATE", value_parser = bits, group = "choice", conflicts_with = "no_rate")]
    rate: Option<u64>,
    /// Bytes that it may send at once after it was silent, 64kB; a longer frame passes when it was silent long enough
    /// [default: a quarter of a second of the rate, and 65536 at least]
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes, requires = "rate")]
    burst: Option<u64>,
    /// Let it send as much as it likes again
    #[arg(long, group = "choice")]
    no_rate: bool,
    /// Drop what the port sends and the switch would flood (broadcast, multicast, unknown addresses) over so many
    /// frames a second, 1000 or 1000pps; as many may come at once
    #[arg(long, value_name = "RATE", value_parser = frames, group = "choice", conflicts_with = "no_storm")]
    storm: Option<u32>,
    /// Take that limit off
    #[arg(long, group = "choice")]
    no_storm: bool,
    /// Drop what the port sends to all over so many frames a second, beside --storm
    #[arg(
        long, value_name = "RATE", value_parser = frames, group = "choice",
        conflicts_with = "no_storm_broadcast"
    )]
    storm_broadcast: Option<u32>,
    /// How many of these may come at once, after there were none for a while [default: those of a second]
    #[arg(long, value_name = "FRAMES", value_parser = number(0..=u32::MAX, 100), requires = "storm_broadcast")]
    storm_broadcast_burst: Option<u32>,
    /// Take that limit off
    #[arg(long, group = "choice")]
    no_storm_broadcast: bool,
    /// Drop what the port sends to other groups over so many frames a second, whether the switch floods them or not, beside
    /// --storm
    #[arg(
        long, value_name = "RATE", value_parser = frames, group = "choice",
        conflicts_with = "no_storm_multicast"
    )]
    storm_multicast: Option<u32>,
    /// How many of these may come at once, after there were none for a while [default: those of a second]
    #[arg(long, value_name = "FRAMES", value_parser = number(0..=u32::MAX, 100), requires = "storm_multicast")]
    storm_multicast_burst: Option<u32>,
    /// Take that limit off
    #[arg(long, group = "choice")]
    no_storm_multicast: bool,
    /// Drop what the port sends to addresses that the switch does not know over so many frames a second, beside --storm
    #[arg(
        long, value_name = "RATE", value_parser = frames, group = "choice",
        conflicts_with = "no_storm_unknown"
    )]
    storm_unknown: Option<u32>,
    /// How many of these may come at once, after there were none for a while [default: those of a second]
    #[arg(long, value_name = "FRAMES", value_parser = number(0..=u32::MAX, 100), requires = "storm_unknown")]
    storm_unknown_burst: Option<u32>,
    /// Take that limit off
    #[arg(long, group = "choice")]
    no_storm_unknown: bool,
    /// Let a port take part again that was blocked because frames went round
    #[arg(long, group = "choice")]
    unblock: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Router {
    /// If queries come by the port
    Auto,
    /// Whether queries come or not
    Always,
}

/// A number, in hexadecimal with 0x before it.
fn mask(text: &str) -> std::result::Result<u16, String> {
    let number = match text.strip_prefix("0x") {
        Some(digits) => u16::from_str_radix(digits, 16),
        None => text.parse(),
    };
    number.map_err(|_| format!("`{text}` is no mask of 16 bits: 0xffff or 16384"))
}

fn seconds(text: &str) -> Result<u32> {
    parse_whole(text, Duration::from_secs(1))
}

fn milliseconds(text: &str) -> Result<u32> {
    match parse_whole(text, Duration::from_millis(1))? {
        0 => Err(Error::Value(format!(
            "`{text}` is no time for senders to wait; write milliseconds: --lossless=1000, or --lossy to lose packets when \
             the port is full"
        ))),
        patience => Ok(patience),
    }
}

/// A rate in bits a second.
fn bits(text: &str) -> Result<u64> {
    match limit(text, "bits a second: 100Mbit/s")? {
        Rate::Bits(bits) => Ok(bits.round() as u64),
        Rate::Packets(_) => {
            Err(Error::Value(format!("`{text}` is in packets; write bits a second: 100Mbit/s")))
        }
    }
}

/// A rate of either kind, for an option that takes what `unit` says. No rate at all is no limit.
fn limit(text: &str, unit: &str) -> Result<Rate> {
    text.parse().map_err(|_| {
        Error::Value(format!(
            "`{text}` is no limit; write {unit}, or, to have none, `--no-` before the option's name"
        ))
    })
}

/// A rate in whole frames a second.
fn frames(text: &str) -> Result<u32> {
    const UNIT: &str = "frames a second: 1000pps";
    let wrong = |why| Err(Error::Value(format!("`{text}` {why}; write {UNIT}")));
    match limit(text, UNIT)? {
        Rate::Packets(frames) if frames.fract() != 0.0 => wrong("is no whole number"),
        Rate::Packets(frames) if frames > u32::MAX.into() => wrong("is no limit for any port"),
        Rate::Packets(frames) => Ok(frames as u32),
        Rate::Bits(_) => wrong("is in bits"),
    }
}

#[derive(Clone)]
struct Vids(BTreeSet<u16>);

fn address(text: &str) -> std::result::Result<(Mac, String), String> {
    let (mac, port) = text.split_once('=').ok_or("write it as MAC=PORT")?;
    let mac = mac.parse::<Mac>().map_err(|e| e.to_string())?;
    Ok((mac, port.into()))
}

/// A switch before an action, which names the switch that is meant.
pub fn action_first(command: &str, action: bool, switch: Option<&str>) -> Result<()> {
    match switch.filter(|_| action) {
        Some(switch) => Err(Error::Value(format!(
            "{switch}: what to do comes first; write `ringway switch {command} show {switch}`"
        ))),
        None => Ok(()),
    }
}

/// Refuses options that stand before what is to be done, and are for showing alone.
pub fn only_shown(command: &str, action: bool, options: bool) -> Result<()> {
    match action && options {
        true => Err(Error::Value(format!(
            "options go behind what to do: `ringway switch {command} show SWITCH --vlan VID`"
        ))),
        false => Ok(()),
    }
}

/// A VLAN.
pub fn vid() -> impl Fn(&str) -> Result<u16> + Clone {
    number(1..=4094, 10)
}

fn vids(text: &str) -> std::result::Result<Vids, String> {
    ringway::parse_vids(text).map(Vids)
}

/// The ageing time of a learning switch, in seconds, where none is asked for.
const AGEING: u32 = 300;

/// Refuses what is no switch's name: `vale`, and letters, digits and `_`.
pub fn switch_name(name: &str) -> Result<()> {
    let in_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    match name.strip_prefix("vale") {
        Some(id) if id.chars().all(in_name) => Ok(()),
        _ => Err(Error::Value(format!(
            "{name}: not the name of a switch; write vale0, or another vale<id>, without a port"
        ))),
    }
}

/// Refuses options that are for another forwarding function.
pub fn check(args: &Forward) -> Result<()> {
    switch_name(&args.switch)?;
    let options = [
        (Function::Learning, "learning", "--ageing", args.ageing.is_some()),
        (Function::Static, "static", "--address", !args.address.is_empty()),
        (Function::Static, "static", "--drop-unknown", args.drop_unknown),
        (Function::Hash, "hash", "--over", !args.over.is_empty()),
        (Function::Hash, "hash", "--back", args.back.is_some()),
    ];
    match options.iter().find(|(function, .., given)| *given && *function != args.function) {
        Some((_, function, option, _)) => Err(Error::Value(format!(
            "{option} is for `{function}` alone; leave it out, or write `ringway switch forward \
             {} {function}`",
            args.switch
        ))),
        None => Ok(()),
    }
}

pub fn forward(control: &Control, args: &Forward) -> Result<()> {
    let forwarding = match args.function {
        Function::Learning => {
            Forwarding::Learning { ageing_seconds: args.ageing.unwrap_or(AGEING) }
        }
        Function::Static => Forwarding::Static {
            addresses: args.address.iter().map(|(mac, port)| (mac.0, port.clone())).collect(),
            flood_unknown: !args.drop_unknown,
        },
        Function::Hash if args.over.is_empty() => {
            return Err(Error::Value("hash needs ports to spread flows over: --over PORT".into()));
        }
        Function::Hash => Forwarding::Hash { over: args.over.clone(), back: args.back.clone() },
        Function::Flood => Forwarding::Flood,
    };
    Ok(control.switch_forward(&args.switch, forwarding)?)
}

/// Changes a port. False: there is nothing to change.
pub fn port(control: &Control, args: &Port) -> Result<bool> {
    let vlan = match (args.access, &args.trunk) {
        (Some(vid), _) => Some(Vlan::Access(vid)),
        (None, Some(Vids(allowed))) => {
            Some(Vlan::Trunk { allowed: allowed.clone(), native: args.native })
        }
        (None, None) => args.no_vlan.then_some(Vlan::Unaware),
    };
    let lossless = args.lossless.map(|patience_ms| Lossless { patience_ms });
    let sources = match &args.mac[..] {
        _ if args.one_address => Some(SourceAddresses::One),
        [] => args.any_address.then_some(SourceAddresses::Any),
        macs => Some(SourceAddresses::Only(macs.iter().map(|mac| mac.0).collect())),
    };
    let (group_forward, unblock) = (args.group_forward, args.unblock);
    let isolated = (args.isolated || args.no_isolated).then_some(args.isolated);
    let swap_buffers = (args.swap_buffers || args.no_swap_buffers).then_some(args.swap_buffers);
    let rate = args.rate.map(|bits_per_second| {
        let rate = RateLimit::new(bits_per_second);
        RateLimit { burst_bytes: args.burst.unwrap_or(rate.burst_bytes), ..rate }
    });
    let limit = |frames: Option<u32>, burst: Option<u32>| {
        let limit = frames.map(FloodLimit::new)?;
        Some(FloodLimit { burst_frames: burst.unwrap_or(limit.burst_frames), ..limit })
    };
    let broadcast = limit(args.storm_broadcast, args.storm_broadcast_burst);
    let multicast = limit(args.storm_multicast, args.storm_multicast_burst);
    let unknown = limit(args.storm_unknown, args.storm_unknown_burst);
    let compile = |text: &Option<String>| text.as_deref().map(Filter::new).transpose();
    let [filter_in, filter_out] = [compile(&args.filter_in)?, compile(&args.filter_out)?];
    let judges_length = [&filter_in, &filter_out].into_iter().flatten().any(looks_at_length);
    let multicast_router = args.multicast_router.map(|router| match router {
        Router::Auto => MulticastRouter::Auto,
        Router::Always => MulticastRouter::Always,
    });
    let settings = PortSettings {
        vlan,
        sources,
        lossless: choice(lossless, args.lossy),
        group_forward,
        isolated,
        swap_buffers,
        filter_in: choice(filter_in.map(Into::into), args.no_filter_in),
        filter_out: choice(filter_out.map(Into::into), args.no_filter_out),
        max_addresses: choice(args.max_addresses, args.no_max_addresses),
        rate: choice(rate, args.no_rate),
        storm: choice(args.storm, args.no_storm),
        storm_broadcast: choice(broadcast, args.no_storm_broadcast),
        storm_multicast: choice(multicast, args.no_storm_multicast),
        storm_unknown: choice(unknown, args.no_storm_unknown),
        multicast_router,
        unblock,
    };
    if settings == PortSettings::default() {
        return Ok(false);
    }
    check_name(control, &args.port)?;
    control.switch_port(&args.port, settings)?;
    if judges_length {
        note(format_args!(
            "{}: a stack sends TCP and UDP in frames of up to 64 KiB, which are cut up later: the filter takes \
             these for long ones where the kernel forwards",
            args.port
        ));
    }
    if args.swap_buffers {
        note_lonely(control, &args.port)?;
    }
    if args.multicast_router == Some(Router::Always) {
        note_flooding(control, &args.port)?;
    }
    Ok(true)
}

/// Whether a filter loads the length of a frame: `len`, `less` or `greater`.
fn looks_at_length(filter: &Filter) -> bool {
    // BPF_LD | BPF_W | BPF_LEN, and the same of BPF_LDX: linux/filter.h.
    filter.insns().iter().any(|insn| matches!(insn.code, 0x80 | 0x81))
}

/// Says so if no other port of a switch can have a port's buffers.
fn note_lonely(control: &Control, name: &str) -> Result<()> {
    let ports = control.ports()?;
    let Some(own) = ports.iter().find(|port| port.name == name) else { return Ok(()) };
    let is_neighbour = |port: &&PortInfo| {
        port.kind == PortKind::Vale && (port.uid, port.mem_id) == (own.uid, own.mem_id)
    };
    if ports.iter().filter(is_neighbour).count() < 2 {
        // A region of its own has another number.
        match own.mem_id {
            1 => note(format_args!(
                "{name}: no other port is in its region yet, so it copies; open the other port in it, too: @1"
            )),
            _ => note(format_args!(
                "{name} has a region for itself, so it copies; open both ports in one: {name}@1"
            )),
        }
    }
    Ok(())
}

/// Says so if the switch of a port does not snoop: the port gets all groups anyway.
fn note_flooding(control: &Control, name: &str) -> Result<()> {
    let switches = control.switches()?;
    let is_its = |switch: &&BridgeInfo| switch.ports.iter().any(|port| port.name == name);
    let floods = switches.iter().find(is_its).filter(|switch| switch.multicast.is_flood());
    if let Some(BridgeInfo { name: switch, .. }) = floods {
        note(format_args!(
            "{switch} floods all groups; the setting is for when it snoops: `ringway switch multicast {switch} snooping`"
        ));
    }
    Ok(())
}

/// What is to be set, or taken off if `none`, or neither.
fn choice<T>(new: Option<T>, none: bool) -> Option<Option<T>> {
    if none { Some(None) } else { new.map(Some) }
}

/// A forwarding function in a few words.
pub fn forwarding(chosen: &Forwarding) -> String {
    match chosen {
        Forwarding::Learning { ageing_seconds: 0 } => "learning".into(),
        Forwarding::Learning { ageing_seconds } => format!("learning, {ageing_seconds} s"),
        Forwarding::Static { addresses, flood_unknown } => {
            let others = if *flood_unknown { "flooded" } else { "dropped" };
            format!("static, {} addresses, others {others}", addresses.len())
        }
        Forwarding::Hash { over, back } => {
            // The switch's name is beside it.
            let plain = |port: &String| port.rsplit(':').next().unwrap_or_default().to_owned();
            let back = back.iter().map(|port| format!(", back to {}", plain(port)));
            let over: Vec<_> = over.iter().map(plain).collect();
            format!("hash over {}{}", over.join(", "), back.collect::<String>())
        }
        Forwarding::Flood => "flood".into(),
    }
}

/// What is special about how a port takes part; empty if nothing is.
pub fn part(port: &BridgePortInfo) -> String {
    let mut words = Vec::new();
    if let Some(uid) = port.declared_for.user() {
        words.push(format!("declared for user {uid}"));
    }
    match &port.vlan {
        Vlan::Unaware => {}
        Vlan::Access(vid) => words.push(format!("VLAN {vid}")),
        Vlan::Trunk { allowed, native } => {
            let native = native.map(|vid| format!(", native {vid}")).unwrap_or_default();
            words.push(format!("trunk {}{native}", ranges(allowed)));
        }
    }
    match &port.sources {
        SourceAddresses::Any => {}
        SourceAddresses::One => words.push("one address".into()),
        SourceAddresses::Only(macs) => {
            let macs: Vec<_> = macs.iter().map(|mac| Mac(*mac).to_string()).collect();
            words.push(format!("addresses {}", macs.join(", ")));
        }
    }
    if let Some(Lossless { patience_ms }) = port.lossless {
        words.push(format!("lossless {patience_ms} ms"));
    }
    if port.isolated {
        words.push("isolated".into());
    }
    if port.swap_buffers {
        words.push("swaps buffers".into());
    }
    if let Some(filter) = &port.filter_in {
        words.push(format!("sends `{filter}`"));
    }
    if let Some(filter) = &port.filter_out {
        words.push(format!("gets `{filter}`"));
    }
    if let Some(most) = port.max_addresses {
        let addresses = if most == 1 { "address" } else { "addresses" };
        words.push(format!("{most} {addresses} at most"));
    }
    if let Some(RateLimit { bits_per_second, burst_bytes }) = port.rate {
        let rate = human(bits_per_second as f64);
        words.push(format!("rate {rate}bit/s, burst {burst_bytes} bytes"));
    }
    if let Some(frames) = port.storm {
        words.push(format!("floods {frames} pps"));
    }
    for (limit, what) in [
        (port.storm_broadcast, "broadcasts"),
        (port.storm_multicast, "multicasts"),
        (port.storm_unknown, "to unknown addresses"),
    ] {
        if let Some(FloodLimit { frames_per_second, burst_frames }) = limit {
            words.push(format!("{what} {frames_per_second} pps, burst {burst_frames} frames"));
        }
    }
    if port.multicast_router == MulticastRouter::Always {
        words.push("multicast router".into());
    }
    if port.group_forward != 0 {
        words.push(format!("link-local groups {:#06x}", port.group_forward));
    }
    words.extend(state(port));
    words.join("; ")
}

/// What keeps a port from sending at the moment, and what its interface is called now, if otherwise than the port.
pub fn state(port: &BridgePortInfo) -> Option<String> {
    let words: Vec<_> = kept_from_sending(port).into_iter().chain(renamed(port)).collect();
    (!words.is_empty()).then(|| words.join("; "))
}

/// See [`state`].
pub fn renamed(port: &BridgePortInfo) -> Option<String> {
    let interface = port.interface.as_deref()?;
    let name = port.name.rsplit(':').next().unwrap_or_default().trim_end_matches('^');
    (interface != name).then(|| format!("its interface is called {interface} now"))
}

fn kept_from_sending(port: &BridgePortInfo) -> Option<String> {
    let blocked =
        port.loops_with.as_ref().map(|other| format!("blocked: frames go round by {other}"));
    blocked.or_else(|| port.waits_for.as_ref().map(|other| format!("waits for {other}")))
}

/// Numbers of VLANs as people write them, `10,20-29`.
pub fn ranges(vids: &BTreeSet<u16>) -> String {
    runs(vids).into_iter().map(range).collect::<Vec<_>>().join(",")
}

/// Numbers that follow one another, from the first to the last.
pub fn range((first, last): (u16, u16)) -> String {
    if last == first { format!("{first}") } else { format!("{first}-{last}") }
}

/// The runs of numbers that follow one another.
pub fn runs(vids: &BTreeSet<u16>) -> Vec<(u16, u16)> {
    let mut ranges: Vec<(u16, u16)> = Vec::new();
    for &vid in vids {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == vid => *last = vid,
            _ => ranges.push((vid, vid)),
        }
    }
    ranges
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_that_look_at_lengths_are_told_from_others() {
        for (expression, does) in [
            ("len <= 1514", true),
            ("greater 100 and tcp", true),
            ("less 100", true),
            ("tcp port 80", false),
            ("ip[2:2] > 1000", false),
        ] {
            assert_eq!(looks_at_length(&Filter::new(expression).unwrap()), does, "{expression}");
        }
    }

    #[test]
    fn limits_are_read_with_their_units() {
        assert_eq!(bits("100Mbit/s").unwrap(), 100_000_000);
        assert_eq!(bits("1.5Gbps").unwrap(), 1_500_000_000);
        assert!(bits("100M").unwrap_err().to_string().contains("100Mbit/s"));
        assert_eq!([frames("1000pps"), frames("2k")].map(Result::unwrap), [1000, 2000]);
        for wrong in ["0.5", "1Mbps", "5G", "0"] {
            assert!(frames(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn what_is_no_limit_has_the_remedy_of_its_option() {
        let said = bits("0").unwrap_err().to_string();
        assert!(
            said.contains("write bits a second: 100Mbit/s, or, to have none, `--no-`"),
            "{said}"
        );
        let said = frames("0").unwrap_err().to_string();
        assert!(said.contains("write frames a second: 1000pps, or"), "{said}");
        let said = milliseconds("0").unwrap_err().to_string();
        assert!(said.contains("or --lossy"), "{said}");
        assert_eq!(milliseconds("2s").unwrap(), 2000);
    }

    #[test]
    fn both_words_for_lossy_are_taken() {
        use clap::Args as _;
        let command = Port::augment_args(clap::Command::new("port"));
        for word in ["--lossy", "--no-lossless"] {
            let matches = command.clone().try_get_matches_from(["port", "vale0:a", word]).unwrap();
            assert!(matches.get_flag("lossy"), "{word}");
        }
    }

    #[test]
    fn lists_of_vlans_are_written_as_they_are_read() {
        for text in ["10", "10,20-29", "1-4094", "1,3,5-7"] {
            assert_eq!(ranges(&vids(text).ok().unwrap().0), text);
        }
        for wrong in ["", "a", "1-", "70000"] {
            assert!(vids(wrong).is_err(), "{wrong}");
        }
    }
}
