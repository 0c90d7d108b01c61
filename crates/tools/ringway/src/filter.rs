//! `ringway filter`: which frames the open ports of interfaces get.

use crate::error::{Error, Result};
use crate::output::Output;
use crate::sys;
use crate::table::{Table, where_names_repeat};
use crate::units::number;
use ringway::{Control, Filter, FilterInfo, PortInfo, PortSpec, RingSelection};
use serde::Serialize;

#[derive(clap::Args)]
#[command(after_help = "\
A filter covers the receive queues of an interface that programs have open, or its host rings, and
is removed with them. The kernel keeps frames that do not match, and its sockets do not notice; with
a filter for host rings, frames of the stack that do not match leave by the interface. A change
takes effect between two frames and resets the counters. `matched` frames went to the program,
except those that sampling left out, and those of queues that `ringway queue remove` has left to the
kernel; all others were `passed` to the kernel.

If a received frame takes several buffers, a filter sees the first buffer and the length of the
whole frame. It sees frames of the stack before the kernel has cut them into segments.

Examples:
  ringway filter set netmap:eth0 udp port 53
  ringway filter set netmap:eth0 --sample 100 'tcp[tcpflags] & tcp-syn != 0'
  ringway filter set netmap:eth0-2 'vlan 10'      the frames of queue 2 alone
  ringway filter set netmap:eth0^ udp dst port 53  of what the stack sends
  ringway filter show
  ringway filter clear netmap:eth0")]
pub struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(clap::Subcommand)]
enum Action {
    /// Direct only matching frames to the programs that have the port open
    Set {
        /// The port: netmap:<interface>, netmap:<interface>-<queue>, or netmap:<interface>^
        port: String,
        /// What is to match, as `man pcap-filter` describes it; nothing matches everything
        expression: Vec<String>,
        /// One in so many of the frames that match
        #[arg(short, long, value_name = "COUNT", default_value_t = 1)]
        #[arg(value_parser = number(1..=u32::MAX, 10))]
        sample: u32,
    },
    /// Show the filters and their counters
    Show {
        /// Of this port alone: netmap:<interface>, netmap:<interface>-<queue>, or netmap:<interface>^
        port: Option<String>,
    },
    /// Direct all frames to the programs again
    Clear {
        /// The port: netmap:<interface>, netmap:<interface>-<queue>, or netmap:<interface>^
        port: String,
    },
}

/// Options of commands that receive.
#[derive(clap::Args)]
pub struct Chosen {
    /// Only frames that match, as `man pcap-filter` describes it; of an interface's, the kernel
    /// keeps the others
    #[arg(short, long, value_name = "EXPRESSION")]
    filter: Option<String>,

    /// One in so many of the frames that match
    #[arg(long, value_name = "COUNT")]
    #[arg(value_parser = number(1..=u32::MAX, 10))]
    sample: Option<u32>,
}

impl Chosen {
    /// One in so many of the frames that match is taken.
    pub fn one_in(&self) -> u32 {
        self.sample.unwrap_or(1)
    }

    /// The expression, if there is one.
    pub fn text(&self) -> Option<String> {
        self.filter.clone()
    }

    /// The filter, if one is asked for.
    pub fn filter(&self) -> Result<Option<Filter>> {
        if self.filter.is_none() && self.one_in() == 1 {
            return Ok(None);
        }
        let filter = Filter::new(self.filter.as_deref().unwrap_or_default())?;
        Ok(Some(filter.one_in(self.one_in())))
    }
}

pub fn run(args: &Args) -> Result<()> {
    let control = Control::connect()?;
    match &args.action {
        Action::Set { port, expression, sample } => {
            let filter = Filter::new(&expression.join(" "));
            let filter =
                filter.map_err(|error| swapped(port, expression).unwrap_or(error.into()))?;
            let filter = filter.one_in(*sample);
            control.set_filter(port, Some(filter))?;
            done(&control, "filter set", port)
        }
        Action::Clear { port } => {
            control.set_filter(port, None)?;
            done(&control, "filter clear", port)
        }
        Action::Show { port } => show(&control, port.as_deref()),
    }
}

/// Where the expression has the port in it, and what should be one is none.
fn swapped(port: &str, expression: &[String]) -> Option<Error> {
    let is_port = |word: &str| {
        let name = word.strip_prefix("netmap:").unwrap_or(word);
        let name = PortSpec::parse(&format!("netmap:{name}")).ok()?.name;
        sys::is_up(&name).ok().map(drop)
    };
    if is_port(port).is_some() {
        return None;
    }
    let at = expression.iter().position(|word| is_port(word).is_some())?;
    let rest = expression.iter().enumerate().filter(|(other, _)| *other != at);
    let rest: Vec<_> = [port].into_iter().chain(rest.map(|(_, word)| word.as_str())).collect();
    let named = &expression[at];
    Some(Error::Value(format!(
        "{port}: no network interface, and {named} is one; the port comes first: `ringway filter set {named} {}`",
        rest.join(" ")
    )))
}

fn done(control: &Control, action: &str, port: &str) -> Result<()> {
    Output::chosen().done(action, port, None, || {
        let ports = filtered(control, Some(port)).ok()?;
        serde_json::to_value(lines(&ports)).ok()
    })
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "type", rename = "filter")]
pub struct Line<'a> {
    port: &'a str,
    netns: Option<u64>,
    #[serde(flatten)]
    #[cfg_attr(test, schemars(with = "crate::schema::described::Filter"))]
    filter: &'a FilterInfo,
}

fn show(control: &Control, only: Option<&str>) -> Result<()> {
    let ports = filtered(control, only)?;
    let lines = lines(&ports);
    Output::chosen().write_all(&lines, || table(&lines))
}

/// All ports, or one, with those of its filters that are for what its name says.
fn filtered(control: &Control, only: Option<&str>) -> Result<Vec<PortInfo>> {
    let (mut ports, rings) = chosen_ports(control, only)?;
    for port in &mut ports {
        port.filters.retain(|filter| match rings {
            RingSelection::One(queue) => filter.queues.contains(&queue.into()),
            RingSelection::Host => filter.host,
            _ => true,
        });
    }
    Ok(ports)
}

/// All ports, or one; and which of its rings its name says.
pub fn chosen_ports(
    control: &Control,
    only: Option<&str>,
) -> Result<(Vec<PortInfo>, RingSelection)> {
    let mut ports = control.ports()?;
    let Some(only) = only else { return Ok((ports, RingSelection::AllAndHost)) };
    let full = if only.contains(':') { only.into() } else { format!("netmap:{only}") };
    let (name, rings) = PortSpec::parse_open(&full)?;
    ports.retain(|port| port.name == name);
    if ports.is_empty() {
        return Err(Error::Value(format!(
            "{only}: no such port is open; `ringway ports` shows those that are"
        )));
    }
    Ok((ports, rings))
}

fn lines<'a>(ports: &'a [PortInfo]) -> Vec<Line<'a>> {
    let of_port = |port: &'a PortInfo| {
        let &PortInfo { ref name, netns, ref filters, .. } = port;
        filters.iter().map(move |filter| Line { port: name, netns, filter })
    };
    ports.iter().flat_map(of_port).collect()
}

fn table(lines: &[Line]) -> String {
    if lines.is_empty() {
        return "no filters".into();
    }
    let mut table =
        Table::new(&["port", "queues", "filter", "one in", "matched", "taken", "passed"]);
    for Line { port, filter, .. } in lines {
        table.row(vec![
            port.to_string(),
            if filter.host { "host".into() } else { ranges(&filter.queues) },
            filter.text.clone(),
            filter.one_in.to_string(),
            filter.matched.to_string(),
            filter.taken.to_string(),
            filter.passed.to_string(),
        ]);
    }
    let names: Vec<_> = lines.iter().map(|line| (line.port, line.netns)).collect();
    table.with_last("netns", where_names_repeat(&names)).to_string()
}

/// Ascending numbers as people write them: `0-3,6`.
pub fn ranges(numbers: &[u32]) -> String {
    let joined = numbers.chunk_by(|a, b| a + 1 == *b).map(|run| match run {
        [one] => one.to_string(),
        [first, .., last] => format!("{first}-{last}"),
        [] => unreachable!("no run is empty"),
    });
    joined.collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_in_a_row_become_ranges() {
        assert_eq!(ranges(&[]), "");
        assert_eq!(ranges(&[0]), "0");
        assert_eq!(ranges(&[0, 1, 2, 4, 6, 7]), "0-2,4,6-7");
    }
}
