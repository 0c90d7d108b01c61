//! `ringway switch stats`: what each port has sent, received and lost, and how fast that grows.

use super::choose;
use crate::drops::{Drops, occurred};
use crate::error::{Error, Result};
use crate::port_notes;
use crate::run_loop::{self, RunLoop};
use crate::table::Table;
use crate::units::human;
use ringway::{BridgeInfo, BridgePortInfo, Control};
use serde::Serialize;
use std::collections::HashMap;
use std::time::{Duration, Instant};

#[derive(clap::Args)]
#[command(after_help = "\
With --watch, totals come at once, and from the second time on what was counted meanwhile, as packets,
bits and drops a second, by the time that has really passed. JSON lines have totals always, and rates
from the second time on. When the daemon ends, the command waits for the next one, which counts anew.

Examples:
  ringway switch stats
  ringway switch stats vale0 --watch
  ringway switch stats vale0 --watch --totals
  ringway switch stats vale0 --watch --duration 10s --json")]
pub struct Args {
    /// Only this switch
    switch: Option<String>,
    /// Again every second, until interrupted: with rates
    #[arg(short, long)]
    watch: bool,
    /// With --watch: totals beside the rates
    #[arg(long, requires = "watch")]
    totals: bool,
    #[command(flatten)]
    run_loop: run_loop::Args,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "type", rename = "switch_port")]
pub struct PortLine<'a> {
    switch: &'a str,
    port: &'a str,
    /// None: it is not there, and waited for.
    index: Option<u32>,
    #[serde(flatten)]
    counted: Counted,
    /// None: it is the first look.
    #[serde(flatten)]
    rates: Option<Rates>,
    /// Addresses that were learned, and are behind it now.
    known: u64,
    /// Addresses that were behind another port until this one sent with them.
    moved: u64,
    /// Packets whose source was not learned: the port has too many addresses, or it is static behind another.
    unlearned: u64,
    /// Packets that may have overtaken earlier ones of the port, past a worker that did not keep up.
    reordered: u64,
    /// The lossless port that what it has sent waits for.
    #[serde(skip_serializing_if = "Option::is_none")]
    waits_for: Option<&'a str>,
    /// It is blocked: frames went round between it and this port.
    #[serde(skip_serializing_if = "Option::is_none")]
    loops_with: Option<&'a str>,
    /// What an interface is called now.
    #[serde(skip_serializing_if = "Option::is_none")]
    interface: Option<&'a str>,
    #[serde(skip)]
    state: Option<String>,
}

/// Since the port was attached.
#[derive(Clone, Copy, Debug, Default, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Counted {
    sent_packets: u64,
    sent_bytes: u64,
    received_packets: u64,
    received_bytes: u64,
    drops: Drops,
}

/// Between two looks.
#[derive(Clone, Copy, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Rates {
    /// Seconds between the two.
    interval_s: f64,
    sent_packets_per_s: f64,
    sent_bits_per_s: f64,
    received_packets_per_s: f64,
    received_bits_per_s: f64,
    drops_per_s: f64,
}

impl Counted {
    fn of(port: &BridgePortInfo) -> Counted {
        let totals = &port.totals;
        Counted {
            sent_packets: totals.sent_packets,
            sent_bytes: totals.sent_bytes,
            received_packets: totals.received_packets,
            received_bytes: totals.received_bytes,
            drops: Drops::at(port),
        }
    }

    fn values(&self) -> [u64; 5] {
        let Counted { sent_packets, sent_bytes, received_packets, received_bytes, drops } = self;
        [*sent_packets, *sent_bytes, *received_packets, *received_bytes, drops.total()]
    }

    /// What has been counted since `before`, for each second. A port that counts less than it had is another
    /// of the same name: it began at zero.
    fn since(&self, before: Counted, seconds: f64) -> Rates {
        let (now, mut then) = (self.values(), before.values());
        if now.iter().zip(then).any(|(now, then)| *now < then) {
            then = [0; 5];
        }
        let mut rates = [0.0; 5];
        for (rate, (now, then)) in rates.iter_mut().zip(now.into_iter().zip(then)) {
            *rate = if seconds > 0.0 { (now - then) as f64 / seconds } else { 0.0 };
        }
        let [sent, sent_bytes, received, received_bytes, drops] = rates;
        Rates {
            interval_s: seconds,
            sent_packets_per_s: sent,
            sent_bits_per_s: 8.0 * sent_bytes,
            received_packets_per_s: received,
            received_bits_per_s: 8.0 * received_bytes,
            drops_per_s: drops,
        }
    }
}

/// What each port had counted, by its full name, and when that was.
struct Look {
    at: Instant,
    counted: HashMap<String, Counted>,
}

impl Look {
    fn of(at: Instant, switches: &[BridgeInfo]) -> Look {
        let ports = switches.iter().flat_map(|switch| &switch.ports);
        let counted = ports.map(|port| (port.name.clone(), Counted::of(port))).collect();
        Look { at, counted }
    }

    /// A port that is new since then has counted nothing before.
    fn rates(&self, now: Instant, port: &BridgePortInfo) -> Rates {
        let before = self.counted.get(&port.name).copied().unwrap_or_default();
        Counted::of(port).since(before, now.duration_since(self.at).as_secs_f64())
    }
}

const INTERVAL: Duration = Duration::from_secs(1);

pub fn run(control: &Control, args: &Args) -> Result<()> {
    if args.run_loop.duration.is_some() && !args.watch {
        return Err(Error::Value("--duration is for --watch; add --watch".into()));
    }
    let run_loop = RunLoop::begin(&args.run_loop)?;
    let mut before: Option<Look> = None;
    let mut restarted: Option<Control> = None;
    loop {
        let mut switches = match restarted.as_ref().unwrap_or(control).switches() {
            Err(error) if args.watch && before.is_some() => {
                port_notes::waiting_for_daemon(&error);
                let Some(next) = next_daemon(&run_loop)? else { return Ok(()) };
                // It counts anew.
                (restarted, before) = (Some(next), None);
                continue;
            }
            switches => switches?,
        };
        let now = Instant::now();
        if let Some(only) = &args.switch {
            switches.retain(|switch| switch.name == *only);
            if switches.is_empty() {
                return Err(Error::Value(format!(
                    "{only}: there is no such switch; `ringway switch list` shows those there are"
                )));
            }
        }
        let lines: Vec<_> =
            switches.iter().flat_map(|switch| port_lines(switch, before.as_ref(), now)).collect();
        let is_first = before.is_none();
        run_loop.output.write_all(&lines, || {
            table(&lines, args.switch.as_deref(), is_first || args.totals, !is_first)
        })?;
        before = Some(Look::of(now, &switches));
        let next = now + INTERVAL;
        while args.watch && !run_loop.is_over(Instant::now()) && Instant::now() < next {
            run_loop.sleep(next)?;
        }
        if !args.watch || run_loop.is_over(Instant::now()) {
            return Ok(());
        }
    }
}

/// A connection to the next daemon, or `None` if the command is to end before there is one.
fn next_daemon(run_loop: &RunLoop) -> Result<Option<Control>> {
    while !run_loop.is_over(Instant::now()) {
        if let Ok(control) = Control::connect_running() {
            return Ok(Some(control));
        }
        run_loop.sleep(Instant::now() + INTERVAL)?;
    }
    Ok(None)
}

fn port_lines<'a>(
    switch: &'a BridgeInfo,
    before: Option<&Look>,
    now: Instant,
) -> impl Iterator<Item = PortLine<'a>> {
    switch.ports.iter().map(move |port| {
        let BridgePortInfo { name, index, totals, .. } = port;
        PortLine {
            switch: &switch.name,
            port: name,
            index: (!port.absent).then_some(*index),
            counted: Counted::of(port),
            rates: before.map(|before| before.rates(now, port)),
            known: totals.known,
            moved: totals.moved,
            unlearned: totals.unlearned,
            reordered: totals.reordered,
            waits_for: port.waits_for.as_deref(),
            loops_with: port.loops_with.as_deref(),
            interface: port.interface.as_deref(),
            state: choose::state(port),
        }
    })
}

/// `only`: the one switch that is shown.
fn table(lines: &[PortLine], only: Option<&str>, with_totals: bool, with_rates: bool) -> String {
    const RATES: [&str; 5] = ["sent packets/s", "bit/s", "received packets/s", "bit/s", "drops/s"];
    const TOTALS: [&str; 6] =
        ["sent packets", "bytes", "received packets", "bytes", "drops", "addresses"];
    if lines.is_empty() {
        return only.map_or("no ports on any switch".into(), |only| format!("no ports on {only}"));
    }
    let mut heading = vec!["port", "index"];
    heading.extend(RATES.iter().filter(|_| with_rates));
    heading.extend(TOTALS.iter().filter(|_| with_totals));
    let mut table = Table::new(&heading);
    for line in lines {
        let index = line.index.map_or("-".into(), |index| index.to_string());
        let mut row = vec![line.port.into(), index];
        if let Some(rates) = line.rates.filter(|_| with_rates) {
            row.extend(rates.cells());
        }
        if with_totals {
            row.extend(line.totals());
        }
        table.row(row);
    }
    let reordered = |line: &PortLine| (line.reordered > 0).then(|| line.reordered.to_string());
    let reordered = lines.iter().filter(|_| with_totals).map(reordered).collect();
    let states = lines.iter().map(|line| line.state.clone()).collect();
    table.with_last("perhaps reordered", reordered).with_last("state", states).to_string()
}

impl Rates {
    fn cells(&self) -> [String; 5] {
        let Rates { sent_packets_per_s, sent_bits_per_s, drops_per_s, .. } = *self;
        let Rates { received_packets_per_s, received_bits_per_s, .. } = *self;
        let all = [
            sent_packets_per_s,
            sent_bits_per_s,
            received_packets_per_s,
            received_bits_per_s,
            drops_per_s,
        ];
        all.map(|rate| human(rate).trim_end().to_string())
    }
}

impl PortLine<'_> {
    fn totals(&self) -> [String; 6] {
        let Counted { sent_packets, sent_bytes, received_packets, received_bytes, drops } =
            &self.counted;
        [
            sent_packets.to_string(),
            sent_bytes.to_string(),
            received_packets.to_string(),
            received_bytes.to_string(),
            drops.to_string(),
            occurred(&[
                ("known", self.known),
                ("moved here", self.moved),
                ("not learned", self.unlearned),
            ]),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(packets: u64, bytes: u64, lost: u64) -> Counted {
        let drops = Drops { ring_full: lost, ..Drops::default() };
        Counted {
            sent_packets: packets,
            sent_bytes: bytes,
            received_packets: 2 * packets,
            received_bytes: 2 * bytes,
            drops,
        }
    }

    #[test]
    fn rates_are_of_the_time_that_has_passed() {
        let rates = counted(500, 50_000, 30).since(counted(100, 10_000, 10), 2.0);
        let all = [
            rates.interval_s,
            rates.sent_packets_per_s,
            rates.sent_bits_per_s,
            rates.received_packets_per_s,
            rates.received_bits_per_s,
            rates.drops_per_s,
        ];
        assert_eq!(all, [2.0, 200.0, 160_000.0, 400.0, 320_000.0, 10.0]);
        assert_eq!(counted(1, 1, 1).since(counted(0, 0, 0), 0.0).sent_packets_per_s, 0.0);
    }

    #[test]
    fn a_port_that_was_attached_anew_began_at_zero() {
        let rates = counted(10, 20_000, 0).since(counted(100, 10_000, 10), 1.0);
        assert_eq!((rates.sent_packets_per_s, rates.sent_bits_per_s), (10.0, 160_000.0));
        assert_eq!(rates.drops_per_s, 0.0);
    }

    #[test]
    fn rates_take_the_place_of_totals_or_are_beside_them() {
        let now = counted(1500, 150_000, 0);
        let line = PortLine {
            switch: "vale0",
            port: "vale0:a",
            index: Some(3),
            counted: now,
            rates: Some(now.since(Counted::default(), 1.0)),
            known: 0,
            moved: 0,
            unlearned: 0,
            reordered: 5,
            waits_for: None,
            loops_with: None,
            interface: None,
            state: None,
        };
        let json = serde_json::to_value(&line).unwrap();
        assert_eq!(
            (&json["sent_packets"], &json["sent_packets_per_s"]),
            (&1500.into(), &1500.0.into())
        );
        assert_eq!(json["drops"]["ring_full"], 0);
        let text = |totals, rates| table(std::slice::from_ref(&line), None, totals, rates);
        assert!(text(false, true).contains("1.500 k"), "{}", text(false, true));
        assert!(!text(false, true).contains("150000"));
        assert!(text(true, true).contains("150000") && text(true, true).contains("1.500 k"));
        assert!(!text(true, false).contains("/s"));
        assert!(text(true, false).contains("perhaps reordered") && json["reordered"] == 5);
        assert!(!text(false, true).contains("perhaps reordered"));
        let first = PortLine { rates: None, ..line };
        let json = serde_json::to_value(&first).unwrap();
        assert!(json.get("interval_s").is_none() && json["sent_bytes"] == 150_000);
        let away = PortLine { index: None, ..first };
        assert!(serde_json::to_value(&away).unwrap()["index"].is_null());
        assert!(table(&[away], None, true, false).contains("vale0:a  - "));
    }
}
