//! `dedup`: forwards from one port to another, without packets that came a moment before.

mod memory;

use super::getopt::{Arg, Getopt, number, seconds};
use super::log::{ended, log, tell};
use crate::error::{Error, Result};
use crate::fragmenter::publish;
use crate::opening;
use crate::run_loop::{self, RunLoop};
use memory::{Memory, hash};
use ringway::{Buffers, Interest, NS_BUF_CHANGED, NS_MOREFRAG, Port, Slot, Slots};
use std::process::ExitCode;
use std::time::{Duration, Instant};

const USAGE: &str = "usage: dedup [-v] -i ifa -i ifb [-c] [-w wait_time] [-W window_usec] \
                     [-F fifo_size] [-H]";

/// The options, as getopt is told of them.
pub const LETTERS: &str = "hci:vw:W:F:H";

/// How long nothing may happen before that is said.
const PATIENCE: Duration = Duration::from_secs(1);

struct Options {
    from: String,
    to: String,
    copy: bool,
    verbose: bool,
    link_wait: Duration,
    window: Duration,
    remembered: usize,
    hold: bool,
}

pub fn main(args: Vec<String>) -> ExitCode {
    let Some(options) = parse(args) else {
        tell!("{USAGE}");
        return ExitCode::FAILURE;
    };
    ended(run(&options))
}

/// `None` where usage is to be shown.
fn parse(args: Vec<String>) -> Option<Options> {
    let mut options = Options {
        from: String::new(),
        to: String::new(),
        copy: false,
        verbose: false,
        link_wait: Duration::from_secs(2),
        window: Duration::from_micros(50),
        remembered: 10,
        hold: false,
    };
    let positive = |value: &str| number(value).max(0) as u64;
    let mut named = Vec::new();
    for arg in Getopt::new(LETTERS, args) {
        match arg {
            Ok(Arg::Opt('i', name)) if named.len() < 2 => named.push(name),
            Ok(Arg::Opt('i', name)) => log!("main", "{name} ignored, already have 2 interfaces"),
            Ok(Arg::Opt('c', _)) => options.copy = true,
            Ok(Arg::Opt('v', _)) => options.verbose = true,
            Ok(Arg::Opt('w', value)) => options.link_wait = seconds(&value),
            Ok(Arg::Opt('W', value)) => options.window = Duration::from_micros(positive(&value)),
            Ok(Arg::Opt('F', value)) => options.remembered = positive(&value) as usize,
            Ok(Arg::Opt('H', _)) => options.hold = true,
            Ok(Arg::Opt(..)) => return None,
            // The original does not look at operands.
            Ok(Arg::Operand(_)) => (),
            Err(wrong) => {
                tell!("dedup: {wrong}");
                return None;
            }
        }
    }
    let Ok([from, to]) = <[String; 2]>::try_from(named) else {
        log!("main", "missing interface");
        return None;
    };
    Some(Options { from, to, ..options })
}

fn run(options: &Options) -> Result<()> {
    let mut dedup = Dedup::open(options)?;
    log!("main", "win_size {}+{}", options.window.as_secs(), options.window.subsec_micros());
    let run_loop = RunLoop::begin(&run_loop::Args::default())?;
    log!("main", "Wait {} secs for link to come up...", options.link_wait.as_secs());
    run_loop.sleep(Instant::now() + options.link_wait)?;
    log!("main", "Ready to go, {} -> {}", dedup.input.name(), dedup.output.name());
    let ran = dedup.forward(options, &run_loop);
    dedup.release_all();
    let Dedup { received, duplicates, too_long, .. } = dedup;
    log!("main", "{received} packets received, {duplicates} duplicates dropped");
    if too_long > 0 {
        log!("main", "{too_long} packets dropped: too long for the output's buffers");
    }
    ran
}

struct Dedup {
    input: Port,
    output: Port,
    memory: Memory,
    /// Packets stay in the output's ring, unsent, as long as they are remembered.
    hold: bool,
    /// Slots that do.
    held: u32,
    /// Buffers of the input, unless they can be exchanged with those of the output.
    copies: Option<Buffers>,
    /// The packet at hand.
    bytes: Vec<u8>,
    received: u64,
    duplicates: u64,
    /// Packets that the output's buffers do not hold; none is sent in part.
    too_long: u64,
}

impl Dedup {
    fn open(options: &Options) -> Result<Dedup> {
        let input = opening::open(&Port::options().rx_only(), &options.from, Default::default())?;
        let mut output =
            opening::open(&Port::options().tx_only(), &options.to, Default::default())?;
        for (port, rings, kind) in
            [(&input, input.rx_rings(), "RX"), (&output, output.tx_rings(), "TX")]
        {
            if rings != 1 {
                return Err(Error::Value(format!(
                    "{}: too many {kind} rings ({rings}); name one, as in {}-0",
                    port.name(),
                    port.name()
                )));
            }
        }
        let most = output.tx(0).slots().num_slots() as usize - 2;
        if options.remembered > most {
            return Err(Error::Value(format!(
                "fifo_size {} too large (max {most})",
                options.remembered
            )));
        }
        let ids = [input.mem_id(), output.mem_id()];
        log!("main", "memids: in {} out {}", ids[0], ids[1]);
        let copy = options.copy || !input.shares_region_with(&output);
        Ok(Dedup {
            copies: copy.then(|| input.buffers()),
            input,
            output,
            memory: Memory::new(options.remembered, options.window),
            hold: options.hold,
            held: 0,
            bytes: Vec::new(),
            received: 0,
            duplicates: 0,
            too_long: 0,
        })
    }

    fn forward(&mut self, options: &Options, run_loop: &RunLoop) -> Result<()> {
        while !run_loop.is_interrupted() {
            self.input.rx(0).sync();
            let now = Instant::now();
            self.forget_before(now);
            let all = self.push(now);
            publish(&mut self.output.tx(0), !all);
            self.input.rx(0).sync();
            if all && self.input.rx(0).available() > 0 {
                continue;
            }
            let silence = now + PATIENCE;
            let ends = self.memory.next_end().filter(|_| self.held > 0);
            let until = ends.map_or(silence, |end| end.min(silence));
            let events = if all { [1, 0] } else { [0, 4] };
            let waited = match all {
                true => (&mut self.input, Interest::Rx),
                false => (&mut self.output, Interest::Tx),
            };
            run_loop.wait(&mut [waited], until)?;
            let timeout = Instant::now() >= silence;
            if (timeout || options.verbose) && !run_loop.is_interrupted() {
                let [a, b] = events;
                let (how, [c, d]) = if timeout { ("timeout", [0, 0]) } else { ("ok", events) };
                log!("main", "poll {how} [0] ev {a:x} {c:x} [1] ev {b:x} {d:x}");
            }
        }
        Ok(())
    }

    /// Sends on what is new, as far as there is room; whether that was all.
    fn push(&mut self, now: Instant) -> bool {
        let Dedup { input, output, memory, copies, bytes, .. } = self;
        let longest = output.max_frame();
        let (mut rx, mut tx) = (input.rx(0), output.tx(0));
        let (mut from, mut to) = (rx.slots(), tx.slots());
        let (mut at, end) = (0, from.held());
        let mut room = true;
        while at < end {
            let slots = gather(&from, at, end, bytes);
            let hash = hash(bytes);
            if memory.knows(hash, bytes) {
                self.duplicates += 1;
            } else if copies.is_some()
                && (at..at + slots).any(|n| usize::from(from.get(n).len) > longest)
            {
                self.too_long += 1;
            } else {
                room = to.held() >= self.held + slots;
                if !room {
                    break;
                }
                if memory.is_full() {
                    release(memory, &mut to, &mut self.held);
                }
                for n in 0..slots {
                    hand_over(copies.as_ref(), &mut from, at + n, &mut to, self.held + n);
                }
                self.held += slots;
                if !memory.is_full() {
                    memory.remember(hash, bytes, slots, now);
                }
                // With no memory there is nothing to hold it for.
                if !self.hold || memory.next_end().is_none() {
                    to.advance(self.held);
                    self.held = 0;
                }
            }
            self.received += 1;
            at += slots;
        }
        from.advance(at);
        room
    }

    /// Forgets packets that are too old; those that are held go out.
    fn forget_before(&mut self, now: Instant) {
        let mut tx = self.output.tx(0);
        let mut to = tx.slots();
        while self.memory.next_end().is_some_and(|end| end < now) {
            release(&mut self.memory, &mut to, &mut self.held);
        }
    }

    /// What is held is not lost when the program ends.
    fn release_all(&mut self) {
        let mut tx = self.output.tx(0);
        tx.slots().advance(self.held);
        tx.sync();
        self.held = 0;
    }
}

/// Forgets the oldest packet. If packets are held, it goes out.
fn release(memory: &mut Memory, to: &mut Slots<'_>, held: &mut u32) {
    let slots = memory.forget().min(*held);
    to.advance(slots);
    *held -= slots;
}

/// Copies the packet that begins at slot `at` out; returns its slots.
fn gather(from: &Slots<'_>, at: u32, end: u32, bytes: &mut Vec<u8>) -> u32 {
    bytes.clear();
    let mut next = at;
    loop {
        let (slot, start) = (from.get(next), bytes.len());
        bytes.resize(start + usize::from(slot.len), 0);
        let read = from.read(next, &mut bytes[start..]);
        bytes.truncate(start + read);
        next += 1;
        if slot.flags & NS_MOREFRAG == 0 || next == end {
            return next - at;
        }
    }
}

/// Puts a received slot's data into a slot of the output.
fn hand_over(copies: Option<&Buffers>, from: &mut Slots<'_>, at: u32, to: &mut Slots<'_>, n: u32) {
    let (sent, free) = (from.get(at), to.get(n));
    match copies {
        Some(buffers) => {
            buffers.copy_out(sent, to, n);
        }
        None => {
            let flags = NS_BUF_CHANGED | sent.flags & NS_MOREFRAG;
            to.set(n, Slot { flags, ..sent });
            let empty = Slot { buf_idx: free.buf_idx, len: 0, flags: NS_BUF_CHANGED, ..sent };
            from.set(at, empty);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_those_of_the_original() {
        let parse = |args: &[&str]| parse(args.iter().map(|arg| (*arg).into()).collect());
        let options = parse(&["-i", "a", "-ib", "-i", "c", "ignored"]).unwrap();
        assert_eq!((&options.from[..], &options.to[..]), ("a", "b"));
        assert_eq!((options.window, options.remembered), (Duration::from_micros(50), 10));
        assert_eq!((options.link_wait, options.hold), (Duration::from_secs(2), false));
        let options = parse(&["-i", "a", "-i", "b", "-HcvW7", "-F", "3", "-w0"]).unwrap();
        assert!(options.hold && options.copy && options.verbose);
        assert_eq!((options.window, options.remembered), (Duration::from_micros(7), 3));
        for wrong in [&["-i", "a"][..], &["-h"], &["-x"], &[]] {
            assert!(parse(wrong).is_none(), "{wrong:?}");
        }
    }
}
