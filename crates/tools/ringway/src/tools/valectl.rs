//! `vale-ctl`: lists and changes VALE switches.

use super::getopt::{Arg, Getopt, count};
use super::log::{say, tell};
use super::portname;
use crate::error::{Error, Result};
use crate::opening::{self, Stops};
use ringway::{Control, Polling, PortShape, PortSpec};
use std::io;
use std::process::ExitCode;

const USAGE: &str = "\
Usage:
vale-ctl arguments
\t-g interface            show rings, slots and memory of a port
\t-d vale:interface       detach an interface
\t-a vale:interface       attach an interface
\t-h vale:interface       attach an interface with the host stack
\t-n interface            make a persistent port
\t-r interface            remove a persistent port
\t-l vale or vale:port    show a port's indices; without options: list all ports
\t-p vale:interface       start polling
\t-P vale:interface       stop polling
\t-C x[,y[,z[,w]]]        tx slots, rx slots, tx rings, rx rings of a new port;
\t                        for -p x=0 one CPU, x=1 several; y first CPU; z how many
\t-m memid or port        memory of a new port
\t-v                      show what became of it";

/// The options, as getopt is told of them.
pub const LETTERS: &str = "d:a:h:g:l:n:r:C:p:P:m:v";

/// What to do, and what that is called in a message about its failure.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Action {
    Attach { host: bool },
    Detach,
    Create,
    Remove,
    List,
    Info,
    Poll { enable: bool },
}

impl Action {
    fn of(option: char) -> Option<Action> {
        Some(match option {
            'a' => Action::Attach { host: false },
            'h' => Action::Attach { host: true },
            'd' => Action::Detach,
            'n' => Action::Create,
            'r' => Action::Remove,
            'l' => Action::List,
            'g' => Action::Info,
            'p' => Action::Poll { enable: true },
            'P' => Action::Poll { enable: false },
            _ => return None,
        })
    }

    fn verb(self) -> &'static str {
        match self {
            Action::Attach { .. } => "attach",
            Action::Detach => "detach",
            Action::Create => "create",
            Action::Remove => "remove",
            Action::List => "list",
            Action::Info => "obtain info for",
            Action::Poll { enable: true } => "enable polling on",
            Action::Poll { enable: false } => "disable polling on",
        }
    }
}

#[derive(Default)]
struct Options {
    /// The last one named.
    action: Option<(Action, String)>,
    config: Option<String>,
    memory: Option<String>,
    verbose: bool,
}

pub fn main(args: Vec<String>) -> ExitCode {
    let Some(options) = parse(args) else {
        tell!("{USAGE}");
        return ExitCode::FAILURE;
    };
    let control = match Control::connect() {
        Ok(control) => control,
        Err(error) => {
            tell!("{error}");
            return ExitCode::FAILURE;
        }
    };
    let Some((action, name)) = &options.action else {
        list_all(&control);
        // The original ends its list with a request that fails, and so do scripts know it.
        return ExitCode::FAILURE;
    };
    match act(&control, *action, name, &options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tell!("failed to {} {name}: {}", action.verb(), strerror(&error));
            // netmap's tool knows no such refusal, nor scripts its words.
            if let Error::InUse { .. } = error {
                tell!("{error}");
            }
            ExitCode::FAILURE
        }
    }
}

/// `None` if the options are not to be understood.
fn parse(args: Vec<String>) -> Option<Options> {
    let mut options = Options::default();
    for arg in Getopt::new(LETTERS, args) {
        match arg {
            Ok(Arg::Opt('v', _)) => options.verbose = true,
            Ok(Arg::Opt('C', value)) => options.config = Some(value),
            Ok(Arg::Opt('m', value)) => options.memory = Some(value),
            Ok(Arg::Opt(option, name)) => options.action = Some((Action::of(option)?, name)),
            Ok(Arg::Operand(_)) => return None,
            Err(wrong) => {
                tell!("vale-ctl: {wrong}");
                return None;
            }
        }
    }
    Some(options)
}

fn list_all(control: &Control) {
    match control.vale_ports() {
        Ok(ports) => {
            for port in ports {
                say!("{} bridge_idx {} port_idx {}", port.name, port.bridge, port.port);
            }
        }
        Err(error) => tell!("failed to list all: {}", strerror(&error.into())),
    }
}

fn act(control: &Control, action: Action, name: &str, options: &Options) -> Result<()> {
    let config = options.config.as_deref();
    match action {
        Action::Attach { host } => {
            let stops = match (host, name.split_once(':')) {
                (false, Some((_, interface))) => {
                    opening::check_attach(interface, Default::default())?
                }
                _ => Stops::default(),
            };
            let wanted = wanted(control, options)?;
            let index = control.vale_attach(name, host, wanted)?;
            stops.tell();
            show_index(index, options);
        }
        Action::Detach => show_index(control.vale_detach(name)?, options),
        Action::Create => {
            let made = control.interface_new(name, wanted(control, options)?)?;
            if options.verbose {
                show_rings(&made);
            }
        }
        Action::Remove => control.interface_delete(name)?,
        Action::List => {
            let place = control.vale_find(name)?;
            say!("bridge_idx: {}", place.bridge);
            say!("port_idx:   {}", place.port);
        }
        Action::Info => {
            let (shape, memsize) = control.port_config(name)?;
            say!("memsize:    {memsize}");
            show_rings(&shape);
        }
        Action::Poll { enable } => {
            let polling = config.and_then(polling);
            if polling.is_none() {
                tell!("invalid null/empty config");
            }
            control.vale_poll(name, enable, polling.unwrap_or(NO_POLLING))?;
        }
    }
    Ok(())
}

/// No configuration: fine to end polling, and refused to begin it.
const NO_POLLING: Polling = Polling::Other { mode: 0, first: 0, count: 0 };

fn show_index(index: u32, options: &Options) {
    if options.verbose {
        say!("port_index: {index}");
    }
}

/// The original forgets one colon.
fn show_rings(config: &PortShape) {
    let PortShape { tx_slots, rx_slots, tx_rings, rx_rings, mem_id } = config;
    say!("tx_slots:   {tx_slots}");
    say!("rx_slots:   {rx_slots}");
    say!("tx_rings:   {tx_rings}");
    say!("rx_rings    {rx_rings}");
    say!("mem_id:     {mem_id}");
}

/// What a new port is to be like.
fn wanted(control: &Control, options: &Options) -> Result<PortShape> {
    let mut wanted = options.config.as_deref().map(portname::config).unwrap_or_default();
    if let Some(memory) = &options.memory {
        wanted.mem_id = match memory.parse() {
            Ok(id) => id,
            Err(_) => control.port_config(&PortSpec::parse(memory)?.name)?.0.mem_id,
        };
    }
    Ok(wanted)
}

/// `x,y[,z]`: 0 for one CPU or 1 for several, the first, and of several how many.
fn polling(config: &str) -> Option<Polling> {
    let mut numbers = config.split(',').map(|text| count(text) as u32);
    let mode = numbers.next().filter(|_| !config.is_empty())?;
    let first = numbers.next().unwrap_or(0);
    Some(match mode {
        // The count of a single CPU is never read, and none is sent (S-VALE-19 refuses it).
        0 => Polling::OneCpu { cpu: first, count: 0 },
        _ => Polling::Cpus { first, count: numbers.next().unwrap_or(0) },
    })
}

/// The cause as the C library says it.
fn strerror(error: &Error) -> String {
    let errno = match error {
        Error::Ringway(error) => ringway_errno::errno(error.cause()),
        Error::InUse { .. } => libc::EBUSY,
        _ => libc::EINVAL,
    };
    let text = io::Error::from_raw_os_error(errno).to_string();
    let end = text.find(" (os error").unwrap_or(text.len());
    text[..end].into()
}
