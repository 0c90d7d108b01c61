//! `ringway top` in a terminal: keys in, screen out.

use crate::control::daemon;
use crate::home::{Home, LIMIT, find, finish};
use ringway_testkit::{Proc, Tmux};
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::time::Instant;

/// A shell of the home, with what the terminal is set to in `$before`.
fn terminal(home: &Home) -> Tmux {
    let tmux = Tmux::new();
    tmux.type_line(&format!("export RINGWAY_DIR={}; unset RINGWAY_SOCKET", home.dir.display()));
    tmux.type_line("before=$(stty -g); clear");
    tmux
}

fn start(tmux: &Tmux, options: &str) {
    tmux.type_line(&format!("{} top {options}", env!("CARGO_BIN_EXE_ringway")));
    tmux.wait_for(|screen| screen.starts_with("ringway top: "));
}

/// The shell is back, on a terminal that is set as it was, and what was there is there again.
fn is_restored(tmux: &Tmux) {
    tmux.wait_for(|screen| !screen.contains("ringway top: "));
    // On a line of its own, wherever the shell's prompt comes.
    tmux.type_line(r#"[ "$before" = "$(stty -g)" ] && printf '\nas it was\n'"#);
    tmux.wait_for(|screen| screen.lines().any(|line| line == "as it was"));
}

/// The row of a name.
fn row<'s>(screen: &'s str, name: &str) -> Option<Vec<&'s str>> {
    let rows = screen.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    rows.into_iter().find(|words| words.first() == Some(&name) && words.len() > 5)
}

/// What is sent, without end.
fn traffic(home: &Home) -> [Proc; 2] {
    let receiver = home.open(&["recv", "vale0:b"]);
    [receiver, home.open(&["gen", "vale0:a", "--rate", "1k"])]
}

fn end(traffic: [Proc; 2]) {
    for proc in traffic.into_iter().rev() {
        proc.signal(Signal::INT);
        finish(proc);
    }
}

#[test]
fn rates_are_shown_and_keys_are_obeyed() {
    let home = Home::new();
    let traffic = traffic(&home);
    let tmux = terminal(&home);
    start(&tmux, "-i 200ms");
    // NAME KIND UID OPEN RX RX TX TX FILL DROP
    let screen = tmux.wait_for(|screen| row(screen, "vale0:b").is_some_and(|row| row[4] != "0"));
    assert!(screen.lines().all(|line| line.chars().count() <= 80), "{screen}");
    let sender = row(&screen, "vale0:a").unwrap();
    assert_eq!([sender[1], sender[3], sender[4]], ["vale", "1", "0"], "{screen}");
    tmux.press(&["s"]);
    tmux.wait_for(|screen| {
        screen.contains("ports of switches") && row(screen, "vale0:b").is_some()
    });
    tmux.press(&["r"]);
    tmux.wait_for(|screen| screen.contains("vale0:b rx 0") && screen.contains("vale0:a tx 0"));
    tmux.press(&["/", "r", "x", "Enter"]);
    tmux.wait_for(|screen| screen.contains("vale0:b rx 0") && !screen.contains("vale0:a tx 0"));
    // What follows at once would be a key with Alt.
    tmux.press(&["Escape"]);
    tmux.wait_for(|screen| screen.contains("vale0:a tx 0"));
    tmux.press(&["p", "t"]);
    let total = |screen: &str| row(screen, "vale0:b").map(|row| row[4].to_owned());
    tmux.wait_for(|screen| total(screen).is_some_and(|total| total.ends_with('k')));
    // It counts anew, and nothing more comes.
    let [receiver, sender] = traffic;
    sender.signal(Signal::INT);
    finish(sender);
    tmux.press(&["t"]);
    tmux.wait_for(|screen| row(screen, "vale0:b").is_some_and(|row| row[4] == "0"));
    tmux.press(&["t", "z"]);
    tmux.wait_for(|screen| screen.contains("RX pkt") && total(screen).as_deref() == Some("0"));
    tmux.press(&["h"]);
    tmux.wait_for(|screen| screen.contains("Any key goes back."));
    tmux.press(&["x"]);
    tmux.wait_for(|screen| !screen.contains("Any key goes back.") && total(screen).is_some());
    tmux.press(&["Down"]);
    tmux.wait_for(|screen| screen.contains("vale0:b: dropped:"));
    tmux.resize(100, 30);
    let heading = |line: &str| line.ends_with("DROPS") && line.len() == 100;
    tmux.wait_for(|screen| screen.lines().any(heading));
    tmux.press(&["q"]);
    is_restored(&tmux);
    receiver.signal(Signal::INT);
    finish(receiver);
    home.is_left_clean();
}

/// The process that runs in the terminal.
fn pid_of_top(home: &Home) -> Pid {
    let is_top = |pid: &i32| {
        let read = |file: &str| fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default();
        let (words, environment) = (read("cmdline"), read("environ"));
        let dir = format!("RINGWAY_DIR={}", home.dir.display());
        words.split(|byte| *byte == 0).nth(1) == Some(b"top")
            && environment.split(|byte| *byte == 0).any(|text| text == dir.as_bytes())
    };
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let mut pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    Pid::from_raw(pids.find(is_top).expect("it runs")).unwrap()
}

#[test]
fn the_terminal_is_restored_whatever_ends_or_stops_it() {
    let home = Home::new();
    let receiver = home.open(&["recv", "vale0:b"]);
    let tmux = terminal(&home);
    start(&tmux, "");
    tmux.press(&["C-c"]);
    is_restored(&tmux);
    tmux.type_line("clear");
    start(&tmux, "");
    kill_process(pid_of_top(&home), Signal::TERM).unwrap();
    is_restored(&tmux);
    tmux.type_line("clear");
    let program = env!("CARGO_BIN_EXE_ringway");
    tmux.type_line(&format!("{program} top -d 200ms && printf '\\nit has ended\\n'"));
    tmux.wait_for(|screen| screen.lines().any(|line| line == "it has ended"));
    is_restored(&tmux);
    for by_key in [true, false] {
        tmux.type_line("clear");
        start(&tmux, "");
        tmux.wait_for(|screen| row(screen, "vale0:b").is_some());
        match by_key {
            true => tmux.press(&["C-z"]),
            false => kill_process(pid_of_top(&home), Signal::TSTP).unwrap(),
        }
        is_restored(&tmux);
        tmux.type_line("clear; fg");
        tmux.wait_for(|screen| row(screen, "vale0:b").is_some());
        // It hears keys again.
        tmux.press(&["h"]);
        tmux.wait_for(|screen| screen.contains("Any key goes back."));
        tmux.press(&["q", "q"]);
        is_restored(&tmux);
    }
    receiver.signal(Signal::INT);
    finish(receiver);
    home.is_left_clean();
}

/// Where nothing can be shown, or there is nothing to print.
#[test]
fn what_cannot_be_shown_is_refused() {
    let home = Home::new();
    let tmux = terminal(&home);
    tmux.type_line(&format!("TERM=dumb {} top", env!("CARGO_BIN_EXE_ringway")));
    tmux.wait_for(|screen| screen.contains("not one that is dumb (TERM)"));
    for option in ["--once", "--json"] {
        let output = home.run(&["top", option]);
        assert_eq!(output.status.code(), Some(1), "{option}: {output:?}");
    }
    assert!(!home.dir.join("ringwayd.sock").exists(), "none was started");
}

#[test]
fn a_daemon_may_come_and_go() {
    let home = Home::new();
    let tmux = terminal(&home);
    start(&tmux, "--interval 100ms");
    tmux.wait_for(|screen| screen.contains("There is nothing to be seen"));
    assert!(!home.dir.join("ringwayd.sock").exists(), "none was started");
    for _ in 0..2 {
        // Nothing but the rings' memory is needed of the daemon.
        let receiver = home.open(&["recv", "p}0"]);
        tmux.wait_for(|screen| row(screen, "p}0").is_some());
        kill_process(daemon(&home), Signal::KILL).unwrap();
        tmux.wait_for(|screen| screen.contains("There is nothing to be seen"));
        receiver.signal(Signal::INT);
        receiver.wait();
    }
    // What was killed has left its socket; this one is let go.
    let receiver = home.open(&["recv", "p}0"]);
    tmux.wait_for(|screen| row(screen, "p}0").is_some());
    receiver.signal(Signal::INT);
    finish(receiver);
    tmux.wait_for(|screen| row(screen, "p}0").is_none());
    tmux.press(&["q"]);
    is_restored(&tmux);
    home.is_left_clean();
}

#[test]
fn one_interval_is_printed() {
    let home = Home::new();
    assert!(home.failure(&["top", "--once"]).contains("cannot reach ringwayd"));
    let traffic = traffic(&home);
    let deadline = Instant::now() + LIMIT;
    loop {
        let rows = home.json(&["top", "--interval", "200ms"]);
        assert!(rows.iter().all(|row| row["type"] == "rates"));
        let find = |of: &str, name: &str| {
            rows.iter().find(|row| row["of"] == of && row["name"] == name).unwrap()["rx_pps"]
                .as_f64()
        };
        let [port, switch_port, ring] =
            [("port", "vale0:b"), ("switch_port", "vale0:b"), ("ring", "vale0:b rx 0")]
                .map(|(of, name)| find(of, name).unwrap());
        if port > 0.0 && switch_port > 0.0 && ring > 0.0 {
            break;
        }
        assert!(Instant::now() < deadline, "{rows:?}");
    }
    let text = String::from_utf8(home.run(&["top", "--once", "-i", "10ms"]).stdout).unwrap();
    assert!(text.contains("rx pps") && text.contains("vale0:b rx 0"), "{text}");
    let rows = home.json(&["top", "--once", "-i", "10ms", "--filter", "rx 0"]);
    assert!(!rows.is_empty() && find(&rows, "rates")["of"] == "ring", "{rows:?}");
    assert!(home.failure(&["top"]).contains("needs a terminal"));
    // With a duration, each interval until then.
    let one_ring = ["--json", "-i", "1ms", "--filter", "vale0:b rx 0"];
    let mut watched = home.command(&[&["top", "-d", "1h"], &one_ring[..]].concat());
    let mut watched = watched.stdout(Stdio::piped()).spawn().unwrap();
    let mut text = BufReader::new(watched.stdout.take().unwrap()).lines();
    for line in text.by_ref().take(2) {
        assert!(line.unwrap().contains(r#""of":"ring""#));
    }
    kill_process(Pid::from_child(&watched), Signal::INT).unwrap();
    assert!(text.all(|line| line.is_ok()) && watched.wait().unwrap().success());
    let rows = home.json(&[&["top", "-d", "1ms"], &one_ring[1..]].concat());
    assert!(!rows.is_empty() && find(&rows, "rates")["of"] == "ring", "{rows:?}");
    for refused in [&["top", "--once", "-d", "1s"][..], &["switch", "stats", "-d", "1s"]] {
        assert!(!home.run(refused).status.success(), "{refused:?}");
    }
    end(traffic);
    home.is_left_clean();
}
