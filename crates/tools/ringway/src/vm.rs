//! `ringway vm`: virtual machines on switches.

pub mod card;
mod confine;
mod header;
mod idle;
mod limited;
mod link;
mod outside;
mod socket;
mod stream;

use crate::error::{Error, Result};
use crate::opening;
use crate::run_loop::{self, RunLoop};
use crate::switch::choose::switch_name;
use card::Card;
use outside::Others;
use ringway::{Port, PortSpec};
use ringway_vhost::LostPages;
use socket::{Kind, Socket};
use std::path::PathBuf;

#[derive(clap::Args)]
#[command(arg_required_else_help = true)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    /// Give a virtual machine a port of a switch, for as long as this runs
    Attach(Attach),
}

#[derive(clap::Args)]
#[command(after_help = "\
The machine's monitor connects to the socket by vhost-user, and shares the machine's memory. QEMU does with
  -object memory-backend-memfd,id=mem,size=1G,share=on
  -machine memory-backend=mem -m 1G
  -chardev socket,id=c0,path=/run/vm1.sock,reconnect-ms=1000
  -netdev vhost-user,id=n0,chardev=c0
  -device virtio-net-pci,netdev=n0
and DPDK with --vdev=virtio_user0,path=/run/vm1.sock. With --stream, QEMU needs no shared memory:
  -netdev stream,id=n,server=off,addr.type=unix,addr.path=/run/vm1.sock
  -device virtio-net-pci,netdev=n
When the machine is switched off or boots again, the
port stays, and waits for it. Frames that come meanwhile are dropped as the port's ring is full.

A user that may write to the socket can have the port: the rights of its folder and the umask decide.
Once the port and the socket are open, the process that has the machine's memory confines itself (seccomp,
landlock). Two others, which were started before, connect for it to the daemon and to the monitor.
For a port that is always there, `systemctl enable --now ringway-vm@vale0:vm1` runs this, with the socket
/run/ringway-vm/vale0:vm1/socket.

Examples:
  ringway vm attach vale0 vm1 --socket /run/vm1.sock
  ringway vm attach vale0 vm1 --socket /run/vm1.sock --connect      QEMU listens: server=on
  ringway vm attach vale0 vm1 --stream /run/vm1.sock")]
pub struct Attach {
    /// The switch: vale<id>
    switch: String,

    /// The name of the port on it, which is the machine's
    port: String,

    /// The Unix socket at which the machine's monitor is waited for; it speaks vhost-user
    #[arg(long, value_name = "PATH", required_unless_present = "stream")]
    socket: Option<PathBuf>,

    /// The same, and each frame comes and goes behind its length: slower, for monitors that have nothing else
    #[arg(long, value_name = "PATH", conflicts_with = "socket")]
    stream: Option<PathBuf>,

    /// The monitor waits at the socket: connect to it, also again
    #[arg(long)]
    connect: bool,

    #[command(flatten)]
    run_loop: run_loop::Args,
}

pub fn run(args: &Args) -> Result<()> {
    match &args.command {
        Command::Attach(args) => attach(args),
    }
}

/// Slots of what the machine receives, if the port's name says nothing else. A frame of 64 KiB, which machines send each
/// other, takes 33; and what comes while others have the processors has to find room.
const RX_SLOTS: u32 = 4096;

/// The full name of the port. A machine has a whole port, all of whose frames it gets.
fn port_name(switch: &str, port: &str) -> Result<String> {
    switch_name(switch)?;
    let name = format!("{switch}:{port}");
    let none = || {
        Error::Value(format!(
            "{name}: a machine has a whole port of a switch, and this names none; write vm1 or web_1, without \
             the switch, and without the -1, ~1, /rt and {{1 that choose a ring, a monitor or a pipe"
        ))
    };
    let plain = port.split('@').next().unwrap_or_default();
    if plain.is_empty() || plain.contains(['{', '}', ':']) {
        return Err(none());
    }
    let spec = PortSpec::parse(&name)?;
    if spec.name.split_once(':') != Some((switch, plain)) {
        return Err(none());
    }
    if spec.own.filter.is_some() || spec.own.sample.is_some() {
        return Err(Error::Value(format!(
            "{name}: a machine gets all frames of its port; `ringway switch port` has --filter-in and \
             --filter-out, by which the switch drops some"
        )));
    }
    Ok(name)
}

/// A machine has its port for itself: where another program has it, not asking for that is no remedy.
fn in_use(name: &str, error: Error) -> Error {
    let refusal = match &error {
        Error::Ringway(error) => error.refusal(),
        _ => None,
    };
    if !refusal.is_some_and(|refusal| refusal.remedy.contains("exclusive use")) {
        return error;
    }
    Error::Value(format!(
        "{name}: in use by another program, and a machine has its port for itself; name another port, or end that \
         program, which may be another `ringway vm attach`"
    ))
}

fn attach(args: &Attach) -> Result<()> {
    let name = port_name(&args.switch, &args.port)?;
    let (path, kind) = match (&args.socket, &args.stream) {
        (None, Some(path)) => (path, Kind::Stream),
        (Some(path), _) => (path, Kind::Vhost),
        // Which the options do not let through.
        (None, None) => return Ok(()),
    };
    let others = Others::start(path)?;
    // A monitor that shortens the machine's memory ends the connection, and not this process.
    let lost_pages =
        LostPages::watch().map_err(|source| Error::System { what: "watching memory", source })?;
    let mut socket = Socket::open(path, args.connect, kind)?;
    let options = Port::options().accept_header().exclusive().rx_slots(RX_SLOTS).or_default_slots();
    let opened = opening::open(&options, &name, opening::Args::default());
    let port = opened.map_err(|error| in_use(&name, error))?;
    let run_loop = RunLoop::begin(&args.run_loop)?;
    let card = Card::new(&port, run_loop)?;
    socket.reach_by(others.take_over());
    confine::confine()?;
    card.serve(port, &socket, &lost_pages)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_has_a_whole_port() {
        let name = |port| port_name("vale0", port);
        for good in ["vm1", "web_1", "web-a", "vm1@conf:slots=64"] {
            assert_eq!(name(good).unwrap(), format!("vale0:{good}"));
        }
        for bad in ["", "web-1", "a~1", "vm1/rt", "vm1{1", "vale0:vm1", "@conf:slots=64"] {
            let said = name(bad).unwrap_err().to_string();
            assert!(said.contains("a whole port of a switch"), "{bad}: {said}");
        }
        for bad in ["vm1@filter=udp", "vm1@sample=2"] {
            let said = name(bad).unwrap_err().to_string();
            assert!(said.contains("gets all frames"), "{bad}: {said}");
        }
        assert!(port_name("br0", "vm1").is_err());
    }
}
