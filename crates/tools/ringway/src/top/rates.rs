//! What was counted between two samples, a second.

use super::entity::{Count, Entity, Of, entities};
use super::sample::Sample;
use crate::drops::Drops;
use crate::table::{Table, where_names_repeat};
use serde::Serialize;
use std::collections::HashMap;

/// The traffic of a port, a port of a switch or a ring in an interval.
#[derive(Clone, Debug, Default, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "type", rename = "rates")]
pub struct Row {
    pub of: Of,
    pub name: String,
    /// Of an interface: the inode number of its network namespace.
    pub netns: Option<u64>,
    /// What kind of port it is; of a port of a switch: the switch.
    pub kind: String,
    pub uid: Option<u32>,
    /// How many handles have it open.
    pub users: Option<u32>,
    /// Packets and bits a second.
    pub rx_pps: f64,
    pub rx_bps: f64,
    pub tx_pps: f64,
    pub tx_bps: f64,
    pub drops_per_second: f64,
    /// How much of the fullest ring has packets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fill_percent: Option<f64>,
    /// Packets and bytes since totals count.
    pub rx_packets: u64,
    pub rx_bytes: u64,
    pub tx_packets: u64,
    pub tx_bytes: u64,
    pub drops: Drops,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub note: String,
}

/// The rates from `before` to `now`, and the totals since `base`.
pub fn rows(now: &Sample, before: &Sample, base: &Sample) -> Vec<Row> {
    let seconds = now.at.duration_since(before.at).as_secs_f64();
    rows_of(&entities(now), &entities(before), &entities(base), seconds)
}

pub fn rows_of(now: &[Entity], before: &[Entity], base: &[Entity], seconds: f64) -> Vec<Row> {
    let (before, base) = (Book::of(before), Book::of(base));
    let row = |entity: &Entity| {
        let (last, first) = (before.counted(entity), base.counted(entity));
        let per_second = |n: u64| if seconds > 0.0 { n as f64 / seconds } else { 0.0 };
        let pps = |now: Count, then: Count| per_second(now.packets.saturating_sub(then.packets));
        let bps = |now: Count, then: Count| 8.0 * per_second(now.bytes.saturating_sub(then.bytes));
        let since = |drops: Drops| entity.drops.merge(drops, u64::saturating_sub);
        Row {
            of: entity.of,
            name: entity.name.clone(),
            netns: entity.netns,
            kind: entity.kind.clone(),
            uid: entity.uid,
            users: entity.users,
            rx_pps: pps(entity.rx, last.rx),
            rx_bps: bps(entity.rx, last.rx),
            tx_pps: pps(entity.tx, last.tx),
            tx_bps: bps(entity.tx, last.tx),
            fill_percent: entity.fill,
            drops_per_second: per_second(since(last.drops).total()),
            rx_packets: entity.rx.packets.saturating_sub(first.rx.packets),
            rx_bytes: entity.rx.bytes.saturating_sub(first.rx.bytes),
            tx_packets: entity.tx.packets.saturating_sub(first.tx.packets),
            tx_bytes: entity.tx.bytes.saturating_sub(first.tx.bytes),
            drops: since(first.drops),
            note: entity.note.clone(),
        }
    };
    now.iter().map(row).collect()
}

/// What each had counted.
struct Book<'e>(HashMap<(Of, u64, &'e str), &'e Entity>);

#[derive(Clone, Copy, Default)]
struct Counted {
    rx: Count,
    tx: Count,
    drops: Drops,
}

impl<'e> Book<'e> {
    fn of(entities: &'e [Entity]) -> Book<'e> {
        let key = |entity: &'e Entity| ((entity.of, entity.id, &*entity.name), entity);
        Book(entities.iter().map(key).collect())
    }

    /// What is new since then has counted nothing before.
    fn counted(&self, entity: &Entity) -> Counted {
        let found = self.0.get(&(entity.of, entity.id, &*entity.name));
        found.map_or(Counted::default(), |e| Counted { rx: e.rx, tx: e.tx, drops: e.drops })
    }
}

/// The network namespaces of rows whose names others have in other namespaces.
pub fn namespaces<'r>(rows: impl IntoIterator<Item = &'r Row>) -> Vec<Option<String>> {
    let names: Vec<_> = rows.into_iter().map(|row| (row.name.as_str(), row.netns)).collect();
    where_names_repeat(&names)
}

/// For `--once`.
pub fn table(rows: &[Row]) -> String {
    if rows.is_empty() {
        return "no ports are open".into();
    }
    let heading = [
        "", "name", "kind", "uid", "open", "rx pps", "rx bit/s", "tx pps", "tx bit/s", "fill",
        "dropped",
    ];
    let mut table = Table::new(&heading);
    for row in rows {
        let number = |n: Option<u32>| n.map(|n| n.to_string()).unwrap_or_default();
        let of = match row.of {
            Of::Port => "port",
            Of::SwitchPort => "switch port",
            Of::Ring => "ring",
        };
        table.row(vec![
            of.into(),
            row.name.clone(),
            row.kind.clone(),
            number(row.uid),
            number(row.users),
            short(row.rx_pps),
            short(row.rx_bps),
            short(row.tx_pps),
            short(row.tx_bps),
            percent(row.fill_percent),
            row.drops.to_string(),
        ]);
    }
    table.with_last("netns", namespaces(rows)).to_string()
}

/// How full a ring is, in four letters at most; `-` of what has none.
pub fn percent(fill: Option<f64>) -> String {
    fill.map_or_else(|| "-".into(), |fill| format!("{fill:.0}%"))
}

/// A number in six letters at most: `999`, `1.50k`, `14.9M`.
pub fn short(n: f64) -> String {
    let scales = [(1e12, 'T'), (1e9, 'G'), (1e6, 'M'), (1e3, 'k')];
    // What would be rounded to the next scale is on it already.
    match scales.iter().find(|(scale, _)| n >= scale * 0.9995) {
        Some((scale, letter)) => {
            let n = n / scale;
            let decimals = if n < 9.995 { 2 } else { usize::from(n < 99.95) };
            format!("{n:.decimals$}{letter}")
        }
        None if n > 0.0 && n < 9.995 && n.fract() > 0.005 => format!("{n:.2}"),
        None => format!("{n:.0}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entity(name: &str, id: u64, packets: u64, ring_full: u64) -> Entity {
        Entity {
            name: name.into(),
            id,
            rx: Count { packets, bytes: 60 * packets },
            drops: Drops { ring_full, ..Drops::default() },
            ..Entity::default()
        }
    }

    #[test]
    fn rates_are_of_the_interval_and_totals_since_the_base() {
        let base = [entity("a", 1, 100, 1)];
        let before = [entity("a", 1, 300, 2)];
        let now = [entity("a", 1, 500, 6), entity("a", 2, 50, 0)];
        let rows = rows_of(&now, &before, &base, 2.0);
        let [old, new] = &rows[..] else { panic!("{rows:?}") };
        assert_eq!((old.rx_pps, old.rx_bps, old.drops_per_second), (100.0, 48_000.0, 2.0));
        assert_eq!((old.rx_packets, old.drops.ring_full), (400, 5));
        // One of the same name that was opened since has counted all of its own.
        assert_eq!((new.rx_pps, new.rx_packets), (25.0, 50));
        let still = rows_of(&now, &now, &now, 0.0);
        assert!(still.iter().all(|row| row.rx_pps == 0.0 && row.rx_packets == 0));
    }

    #[test]
    fn short_numbers() {
        let cases = [
            (0.0, "0"),
            (0.25, "0.25"),
            (7.0, "7"),
            (999.0, "999"),
            (999.9, "1.00k"),
            (1500.0, "1.50k"),
            (99_960.0, "100k"),
            (999_499.0, "999k"),
            (999_999.0, "1.00M"),
            (14_880_952.0, "14.9M"),
            (2e15, "2000T"),
        ];
        for (n, text) in cases {
            assert_eq!(short(n), text);
        }
    }
}
