//! `lb`.

use super::{run, shape};
use crate::home::{Home, LIMIT, find, finish};
use ringway_testkit::{Netns, Proc, skip_without_root};
use rustix::process::Signal;
use serde_json::Value;
use std::{os::unix::fs::symlink, process::Command};

/// Starts `lb` on a pipe, which loses nothing, with more arguments.
fn start(home: &Home, args: &[&str]) -> Proc {
    let args = [&["-i", "netmap:in}0", "-w", "0"], args].concat();
    let lb = Proc::spawn(home.tool("lb", &args));
    lb.wait_for("Ready...", LIMIT);
    lb
}

/// Interrupts `lb`; returns all that it has said.
fn end_with_output(lb: Proc) -> String {
    lb.signal(Signal::INT);
    let (status, text) = lb.wait();
    assert_eq!(status.code(), Some(0), "{text}");
    text
}

/// Interrupts `lb`; returns its last line.
fn end(lb: Proc) -> String {
    let text = end_with_output(lb);
    text.lines().find(|line| line.contains(" packets forwarded.  ")).unwrap_or(&text).into()
}

/// Sends frames of 200 flows to it.
fn send(home: &Home, count: &str) {
    home.json(&["gen", "in{0", "--count", count, "--src", "10.0.0.1:1000-10.0.0.2:1099"]);
}

fn received(proc: Proc) -> (u64, u64) {
    let printed = finish(proc);
    (
        find(&printed, "summary")["packets"].as_u64().unwrap(),
        find(&printed, "verify")["good"].as_u64().unwrap(),
    )
}

/// A consumer of some of the packets.
fn share(home: &Home, pipe: &str) -> Proc {
    home.open(&["recv", pipe])
}

/// Ends a consumer, which has what `lb` has forwarded, when that has ended.
fn packets(consumer: Proc) -> u64 {
    consumer.signal(Signal::INT);
    find(&finish(consumer), "summary")["packets"].as_u64().unwrap()
}

#[test]
fn each_flow_has_its_pipe_and_nothing_is_lost() {
    let home = Home::new();
    let lb = start(&home, &["-p", "out:2", "-o", "1", "-B", "4000"]);
    let consumers = ["out}0", "out}1"].map(|pipe| share(&home, pipe));
    send(&home, "2000");
    let text = lb.wait_for(r#""output_ring":null,"packets_received":2000,"#, LIMIT);
    assert_eq!(end(lb), "2000 packets forwarded.  0 packets dropped. Total 2000");
    let counts = consumers.map(packets);
    assert_eq!(counts[0] + counts[1], 2000);
    // 200 flows are sent ten times each.
    assert!(counts.iter().all(|count| *count > 0 && count % 10 == 0), "{counts:?}");
    let line = text.lines().find(|line| line.contains(r#""output_ring":0"#)).unwrap();
    assert_eq!(
        shape(line),
        r#"{"ts":N.N,"interface":"netmap:out{N","output_ring":N,"packets_forwarded":N,"packets_dropped":N,"data_forward_rate_Mbps":N.N,"data_drop_rate_Mbps":N.N,"packet_forward_rate_kpps":N.N,"packet_drop_rate_kpps":N.N,"overflow_queue_size":N}"#
    );
    let line = text.lines().find(|line| line.contains(r#""output_ring":null"#)).unwrap();
    assert_eq!(
        shape(line),
        r#"{"ts":N.N,"interface":"netmap:in}N","output_ring":null,"packets_received":N,"packets_forwarded":N,"packets_dropped":N,"non_ip_packets":N,"data_forward_rate_Mbps":N.N,"data_drop_rate_Mbps":N.N,"packet_forward_rate_kpps":N.N,"packet_drop_rate_kpps":N.N,"free_buffer_slots":N}"#
    );
    let total: Value = serde_json::from_str(line).unwrap();
    assert_eq!(total["packets_dropped"], 0);
    let decimals = |key: &str, digits: usize| {
        let value = line.split(&format!("\"{key}\":")).nth(1).unwrap().split([',', '}']).next();
        assert_eq!(value.unwrap().split_once('.').unwrap().1.len(), digits, "{line}");
    };
    decimals("ts", 6);
    decimals("packet_forward_rate_kpps", 4);
    home.is_left_clean();
}

#[test]
fn each_group_sees_all_packets() {
    let home = Home::new();
    let lb = start(&home, &["-p", "out:2", "-p", "out:1", "-B", "9000", "-o", "1"]);
    let firsts = ["out}0", "out}1"].map(|pipe| share(&home, pipe));
    // The pipes of the second group count on.
    let second = home.open(&["recv", "out}2", "--verify", "--count", "3000"]);
    send(&home, "3000");
    // Flows keep their order, and overtake each other.
    second.wait_for(r#""good":3000,"missing":0"#, LIMIT);
    drop(second);
    // The consumers of the first may be slower: what they have no room for waits.
    lb.wait_for(r#""packets_received":3000,"packets_forwarded":6000,"#, LIMIT);
    assert_eq!(end(lb), "6000 packets forwarded.  0 packets dropped. Total 6000");
    assert_eq!(firsts.map(packets).iter().sum::<u64>(), 3000);
    home.is_left_clean();
}

#[test]
fn what_a_full_pipe_has_no_room_for_waits_in_extra_buffers() {
    let home = Home::new();
    let lb = start(&home, &["-p", "out:1", "-B", "4000", "-o", "1"]);
    lb.wait_for("obtained 4000 extra buffers", LIMIT);
    send(&home, "3000");
    // A ring of 1024 holds 1023; the others wait.
    lb.wait_for(r#""overflow_queue_size":1977}"#, LIMIT);
    lb.wait_for(r#""free_buffer_slots":2023}"#, LIMIT);
    let late = home.open(&["recv", "out}0", "--verify", "--count", "3000"]);
    assert_eq!(received(late), (3000, 3000));
    assert_eq!(end(lb), "3000 packets forwarded.  0 packets dropped. Total 3000");
    home.is_left_clean();
}

#[test]
fn without_extra_buffers_the_rest_is_dropped_and_counted() {
    let home = Home::new();
    let lb = start(&home, &["-p", "out:1", "-o", "1"]);
    send(&home, "3000");
    lb.wait_for(
        r#""packets_received":3000,"packets_forwarded":1023,"packets_dropped":1977,"#,
        LIMIT,
    );
    assert_eq!(end(lb), "1023 packets forwarded.  1977 packets dropped. Total 3000");
    home.is_left_clean();
}

#[test]
fn the_longest_queue_gives_when_buffers_run_out() {
    let home = Home::new();
    let lb = start(&home, &["-p", "out:1", "-B", "500", "-o", "1"]);
    send(&home, "3000");
    let text = lb.wait_for(r#""packets_received":3000,"#, LIMIT);
    let line = text.lines().find(|line| line.contains(r#""packets_received":3000,"#)).unwrap();
    let total: Value = serde_json::from_str(line).unwrap();
    // The oldest of the queue go, 150 at a time; the newest are kept.
    let dropped = total["packets_dropped"].as_u64().unwrap();
    assert_eq!(dropped % 150, 0, "{line}");
    let waiting = 3000 - 1023 - dropped;
    assert!((350..=500).contains(&waiting), "{line}");
    assert_eq!(total["free_buffer_slots"], 500 - waiting);
    let late = home.open(&["recv", "out}0", "--count", &(1023 + waiting).to_string()]);
    finish(late);
    end(lb);
    home.is_left_clean();
}

#[test]
fn pipes_are_named_after_the_input_or_otherwise() {
    let home = Home::new();
    let args = ["-i", "vale0:lb", "-w0", "-p", "out:1", "-p", "1", "-p", "1", "-W"];
    let lb = Proc::spawn(home.tool("lb", &args));
    let text = lb.wait_for("Ready...", LIMIT);
    for name in ["netmap:out{0", "vale0:lb{0", "vale0:lb{1"] {
        assert!(text.contains(&format!("opened pipe {name}\n")), "{text}");
    }
    // Fewer than a ring has slots.
    home.json(&["gen", "vale0:x", "--count", "100"]);
    for pipe in ["out}0", "vale0:lb}0", "vale0:lb}1"] {
        let consumer = home.open(&["recv", pipe, "--verify", "--count", "100"]);
        assert_eq!(received(consumer), (100, 100));
    }
    assert_eq!(end(lb), "300 packets forwarded.  0 packets dropped. Total 300");
    home.is_left_clean();
}

/// As many pipes as netmap's `lb` gets at most: 9 beside a VALE port, 64 in the global region.
#[test]
fn there_is_room_for_as_many_pipes_as_with_netmap() {
    let home = Home::new();
    let opens = |mut command: Command, pipes: &str| {
        command.args(["-w0", "-p", pipes]);
        let lb = Proc::spawn(command);
        lb.wait_for("Ready...", LIMIT);
        let text = end_with_output(lb);
        let opened = text.lines().filter(|line| line.contains("opened pipe ")).count();
        assert_eq!(opened.to_string(), pipes, "{text}");
    };
    for pipes in ["5", "9"] {
        opens(home.tool("lb", &["-i", "vale0:in"]), pipes);
    }
    home.is_left_clean();
    if skip_without_root("cli::lb::there_is_room_for_as_many_pipes_as_with_netmap: interfaces") {
        return;
    }
    let [near, far] = [(); 2].map(|()| Netns::quiet("lbp"));
    let _pair = near.veth(&far, "v1", "v2");
    // `ip netns exec` runs a program under the name of its file.
    let program = home.dir.join("lb");
    symlink(env!("CARGO_BIN_EXE_ringway"), &program).unwrap();
    for pipes in ["50", "64"] {
        let mut lb = near.command(program.to_str().unwrap());
        lb.args(["-i", "netmap:v1"]).env("RINGWAY_DIR", &home.dir);
        lb.env_remove("RINGWAY_SOCKET");
        opens(lb, pipes);
    }
    home.is_left_clean();
}

#[test]
fn exit_statuses() {
    let home = Home::new();
    let (status, printed, _) = run(home.tool("lb", &["-h"]));
    assert_eq!(status, Some(0));
    assert!(printed.starts_with("usage: lb [options]\n"), "{printed}");
    let long = "x".repeat(57);
    for (args, cause) in [
        (&[][..], "missing interface name"),
        (&["-i", &long], "ifname too long"),
        (&["-i", "vale0:a", "-p", "0"], "invalid number of pipes: 0"),
        (&["-i", "vale0:a", "-x"], "lb: invalid option -- 'x'"),
        (&["-i", "nosuch0"], "nosuch0"),
    ] {
        let (status, _, said) = run(home.tool("lb", args));
        assert_eq!(status, Some(1), "{said}");
        assert!(said.contains(cause), "{args:?}: {said}");
    }
    home.is_left_clean();
}
