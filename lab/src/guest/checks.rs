//! The checks of a mode.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use ringway::{Interest, Port};
use ringway_testkit::{NicState, Proc};
use rustix::process::{Pid, Signal, kill_process};

use super::Outcome;
use super::cable::{ADDRESSES, Cable, LRO, until};
use super::frames::{self, SIZES};
use super::stack;

/// The MTU of long frames, and frames of it: with the ends of buffers of 2048 and 4096 bytes, and the longest.
const JUMBO_MTU: u32 = 9000;
const JUMBO: [usize; 9] = [60, 1514, 1515, 2048, 2049, 3072, 4096, 4097, 9014];

/// Begins what says that there is nothing to check.
pub const NONE: &str = "none: ";

/// Sizes that tell whether frames go at all.
const FEW: [usize; 3] = [60, 1000, 1514];

fn text(error: impl ToString) -> String {
    error.to_string()
}

fn open(spec: &str) -> Result<Port, String> {
    Port::open(spec).map_err(text)
}

/// `ringway` with these arguments, to its end.
fn ringway(arguments: &[&str]) -> Outcome {
    let output = Command::new("ringway").args(arguments).output().map_err(text)?;
    let [said, errors] =
        [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    match output.status.success() {
        true => Ok(said),
        false => Err(format!("ringway {}: {}", arguments.join(" "), errors.trim())),
    }
}

/// A bridge between the interface and its stack, which has both open.
fn bridge(spec: &str) -> Result<Proc, String> {
    let mut command = Command::new("ringway");
    command.args(["bridge", spec, "--json"]);
    let mut bridge = Proc::spawn(command);
    let is_open = until("the bridge opens its ports", || {
        if bridge.output().matches(r#""type":"open""#).count() >= 2 {
            return Some(true);
        }
        (!bridge.is_running()).then_some(false)
    })?;
    if is_open { Ok(bridge) } else { Err(bridge.wait().1.trim().into()) }
}

/// Both ways, a few sizes.
fn passes(cable: &Cable, port: &mut Port) -> Result<(), String> {
    frames::receive(cable, port, &FEW).map_err(|e| format!("in: {e}"))?;
    frames::send(cable, port, &FEW).map_err(|e| format!("out: {e}"))?;
    Ok(())
}

/// What is wrong with the interface is told without opening it.
pub fn doctor(cable: &Cable) -> Outcome {
    let said = ringway(&["doctor", &cable.near])?;
    let line = said.lines().find(|line| line.split_whitespace().nth(1) == Some(&cable.near));
    let line = line.ok_or_else(|| format!("nothing is said of {}:\n{said}", cable.near))?;
    Ok(line.split_whitespace().collect::<Vec<_>>().join(" "))
}

/// Frames of all sizes arrive.
pub fn frames_in(cable: &Cable, spec: &str) -> Outcome {
    let mut port = open(spec)?;
    frames::receive(cable, &mut port, &SIZES)
}

/// Frames of all sizes are sent.
pub fn frames_out(cable: &Cable, spec: &str) -> Outcome {
    let mut port = open(spec)?;
    frames::send(cable, &mut port, &SIZES)
}

/// Frames longer than the usual MTU arrive where they can be had; else the interface is not opened, with the reason.
pub fn jumbo(cable: &Cable, spec: &str) -> Outcome {
    // Linux 6.1 to 7.2 in QEMU 10, and no Ringway: `rx err`, `fcs`, of all frames over 4094 bytes.
    if cable.card.name == "vmxnet3" && !cable.joins(LRO) {
        return Ok(format!("{NONE}with {LRO} off the card gives its driver no long frames"));
    }
    // Its driver's buffers are for an MTU of 1500, also when a longer one is set (`virtnet_probe`, `big_packets`).
    if cable.card.name == "virtio-bare" {
        return Ok(format!(
            "{NONE}without mergeable buffers and offloads it receives no long frames"
        ));
    }
    if let Err(why) = cable.set_mtu(JUMBO_MTU) {
        cable.set_mtu(1500)?;
        return Ok(format!("{NONE}{why}"));
    }
    let went = match open(spec) {
        Ok(mut port) => long_frames(cable, &mut port),
        Err(why) => Ok(format!("{NONE}{why}")),
    };
    cable.set_mtu(1500)?;
    went
}

fn long_frames(cable: &Cable, port: &mut Port) -> Outcome {
    let mode = super::mode(cable)?;
    let mut both = || {
        let received = frames::receive(cable, port, &JUMBO).map_err(|e| format!("in: {e}"))?;
        frames::send(cable, port, &JUMBO).map_err(|e| format!("out: {e}"))?;
        Ok(format!("{received} each way, {mode}"))
    };
    both().map_err(|e: String| format!("{mode}: {e}"))
}

/// The stack is there behind a bridge as it is without one.
pub fn host_rings(cable: &Cable, spec: &str) -> Outcome {
    let bridge = bridge(spec)?;
    let went = stack::pings(cable).and_then(|()| stack::tcp(cable));
    bridge.signal(Signal::INT);
    let (_, said) = bridge.wait();
    went.map_err(|e| format!("{e}; the bridge: {}", summaries(&said)))?;
    cable.wait_ping()?;
    Ok("pings of all sizes, TCP both ways".into())
}

/// The lines in which a command says what it has done.
fn summaries(said: &str) -> String {
    let lines = said.lines().filter(|line| !line.contains(r#""type":"rate""#));
    lines.collect::<Vec<_>>().join(" ")
}

/// The stack is there behind a switch, too, and a program on the switch gets what comes by the interface.
pub fn switch(cable: &Cable, spec: &str) -> Outcome {
    let interface = spec.strip_prefix("netmap:").expect("an interface");
    ringway(&["switch", "attach", "vale0", interface, "--host"])?;
    let went = stack::pings(cable).and_then(|()| stack::tcp(cable)).and_then(|()| {
        let mut port = open("vale0:x")?;
        passes(cable, &mut port).map_err(|e| format!("vale0:x, {e}"))?;
        filters(cable, interface)
    });
    let stats = ringway(&["switch", "stats"]);
    ringway(&["switch", "delete", "vale0"])?;
    let filtered =
        went.map_err(|e| format!("{e}; {}", stats.unwrap_or_else(|e| e).replace('\n', "; ")))?;
    cable.wait_ping()?;
    Ok(format!("pings of all sizes, TCP both ways, a program's frames both ways{filtered}"))
}

/// A filter that all frames match lets all pass, and a filter of TCP no ping. Says what filters.
fn filters(cable: &Cable, interface: &str) -> Result<&'static str, String> {
    let name = interface.split('@').next().unwrap_or_default();
    let port = format!("vale0:{name}");
    let set = |option: &str, expression: &str| {
        ringway(&["switch", "port", &port, option, expression])
            .map_err(|e| format!("{option} {expression}: {e}"))
    };
    for option in ["--filter-in", "--filter-out"] {
        set(option, "arp or ip or ip6")?;
    }
    let ports = ringway(&["ports"])?;
    let by_worker = ports.contains("it has a filter");
    stack::pings(cable).map_err(|e| format!("filtered: {e}"))?;
    set("--filter-in", "arp or tcp")?;
    if cable.there.try_ping(&format!("-c 1 -w 1 {}", ADDRESSES[0])).is_ok() {
        return Err("a ping passes a filter that does not match it".into());
    }
    ringway(&["switch", "port", &port, "--no-filter-in", "--no-filter-out"])?;
    stack::pings(cable).map_err(|e| format!("no longer filtered: {e}"))?;
    let is_kernels = ports.lines().any(|line| line.ends_with(" kernel"));
    Ok(match (by_worker, is_kernels) {
        (true, _) => ", filtered by the worker, for the kernel cannot",
        (false, true) => ", filtered in the kernel",
        (false, false) => ", filtered",
    })
}

/// Of the interface, what an administrator could look at.
fn state(cable: &Cable) -> Result<NicState, String> {
    cable.wait_ping()?;
    Ok(NicState::take(&cable.here, &cable.near))
}

/// A program that has the interface and its stack is killed: all is as before.
pub fn kill_program(cable: &Cable, spec: &str) -> Outcome {
    let before = state(cable)?;
    bridge(spec)?.kill();
    before.assert_restored(&cable.here);
    cable.wait_ping()?;
    Ok("all is as before".into())
}

/// The same, and the daemon at the same moment.
pub fn kill_daemon(cable: &Cable, spec: &str) -> Outcome {
    let before = state(cable)?;
    let bridge = bridge(spec)?;
    let daemons = daemons();
    if daemons.is_empty() {
        return Err("there is no daemon".into());
    }
    daemons.iter().for_each(|daemon| {
        // One that has ended by itself is no loss.
        let _ = kill_process(*daemon, Signal::KILL);
    });
    bridge.kill();
    before.assert_restored(&cable.here);
    cable.wait_ping()?;
    Ok("all is as before".into())
}

/// All processes of the daemon: the guest has no other.
fn daemons() -> Vec<Pid> {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let daemon = |process: fs::DirEntry| {
        let name = fs::read_to_string(process.path().join("comm")).ok()?;
        let pid = process.file_name().to_str()?.parse().ok()?;
        (name.trim() == "ringwayd").then(|| Pid::from_raw(pid))?
    };
    processes.filter_map(daemon).collect()
}

/// The interface goes down and up while it is open.
pub fn flap(cable: &Cable, spec: &str) -> Outcome {
    let mut port = open(spec)?;
    passes(cable, &mut port)?;
    cable.here.run(&format!("ip link set {} down", cable.near));
    cable.set_up_near();
    passes(cable, &mut port).map_err(|e| format!("after down and up: {e}"))?;
    cable.there.run(&format!("ip link set {} down", cable.far));
    cable.set_up_far();
    passes(cable, &mut port).map_err(|e| format!("after the far end's down and up: {e}"))?;
    Ok("frames both ways after each".into())
}

/// The number of queues is changed while the interface is open: that is done, or refused, and frames go on.
pub fn queues(cable: &Cable, spec: &str) -> Outcome {
    let channels = || cable.here.try_run(&format!("ethtool -l {}", cable.near));
    let said = String::from_utf8_lossy(&channels().stdout).into_owned();
    let counts: Vec<(&str, u32)> = said
        .lines()
        .filter_map(|line| line.split_once(':'))
        .filter_map(|(what, count)| Some((what, count.trim().parse().ok()?)))
        .collect();
    // The largest come first, then those that are set.
    let set =
        counts.iter().rev().find(|(what, count)| ["Combined", "RX"].contains(what) && *count > 1);
    let Some(&(what, count)) = set else { return Ok(format!("{NONE}one queue")) };
    let what = what.to_lowercase();
    let mut port = open(spec)?;
    passes(cable, &mut port)?;
    let mut asked = Vec::new();
    for wanted in [count - 1, count] {
        let set = cable.here.try_run(&format!("ethtool -L {} {what} {wanted}", cable.near));
        let refusal = String::from_utf8_lossy(&set.stderr).trim().to_string();
        asked.push((wanted, if set.status.success() { Ok(()) } else { Err(refusal) }));
        passes(cable, &mut port).map_err(|e| format!("{}: {e}", of_changes(count, &asked)))?;
    }
    Ok(of_changes(count, &asked))
}

/// What came of numbers that were asked for where there were `count`. To set what there is, is no change.
fn of_changes(count: u32, asked: &[(u32, Result<(), String>)]) -> String {
    let is_changed = asked.iter().any(|(wanted, set)| set.is_ok() && *wanted != count);
    let said = asked.iter().map(|(wanted, set)| match set {
        Ok(()) => format!("{wanted} queues: set"),
        Err(refusal) => format!("{wanted} queues: {refusal}"),
    });
    let said: Vec<_> = said.collect();
    format!("{}{}", if is_changed { "" } else { NONE }, said.join("; "))
}

/// The driver is taken away while frames come, and given back: the program is told, and what opens the
/// interface again has it.
pub fn unbind(cable: &Cable, spec: &str) -> Outcome {
    let keeps_joins = cable.joins_on();
    let Some((device, driver)) = cable.device() else { return Ok(format!("{NONE}no device")) };
    let mut port = open(spec)?;
    passes(cable, &mut port)?;
    let write = |file: &str| {
        let path: PathBuf = driver.join(file);
        fs::write(&path, &device).map_err(|e| format!("{}: {e}", path.display()))
    };
    let far = ringway_testkit::PacketSocket::new(&cable.there, &cable.far);
    (0..64).for_each(|number| far.send(&frames::numbered(number, 1000)));
    write("unbind")?;
    let told = until("the program is told that the interface is gone", || {
        let waited = port.wait_rx(Some(Duration::from_millis(100)));
        // Room for more; what came is of no interest.
        let _ = frames::take(&mut port, 1, Duration::ZERO);
        waited.and_then(|_| port.check(Interest::Rx)).err()
    })?;
    drop(port);
    write("bind")?;
    until("the interface is there again", || cable.is_there().then_some(()))?;
    cable.set_up_near();
    // The card is new, and has what cards have.
    if !keeps_joins {
        cable.turn_joins_off();
    }
    cable.wait_ping()?;
    let mut port = open(spec)?;
    passes(cable, &mut port).map_err(|e| format!("opened again: {e}"))?;
    Ok(format!("the program is told: {told}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_refused_each_time_was_not_checked() {
        let (set, busy) = (Ok(()), Err("busy".to_string()));
        assert_eq!(
            of_changes(2, &[(1, set.clone()), (2, set.clone())]),
            "1 queues: set; 2 queues: set"
        );
        let refused = of_changes(2, &[(1, busy), (2, set)]);
        assert_eq!(refused, "none: 1 queues: busy; 2 queues: set", "there are two already");
    }
}
