//! `ringway ports`: all ports that the daemon knows.

use crate::error::Result;
use crate::filter::{chosen_ports, ranges};
use crate::losses::Losses;
use crate::opened::kind_of;
use crate::output::Output;
use crate::pf_ring;
use crate::port_notes::is_another_user;
use crate::rings;
use crate::switch;
use crate::table::{Table, where_names_repeat};
use ringway::{ActionInfo, BridgeInfo, BridgePortInfo, Control, FilterInfo, PortInfo};
use serde::Serialize;
use serde_json::Value;

#[derive(clap::Args)]
#[command(after_help = "\
Ports in one region can exchange packets without copying. A capture file is shown as
file:NAME@PID.NUMBER; PID is the program that has it open.

`switch of` is the owner of the switch, if that is neither you nor root: the user that made it with
`ringway switch new`, or that opened the first of its ports. The owner decides where the switch
sends frames. A port of a switch keeps its name when its interface is renamed (`ip link set NAME name`): `state` tells
what the interface is called now. `mtu` is the present MTU of the interface. `mode` is the mode of a network interface,
and why a better one was not possible: zerocopy, copy or generic (AF_XDP), or packet (AF_PACKET); it
also names frames that are too long since the MTU was changed, and queues that `ethtool -L` has
added since and that have no rings. It says so if the interface receives frames of which its port
gets none. Without an option each interface gets
the best mode that works. With a filter for all its queues a veth pair is in packet mode, in which
the stack's share stays fast, and so is an interface without native XDP.
netmap:eth0@mode=packet, or RINGWAY_NIC_MODE=packet in the environment, asks for this mode and no
other. The program that opens an interface first decides.

`queues` are the receive queues that programs get, with (filtered) if they get only some frames: see
`ringway filter show`. `buffers` is the size of a buffer in bytes, headroom included;
netmap:eth0@buffers=4096, or RINGWAY_NIC_BUFFERS=4096, asks for another size.

`netns` is there where ports of several network namespaces have one name: the inode number of each one's
namespace, by which `ls -i /run/netns`, or `lsns -t net`, finds it. --json has it of all interfaces,
their pipes and monitors, and persistent ports.

`users` are the programs that have the port open, with --rings the ring. Programs that open one port
share its rings, as with netmap: of two that receive by one ring each frame goes to one, and two that
send by one ring at a time lose frames of both. A port of another name on the switch, or another ring
of an interface (netmap:eth0-1), is a program's own.

`dropped` counts the losses of the rings of an interface's port, including those in the kernel.
`device` is the growth, since the port was opened or attached, of the interface's own counters of
losses (`ip -s -s link`) and its driver's (`ethtool -S`), under their names; what its queueing
discipline has dropped (qdisc_dropped, from `tc -s qdisc`); and what the kernel's stack has sent by it
while programs, or a switch, had it for sending and its host rings were closed (stack_dropped): open these
(netmap:eth0^), or attach with --host. A frame may be in several of these, and
rx_dropped and tx_dropped may include frames that the kernel's stack has dropped: do not add them
up. --json also has the counters of AF_XDP sockets (`sockets`).

With --rings: what each ring has sent or received, and the packets that it has dropped, including
those that the kernel has dropped on an interface's queues. Interfaces that are attached to a switch
have no such rings; `ringway switch stats` counts what passes by them. Rings of interfaces and files
count packets; those of switch ports, pipes and monitors count slots, of which a packet that is
longer than a buffer takes several. With --json both are `packets`. `fill` is the number of slots with
packets, sent and not taken yet, or received and not released, as of the program's last sync. With
--pf-ring: the contents of /proc/net/pf_ring of PF_RING's module, for your own programs of PF_RING, as of each
program's last look at its counters.

Examples:
  ringway ports
  ringway ports --rings
  ringway ports vale0:a
  ringway ports --pf-ring
  ringway ports --json | jq -r .name")]
pub struct Args {
    /// Only this port
    #[arg(conflicts_with = "pf_ring")]
    port: Option<String>,
    /// Show the rings of ports that programs have open, with their counters
    #[arg(long)]
    rings: bool,
    /// Show the rings of PF_RING's programs instead
    #[arg(long, conflicts_with = "rings")]
    pf_ring: bool,
}

/// A port, with the kind that people know.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "type", rename = "port")]
pub struct Line<'a> {
    id: u64,
    name: &'a str,
    kind: String,
    mem_id: u16,
    buf_size: u32,
    uid: u32,
    /// Of an interface: the inode number of its network namespace.
    netns: Option<u64>,
    rings: [u32; 2],
    slots: [u32; 2],
    users: u32,
    mtu: Option<u32>,
    mode: Option<&'a str>,
    queues: &'a [u32],
    /// Receive queues that have no rings, because they were added later.
    added_queues: &'a [u32],
    /// The interface receives frames, and the port, which takes all of them, gets none.
    gets_nothing: bool,
    #[cfg_attr(test, schemars(with = "Vec<crate::schema::described::Filter>"))]
    filters: &'a [FilterInfo],
    #[cfg_attr(test, schemars(with = "Vec<crate::schema::described::Action>"))]
    actions: &'a [ActionInfo],
    /// For ports of switches: the user whose the switch is.
    switch_owner: Option<u32>,
    /// Of an interface: what is lost, by each of those that count.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    losses: Option<&'a Losses>,
    /// For an interface on a switch: what it is called now.
    #[serde(skip_serializing_if = "Option::is_none")]
    interface: Option<&'a str>,
    /// On a switch: what keeps it from sending at the moment, and that its interface was renamed.
    #[serde(skip_serializing_if = "Option::is_none")]
    state: Option<String>,
}

impl Line<'_> {
    fn of<'a>(
        port: &'a PortInfo,
        switches: &'a [BridgeInfo],
        losses: Option<&'a Losses>,
    ) -> Line<'a> {
        let &PortInfo { id, mem_id, buf_size, uid, netns, rings, slots, users, mtu, .. } = port;
        let PortInfo { name, kind, mode, queues, added_queues, filters, actions, .. } = port;
        let (kind, mode) = (kind_of(name, *kind), mode.as_deref());
        Line {
            id,
            name,
            kind,
            mem_id,
            buf_size,
            uid,
            netns,
            rings,
            slots,
            users,
            mtu,
            mode,
            queues,
            added_queues,
            gets_nothing: port.gets_nothing,
            filters,
            actions,
            switch_owner: port.switch_owner,
            losses,
            interface: on_switch(port, switches).and_then(|it| it.interface.as_deref()),
            state: state(port, switches),
        }
    }
}

/// Lists the ports.
pub fn run(args: &Args) -> Result<()> {
    let output = Output::chosen();
    if args.pf_ring {
        let texts = pf_ring::texts();
        return output.write_all(&texts, || pf_ring::show(&texts));
    }
    let control = Control::connect()?;
    let (ports, _) = chosen_ports(&control, args.port.as_deref())?;
    if args.rings {
        let mut lines = Vec::new();
        for port in &ports {
            // One that has gone meanwhile has none.
            let rings = control.rings(port).unwrap_or_default();
            lines.extend(rings.into_iter().map(|ring| rings::Line::new(port, ring)));
        }
        return output.write_all(&lines, || rings::table(&lines));
    }
    let switches = control.switches()?;
    let losses: Vec<_> = ports.iter().map(|port| Losses::at(port, &control)).collect();
    let all = ports.iter().zip(&losses);
    let lines: Vec<_> = all.map(|(port, losses)| Line::of(port, &switches, Some(losses))).collect();
    output.write_all(&lines, || table(&ports, &switches, &losses))
}

/// The port as its switch has it.
fn on_switch<'a>(port: &PortInfo, switches: &'a [BridgeInfo]) -> Option<&'a BridgePortInfo> {
    let mut ports = switches.iter().flat_map(|switch| &switch.ports);
    ports.find(|it| it.name == port.name)
}

/// What keeps a port of a switch from sending at the moment, and that its interface was renamed.
fn state(port: &PortInfo, switches: &[BridgeInfo]) -> Option<String> {
    on_switch(port, switches).and_then(switch::state)
}

/// A port as `ringway ports --json` has it.
pub fn json(port: &PortInfo) -> Option<Value> {
    serde_json::to_value(Line::of(port, &[], None)).ok()
}

fn queues(port: &PortInfo) -> String {
    let filtered = if port.filters.is_empty() { "" } else { " (filtered)" };
    format!("{}{filtered}", ranges(&port.queues))
}

fn table(ports: &[PortInfo], switches: &[BridgeInfo], losses: &[Losses]) -> String {
    if ports.is_empty() {
        return "no ports are open".into();
    }
    let mut columns = vec![
        "port",
        "kind",
        "region",
        "buffers",
        "rings tx/rx",
        "slots tx/rx",
        "users",
        "queues",
        "mtu",
        "mode",
    ];
    let is_foreign = |port: &PortInfo| port.switch_owner.is_some_and(is_another_user);
    let shows_owners = ports.iter().any(is_foreign);
    if shows_owners {
        columns.push("switch of");
    }
    let mut table = Table::new(&columns);
    for port in ports {
        let pair = |[tx, rx]: [u32; 2]| format!("{tx}/{rx}");
        let mut row = vec![
            port.name.clone(),
            kind_of(&port.name, port.kind),
            port.mem_id.to_string(),
            port.buf_size.to_string(),
            pair(port.rings),
            pair(port.slots),
            port.users.to_string(),
            queues(port),
            port.mtu.map(|mtu| mtu.to_string()).unwrap_or_default(),
            port.mode.clone().unwrap_or_default(),
        ];
        if shows_owners {
            row.push(port.switch_owner.map(|uid| format!("user {uid}")).unwrap_or_default());
        }
        table.row(row);
    }
    let states = ports.iter().map(|port| state(port, switches)).collect();
    let of = |losses_of: fn(&Losses) -> Option<String>| losses.iter().map(losses_of).collect();
    let names: Vec<_> = ports.iter().map(|port| (port.name.as_str(), port.netns)).collect();
    let table = table.with_last("netns", where_names_repeat(&names));
    let table = table.with_last("dropped", of(Losses::of_rings));
    table.with_last("device", of(Losses::of_device)).with_last("state", states).to_string()
}
