//! A user's file system that stops answering holds up what closes its files, for ever: that costs the daemon a thread,
//! and other users nothing (trust rule 5). A daemon that is killed meanwhile makes room for the next.

use std::{fs, time::Duration};

use ringway::Control;
use ringway_testkit::{Proc, skip, skip_without_root};
use ringway_tests::{
    GROUP, Home, as_nobody,
    c::{Language, link},
    ends, fill_queue, isolated_with_system, until,
};
use rustix::process::Signal;

const LIMIT: Duration = Duration::from_secs(60);
/// Longer than a test takes.
const HANGS: Duration = Duration::from_secs(240);

/// The attacker, as soon as it says so. `None`: the machine does not let users mount file systems.
fn attacker(home: &Home, test: &str, how: &str, says: &str) -> Option<Proc> {
    let program = link(home, "tests/c/stuck_fuse.c", Language::C11, &[]);
    let folder = home.path().join("stuck");
    fs::create_dir(&folder).expect("the home is ours");
    home.give_to_nobody();
    let mut command = home.system_command(program);
    command.arg(how).arg(home.system_socket()).arg(folder);
    let mut attacker = Proc::spawn(as_nobody(command));
    let said = until(says, || match attacker.output() {
        said if said.contains(says) || said.contains("skip") => Ok(said),
        said if !attacker.is_running() => panic!("the attacker has ended: {said}"),
        said => Err(said),
    });
    match said.lines().find(|line| line.starts_with("skip")) {
        Some(why) => {
            skip(test, why);
            None
        }
        None => Some(attacker),
    }
}

/// What the daemon cannot close piles up for one user, and is closed when that lets go.
#[test]
fn a_stuck_file_system_stops_its_user_alone() {
    const NAME: &str = "a_stuck_file_system_stops_its_user_alone";
    if skip_without_root(NAME) {
        return;
    }
    isolated_with_system(NAME, HANGS, |home| {
        let daemon = home.system_daemon_with(GROUP, 0o660, "descriptors_per_user = 100\n", |d| d);
        // It has the last descriptor only if the attacker closes its own before the daemon does.
        daemon.signal(Signal::STOP);
        let attacker = attacker(home, NAME, "queued", "sent");
        daemon.signal(Signal::CONT);
        let Some(attacker) = attacker else { return };
        attacker.wait_for("stuck", LIMIT);
        attacker.wait_for("refused", LIMIT);
        let control = Control::connect().expect("root is let in");
        control.ports().expect("the daemon answers");
        attacker.kill();
        until("all is closed", || {
            let threads = threads(daemon.pid());
            let closers = threads.iter().filter(|name| *name == "closer").count();
            if closers == 0 { Ok(()) } else { Err(format!("{threads:?}")) }
        });
    });
}

fn threads(pid: u32) -> Vec<String> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let name = |task: fs::DirEntry| fs::read_to_string(task.path().join("comm")).ok();
    tasks.filter_map(name).map(|name| name.trim_end().to_owned()).collect()
}

/// The processes of a daemon but the first, by their session's names.
fn helpers(daemon: u32) -> Vec<u32> {
    let children = |pid: u32| {
        let list = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
        let list = list.unwrap_or_default();
        list.split_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<u32>>()
    };
    let launchers = children(daemon);
    let others = launchers.iter().flat_map(|pid| children(*pid));
    others.chain(launchers.iter().copied()).collect()
}

/// A killed daemon that does not end takes its other processes along, its clients' requests end, and the next daemon
/// takes its place.
#[test]
fn a_stuck_daemon_makes_room_for_the_next() {
    const NAME: &str = "a_stuck_daemon_makes_room_for_the_next";
    if skip_without_root(NAME) {
        return;
    }
    isolated_with_system(NAME, HANGS, |home| {
        let killed = home.system_daemon(GROUP, 0o660);
        let control = Control::connect().expect("the daemon answers");
        let Some(attacker) = attacker(home, NAME, "direct", "stuck") else { return };
        attacker.wait_for("behind", LIMIT);
        killed.wait_for("descriptors that programs of the user have sent", LIMIT);
        control.ports().expect("others are served");
        let helpers = helpers(killed.pid());
        assert!(helpers.len() >= 3, "a launcher and two helpers: {helpers:?}");

        killed.signal(Signal::KILL);
        for pid in helpers {
            assert!(ends(pid, LIMIT), "process {pid} stays");
        }
        assert!(!threads(killed.pid()).is_empty(), "a thread of it waits for the file system");
        let error = control.ports().expect_err("it was killed").to_string();
        assert!(error.contains("was killed and does not end"), "{error}");

        // Also where no more programs can connect to it.
        let waiting = fill_queue(&home.system_socket());
        let next = home.system_daemon(GROUP, 0o660);
        drop(waiting);
        next.wait_for("takes its place", LIMIT);
        until("the next daemon answers", || {
            let control = Control::connect().map_err(|e| e.to_string())?;
            control.ports().map(drop).map_err(|e| e.to_string())
        });
        attacker.kill();
        let pid = killed.pid();
        drop(killed);
        assert!(ends(pid, LIMIT));
    });
}
