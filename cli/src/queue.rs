//! `ringway queue`: which receive queues of an interface are led to the program that has it open.

use crate::error::Result;
use ringway::{Control, PortSpec};

#[derive(clap::Args)]
#[command(after_help = "\
A program that opens netmap:eth0 gets all receive queues of eth0, one that opens netmap:eth0~4
queue 4. A queue that is removed goes to the kernel's network stack, and comes back when it is
added, while the program runs. `ringway ports` shows the queues that programs get.

Examples:
  ringway queue remove netmap:eth0 0 1
  ringway queue add netmap:eth0 1")]
pub struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(clap::Subcommand)]
enum Action {
    /// Lead queues to the program that has them open
    Add(Which),
    /// Leave queues to the kernel
    Remove(Which),
}

#[derive(clap::Args)]
struct Which {
    /// The port: netmap:<interface>
    port: String,
    /// The queues, counted from 0
    #[arg(required = true)]
    queues: Vec<u16>,
}

pub fn run(args: &Args) -> Result<()> {
    let control = Control::connect()?;
    let (which, lead) = match &args.action {
        Action::Add(which) => (which, true),
        Action::Remove(which) => (which, false),
    };
    check(&control, which)?;
    for &queue in &which.queues {
        control.redirect_queue(&which.port, queue, lead)?;
    }
    Ok(())
}

/// Refuses queues that no program has before any is changed. Where another user has the interface open
/// as well, the daemon knows which port is the caller's, and refuses.
fn check(control: &Control, which: &Which) -> Result<()> {
    let name = PortSpec::parse(&which.port)?.name;
    let mut received = Vec::new();
    for port in control.ports()?.iter().filter(|port| port.name == name) {
        let rings = control.rings(port)?;
        let rings = rings.iter().filter(|ring| ring.receives && !ring.host && ring.users > 0);
        received.extend(rings.map(|ring| ring.index));
    }
    match which.queues.iter().find(|queue| !received.contains(queue)) {
        // In the daemon's words.
        Some(&queue) => Ok(control.redirect_queue(&which.port, queue, true)?),
        None => Ok(()),
    }
}
