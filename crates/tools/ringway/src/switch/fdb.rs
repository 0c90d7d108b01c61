//! `ringway switch fdb`: which address a switch knows behind which port.

use crate::endpoint::Mac;
use crate::error::Result;
use crate::output::Output;
use crate::table::Table;
use ringway::{AddressInfo, Control};
use serde::Serialize;

#[derive(Serialize)]
#[serde(tag = "type", rename = "address")]
struct Line<'a> {
    switch: &'a str,
    address: String,
    /// None: it is in no VLAN, or the switch has none.
    vlan: Option<u16>,
    port: &'a str,
    /// Since it was seen last; none: it was configured.
    age_seconds: Option<u32>,
}

pub fn show(control: &Control, switch: &str) -> Result<()> {
    let mut addresses = control.switch_addresses(switch)?;
    // One that has moved from one page to another is told twice.
    addresses.sort_by_key(|address| (address.vlan, address.mac, address.age_seconds));
    addresses.dedup_by_key(|address| (address.vlan, address.mac));
    let lines: Vec<_> = addresses.iter().map(|address| line(switch, address)).collect();
    Output::chosen().write_all(&lines, || table(&lines))
}

fn line<'a>(switch: &'a str, address: &'a AddressInfo) -> Line<'a> {
    let AddressInfo { mac, vlan, port, age_seconds } = address;
    Line {
        switch,
        address: Mac(*mac).to_string(),
        vlan: (*vlan != 0).then_some(*vlan),
        port,
        age_seconds: *age_seconds,
    }
}

fn table(lines: &[Line]) -> String {
    if lines.is_empty() {
        return "no addresses".into();
    }
    let mut table = Table::new(&["address", "vlan", "port", "age"]);
    for Line { address, vlan, port, age_seconds, .. } in lines {
        table.row(vec![
            address.clone(),
            vlan.map_or("-".into(), |vlan| vlan.to_string()),
            port.to_string(),
            age_seconds.map_or("static".into(), |age| format!("{age} s")),
        ]);
    }
    table.to_string()
}
