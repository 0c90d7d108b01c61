//! `pkt-gen`: sends, receives and answers packets, and counts them.

mod dump;
mod echo;
pub mod options;
mod paced;
mod packet;
mod range;
mod raw;
mod report;
mod rx;
mod tx;
mod worker;

use super::log::{log, say, tell};
use crate::endpoint::Mac;
use crate::error::{Error, Result};
use crate::opening;
use crate::run_loop::{self, RunLoop};
use options::{Device, Mode, Options, Parsed, USAGE, how, parse};
use packet::Packet;
use report::{Counters, Reporter};
use ringway::{Control, OpenOptions, Port, PortSpec};
use std::convert::Infallible;
use std::fs;
use std::process::ExitCode;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread::{available_parallelism, scope};
use std::time::{Duration, Instant};
use worker::{Packets, Worker, pin};

/// Usage, and ports that do not open.
const REFUSED: u8 = 255;

pub fn main(args: Vec<String>) -> ExitCode {
    let options = match parse(args) {
        Parsed::Run(options) => options,
        Parsed::Help => {
            tell!("{USAGE}");
            return ExitCode::SUCCESS;
        }
        Parsed::Wrong(why) => {
            if let Some(why) = why {
                tell!("{why}");
            }
            tell!("{USAGE}");
            return ExitCode::from(REFUSED);
        }
    };
    match Ready::new(&options) {
        Ok(ready) => match ready.run(&options) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                log!("start_threads", "{error}");
                ExitCode::FAILURE
            }
        },
        Err(error) => {
            log!("main", "Unable to open {}: {error}", options.name);
            ExitCode::from(REFUSED)
        }
    }
}

/// All that can be refused is done: the first port is open.
struct Ready {
    first: Packets,
    /// For each thread its own.
    packets: Vec<Packet>,
    queues: usize,
    src_mac: Mac,
    header: usize,
}

impl Ready {
    fn new(options: &Options) -> Result<Ready> {
        let refuse = |why: &str| Err(Error::Value(why.into()));
        let zero = Mac([0; 6]);
        let (first, queues, interface, header) = match &options.device {
            Device::Null if options.mode != Mode::Tx => return refuse("null only takes packets"),
            Device::Null => (Packets::Null, 0, None, options.header.unwrap_or(0)),
            Device::Tap(_) | Device::Pcap(_) if !matches!(options.mode, Mode::Tx | Mode::Rx) => {
                return refuse("TAP devices and packet sockets are for tx and rx only");
            }
            Device::Tap(name) => (Packets::Raw(raw::open_tap(name)?), 1, Some(name.clone()), 0),
            Device::Pcap(name) => {
                if options.mode.sends() {
                    check_mtu(options, name)?;
                }
                (Packets::Raw(raw::open_socket(name)?), 1, Some(name.clone()), 0)
            }
            Device::Port(spec) => {
                let name = PortSpec::parse(spec)?.name;
                if options.mode.sends() {
                    check_mtu(options, &name)?;
                }
                let port = open(options, spec, 0)?;
                let header = header_len(options, &name)?;
                let queues = queues(&port, options.mode);
                (Packets::Port(Box::new(port)), queues, Some(name), header)
            }
        };
        let own = interface.and_then(|name| attribute(&name, "address")?.parse().ok());
        let src_mac = options.src_mac.or(own).unwrap_or(zero);
        let header = header as usize;
        let each = (0..options.threads).map(|_| Packet::new(options, src_mac, header));
        Ok(Ready { first, packets: each.collect::<Result<_>>()?, queues, src_mac, header })
    }

    fn run(self, options: &Options) -> Result<()> {
        self.announce(options);
        let run_loop = RunLoop::begin(&run_loop::Args::default())?;
        let wait = options.link_wait.as_secs();
        log!("main", "Wait {wait} secs for phy reset");
        run_loop.sleep(Instant::now() + options.link_wait)?;
        log!("main", "Ready...");
        let counters: Vec<Counters> = (0..options.threads).map(|_| Counters::default()).collect();
        let mut workers = self.workers(options, &run_loop, &counters)?;
        if options.rate.is_some() {
            // As the original does, so that threads and machines can begin together.
            run_loop.sleep(Instant::now() + Duration::from_secs(2))?;
        }

        let mut reporter = Reporter::new(options, &counters, Instant::now());
        let (ended, end) = channel::<Infallible>();
        scope(|scope| -> Result<()> {
            for (id, worker) in workers.iter_mut().enumerate() {
                // Hangs up with the thread, also if that panics.
                let ended = ended.clone();
                scope.spawn(move || {
                    let _ended = ended;
                    pin(options, id);
                    if let Err(error) = worker.run() {
                        log!("main_thread", "{error}");
                        log!("main_thread", "ouch, thread {id} exited with error");
                    }
                });
            }
            drop(ended);
            let mut due = Instant::now() + options.interval;
            let pause = |due: Instant| due.saturating_duration_since(Instant::now());
            while end.recv_timeout(pause(due)) == Err(RecvTimeoutError::Timeout) {
                report(&mut reporter, options.mode);
                due += options.interval;
            }
            // Also the last interval is a whole one, unless the user has had enough.
            while options.mode != Mode::Ping && Instant::now() < due && !run_loop.is_interrupted() {
                run_loop.sleep(due)?;
            }
            Ok(())
        })?;
        report(&mut reporter, options.mode);
        if options.mode != Mode::Ping {
            reporter.total(options.mode);
        }
        Ok(())
    }

    fn announce(&self, options: &Options) {
        let doing = match options.mode {
            mode if mode.sends() => "Sending on",
            mode if mode.receives() => "Receiving from",
            _ => "Working on",
        };
        let present = available_parallelism().map_or(1, usize::from);
        let cpus = if options.cpus == 0 { present } else { options.cpus.min(present) };
        let Options { name, threads, src_text, dst_text, dst_mac, .. } = options;
        say!("{doing} {name}: {} queues, {threads} threads and {cpus} cpus.", self.queues);
        if options.mode.sends() {
            say!("{src_text} -> {dst_text} ({} -> {dst_mac})", self.src_mac);
        }
    }

    fn workers<'a>(
        self,
        options: &'a Options,
        run_loop: &'a RunLoop,
        counters: &'a [Counters],
    ) -> Result<Vec<Worker<'a>>> {
        let mut first = Some(self.first);
        let share = options.count / options.threads as u64;
        let own = counters.iter().zip(self.packets).enumerate();
        own.map(|(id, (counters, packet))| {
            let packets = match (first.take(), &options.device) {
                (Some(first), _) => first,
                (None, Device::Port(spec)) => {
                    Packets::Port(Box::new(open(options, spec, id as u16)?))
                }
                (None, Device::Tap(name)) => Packets::Raw(raw::open_tap(name)?),
                (None, Device::Pcap(name)) => Packets::Raw(raw::open_socket(name)?),
                (None, Device::Null) => Packets::Null,
            };
            Ok(Worker { options, run_loop, counters, packets, packet, share, header: self.header })
        })
        .collect()
    }
}

/// Ping tells of its own.
fn report(reporter: &mut Reporter<'_>, mode: Mode) {
    if mode != Mode::Ping {
        reporter.interval(Instant::now());
    }
}

/// The port of one thread: all of it, or one ring of it if there are several threads.
fn open(options: &Options, spec: &str, thread: u16) -> Result<Port> {
    let shape = options.shape;
    let mut port = Port::options()
        .accept_header()
        .tx_slots(shape.tx_slots)
        .rx_slots(shape.rx_slots)
        .tx_rings(shape.tx_rings)
        .rx_rings(shape.rx_rings);
    port = match options.mode {
        mode if mode.sends() && options.how & how::INDIRECT != 0 => port.tx_only().indirect(),
        mode if mode.sends() => port.tx_only(),
        mode if mode.receives() => port.rx_only(),
        _ => {
            opening::check_both_ways(spec)?;
            port
        }
    };
    if options.threads == 1 {
        return opening::open(&port, spec, Default::default());
    }
    // The threads take all of it together.
    let stops = opening::check(&port, spec, Default::default())?;
    let port = one_ring(port, spec, thread)?;
    stops.tell();
    Ok(port)
}

/// Host rings come after the others (`*`), or are the only ones (`^`).
fn one_ring(how: OpenOptions, spec: &str, ring: u16) -> Result<Port> {
    if spec.contains('^') {
        return Ok(how.host_ring(ring).open(spec)?);
    }
    match how.clone().ring(ring).open(spec) {
        Err(_) if spec.contains('*') => {
            let rings = how.clone().ring(0).open(spec)?.binding().registration().tx_rings;
            Ok(how.host_ring(ring.saturating_sub(rings)).open(spec)?)
        }
        opened => Ok(opened?),
    }
}

/// Rings of the whole port in the mode's direction, host rings included.
fn queues(port: &Port, mode: Mode) -> usize {
    let reg = port.binding().registration();
    let (own, host) = match mode.sends() {
        true => (reg.tx_rings, reg.host_tx_rings),
        false => (reg.rx_rings, reg.host_rx_rings),
    };
    usize::from(own) + usize::from(host)
}

/// Sets the length of the port's virtio-net header if that is asked for, else asks for it.
fn header_len(options: &Options, name: &str) -> Result<u32> {
    let control = Control::connect()?;
    match options.header {
        Some(len) => {
            // Of the ports without a header only VALE's can be given one.
            if len != 0 || name.starts_with("vale") {
                control.set_header_len(name, len)?;
            }
            Ok(len)
        }
        None => Ok(control.header_len(name).unwrap_or(0)),
    }
}

/// A file of the interface in sysfs; `None` for what is no interface.
fn attribute(name: &str, file: &str) -> Option<String> {
    let text = fs::read_to_string(format!("/sys/class/net/{name}/{file}")).ok()?;
    Some(text.trim().into())
}

fn check_mtu(options: &Options, interface: &str) -> Result<()> {
    match attribute(interface, "mtu").and_then(|mtu| mtu.parse().ok()) {
        Some::<usize>(mtu) if options.size > mtu => Err(Error::Value(format!(
            "frames of {} bytes are larger than the interface's MTU, {mtu}; give a smaller -l",
            options.size
        ))),
        _ => Ok(()),
    }
}
