//! `ringway switch fdb`: which address a switch knows behind which port, and what it is told of that.

use super::{
    choose::{action_first, only_shown, switch_name, vid},
    declared::State,
};
use crate::endpoint::Mac;
use crate::error::{Error, Result};
use crate::output::Output;
use crate::printable::printable;
use ringway::{AddressInfo, Control};
use serde::Serialize;
use std::fmt;

#[derive(clap::Args)]
#[command(
    subcommand_negates_reqs = true,
    after_help = "\
A switch that learns notes behind which port it has seen an address, and forgets it when it ages. A
static address is where `add` says: it does not age, and it does not move to another port that sends
with it, as an entry of a Linux bridge that is `static sticky`. Frames that another port sends with it
are forwarded, and counted as `not learned` in `ringway switch stats`; to have them dropped, bind ports
to their addresses: `ringway switch port --mac`. What is for a static address whose port is away is
dropped and counted as `no_destination`; the entry holds again when the port is back. Static addresses
outlive the daemon, and go with the switch.

For a switch that learns nothing, `ringway switch forward SWITCH static --address MAC=PORT` replaces the
whole table; `fdb add` adds to what a switch learns.

All of it holds for frames that the kernel forwards, too.

Users that may change the switch, as with `ringway switch forward`, may change its addresses. Root sees
them, and so do the maker of the switch and users with a port on it.

Examples:
  ringway switch fdb vale0
  ringway switch fdb show vale0 --vlan 10 --port veth0
  ringway switch fdb add vale0 02:00:00:00:00:01 veth0
  ringway switch fdb del vale0 02:00:00:00:00:01
  ringway switch fdb flush vale0 --port veth0"
)]
pub struct Args {
    /// The switch: vale<id>; shows its addresses, as `show` does
    #[arg(required = true)]
    switch: Option<String>,
    /// Only addresses behind this port
    #[arg(long)]
    port: Option<String>,
    /// Only addresses in this VLAN
    #[arg(long, value_name = "VID", value_parser = vid())]
    vlan: Option<u16>,
    #[command(subcommand)]
    action: Option<Action>,
}

#[derive(clap::Subcommand)]
enum Action {
    /// Show which address is behind which port, and how many seconds ago it was seen last
    Show {
        /// The switch: vale<id>
        switch: String,
        /// Only addresses in this VLAN
        #[arg(long, value_name = "VID", value_parser = vid())]
        vlan: Option<u16>,
        /// Only addresses behind this port
        #[arg(long)]
        port: Option<String>,
    },
    /// Add a static address: it is behind this port, neither ages nor moves, and outlives the daemon
    Add {
        /// The switch: vale<id>; it learns
        switch: String,
        /// The address
        mac: Mac,
        /// The port that it is behind, as `ringway switch list` shows it, with the switch's name or without
        port: String,
        /// The VLAN that it is in; needed where the port is in VLANs
        #[arg(long, value_name = "VID", value_parser = vid())]
        vlan: Option<u16>,
    },
    /// Forget an address, static or learned
    ///
    /// It is learned again when it is seen again.
    Del {
        /// The switch: vale<id>
        switch: String,
        /// The address
        mac: Mac,
        /// The VLAN that it is in, if it is in one
        #[arg(long, value_name = "VID", value_parser = vid())]
        vlan: Option<u16>,
    },
    /// Forget all addresses that were learned, or some
    Flush {
        /// The switch: vale<id>
        switch: String,
        /// Only addresses behind this port
        #[arg(long)]
        port: Option<String>,
        /// Only addresses in this VLAN
        #[arg(long, value_name = "VID", value_parser = vid())]
        vlan: Option<u16>,
        /// Static addresses, too
        #[arg(long = "static")]
        statics: bool,
    },
}

impl Args {
    /// The switch that it is about.
    fn switch(&self) -> &str {
        match (&self.action, &self.switch) {
            (
                Some(
                    Action::Show { switch, .. }
                    | Action::Add { switch, .. }
                    | Action::Del { switch, .. }
                    | Action::Flush { switch, .. },
                ),
                _,
            ) => switch,
            (None, switch) => switch.as_deref().unwrap_or_default(),
        }
    }
}

/// Refuses what the daemon would take to mean something else.
pub fn check(args: &Args) -> Result<()> {
    action_first("fdb", args.action.is_some(), args.switch.as_deref())?;
    only_shown("fdb", args.action.is_some(), args.port.is_some() || args.vlan.is_some())?;
    switch_name(args.switch())
}

pub fn run(control: &Control, args: &Args) -> Result<()> {
    let switch = args.switch();
    // What is left out of static addresses may be declared.
    let done = |action: &str, of_statics: bool| {
        let changed = || State::of(control, switch).switch_changed();
        Output::chosen().done(action, switch, of_statics.then(changed).flatten(), || None)
    };
    match &args.action {
        None => show(control, switch, args.vlan, args.port.as_deref()),
        Some(Action::Show { vlan, port, .. }) => show(control, switch, *vlan, port.as_deref()),
        Some(Action::Add { mac, port, vlan, .. }) => {
            let vlan = vlan.unwrap_or(0);
            control.switch_address_add(switch, mac.0, vlan, port)?;
            let now = || {
                let it = static_address(control, switch, *mac, vlan)?;
                serde_json::to_value(line(switch, &it)).ok()
            };
            Output::chosen().done("switch fdb add", switch, None, now)
        }
        Some(Action::Del { mac, vlan, .. }) => {
            let vlan = vlan.unwrap_or(0);
            let was_static = static_address(control, switch, *mac, vlan).is_some();
            control.switch_address_delete(switch, mac.0, vlan)?;
            done("switch fdb del", was_static)
        }
        Some(Action::Flush { port, vlan, statics, .. }) => {
            control.switch_addresses_flush(switch, port.as_deref(), *vlan, *statics)?;
            done("switch fdb flush", *statics)
        }
    }
}

fn static_address(control: &Control, switch: &str, mac: Mac, vlan: u16) -> Option<AddressInfo> {
    let mut addresses = control.switch_addresses(switch).ok()?.into_iter();
    addresses.find(|it| (it.mac, it.vlan) == (mac.0, vlan) && it.age_seconds.is_none())
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "type", rename = "address")]
pub struct Line<'a> {
    switch: &'a str,
    address: String,
    /// None: it is in no VLAN, or the switch has none.
    vlan: Option<u16>,
    port: &'a str,
    /// Seconds since it was seen last; none: it is static.
    age_s: Option<u32>,
    /// It was configured, not learned.
    #[serde(rename = "static")]
    is_static: bool,
    /// Its port is not there.
    absent: bool,
}

fn show(control: &Control, switch: &str, vlan: Option<u16>, port: Option<&str>) -> Result<()> {
    let mut addresses = control.switch_addresses(switch)?;
    if let Some(port) = port {
        let full = match port.contains(':') {
            true => port.to_owned(),
            false => format!("{switch}:{port}"),
        };
        addresses.retain(|address| address.port == full);
        if addresses.is_empty() {
            check_is_port(control, switch, &full)?;
        }
    }
    addresses.retain(|address| vlan.is_none_or(|vlan| address.vlan == vlan));
    // One that has moved from one page to another is told twice.
    addresses.sort_by_key(|address| (address.vlan, address.mac, address.age_seconds));
    addresses.dedup_by_key(|address| (address.vlan, address.mac));
    let lines: Vec<_> = addresses.iter().map(|address| line(switch, address)).collect();
    Output::chosen().write_all(&lines, || text(&lines))
}

/// Refuses a port that there is not, for which no addresses would tell nothing.
fn check_is_port(control: &Control, switch: &str, full: &str) -> Result<()> {
    let switches = control.switches()?;
    let of_it = switches.iter().filter(|it| it.name == switch);
    match of_it.flat_map(|it| &it.ports).any(|port| port.name == full) {
        true => Ok(()),
        false => Err(Error::NoPort {
            port: full.into(),
            problem: "there is no such port; `ringway switch list` shows those there are",
        }),
    }
}

fn line<'a>(switch: &'a str, address: &'a AddressInfo) -> Line<'a> {
    let AddressInfo { mac, vlan, port, age_seconds, absent } = address;
    Line {
        switch,
        address: Mac(*mac).to_string(),
        vlan: (*vlan != 0).then_some(*vlan),
        port,
        age_s: *age_seconds,
        is_static: age_seconds.is_none(),
        absent: *absent,
    }
}

/// As `bridge -s fdb show` writes it; `updated` is the second of its two numbers behind `used`.
impl fmt::Display for Line<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Line { switch, address, vlan, port, age_s, absent, .. } = self;
        let name = port.strip_prefix(switch).and_then(|rest| rest.strip_prefix(':'));
        write!(f, "{address} dev {}", printable(name.unwrap_or(port), &[]))?;
        if let Some(vlan) = vlan {
            write!(f, " vlan {vlan}")?;
        }
        match age_s {
            Some(age) => write!(f, " updated {age} master {switch}"),
            None if *absent => write!(f, " sticky master {switch} static, port is away"),
            None => write!(f, " sticky master {switch} static"),
        }
    }
}

fn text(lines: &[Line]) -> String {
    if lines.is_empty() {
        return "no addresses".into();
    }
    lines.iter().map(Line::to_string).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_those_of_bridge() {
        let at = |vlan, age_seconds, absent| {
            let port = "vale0:veth-a".into();
            let address = AddressInfo { mac: [2, 0, 0, 0, 0, 1], vlan, port, age_seconds, absent };
            line("vale0", &address).to_string()
        };
        let head = "02:00:00:00:00:01 dev veth-a";
        assert_eq!(at(0, Some(3), false), format!("{head} updated 3 master vale0"));
        assert_eq!(at(10, Some(3), false), format!("{head} vlan 10 updated 3 master vale0"));
        assert_eq!(at(0, None, false), format!("{head} sticky master vale0 static"));
        let away = format!("{head} vlan 10 sticky master vale0 static, port is away");
        assert_eq!(at(10, None, true), away);
    }
}
