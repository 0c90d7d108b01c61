//! Opens ports. A port of an interface that takes frames away from the machine's own stack is
//! opened with a word about that; those that the machine, or the user, cannot do without only by
//! `--force`.

use crate::doctor::check::{Check, capabilities};
use crate::error::{Error, Result};
use crate::interface_use::InterfaceUse;
use crate::output::note;
use crate::port_notes;
use crate::rights::beyond_ours;
use crate::same_rings::are_same;
use crate::stdout;
use crate::sys;
use ringway::{
    Cause, Control, FileSpec, OpenOptions, Port, PortSpec, Registration, RingSelection, SocketPath,
    TakenFrames, daemon_binary,
};
use std::fs;
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
    let stops = check(options, name, args)?;
    let port = options.open(name)?;
    keep_stdout(&port, name)?;
    stops.tell();
    port_notes::switch_owner(&port);
    Ok(port)
}

/// Keeps standard output for the frames of a port that is a file, if they are written there.
fn keep_stdout(port: &Port, name: &str) -> Result<()> {
    let file = FileSpec::parse(name)?.filter(|_| port.tx_rings() > 0);
    if file.is_some_and(|spec| stdout::is(&spec.file)) {
        stdout::keep_for_frames();
    }
    Ok(())
}

/// Opens a port that sends and receives, whole.
pub fn open_both_ways(options: &OpenOptions, name: &str, args: Args) -> Result<Port> {
    check_both_ways(name)?;
    open(options, name, args)
}

/// Opens a port that answers. One of a whole interface with a filter is opened with the stack behind it: the kernel
/// would lose what the stack sends, were there no host rings. Without a filter there is nothing that could come for it.
pub fn open_answering(options: &OpenOptions, name: &str, args: Args) -> Result<Port> {
    check_both_ways(name)?;
    let has_filter = options.takes(name)?.is_some_and(|taken| !taken.received);
    if !has_filter || !is_whole(&PortSpec::parse(name)?) {
        return open(options, name, args);
    }
    let port = options.open(&renamed(name, '*', |_| true))?;
    port_notes::switch_owner(&port);
    Ok(port)
}

/// Whether the name is that of an interface.
pub fn is_interface(spec: &PortSpec) -> bool {
    !spec.name.contains([':', '{', '}'])
}

/// Whether an interface is named without rings and flags.
pub fn is_whole(spec: &PortSpec) -> bool {
    let mem_id = spec.registration.mem_id;
    spec.registration == Registration { mem_id, ..Registration::default() }
}

/// The name of other rings of an interface that is named as a whole, with those of its options that are `kept`.
pub fn renamed(interface: &str, rings: char, kept: impl Fn(&str) -> bool) -> String {
    let mut parts = interface.split('@');
    let name = format!("{}{rings}", parts.next().unwrap_or_default());
    parts.filter(|option| kept(option)).fold(name, |name, option| format!("{name}@{option}"))
}

/// Refuses a port that cannot send, or not receive.
pub fn check_both_ways(name: &str) -> Result<()> {
    let Ways { sends, receives } = Ways::of(name)?;
    let is_file = FileSpec::is_file(name);
    let problem = match (sends, receives) {
        (true, true) => return Ok(()),
        (false, _) => "it sends nothing, and answers are to be sent by it",
        (true, false) => "it receives nothing, and answers are to come by it",
    };
    let remedy = match (sends, is_file) {
        (_, true) => "a capture file goes one way alone: name another port",
        (true, false) => "leave /T out",
        (false, false) if PortSpec::is_queue(name) => {
            "write -N in place of ~N, which is a receive queue"
        }
        (false, false) => "leave /R, /r, /t and /z out",
    };
    Err(Error::Value(format!("{name}: {problem}; {remedy}")))
}

/// Opens two ports between which frames are moved. An interface and the stack behind it lose
/// nothing. Where one only receives, or only sends, the other has no rings for what cannot be moved.
pub fn open_pair(names: [&str; 2], args: Args) -> Result<[Port; 2]> {
    let ways = [Ways::of(names[0])?, Ways::of(names[1])?];
    let options = [ways[1].facing(names[0]), ways[0].facing(names[1])];
    if !ways[0].sends && !ways[1].sends || !ways[0].receives && !ways[1].receives {
        let which = if ways[0].sends { "receives" } else { "sends" };
        return Err(Error::Value(format!(
            "{} and {}: neither {which} anything, so nothing can be moved; leave the flags behind / out of a port's \
             name, and let a file that is there be replaced with @write",
            names[0], names[1]
        )));
    }
    let is_both_ways = ways.iter().all(|ways| ways.sends && ways.receives);
    if is_both_ways && are_same(names[0], names[1])? {
        return Err(Error::Value(format!(
            "{} and {} are one port, which would send what it receives; name another port",
            names[0], names[1]
        )));
    }
    let mut stops = [Stops::default(), Stops::default()];
    if !are_interface_and_stack(names)? {
        stops = [check(&options[0], names[0], args)?, check(&options[1], names[1], args)?];
    }
    let open = |at: usize| options[at].open(names[at]);
    // A file that is read comes first: the other may be the same, and is emptied when it is opened to be written.
    let ports = match ways[0].receives {
        true => [open(0)?, open(1)?],
        false => {
            let second = open(1)?;
            [open(0)?, second]
        }
    };
    for (port, name) in ports.iter().zip(names) {
        keep_stdout(port, name)?;
    }
    stops.into_iter().for_each(Stops::tell);
    ports.iter().for_each(port_notes::switch_owner);
    port_notes::one_switch(&ports[0], &ports[1]);
    Ok(ports)
}

/// What a port can do, by its name: whether frames can be sent by it, and be received.
#[derive(Clone, Copy)]
struct Ways {
    sends: bool,
    receives: bool,
}

impl Ways {
    fn of(name: &str) -> Result<Ways> {
        if let Some(file) = FileSpec::parse(name)? {
            let sends = file.write.unwrap_or_else(|| !file.file.exists());
            return Ok(Ways { sends, receives: !sends });
        }
        let reg = PortSpec::parse(name)?.registration;
        let sends = !reg.without_tx && !reg.monitor.is_asked();
        Ok(Ways { sends, receives: !reg.without_rx })
    }

    /// For the other port of a pair. By itself a file is read if it is there, and never replaced.
    fn facing(self, other: &str) -> OpenOptions {
        match self {
            _ if FileSpec::is_file(other) => Port::options(),
            Ways { sends: false, .. } => Port::options().tx_only(),
            Ways { receives: false, .. } => Port::options().rx_only(),
            _ => Port::options(),
        }
    }
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

/// What stops working when an interface is taken.
#[derive(Debug, Default)]
#[must_use = "the user is told once it is taken"]
pub struct Stops(Option<(String, String)>);

impl Stops {
    /// Tells it, once for each interface: it has been taken.
    pub fn tell(self) {
        let Some((interface, note_of_it)) = self.0 else { return };
        let mut told = TOLD.lock().unwrap_or_else(|e| e.into_inner());
        if !told.contains(&interface) {
            note(format_args!("{interface}: {note_of_it}"));
            told.push(interface);
        }
    }
}

/// What [`open`] does first.
pub fn check(options: &OpenOptions, name: &str, args: Args) -> Result<Stops> {
    let Some(taken) = options.takes(name)? else { return Ok(Stops::default()) };
    let TakenFrames { interface, received, sent, queue } = &taken;
    // Of several queues one is a part.
    let is_part = queue.is_some() && sys::rx_queues(interface).is_ok_and(|queues| queues > 1);
    let remedy = match sent {
        true => format!(
            "`ringway switch attach SWITCH {interface} --host` leaves it to the stack, and has ports to send by"
        ),
        false if is_part || !received => return Ok(Stops::default()),
        false => format!(
            "--filter EXPRESSION takes some frames only, and `ringway bridge {interface}` gives all on to the \
             stack; `ringway capture netmap:{interface}/rt` only looks"
        ),
    };
    allow(interface, &remedy, args)
}

/// Refuses to attach an interface to a switch without the stack behind it, or finds what that stops.
pub fn check_attach(interface: &str, args: Args) -> Result<Stops> {
    let remedy = "with --host the stack stays connected, through the switch; attach another interface, or a veth pair's end";
    allow(interface, remedy, args)
}

/// Refuses an interface for frames of a test if it has any other use.
pub fn check_idle(interface: &str, args: Args) -> Result<Stops> {
    let remedy = "take an interface that is not used";
    allow_if(interface, remedy, args, InterfaceUse::is_none)
}

/// Finds what stops working. An error where the machine or the user cannot do without it.
fn allow(interface: &str, remedy: &str, args: Args) -> Result<Stops> {
    allow_if(interface, remedy, args, |used| !used.is_vital())
}

/// Refuses an interface that the user cannot have, by force or not.
fn check_rights(interface: &str) -> Result<()> {
    if rustix::process::geteuid().is_root() {
        return Ok(());
    }
    if let SocketPath::Private { .. } = SocketPath::find() {
        let has_its_own = daemon_binary().is_some_and(|path| beyond_ours(&path).is_some());
        let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
        let Check { detail, remedy, .. } = capabilities(&status);
        return match remedy.filter(|_| !has_its_own) {
            None => Ok(()),
            Some(remedy) => {
                Err(Error::NoRights { interface: interface.into(), problem: detail, remedy })
            }
        };
    }
    match Control::connect()?.port_config(interface) {
        Err(error) if error.cause() == Cause::Denied => Err(error.into()),
        _ => Ok(()),
    }
}

/// Finds what stops working. An error where that `may_stop` only by force.
fn allow_if(
    interface: &str,
    remedy: &str,
    args: Args,
    may_stop: impl Fn(&InterfaceUse) -> bool,
) -> Result<Stops> {
    let used = InterfaceUse::of(interface).ok().flatten();
    let Some(used) = used.filter(|used| !used.is_none()) else { return Ok(Stops::default()) };
    if !may_stop(&used) && !args.force && !FORCED.load(Relaxed) {
        check_rights(interface)?;
        return Err(Error::InUse {
            interface: interface.into(),
            problem: format!("this would stop {used}"),
            remedy: format!("{remedy}; --force takes it all the same"),
        });
    }
    let note = format!("this stops {used}, as long as it lasts; {remedy}");
    Ok(Stops(Some((interface.into(), note))))
}
