//! `ringway queue`: which receive queues of an interface are led to the program that has it open.

use crate::error::Result;
use crate::output::Output;
use crate::ports;
use crate::units::number;
use ringway::{Control, PortSpec};
use ringway_live_capture::namespace::is_named_here;

#[derive(clap::Args)]
#[command(after_help = "\
A program that opens netmap:eth0 gets all receive queues of eth0; a program that opens netmap:eth0~4
gets queue 4. While the program runs, `remove` gives a queue to the kernel's network stack, and
`add` gives it back to the program. `ringway ports` shows the queues that programs get.

Examples:
  ringway queue remove netmap:eth0 0 1
  ringway queue add netmap:eth0 1")]
pub struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(clap::Subcommand)]
enum Action {
    /// Direct queues to the program that has them open
    Add(Which),
    /// Leave queues to the kernel
    Remove(Which),
}

#[derive(clap::Args)]
struct Which {
    /// The port: netmap:<interface>
    port: String,
    /// The queues, counted from 0
    #[arg(required = true, value_parser = number(0..=u16::MAX, 1))]
    queues: Vec<u16>,
}

pub fn run(args: &Args) -> Result<()> {
    let (which, lead, action) = match &args.action {
        Action::Add(which) => (which, true, "queue add"),
        Action::Remove(which) => (which, false, "queue remove"),
    };
    let control = Control::connect()?;
    control.redirect_queues(&which.port, &which.queues, lead)?;
    Output::chosen().done(action, &which.port, None, || {
        let name = PortSpec::parse(&which.port).ok()?.name;
        ports::json(control.ports().ok()?.iter().find(|port| is_named_here(port, &name))?)
    })
}
