//! `ringway switch mdb`: which port of a switch that snoops is in which group of IP.

use super::choose::{action_first, only_shown, switch_name, vid};
use crate::error::Result;
use crate::output::Output;
use crate::printable::printable;
use ringway::{BridgeInfo, BridgePortInfo, Control, GroupInfo};
use serde::Serialize;
use std::{collections::HashSet, fmt};

#[derive(clap::Args)]
#[command(
    subcommand_negates_reqs = true,
    after_help = "\
A line for each port that is in a group, as `bridge mdb show` writes it, with the seconds for which it is in the
group unless its hosts say so again. Queriers come first: without one in a VLAN, frames for groups are flooded
there. While hosts have yet to answer (`learning`), their ports get all groups. A port by which queries come is a
router's: it gets all groups, and what hosts say of theirs. So does, without the latter, a port that has joined
more than 256 groups (`all groups`). A port that was configured as a router's is `router permanent`
(`ringway switch port --multicast-router`). Groups that are not in the list are flooded.

The daemon tells a list of more than 512 lines in parts. Where groups come and go meanwhile, each line is told once,
but some may be missing that were there all the time: show the list again to see them.

Root sees them, and so do the maker of the switch and users with a port on it.

Examples:
  ringway switch mdb vale0
  ringway switch mdb show vale0 --vlan 10"
)]
pub struct Args {
    /// The switch: vale<id>; shows its groups, as `show` does
    #[arg(required = true)]
    switch: Option<String>,
    /// Only groups in this VLAN
    #[arg(long, value_name = "VID", value_parser = vid())]
    vlan: Option<u16>,
    #[command(subcommand)]
    action: Option<Action>,
}

#[derive(clap::Subcommand)]
enum Action {
    /// Show which port is in which group
    Show {
        /// The switch: vale<id>
        switch: String,
        /// Only groups in this VLAN
        #[arg(long, value_name = "VID", value_parser = vid())]
        vlan: Option<u16>,
    },
}

impl Args {
    fn switch(&self) -> &str {
        match (&self.action, &self.switch) {
            (Some(Action::Show { switch, .. }), _) => switch,
            (None, switch) => switch.as_deref().unwrap_or_default(),
        }
    }
}

/// Refuses what would be taken to mean something else.
pub fn check(args: &Args) -> Result<()> {
    action_first("mdb", args.action.is_some(), args.switch.as_deref())?;
    only_shown("mdb", args.action.is_some(), args.vlan.is_some())?;
    switch_name(args.switch())
}

pub fn run(control: &Control, args: &Args) -> Result<()> {
    let switch = args.switch();
    let only = args.action.as_ref().map_or(args.vlan, |Action::Show { vlan, .. }| *vlan);
    let mut groups = control.switch_groups(switch)?;
    drop_doubles(&mut groups);
    let switches = control.switches()?;
    let mut lines = routers(&switches, switch);
    lines.extend(groups.iter().map(|group| Line::of(switch, group)));
    // A router of all VLANs is one of each.
    lines.retain(|line| only.is_none() || line.vlan == only || line.remaining_s.is_none());
    Output::chosen().write_all(&lines, || match lines.is_empty() {
        true => "no groups".into(),
        false => lines.iter().map(Line::to_string).collect::<Vec<_>>().join("\n"),
    })
}

/// The ports of a switch that are said to have routers.
fn routers<'a>(switches: &'a [BridgeInfo], switch: &'a str) -> Vec<Line<'a>> {
    let snooping = switches.iter().filter(|it| it.name == switch && !it.multicast.is_flood());
    let ports = snooping.flat_map(|it| &it.ports);
    let routers = ports.filter(|port| !port.absent && !port.multicast_router.is_auto());
    let line = |port: &'a BridgePortInfo| Line {
        switch,
        kind: "router",
        family: None,
        vlan: None,
        port: Some(&port.name),
        group: None,
        remaining_s: None,
        learning_s: None,
    };
    routers.map(line).collect()
}

/// What has moved from one page to another is told twice.
fn drop_doubles(groups: &mut Vec<GroupInfo>) {
    let mut told = HashSet::new();
    groups.retain(|info| {
        told.insert(match info {
            GroupInfo::Querier { ipv6, vlan, .. } => (0, Some(*ipv6), *vlan, None, None),
            GroupInfo::Router { ipv6, vlan, port, .. } => {
                (1, Some(*ipv6), *vlan, Some(port.clone()), None)
            }
            GroupInfo::Full { port, .. } => (2, None, 0, Some(port.clone()), None),
            GroupInfo::Member { group, vlan, port, .. } => {
                (3, None, *vlan, Some(port.clone()), Some(*group))
            }
        })
    });
}

/// What a switch knows of the groups of IP at a port.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "type", rename = "group")]
pub struct Line<'a> {
    switch: &'a str,
    /// What is known: `querier`, `router`, `all_groups` or `member`.
    kind: &'static str,
    /// Of IPv4 or IPv6; none: of both.
    family: Option<&'static str>,
    /// None: it is in no VLAN, or in all.
    vlan: Option<u16>,
    port: Option<&'a str>,
    group: Option<String>,
    /// Seconds until it is not known any more; none: it was configured.
    remaining_s: Option<u32>,
    /// Seconds that some hosts may take to answer the querier; they get all groups meanwhile.
    #[serde(skip_serializing_if = "Option::is_none")]
    learning_s: Option<u32>,
}

impl<'a> Line<'a> {
    fn of(switch: &'a str, info: &'a GroupInfo) -> Line<'a> {
        let family = |ipv6| Some(if ipv6 { "ipv6" } else { "ipv4" });
        let in_vlan = |vlan: u16| (vlan != 0).then_some(vlan);
        let line = |kind, family, vlan, port, remaining_s| Line {
            switch,
            kind,
            family,
            vlan,
            port,
            group: None,
            remaining_s: Some(remaining_s),
            learning_s: None,
        };
        match info {
            GroupInfo::Querier { ipv6, vlan, seconds, learning } => Line {
                learning_s: Some(*learning),
                ..line("querier", family(*ipv6), in_vlan(*vlan), None, *seconds)
            },
            GroupInfo::Router { ipv6, vlan, port, seconds } => {
                line("router", family(*ipv6), in_vlan(*vlan), Some(port), *seconds)
            }
            GroupInfo::Full { port, seconds } => {
                line("all_groups", None, None, Some(port), *seconds)
            }
            GroupInfo::Member { group, vlan, port, seconds } => Line {
                group: Some(group.to_string()),
                ..line("member", family(group.is_ipv6()), in_vlan(*vlan), Some(port), *seconds)
            },
        }
    }
}

impl fmt::Display for Line<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Line { switch, kind, family, vlan, port, group, remaining_s, learning_s } = self;
        write!(f, "dev {switch}")?;
        if let Some(port) = port {
            let name = port.strip_prefix(switch).and_then(|rest| rest.strip_prefix(':'));
            write!(f, " port {}", printable(name.unwrap_or(port), &[]))?;
        }
        match (group, family) {
            (Some(group), _) => write!(f, " grp {group} temp")?,
            (None, Some(family)) => write!(f, " {kind} {family}")?,
            (None, None) if remaining_s.is_none() => write!(f, " {kind}")?,
            (None, None) => f.write_str(" all groups")?,
        }
        if let Some(vlan) = vlan {
            write!(f, " vid {vlan}")?;
        }
        match remaining_s {
            Some(seconds) => write!(f, " {seconds} s")?,
            None => f.write_str(" permanent")?,
        }
        match learning_s {
            Some(seconds @ 1..) => write!(f, ", learning {seconds} s"),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// With other seconds, too: it was told twice at different times.
    #[test]
    fn each_is_told_once() {
        let port = |name: &str| format!("vale0:{name}");
        let member = |name: &str, group: &str, vlan, seconds| GroupInfo::Member {
            group: group.parse().unwrap(),
            vlan,
            port: port(name),
            seconds,
        };
        let once = [
            GroupInfo::Querier { ipv6: false, vlan: 0, seconds: 9, learning: 2 },
            GroupInfo::Querier { ipv6: true, vlan: 0, seconds: 9, learning: 2 },
            GroupInfo::Router { ipv6: false, vlan: 0, port: port("a"), seconds: 5 },
            GroupInfo::Router { ipv6: false, vlan: 7, port: port("a"), seconds: 5 },
            GroupInfo::Full { port: port("a"), seconds: 5 },
            member("a", "239.1.1.1", 0, 7),
            member("b", "239.1.1.1", 0, 7),
            member("a", "239.1.1.1", 7, 7),
            member("a", "ff05::1", 7, 7),
        ];
        let again = [
            GroupInfo::Querier { ipv6: false, vlan: 0, seconds: 8, learning: 1 },
            GroupInfo::Router { ipv6: false, vlan: 7, port: port("a"), seconds: 4 },
            GroupInfo::Full { port: port("a"), seconds: 4 },
            member("b", "239.1.1.1", 0, 6),
        ];
        let mut groups = [once.as_slice(), &again].concat();
        drop_doubles(&mut groups);
        assert_eq!(groups, once);
    }

    #[test]
    fn lines_are_like_those_of_bridge() {
        let port = || "vale0:veth-a".into();
        let group = "239.1.1.1".parse().unwrap();
        for (info, expected) in [
            (
                GroupInfo::Member { group, vlan: 10, port: port(), seconds: 7 },
                "dev vale0 port veth-a grp 239.1.1.1 temp vid 10 7 s",
            ),
            (
                GroupInfo::Router { ipv6: true, vlan: 0, port: port(), seconds: 7 },
                "dev vale0 port veth-a router ipv6 7 s",
            ),
            (GroupInfo::Full { port: port(), seconds: 7 }, "dev vale0 port veth-a all groups 7 s"),
            (
                GroupInfo::Querier { ipv6: false, vlan: 10, seconds: 9, learning: 2 },
                "dev vale0 querier ipv4 vid 10 9 s, learning 2 s",
            ),
            (
                GroupInfo::Querier { ipv6: false, vlan: 0, seconds: 9, learning: 0 },
                "dev vale0 querier ipv4 9 s",
            ),
        ] {
            assert_eq!(Line::of("vale0", &info).to_string(), expected);
        }
        let heard = GroupInfo::Router { ipv6: true, vlan: 0, port: port(), seconds: 7 };
        let router = Line { remaining_s: None, family: None, ..Line::of("vale0", &heard) };
        assert_eq!(router.to_string(), "dev vale0 port veth-a router permanent");
    }
}
