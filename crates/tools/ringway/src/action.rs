//! `ringway action`: programs that decide what becomes of the frames of open interfaces.

use std::path::PathBuf;

use crate::error::Result;
use crate::filter::{chosen_ports, ranges};
use crate::output::Output;
use crate::table::{Table, where_names_repeat};
use ringway::{Action, ActionInfo, Control, PortInfo, RingSelection};
use serde::Serialize;

#[derive(clap::Args)]
#[command(after_help = "\
An action program decides for each frame that an interface receives, before the port's filter: the
frame goes to the port, to the stack, out of the same interface, or out of another interface that is
named here, or is dropped. The program is written in C or Rust, with <net/ringway_xdp.h>, and
compiled for BPF; the kernel verifies and runs it. It covers the receive queues that programs have
open, and is removed with them. A change takes effect between two frames and resets the counters.

`passed` frames were left to the port and its filter, `to stack` to the kernel, `sent` by the same interface,
`redirected` by others; all others were `dropped`.

Examples:
  clang -target bpf -O2 -c firewall.c
  ringway action set netmap:eth0 firewall.o
  ringway action set netmap:eth0-2 programs.o --program mirror   for queue 2 alone
  ringway action set netmap:eth0 route.o --redirect eth1 --redirect eth2
  ringway action show
  ringway action clear netmap:eth0")]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    /// Make a program decide where each frame goes
    Set {
        /// The port: netmap:<interface>, or netmap:<interface>-<queue>
        port: String,
        /// The object that the compiler has made of it
        file: PathBuf,
        /// The function, if the object has several
        #[arg(short, long, value_name = "NAME")]
        program: Option<String>,
        /// An interface that it may redirect to: the first is number 0, and so on
        #[arg(short, long, value_name = "INTERFACE")]
        redirect: Vec<String>,
    },
    /// Show the action programs and what has become of the frames
    Show {
        /// Of this port alone: netmap:<interface>, or netmap:<interface>-<queue>
        port: Option<String>,
    },
    /// Have no program decide any more
    Clear {
        /// The port: netmap:<interface>, or netmap:<interface>-<queue>
        port: String,
    },
}

pub fn run(args: &Args) -> Result<()> {
    match &args.command {
        Command::Set { port, file, program, redirect } => {
            let action = Action::read(file, program.as_deref())?;
            let action = redirect.iter().fold(action, |action, to| action.redirect_to(to));
            let control = Control::connect()?;
            control.set_action(port, Some(action))?;
            done(&control, "action set", port)
        }
        Command::Clear { port } => {
            let control = Control::connect()?;
            control.set_action(port, None)?;
            done(&control, "action clear", port)
        }
        Command::Show { port } => show(&Control::connect()?, port.as_deref()),
    }
}

fn done(control: &Control, action: &str, port: &str) -> Result<()> {
    Output::chosen().done(action, port, None, || {
        let ports = with_actions(control, Some(port)).ok()?;
        serde_json::to_value(lines(&ports)).ok()
    })
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "type", rename = "action")]
pub struct Line<'a> {
    port: &'a str,
    netns: Option<u64>,
    #[serde(flatten)]
    #[cfg_attr(test, schemars(with = "crate::schema::described::Action"))]
    action: &'a ActionInfo,
}

fn show(control: &Control, only: Option<&str>) -> Result<()> {
    let ports = with_actions(control, only)?;
    let lines = lines(&ports);
    Output::chosen().write_all(&lines, || table(&lines))
}

/// All ports, or one, with those of its action programs that are for what its name says.
fn with_actions(control: &Control, only: Option<&str>) -> Result<Vec<PortInfo>> {
    let (mut ports, rings) = chosen_ports(control, only)?;
    if let RingSelection::One(queue) = rings {
        let is_for = |action: &ActionInfo| action.queues.contains(&queue.into());
        ports.iter_mut().for_each(|port| port.actions.retain(is_for));
    }
    Ok(ports)
}

fn lines<'a>(ports: &'a [PortInfo]) -> Vec<Line<'a>> {
    let of_port = |port: &'a PortInfo| {
        let &PortInfo { ref name, netns, ref actions, .. } = port;
        actions.iter().map(move |action| Line { port: name, netns, action })
    };
    ports.iter().flat_map(of_port).collect()
}

fn table(lines: &[Line]) -> String {
    if lines.is_empty() {
        return "no action programs".into();
    }
    let mut table = Table::new(&[
        "port",
        "queues",
        "program",
        "redirects to",
        "passed",
        "dropped",
        "sent",
        "to stack",
        "redirected",
    ]);
    for Line { port, action, .. } in lines {
        table.row(vec![
            port.to_string(),
            ranges(&action.queues),
            action.text.clone(),
            action.redirects.join(","),
            action.passed.to_string(),
            action.dropped.to_string(),
            action.sent.to_string(),
            action.to_stack.to_string(),
            action.redirected.to_string(),
        ]);
    }
    let names: Vec<_> = lines.iter().map(|line| (line.port, line.netns)).collect();
    table.with_last("netns", where_names_repeat(&names)).to_string()
}
