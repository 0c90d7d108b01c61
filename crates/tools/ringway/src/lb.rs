//! `ringway lb`: shares the packets of a port out over pipes or other ports.

use crate::balance::chooser::{Chooser, Method};
use crate::balance::{self, Balancer, Presence};
use crate::capture_file;
use crate::drops::{Losses, PortDrops};
use crate::error::{Error, Result};
use crate::filter::Chosen;
use crate::flush::left;
use crate::lasting::{Lasting, outlive, until};
use crate::opened::Opened;
use crate::opening;
use crate::output::note;
use crate::port_notes;
use crate::report::{Counters, Reporter};
use crate::run_loop::{self, RunLoop};
use crate::same_rings::{are_same, check_distinct};
use crate::units::parse_count;
use ringway::{FileSpec, Interest, Port, PortKind, PortSpec};
use ringway_balance::{Output, Share};
use serde::Serialize;
use std::fmt;
use std::time::Instant;

#[derive(clap::Args)]
#[command(after_help = "\
--to 4 makes four pipes NAME{0 to NAME{3, whose other ends, NAME}0 to NAME}3, the consumers open; or it
lists ports. Pipes are in the memory of the port, and nothing is copied; ports in other memory get
copies. Both directions of a flow go to one output.

--hash is flow, a good hash of IP addresses and ports, also inside a GRE tunnel; or, as for
PF_RING's clusters, per-flow, 2-tuple, 4-tuple, 5-tuple, tcp-5-tuple (TCP by 5-tuple, all else by
2-tuple), ip-5-tuple (frames that are not IP by their Ethernet addresses), each also as inner-... by
the packet inside a tunnel (GTP, GRE with a key, VXLAN), and round-robin. Fragments follow the
first. ip-with-dup, by the packet inside a tunnel: the output of the source address, and a copy to
that of the destination.

Packets for which an output has no room wait in --queue buffers, and are dropped and counted when no
buffer is free. A consumer may leave and come back: meanwhile its packets wait until there is no
room, or, with --redistribute, go to the others.

Examples (quote the braces of a pipe's name):
  ringway lb netmap:eth0 --to 4             consumers: ringway recv 'netmap:eth0}0' and so on
  ringway lb vale0:lb --to 2 --name work --redistribute
  ringway lb 'p}0' --to 'a{0' 'b{0' vale0:c --hash 2-tuple
  ringway lb netmap:eth0 --to 3 --copy      every consumer gets all")]
pub struct Args {
    /// Port to take packets from: a pipe's end, vale<switch>:<port>, netmap:<interface> or file:<path>
    port: String,

    /// How many pipes, or the ports that packets go to
    #[arg(long, required = true, num_args = 1.., value_name = "PIPES|PORT")]
    to: Vec<String>,

    /// Name of the pipes [default: that of the port]
    #[arg(long, value_name = "NAME")]
    name: Option<String>,

    /// What decides where a packet goes
    #[arg(long, default_value = "flow", value_name = "HASH")]
    hash: Method,

    /// Every output gets every packet, in a copy
    #[arg(long, conflicts_with_all = ["hash", "redistribute"])]
    copy: bool,

    /// Buffers for packets that outputs have no room for: 4096, 10k
    #[arg(long, default_value = "0", value_name = "BUFFERS", value_parser = parse_count)]
    queue: u64,

    /// The share of an output whose consumer is away goes to the others: a pipe that no program has open, a
    /// switch without other ports, an interface without a link
    #[arg(long)]
    redistribute: bool,

    /// Look at all ports all the time instead of sleeping
    #[arg(long)]
    poll: bool,

    #[command(flatten)]
    chosen: Chosen,

    #[command(flatten)]
    opening: opening::Args,

    #[command(flatten)]
    run_loop: run_loop::Args,
}

/// Shares out until the time is through, a file has ended, or the user stops it.
pub fn run(args: &Args) -> Result<()> {
    let mut options = Port::options().rx_only();
    if args.queue > 0 {
        let queue = u32::try_from(args.queue).unwrap_or(u32::MAX);
        options = options.extra_bufs(queue);
    }
    if let Some(filter) = args.chosen.filter()? {
        options = options.filter(filter);
    }
    if let Some(pipes) = count(args)? {
        options = balance::with_room(options, &args.port, pipes)?;
    }
    let mut input = opening::open(&options, &args.port, args.opening)?;
    port_notes::receiving(&input, &args.port);
    let stock = input.take_extra_bufs();
    if (stock.len() as u64) < args.queue {
        note(format_args!(
            "--queue {}: the memory of {} has {} buffers for that, and no more",
            args.queue,
            input.name(),
            stock.len()
        ));
    }
    let mut outputs = Vec::new();
    for (id, name) in (0..).zip(names(args)?) {
        let output = open(&name, &input, args.opening)?;
        port_notes::sending(&output, &name);
        port_notes::one_switch(&input, &output);
        outputs.push(Output::new(output, name, id, &input));
    }
    let presence = match args.redistribute {
        true => Some(Presence::watch(outputs.iter().map(|output| &output.port))?),
        false => None,
    };
    let share = match args.copy {
        true => Share::All,
        false => Share::One(Chooser::new(args.hash, outputs.len()).with_presence(presence)),
    };
    let run_loop = RunLoop::begin(&args.run_loop)?;
    for port in outputs.iter().map(|output| &output.port).chain([&input]) {
        run_loop.output.write(&Opened::new(port))?;
    }
    let mut reporter = Reporter::new(input.name(), run_loop.start);
    let mut balancer = Balancer::new(input, stock, vec![outputs], share);
    balancer = balancer.with_batch(256, args.poll);
    let mut lasting: Vec<_> =
        balancer.ports_mut().map(|port| Lasting::begin(port)).collect::<Result<_>>()?;
    let ran = balance::run(&mut balancer, &run_loop, |balancer, mut waited, now| {
        if reporter.is_due(now) {
            let drops = drops(balancer, &mut lasting);
            run_loop.output.write(&reporter.tick(now, counted(balancer, &drops)))?;
            // Where packets keep coming, nothing waits for an output.
            waited = waited.and_then(|()| check_outputs(balancer));
        }
        outlive_all(balancer, &mut lasting, waited, &run_loop)?;
        Ok(Some(until(reporter.due(), &lasting)))
    });
    finish(balancer, lasting, &run_loop, &mut reporter, capture_file::ended(ran))
}

fn check_outputs(balancer: &mut Balancer) -> Result<()> {
    let open = balancer.outputs().map(|output| &output.port).filter(|port| !port.is_shut());
    Ok(open.into_iter().try_for_each(|port| port.check(Interest::Tx))?)
}

/// Goes on without the ports whose daemon has ended, and with them when they are open again.
fn outlive_all(
    balancer: &mut Balancer,
    lasting: &mut [Lasting],
    waited: Result<()>,
    run_loop: &RunLoop,
) -> Result<()> {
    if waited.is_ok() && !lasting.iter().any(Lasting::is_waiting) {
        return Ok(());
    }
    let opened = outlive(waited, lasting.iter_mut().zip(balancer.ports_mut()), run_loop)?;
    for (port, lasting) in lasting.iter().enumerate().skip(1) {
        if lasting.is_waiting() || opened.contains(&port) {
            balancer.output_reopened(port - 1);
        }
    }
    if opened.contains(&0) {
        let stock = balancer.input.take_extra_bufs();
        balancer.input_reopened(stock);
        let ports = balancer.outputs().map(|output| &output.port);
        let pipes = ports.filter(|port| port.kind() == PortKind::Pipe).map(Port::name);
        let pipes = pipes.collect::<Vec<_>>().join(", ");
        if !pipes.is_empty() {
            note(format_args!(
                "{pipes}: consumers go on; those that begin now are reached when `ringway lb` begins anew, too"
            ));
        }
    }
    Ok(())
}

/// How many pipes the outputs are; `None`: ports are listed.
fn count(args: &Args) -> Result<Option<u32>> {
    const MOST: u32 = 64;
    let [count] = &args.to[..] else { return Ok(None) };
    match count.parse() {
        Ok(count @ 1..=MOST) => Ok(Some(count)),
        Ok(_) => Err(Error::Value(format!("--to {count}: 1 to {MOST} pipes are possible"))),
        Err(_) => Ok(None),
    }
}

/// The names of all outputs.
fn names(args: &Args) -> Result<Vec<String>> {
    let Some(count) = count(args)? else { return listed(args) };
    let base = match &args.name {
        Some(name) => name.clone(),
        None if FileSpec::is_file(&args.port) => "lb".into(),
        None => PortSpec::parse(&args.port)?.name,
    };
    if base.contains(['{', '}']) {
        let remedy = match &args.name {
            Some(_) => "give a --name without them",
            None => "give --name",
        };
        let problem = "names of pipes are made from it, and have no braces";
        return Err(Error::Value(format!("{base}: {problem}; {remedy}")));
    }
    Ok((0..count).map(|id| format!("{base}{{{id}")).collect())
}

/// The ports that are listed, each of which has packets of its own.
fn listed(args: &Args) -> Result<Vec<String>> {
    if let Some(name) = &args.name {
        let problem = "it names the pipes of a number, --to 4, and ports are listed; leave it out";
        return Err(Error::Value(format!("--name {name}: {problem}")));
    }
    for to in &args.to {
        if are_same(&args.port, to)? {
            let problem = "packets would come back to where they are received; name another output";
            return Err(Error::Value(format!("--to {to}: {problem}")));
        }
    }
    check_distinct(&args.to, "an output")?;
    Ok(args.to.clone())
}

/// Opens an output: a pipe in the memory of the input, unless a program has it in another.
fn open(name: &str, input: &Port, args: opening::Args) -> Result<Port> {
    let plain_pipe = name.contains(['{', '}']) && !name.contains(['/', '@']);
    Ok(match plain_pipe && !FileSpec::is_file(input.name()) {
        true => Port::open(&format!("{name}/xT@{}", input.mem_id()))?,
        false => opening::open(&Port::options().tx_only(), name, args)?,
    })
}

/// What was dropped at the input and at each output, by those that count it there.
fn drops(balancer: &mut Balancer, lasting: &mut [Lasting]) -> Vec<PortDrops> {
    let ports = balancer.ports_mut().zip(lasting);
    ports.map(|(port, lasting)| lasting.drops(port)).collect()
}

/// Drops are those at the input on the way in, those for want of room, and those at the outputs on the way out.
fn counted(balancer: &Balancer, drops: &[PortDrops]) -> Counters {
    let (received, total) = (balancer.received(), balancer.total());
    let [input, outputs @ ..] = drops else { return Counters::default() };
    let out = outputs.iter().map(PortDrops::if_it_sends).sum::<u64>();
    let drops = input.if_it_receives() + total.dropped + out;
    Counters { packets: received.packets, bytes: received.bytes, drops, ..Counters::default() }
}

/// The summary is told even if the run has failed.
fn finish(
    mut balancer: Balancer,
    mut lasting: Vec<Lasting>,
    run_loop: &RunLoop,
    reporter: &mut Reporter,
    ran: Result<()>,
) -> Result<()> {
    let written = balance::finish(&mut balancer, run_loop);
    let drops = drops(&mut balancer, &mut lasting);
    run_loop.output.write(&reporter.finish(Instant::now(), counted(&balancer, &drops)))?;
    for (output, drops) in balancer.outputs_mut().zip(drops.iter().skip(1)) {
        run_loop.output.write(&Sent {
            port: output.port.name().into(),
            copied: output.copies(),
            packets: output.counters.forwarded,
            bytes: output.counters.forwarded_bytes,
            dropped: output.counters.dropped + drops.if_it_sends(),
            queued: output.queued_packets(),
            left: left(&mut output.port),
        })?;
    }
    let (port, at_input) = (balancer.input.name().into(), drops.first().copied());
    let drops = at_input.unwrap_or_default().all;
    run_loop.output.write(&Losses { port, drops, left: 0 })?;
    for (port, lasting) in balancer.ports_mut().zip(&lasting) {
        lasting.tell_device(port, run_loop.output)?;
    }
    balancer.close();
    ran?;
    written
}

/// What an output got.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "type", rename = "output")]
pub struct Sent {
    port: String,
    /// It is in other memory than the input.
    copied: bool,
    packets: u64,
    bytes: u64,
    dropped: u64,
    /// Packets that wait, and are lost with the end.
    queued: u64,
    /// Sent, but never taken out of the ring by the consumer.
    left: u64,
}

impl fmt::Display for Sent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Sent { port, copied, packets, bytes, dropped, queued, left } = self;
        let copied = if *copied { ", copied" } else { "" };
        write!(f, "  to {port}: {packets} packets, {bytes} bytes{copied}; {dropped} dropped")?;
        for (left, place) in [(*queued, "queue"), (*left, "ring")] {
            if left > 0 {
                write!(f, "; {left} left in the {place}")?;
            }
        }
        Ok(())
    }
}
