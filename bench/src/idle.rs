//! Ports that nothing comes to, in a process that waits for packets.

use std::path::Path;
use std::time::Instant;
use std::{io, thread};

use ringway::{Interest, Port, Prepared, prepare};

use crate::bench::Bench;
use crate::cgroup::Cgroup;
use crate::containers;
use crate::nic::stage::Stage;
use crate::roles::{Role, Seat};

/// Starts a process with so many ports of the switch; nothing, if there are none.
pub fn ports(seat: Seat, daemon: &Path, count: usize) -> io::Result<Option<Role>> {
    let start = |count: String| Role::start(seat, daemon, &["idle", &format!("--ports={count}")]);
    (count > 0).then(|| start(count.to_string())).transpose()
}

/// Percent of one processor that they take, the daemon and its workers included.
pub fn once(bench: &Bench, count: usize) -> io::Result<f64> {
    let group = Cgroup::new(None)?;
    let daemon = bench.scratch.folder("idle")?;
    let _ports = ports(Seat::default().of(&group), &daemon, count)?;
    used(bench, &group)
}

/// Percent of one processor that so many interfaces of the kernel's take, attached to a switch.
pub fn attached(bench: &Bench, count: usize) -> io::Result<f64> {
    let stage = Stage::new(count, 1)?;
    let group = Cgroup::new(None)?;
    let daemon = bench.scratch.folder("idle")?;
    let interfaces: Vec<String> = (0..count).map(|number| format!("near{number}")).collect();
    let interfaces: Vec<&str> = interfaces.iter().map(String::as_str).collect();
    let seat = Seat::default().inside(&stage.near).of(&group);
    let joined = containers::join_in(seat, &daemon, &[&["join"], &interfaces[..]].concat())?;
    let percent = used(bench, &group);
    // It detaches them: a daemon that has some stays longer than the group is waited for.
    joined.end()?;
    percent
}

/// Percent of one processor that the group uses.
fn used(bench: &Bench, group: &Cgroup) -> io::Result<f64> {
    // What the opening has left to do.
    thread::sleep(bench.warm_up);
    let (begin, before) = (Instant::now(), group.used()?);
    thread::sleep(bench.counting);
    let (took, used) = (begin.elapsed(), group.used()? - before);
    Ok(used.as_secs_f64() / took.as_secs_f64() * 100.0)
}

/// The process. It ends with its parent.
pub fn play(count: usize) -> io::Result<()> {
    let open = |number| Port::open(&format!("valebench:idle{number}"));
    let mut ports =
        (0..count).map(open).collect::<Result<Vec<_>, _>>().map_err(io::Error::other)?;
    println!("ready");
    loop {
        for port in &mut ports {
            // What was flooded to all.
            let mut ring = port.rx(0);
            ring.sync();
            ring.batch(usize::MAX).for_each(drop);
        }
        let mut waiters: Vec<_> = ports.iter_mut().map(|port| port.waiter(Interest::Rx)).collect();
        if let Prepared::Armed(armed) = prepare(&mut waiters[..]) {
            armed.sleep(None)?;
        }
    }
}
