//! `ringway switch`: makes, shows and changes VALE switches.

pub mod choose;
mod declared;
pub mod fdb;
pub mod mdb;
mod mirror;
pub mod mirrors;
mod port_name;
pub mod save;
pub mod show_port;
pub mod stats;
pub mod vlan;

pub use choose::state;

use crate::error::Result;
use crate::opening::{self, Stops};
use crate::output::Output;
use crate::port_notes::{self, is_another_user};
use crate::same_rings::check_distinct;
use crate::table::Table;
use ringway::{BridgeInfo, BridgePortInfo, Control, Declared};
use serde::Serialize;
use serde_json::Value;

use declared::State;

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
  ringway switch vlan vale0
  ringway switch stats vale0 --watch
  ringway switch fdb vale0
  ringway switch fdb add vale0 02:00:00:00:00:01 veth0
  ringway switch multicast vale0 querier
  ringway switch mdb vale0
  ringway switch mirror add vale0 span --from veth0,veth1 --to probe
  ringway switch mirror vale0 veth0 veth1 --to 'capture{1'
  ringway switch delete vale0
  ringway switch save vale0")]
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
    /// Show another port copies of what passes ports of a switch: one of the switch, or any other
    Mirror(mirror::Args),
    /// Show which address is behind which port; add and remove addresses
    Fdb(fdb::Args),
    /// Choose whether frames for groups of IP go to all ports, or to members (IGMP and MLD snooping)
    Multicast(choose::Groups),
    /// Show which port is in which group of IP, where the switch snoops
    Mdb(mdb::Args),
    /// Show the VLANs of each port
    Vlan(vlan::Args),
    /// Show what each port has sent, received and lost, and why
    Stats(stats::Args),
    /// Print switches as the system daemon's configuration declares them
    Save(save::Args),
}

pub fn run(args: &Args) -> Result<()> {
    check(&args.action)?;
    let control = Control::connect()?;
    let switch_of = |of: &str| of.split(':').next().unwrap_or_default().to_owned();
    let done = |action: &str, of: &str, declared_at: Option<String>| {
        Output::chosen().done(action, of, declared_at, || json(&control, &switch_of(of)))
    };
    let now = |of: &str| State::of(&control, &switch_of(of));
    match &args.action {
        Action::New { switch, one_address } => {
            control.switch_new(switch, *one_address)?;
            done("switch new", switch, None)
        }
        Action::List => list(&control),
        Action::Attach { switch, interfaces, host, opening } => {
            attach(&control, switch, interfaces, *host, *opening)?;
            done("switch attach", switch, None)
        }
        Action::Detach { switch, interfaces } => {
            let before = now(switch);
            control.switch_detach_all(switch, interfaces)?;
            done("switch detach", switch, before.detached(interfaces))
        }
        Action::Delete { switch } => {
            let before = now(switch);
            control.switch_delete(switch)?;
            done("switch delete", switch, before.deleted())
        }
        Action::Forward(args) => {
            choose::forward(&control, args)?;
            done("switch forward", &args.switch, now(&args.switch).switch_changed())
        }
        Action::Multicast(args) => {
            control.switch_multicast(&args.switch, args.multicast())?;
            done("switch multicast", &args.switch, now(&args.switch).switch_changed())
        }
        Action::Port(args) => match choose::port(&control, args)? {
            true => done("switch port", &args.port, now(&args.port).port_changed(&args.port)),
            false => show_port::show(&control, &args.port),
        },
        Action::Mirror(args) => mirror::run(&control, args),
        Action::Fdb(args) => fdb::run(&control, args),
        Action::Mdb(args) => mdb::run(&control, args),
        Action::Vlan(args) => vlan::run(&control, args),
        Action::Stats(args) => stats::run(&control, args),
        Action::Save(args) => save::run(&control, args),
    }
}

/// Refuses what the daemon would take to mean something else.
fn check(action: &Action) -> Result<()> {
    match action {
        Action::Attach { switch, interfaces, .. } => {
            choose::switch_name(switch)?;
            check_distinct(interfaces, "named")
        }
        Action::New { switch, .. } | Action::Detach { switch, .. } | Action::Delete { switch } => {
            choose::switch_name(switch)
        }
        Action::Forward(args) => choose::check(args),
        Action::Mirror(args) => mirror::check(args),
        Action::Fdb(args) => fdb::check(args),
        Action::Multicast(args) => choose::switch_name(&args.switch),
        Action::Mdb(args) => mdb::check(args),
        Action::List | Action::Port(_) | Action::Vlan(_) | Action::Stats(_) | Action::Save(_) => {
            Ok(())
        }
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
    let others = interfaces.iter().skip(usize::from(host));
    let stops: Vec<_> = others
        .map(|interface| opening::check_attach(plain(interface), opening))
        .collect::<Result<_>>()?;
    for (i, interface) in interfaces.iter().enumerate() {
        if let Err(error) = control.switch_attach(switch, interface, host && i == 0) {
            for interface in &interfaces[..i] {
                // It fails when the interface has gone meanwhile.
                let _ = control.switch_detach(switch, plain(interface));
            }
            return Err(error.into());
        }
    }
    stops.into_iter().for_each(Stops::tell);
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

/// A switch.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "type", rename = "switch")]
pub struct Switch<'a> {
    name: &'a str,
    forwarding: String,
    /// What becomes of frames for groups of IP: `flood`, `snooping` or `querier`.
    multicast: &'static str,
    /// The user whose it is.
    owner: Option<u32>,
    /// What the daemon's configuration has to do with it, and which file and line declare it.
    #[cfg_attr(test, schemars(with = "crate::schema::described::Declared"))]
    declared: Declared,
    #[serde(skip_serializing_if = "Option::is_none")]
    declared_at: Option<&'a str>,
    ports: Vec<SwitchPort<'a>>,
    mirrors: Vec<mirrors::Line<'a>>,
}

/// A port of a switch.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct SwitchPort<'a> {
    name: &'a str,
    /// How an interface is driven, and why not better.
    #[serde(skip_serializing_if = "Option::is_none")]
    mode: Option<&'a str>,
    /// What an interface is called now.
    #[serde(skip_serializing_if = "Option::is_none")]
    interface: Option<&'a str>,
    /// VLANs, source addresses, limits and losslessness, where there is something to tell.
    #[serde(skip_serializing_if = "String::is_empty")]
    part: String,
    #[cfg_attr(test, schemars(with = "crate::schema::described::Declared"))]
    declared: Declared,
    /// The user that alone may open it, as declared.
    #[serde(skip_serializing_if = "Option::is_none")]
    declared_for: Option<u32>,
    /// What differs from a switch that is declared.
    #[serde(skip)]
    by_hand: Option<&'static str>,
}

impl std::fmt::Display for SwitchPort<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The reasons are for `ringway ports`.
        let mode = self.mode.and_then(|mode| mode.split(';').next());
        let notes = mode.into_iter().chain([&*self.part]).chain(self.by_hand);
        let notes: Vec<_> = notes.filter(|note| !note.is_empty()).collect();
        f.write_str(self.name)?;
        if notes.is_empty() { Ok(()) } else { write!(f, " ({})", notes.join("; ")) }
    }
}

impl Switch<'_> {
    fn of(switch: &BridgeInfo) -> Switch<'_> {
        Switch {
            name: &switch.name,
            forwarding: choose::forwarding(&switch.forwarding),
            multicast: switch.multicast.name(),
            owner: switch.owner,
            declared: switch.declared,
            declared_at: switch.declared_at.as_deref(),
            ports: switch.ports.iter().map(|port| SwitchPort::of(switch, port)).collect(),
            mirrors: switch.mirrors.iter().map(|it| mirrors::Line::of(switch, it)).collect(),
        }
    }
}

impl SwitchPort<'_> {
    fn of<'a>(switch: &BridgeInfo, port: &'a BridgePortInfo) -> SwitchPort<'a> {
        let by_hand = match (switch.declared, port.declared) {
            (Declared::No, _) | (_, Declared::Yes) => None,
            (_, Declared::Changed) => Some("changed by hand"),
            (_, Declared::No) => port.attachment.map(|_| "by hand"),
        };
        SwitchPort {
            name: &port.name,
            mode: port.mode.as_deref(),
            interface: port.interface.as_deref(),
            part: choose::part(port),
            declared: port.declared,
            declared_for: port.declared_for.user(),
            by_hand,
        }
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
        for Switch { name, forwarding, multicast, owner, declared, ports, mirrors, .. } in &lines {
            let groups = match *multicast {
                "flood" => "",
                "querier" => ", snooping as querier",
                _ => ", snooping",
            };
            let ports: Vec<_> = ports.iter().map(SwitchPort::to_string).collect();
            let ports = if ports.is_empty() { "none".into() } else { ports.join(", ") };
            let changed = match declared {
                Declared::Changed => ", changed by hand",
                Declared::No | Declared::Yes => "",
            };
            let mirrors: String = mirrors.iter().map(|it| format!(", {it}")).collect();
            let how = format!("{forwarding}{groups}{mirrors}{changed}");
            let mut row = vec![name.to_string(), how, ports];
            if shows_owners {
                row.push(owner.map(|uid| format!("user {uid}")).unwrap_or_default());
            }
            table.row(row);
        }
        table.to_string()
    })
}
