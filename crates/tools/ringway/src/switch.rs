//! `ringway switch`: makes, shows and changes VALE switches.

mod choose;
mod fdb;
mod mirror;
mod show_port;

pub use choose::state;

use crate::drops::{Drops, occurred};
use crate::error::{Error, Result};
use crate::opening;
use crate::output::Output;
use crate::port_notes;
use crate::ports::is_another_user;
use crate::run_loop::{self, RunLoop};
use crate::table::Table;
use ringway::{BridgeInfo, BridgePortInfo, Control};
use serde::Serialize;
use serde_json::Value;
use std::time::{Duration, Instant};

#[derive(clap::Args)]
#[command(after_help = "\
The first port of a switch makes it, and it is removed with its last. A switch that `new` has made
stays until `delete`. The user that made a switch, or has all of its ports, can change its settings.
After that, a switch that was not made with `new` accepts no ports of other users.

Examples:
  ringway switch new vale0
  ringway switch attach vale0 eth1 veth0 veth1 --host
  ringway switch attach vale0 eth2@mode=packet
  ringway switch forward vale0 learning --ageing 60
  ringway switch port vale0:veth0 --trunk 10,20-29
  ringway switch list
  ringway switch stats vale0 --watch
  ringway switch fdb vale0
  ringway switch fdb add vale0 02:00:00:00:00:01 veth0
  ringway switch mirror vale0 veth0 veth1 --to 'capture{1'
  ringway switch delete vale0")]
pub struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(clap::Subcommand)]
enum Action {
    /// Make a switch that stays although it has no ports
    New {
        /// Its name: vale<id>
        switch: String,
        /// Each program's port that joins it may send with one source address only: the first that
        /// it uses
        #[arg(long)]
        one_address: bool,
    },
    /// Show the switches and their ports
    List,
    /// Attach network interfaces, or ports that have been made to stay: all of them, or none
    ///
    /// They stay attached until they are detached or deleted, and with them the daemon and the
    /// interfaces' network namespace, though all programs may have ended.
    Attach {
        /// The switch: vale<id>; it comes into being if need be
        switch: String,
        /// The interfaces, as `ip link` shows them; with @mode=MODE behind it, one is in the mode
        /// zerocopy, copy, generic or packet, or not at all. In packet mode, and where none is named and
        /// the driver has no zero copy or the host is attached too, frames between interfaces pass in the
        /// kernel
        #[arg(required = true)]
        interfaces: Vec<String>,
        /// With the host's network stack behind the first of them, as another port
        #[arg(long)]
        host: bool,
        #[command(flatten)]
        opening: opening::Args,
    },
    /// Take interfaces, or ports that have been made to stay, off their switch: all of them, or none
    Detach {
        /// The switch: vale<id>
        switch: String,
        /// The interfaces
        #[arg(required = true)]
        interfaces: Vec<String>,
    },
    /// Detach all interfaces, and let the switch go with its last port
    Delete {
        /// Its name: vale<id>
        switch: String,
    },
    /// Choose how a switch forwards
    Forward(choose::Forward),
    /// Show or choose how a port takes part: VLANs, source addresses, rate, floods, isolation,
    /// losslessness; unblock it
    Port(choose::Port),
    /// Show another port copies of what passes ports of a switch
    Mirror(mirror::Args),
    /// Show which address is behind which port; add and remove addresses
    Fdb(fdb::Args),
    /// Show what each port has sent, received and lost, and why
    Stats {
        /// Only this switch
        switch: Option<String>,
        /// Again every second, until interrupted
        #[arg(short, long)]
        watch: bool,
        #[command(flatten)]
        run_loop: run_loop::Args,
    },
}

pub fn run(args: &Args) -> Result<()> {
    check(&args.action)?;
    let control = Control::connect()?;
    let done = |action: &str, of: &str| {
        let switch = of.split(':').next().unwrap_or_default();
        Output::chosen().done(action, of, || json(&control, switch))
    };
    match &args.action {
        Action::New { switch, one_address } => {
            control.switch_new(switch, *one_address)?;
            done("switch new", switch)
        }
        Action::List => list(&control),
        Action::Attach { switch, interfaces, host, opening } => {
            attach(&control, switch, interfaces, *host, *opening)?;
            done("switch attach", switch)
        }
        Action::Detach { switch, interfaces } => {
            control.switch_detach_all(switch, interfaces)?;
            done("switch detach", switch)
        }
        Action::Delete { switch } => {
            control.switch_delete(switch)?;
            done("switch delete", switch)
        }
        Action::Forward(args) => {
            choose::forward(&control, args)?;
            done("switch forward", &args.switch)
        }
        Action::Port(args) => match choose::port(&control, args)? {
            true => done("switch port", &args.port),
            false => show_port::show(&control, &args.port),
        },
        Action::Mirror(args) => mirror::run(args),
        Action::Fdb(args) => fdb::run(&control, args),
        Action::Stats { switch, watch, run_loop } => {
            let run_loop = RunLoop::begin(run_loop)?;
            stats(&control, run_loop, switch.as_deref(), *watch)
        }
    }
}

/// Refuses what the daemon would take to mean something else.
fn check(action: &Action) -> Result<()> {
    match action {
        Action::New { switch, .. }
        | Action::Attach { switch, .. }
        | Action::Detach { switch, .. }
        | Action::Delete { switch } => choose::switch_name(switch),
        Action::Forward(args) => choose::check(args),
        Action::Mirror(args) => mirror::check(args),
        Action::Fdb(args) => fdb::check(args),
        Action::List | Action::Port(_) | Action::Stats { .. } => Ok(()),
    }
}

/// Attaches all of them, the first with the host's stack if `host`, or leaves all as it was.
fn attach(
    control: &Control,
    switch: &str,
    interfaces: &[String],
    host: bool,
    opening: opening::Args,
) -> Result<()> {
    for interface in interfaces.iter().skip(usize::from(host)) {
        opening::check_attach(plain(interface), opening)?;
    }
    for (i, interface) in interfaces.iter().enumerate() {
        if let Err(error) = control.switch_attach(switch, interface, host && i == 0) {
            for interface in &interfaces[..i] {
                // It fails when the interface has gone meanwhile.
                let _ = control.switch_detach(switch, plain(interface));
            }
            return Err(error.into());
        }
    }
    for interface in interfaces {
        port_notes::down(plain(interface));
    }
    tell_owner(control, switch);
    Ok(())
}

/// An interface's name, without options.
fn plain(interface: &str) -> &str {
    interface.split('@').next().unwrap_or(interface)
}

/// Says whose the switch is, where that is another user.
fn tell_owner(control: &Control, switch: &str) {
    let switches = control.switches().unwrap_or_default();
    let owner = switches.iter().find(|info| info.name == switch).and_then(|info| info.owner);
    if let Some(owner) = owner.filter(|owner| is_another_user(*owner)) {
        port_notes::foreign_switch(switch, switch, owner);
    }
}

#[derive(Serialize)]
#[serde(tag = "type", rename = "switch")]
struct Switch<'a> {
    name: &'a str,
    forwarding: String,
    /// The user whose it is.
    owner: Option<u32>,
    ports: Vec<SwitchPort<'a>>,
}

#[derive(Serialize)]
struct SwitchPort<'a> {
    name: &'a str,
    /// How an interface is driven, and why not better.
    #[serde(skip_serializing_if = "Option::is_none")]
    mode: Option<&'a str>,
    /// VLANs, source addresses, limits and losslessness, where there is something to tell.
    #[serde(skip_serializing_if = "String::is_empty")]
    part: String,
}

impl std::fmt::Display for SwitchPort<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The reasons are for `ringway ports`.
        let mode = self.mode.and_then(|mode| mode.split(';').next());
        let notes: Vec<_> =
            mode.into_iter().chain([&*self.part]).filter(|n| !n.is_empty()).collect();
        f.write_str(self.name)?;
        if notes.is_empty() { Ok(()) } else { write!(f, " ({})", notes.join("; ")) }
    }
}

impl Switch<'_> {
    fn of(switch: &BridgeInfo) -> Switch<'_> {
        Switch {
            name: &switch.name,
            forwarding: choose::forwarding(&switch.forwarding),
            owner: switch.owner,
            ports: switch.ports.iter().map(SwitchPort::of).collect(),
        }
    }
}

impl SwitchPort<'_> {
    fn of(port: &BridgePortInfo) -> SwitchPort<'_> {
        SwitchPort { name: &port.name, mode: port.mode.as_deref(), part: choose::part(port) }
    }
}

/// A switch as `ringway switch list --json` has it.
fn json(control: &Control, name: &str) -> Option<Value> {
    let switches = control.switches().ok()?;
    let switch = switches.iter().find(|switch| switch.name == name)?;
    serde_json::to_value(Switch::of(switch)).ok()
}

fn list(control: &Control) -> Result<()> {
    let switches = control.switches()?;
    let lines: Vec<_> = switches.iter().map(Switch::of).collect();
    Output::chosen().write_all(&lines, || {
        if lines.is_empty() {
            return "no switches".into();
        }
        let shows_owners = lines.iter().any(|line| line.owner.is_some_and(is_another_user));
        let mut table = Table::new(match shows_owners {
            true => &["switch", "forwarding", "ports", "owner"],
            false => &["switch", "forwarding", "ports"],
        });
        for Switch { name, forwarding, owner, ports } in &lines {
            let ports: Vec<_> = ports.iter().map(SwitchPort::to_string).collect();
            let ports = if ports.is_empty() { "none".into() } else { ports.join(", ") };
            let mut row = vec![name.to_string(), forwarding.clone(), ports];
            if shows_owners {
                row.push(owner.map(|uid| format!("user {uid}")).unwrap_or_default());
            }
            table.row(row);
        }
        table.to_string()
    })
}

#[derive(Serialize)]
#[serde(tag = "type", rename = "switch_port")]
struct PortLine<'a> {
    switch: &'a str,
    port: &'a str,
    index: u32,
    sent_packets: u64,
    sent_bytes: u64,
    received_packets: u64,
    received_bytes: u64,
    drops: Drops,
    /// Addresses that were learned, and are behind it now.
    known: u64,
    /// Addresses that were behind another port until this one sent with them.
    moved: u64,
    /// Packets whose source was not learned: the port has too many addresses, or it is static behind another.
    unlearned: u64,
    /// The lossless port that what it has sent waits for.
    #[serde(skip_serializing_if = "Option::is_none")]
    waits_for: Option<&'a str>,
    /// It is blocked: frames went round between it and this port.
    #[serde(skip_serializing_if = "Option::is_none")]
    loops_with: Option<&'a str>,
    #[serde(skip)]
    state: Option<String>,
}

const INTERVAL: Duration = Duration::from_secs(1);

fn stats(control: &Control, run_loop: RunLoop, only: Option<&str>, watch: bool) -> Result<()> {
    loop {
        let mut switches = control.switches()?;
        if let Some(only) = only {
            switches.retain(|switch| switch.name == only);
            if switches.is_empty() {
                return Err(Error::Value(format!(
                    "{only}: there is no such switch; `ringway switch list` shows those there are"
                )));
            }
        }
        let lines: Vec<_> = switches.iter().flat_map(port_lines).collect();
        run_loop.output.write_all(&lines, || table(&lines))?;
        let next = Instant::now() + INTERVAL;
        while watch && !run_loop.is_over(Instant::now()) && Instant::now() < next {
            run_loop.sleep(next)?;
        }
        if !watch || run_loop.is_over(Instant::now()) {
            return Ok(());
        }
    }
}

fn port_lines(switch: &BridgeInfo) -> impl Iterator<Item = PortLine<'_>> {
    switch.ports.iter().map(|port| {
        let BridgePortInfo { name, index, totals, .. } = port;
        PortLine {
            switch: &switch.name,
            port: name,
            index: *index,
            sent_packets: totals.sent_packets,
            sent_bytes: totals.sent_bytes,
            received_packets: totals.received_packets,
            received_bytes: totals.received_bytes,
            drops: Drops::at(port),
            known: totals.known,
            moved: totals.moved,
            unlearned: totals.unlearned,
            waits_for: port.waits_for.as_deref(),
            loops_with: port.loops_with.as_deref(),
            state: choose::state(port),
        }
    })
}

fn table(lines: &[PortLine]) -> String {
    if lines.is_empty() {
        return "no ports on any switch".into();
    }
    let mut table = Table::new(&[
        "port",
        "index",
        "sent packets",
        "bytes",
        "received packets",
        "bytes",
        "drops",
        "addresses",
    ]);
    for line in lines {
        table.row(vec![
            line.port.into(),
            line.index.to_string(),
            line.sent_packets.to_string(),
            line.sent_bytes.to_string(),
            line.received_packets.to_string(),
            line.received_bytes.to_string(),
            line.drops.to_string(),
            occurred(&[
                ("known", line.known),
                ("moved here", line.moved),
                ("not learned", line.unlearned),
            ]),
        ]);
    }
    table.with_last("state", lines.iter().map(|line| line.state.clone()).collect()).to_string()
}
