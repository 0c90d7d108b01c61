//! `ringway switch vlan`: the VLANs of each port.

use super::choose::{range, runs};
use crate::error::{Error, Result};
use crate::output::Output;
use crate::table::Table;
use ringway::{BridgeInfo, BridgePortInfo, Control, Vlan};
use serde::Serialize;
use std::collections::BTreeSet;

#[derive(clap::Args)]
#[command(after_help = "\
As `bridge -compressvlans vlan show` writes it: `PVID` is the VLAN of untagged frames that the port
sends, and frames of a VLAN with `Egress Untagged` reach it without a tag. A port without VLANs is
`unaware` of them, and passes all tags unchanged. `ringway switch port NAME --access VID` and
`--trunk VIDS --native VID` put a port into VLANs.

Examples:
  ringway switch vlan
  ringway switch vlan vale0")]
pub struct Args {
    /// Only this switch
    switch: Option<String>,
}

/// The VLANs of a port of a switch.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "type", rename = "port_vlans")]
pub struct Line<'a> {
    switch: &'a str,
    port: &'a str,
    /// None: it is unaware of VLANs.
    vlans: Vec<Entry>,
}

/// A VLAN, or several that follow one another.
#[derive(Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Entry {
    vlan: u16,
    /// The last of several.
    #[serde(skip_serializing_if = "Option::is_none")]
    vlan_end: Option<u16>,
    flags: &'static [&'static str],
}

/// Untagged frames belong to it, and its frames go out without a tag.
const NATIVE: &[&str] = &["PVID", "Egress Untagged"];

pub fn run(control: &Control, args: &Args) -> Result<()> {
    let mut switches = control.switches()?;
    if let Some(only) = &args.switch {
        switches.retain(|switch| switch.name == *only);
        if switches.is_empty() {
            return Err(Error::Value(format!(
                "{only}: there is no such switch; `ringway switch list` shows those there are"
            )));
        }
    }
    let lines: Vec<_> = switches.iter().flat_map(lines).collect();
    Output::chosen().write_all(&lines, || table(&lines, args.switch.as_deref()))
}

fn lines(switch: &BridgeInfo) -> impl Iterator<Item = Line<'_>> {
    let line = |port: &'_ BridgePortInfo| entries(&port.vlan);
    switch.ports.iter().map(move |port| Line {
        switch: &switch.name,
        port: &port.name,
        vlans: line(port),
    })
}

fn entries(vlan: &Vlan) -> Vec<Entry> {
    let native = |vid: &u16| Entry { vlan: *vid, vlan_end: None, flags: NATIVE };
    match vlan {
        Vlan::Unaware => Vec::new(),
        Vlan::Access(vid) => vec![native(vid)],
        Vlan::Trunk { allowed, native: untagged } => {
            let tagged: BTreeSet<u16> =
                allowed.iter().copied().filter(|vid| Some(*vid) != *untagged).collect();
            let tagged = runs(&tagged).into_iter().map(|(vlan, last)| {
                let vlan_end = (last != vlan).then_some(last);
                Entry { vlan, vlan_end, flags: &[] }
            });
            untagged.iter().map(native).chain(tagged).collect()
        }
    }
}

/// `only`: the one switch that is shown.
fn table(lines: &[Line], only: Option<&str>) -> String {
    if lines.is_empty() {
        return only.map_or("no ports on any switch".into(), |only| format!("no ports on {only}"));
    }
    let mut table = Table::new(&["port", "vlan-id"]);
    for Line { port, vlans, .. } in lines {
        let vlan = |entry: &Entry| {
            let numbers = range((entry.vlan, entry.vlan_end.unwrap_or(entry.vlan)));
            [&[numbers.as_str()], entry.flags].concat().join(" ")
        };
        let mut cells: Vec<_> = vlans.iter().map(vlan).collect();
        if cells.is_empty() {
            cells.push("unaware".into());
        }
        let ports = std::iter::once(port.to_string()).chain(std::iter::repeat(String::new()));
        cells.into_iter().zip(ports).for_each(|(cell, port)| table.row(vec![port, cell]));
    }
    table.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vlans_are_those_of_bridge() {
        let line = |port, vlan| Line { switch: "vale0", port, vlans: entries(&vlan) };
        let allowed = BTreeSet::from([4, 10, 20, 21, 22]);
        let lines = [
            line("vale0:a", Vlan::Access(7)),
            line("vale0:uplink", Vlan::Trunk { allowed: allowed.clone(), native: Some(4) }),
            line("vale0:b", Vlan::Trunk { allowed, native: None }),
            line("vale0:c", Vlan::Unaware),
        ];
        let shown = "\
port          vlan-id
vale0:a       7 PVID Egress Untagged
vale0:uplink  4 PVID Egress Untagged
              10
              20-22
vale0:b       4
              10
              20-22
vale0:c       unaware";
        assert_eq!(table(&lines, None), shown);
        assert_eq!(table(&[], None), "no ports on any switch");
        assert_eq!(table(&[], Some("vale0")), "no ports on vale0");
        let json = serde_json::to_value(&lines[0]).unwrap();
        assert_eq!(json["vlans"][0]["flags"][1], "Egress Untagged");
        assert_eq!(json["vlans"][0]["vlan"], 7);
        let json = serde_json::to_value(&lines[2]).unwrap();
        assert_eq!(
            (&json["vlans"][2]["vlan"], &json["vlans"][2]["vlan_end"]),
            (&20.into(), &22.into())
        );
    }
}
