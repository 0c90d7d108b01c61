//! Opens ports. A port of an interface that takes frames away from the machine's own stack is
//! opened with a word about that; one that the machine, or the user, cannot do without only by
//! `--force`.

use crate::error::{Error, Result};
use crate::interface_use::InterfaceUse;
use crate::output::note;
use crate::port_notes;
use crate::sys;
use ringway::{FileSpec, OpenOptions, Port, PortSpec, RingSelection, TakenFrames};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// What may be taken.
#[derive(Clone, Copy, Debug, Default, clap::Args)]
// Several of these are in one command: as groups they would all be called `Args`.
#[group(skip)]
pub struct Args {
    /// Take an interface although it carries the machine's default route, or your own connection
    #[arg(long)]
    pub force: bool,
}

/// What netmap's tools are given, whose options are netmap's.
static FORCED: AtomicBool = AtomicBool::new(false);

/// Interfaces of which the user knows: a tool opens each of their rings.
static TOLD: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// A tool with netmap's options was called with `--force`.
pub fn force_all() {
    FORCED.store(true, Relaxed);
}

/// Opens a port.
pub fn open(options: &OpenOptions, name: &str, args: Args) -> Result<Port> {
    check(options, name, args)?;
    let port = options.open(name)?;
    port_notes::switch_owner(&port);
    Ok(port)
}

/// Opens two ports between which frames are moved. An interface and the stack behind it lose
/// nothing.
pub fn open_pair(options: [&OpenOptions; 2], names: [&str; 2], args: Args) -> Result<[Port; 2]> {
    if !are_interface_and_stack(names)? {
        check(options[0], names[0], args)?;
        check(options[1], names[1], args)?;
    }
    let ports = [options[0].open(names[0])?, options[1].open(names[1])?];
    ports.iter().for_each(port_notes::switch_owner);
    Ok(ports)
}

/// Whether one is an interface and the other the stack behind it.
fn are_interface_and_stack(names: [&str; 2]) -> Result<bool> {
    if names.iter().any(|name| FileSpec::is_file(name)) {
        return Ok(false);
    }
    let [a, b] = [PortSpec::parse(names[0])?, PortSpec::parse(names[1])?];
    let is_stack = |spec: &PortSpec| spec.registration.rings == RingSelection::Host;
    let is_whole = |spec: &PortSpec| spec.registration.rings == RingSelection::All;
    Ok(a.name == b.name && (is_whole(&a) && is_stack(&b) || is_stack(&a) && is_whole(&b)))
}

/// What [`open`] does first.
pub fn check(options: &OpenOptions, name: &str, args: Args) -> Result<()> {
    let Some(taken) = options.takes(name)? else { return Ok(()) };
    let TakenFrames { interface, received, sent, queue } = &taken;
    // Of several queues one is a part.
    let is_part = queue.is_some() && sys::rx_queues(interface).is_ok_and(|queues| queues > 1);
    let remedy = match sent {
        true => format!(
            "`ringway switch attach SWITCH {interface} --host` leaves it to the stack, and has ports to send by"
        ),
        false if is_part || !received => return Ok(()),
        false => format!(
            "--filter EXPRESSION takes some frames only, and `ringway bridge {interface}` gives all on to the \
             stack; `ringway capture netmap:{interface}/rt` only looks"
        ),
    };
    allow(interface, &remedy, args)
}

/// Refuses to attach an interface to a switch without the stack behind it, or says what that stops.
pub fn check_attach(interface: &str, args: Args) -> Result<()> {
    let remedy = "with --host the stack stays connected, through the switch; attach another interface, or a veth pair's end";
    allow(interface, remedy, args)
}

/// Refuses an interface for frames of a test if it has any other use.
pub fn check_idle(interface: &str, args: Args) -> Result<()> {
    let remedy = "take an interface that is not used";
    allow_if(interface, remedy, args, InterfaceUse::is_none)
}

/// Says what stops working. An error where that is what nobody can do without.
fn allow(interface: &str, remedy: &str, args: Args) -> Result<()> {
    allow_if(interface, remedy, args, |used| !used.is_vital())
}

/// Says what stops working. An error where that `may_stop` only by force.
fn allow_if(
    interface: &str,
    remedy: &str,
    args: Args,
    may_stop: impl Fn(&InterfaceUse) -> bool,
) -> Result<()> {
    let used = InterfaceUse::of(interface).ok().flatten();
    let Some(used) = used.filter(|used| !used.is_none()) else { return Ok(()) };
    if !may_stop(&used) && !args.force && !FORCED.load(Relaxed) {
        return Err(Error::InUse {
            interface: interface.into(),
            problem: format!("this would stop {used}"),
            remedy: format!("{remedy}; --force takes it all the same"),
        });
    }
    let mut told = TOLD.lock().unwrap_or_else(|e| e.into_inner());
    if !told.iter().any(|known| known == interface) {
        told.push(interface.into());
        note(format_args!("{interface}: this stops {used}, as long as it lasts; {remedy}"));
    }
    Ok(())
}
