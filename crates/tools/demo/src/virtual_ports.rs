//! Pipes and a switch: no privileges, no interfaces.

use serde_json::Value;

use crate::{Result, Row, command::Running};

/// A generator, a pipe, a receiver: as fast as it goes, then with every frame checked.
pub fn pipe() -> Result<Vec<Row>> {
    let run = |checks: &[&str]| -> Result<String> {
        let receive = [&["recv", "demo}0", "--idle", "1s"], checks].concat();
        let receiver = Running::start(&receive)?;
        let sender = Running::start(&["gen", "demo{0", "--duration", "3s"])?;
        Ok(carried(&sender.summary()?, &receiver.summary()?))
    };
    Ok(vec![
        Row::new("pipe, sender to receiver", run(&[])?),
        Row::new("the same, every frame checked", run(&["--verify"])?),
    ])
}

/// One sender and two receivers on a switch: it floods what it does not know, and sends to
/// one port what it does. At a rate at which a ring has room for 20 ms: so long a receiver may wait for its CPU.
pub fn switch() -> Result<Vec<Row>> {
    const MAC: &str = "02:00:00:00:00:02";
    let receivers = || -> Result<[Running; 2]> {
        let start = |port| Running::start(&["recv", port, "--verify", "--idle", "1s"]);
        Ok([start("valedemo:one")?, start("valedemo:two")?])
    };
    let send = || {
        Running::start(&[
            "gen",
            "valedemo:from",
            "--count",
            "100k",
            "--rate",
            "50kpps",
            "--dst-mac",
            MAC,
        ])
    };
    let numbers = |all: [&Value; 3]| {
        let [sent, one, two] = all.map(count);
        format!("{sent} frames sent; received: {one} and {two}")
    };

    let [one, two] = receivers()?;
    let sent = send()?.summary()?;
    let flooded = numbers([&sent, &one.summary()?, &two.summary()?]);

    let [one, two] = receivers()?;
    let hello = ["gen", "valedemo:two", "--count", "1", "--src-mac", MAC];
    Running::start(&hello)?.summary()?;
    let sent = send()?.summary()?;
    let learned = numbers([&sent, &one.summary()?, &two.summary()?]);
    Ok(vec![
        Row::new("switch, address unknown: flooded", flooded),
        Row::new("switch, second receiver has spoken: learned", learned),
    ])
}

fn carried(sent: &Value, got: &Value) -> String {
    format!(
        "{:.1} M packets/s, {} of {} lost, {} wrong",
        got["pps"]["median"].as_f64().unwrap_or(0.0) / 1e6,
        count(sent).saturating_sub(count(got)),
        count(sent),
        got["verify"]["corrupt"].as_u64().unwrap_or(0),
    )
}

fn count(summary: &Value) -> u64 {
    summary["packets"].as_u64().unwrap_or(0)
}
