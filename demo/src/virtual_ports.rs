//! Pipes and a switch: no privileges, no interfaces.

use serde_json::Value;

use crate::{Result, Row, command::Running};

/// A generator, a pipe, a receiver.
pub fn pipe() -> Result<Vec<Row>> {
    let receiver = Running::start(&["recv", "demo}0", "--verify", "--idle", "1s"])?;
    let sender = Running::start(&["gen", "demo{0", "--duration", "3s"])?;
    let (sent, got) = (sender.summary()?, receiver.summary()?);
    Ok(vec![Row::new("pipe, sender to receiver", carried(&sent, &got))])
}

/// One sender and two receivers on a switch: it floods what it does not know, and sends to
/// one port what it does.
pub fn switch() -> Result<Vec<Row>> {
    const MAC: &str = "02:00:00:00:00:02";
    let receivers = || -> Result<[Running; 2]> {
        let start = |port| Running::start(&["recv", port, "--verify", "--idle", "1s"]);
        Ok([start("valedemo:one")?, start("valedemo:two")?])
    };
    let send = |to| Running::start(&["gen", "valedemo:from", "--duration", "3s", "--dst-mac", to]);

    let [one, two] = receivers()?;
    let sent = send(MAC)?.summary()?;
    let (one, two) = (one.summary()?, two.summary()?);
    let flooded = format!("{} in; out: {} and {}", packets(&sent), packets(&one), packets(&two));

    let [one, two] = receivers()?;
    let hello = ["gen", "valedemo:two", "--count", "1", "--src-mac", MAC];
    Running::start(&hello)?.summary()?;
    let sent = send(MAC)?.summary()?;
    let (one, two) = (one.summary()?, two.summary()?);
    let learned = format!("{}; {} went elsewhere", carried(&sent, &two), strays(&one));
    Ok(vec![
        Row::new("switch, unknown address: to both receivers", flooded),
        Row::new("switch, known address: to its port alone", learned),
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

fn packets(summary: &Value) -> String {
    format!("{:.1} M", count(summary) as f64 / 1e6)
}

/// What the other receiver saw, but for the one frame that the switch learned from.
fn strays(summary: &Value) -> u64 {
    count(summary).saturating_sub(1)
}
