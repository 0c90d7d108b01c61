//! `vale-ctl`.

use super::run;
use crate::home::{Home, finish};
use ringway_testkit::skip_without_root;
use rustix::process::Signal;
use std::os::unix::fs::symlink;
use std::process::Command;

#[test]
fn the_list_has_one_line_a_port_and_status_one() {
    let home = Home::new();
    assert_eq!(run(home.tool("vale-ctl", &[])), (Some(1), String::new(), String::new()));
    let receivers = ["vale0:a", "vale0:b", "vale1:a"].map(|port| home.open(&["recv", port]));
    let (status, listed, said) = run(home.tool("vale-ctl", &[]));
    assert_eq!((status, said), (Some(1), String::new()));
    assert_eq!(
        listed,
        "vale0:a bridge_idx 0 port_idx 0\n\
         vale0:b bridge_idx 0 port_idx 1\n\
         vale1:a bridge_idx 1 port_idx 0\n"
    );
    let found = |name| run(home.tool("vale-ctl", &["-l", name]));
    let here = |text: &str| (Some(0), text.to_string(), String::new());
    assert_eq!(found("vale0:b"), here("bridge_idx: 0\nport_idx:   1\n"));
    assert_eq!(found("vale1:x"), here("bridge_idx: 1\nport_idx:   255\n"));
    let absent = |name, why: &str| {
        let said = format!("failed to list {name}: {why}\n");
        assert_eq!(found(name), (Some(1), String::new(), said));
    };
    absent("vale0", "No such file or directory");
    absent("vale7:a", "No such file or directory");
    absent("eth0:a", "Invalid argument");
    for receiver in receivers {
        receiver.signal(Signal::INT);
        finish(receiver);
    }
    home.is_left_clean();
}

#[test]
fn a_persistent_port_from_birth_to_end() {
    if skip_without_root("cli::tools::valectl") {
        return;
    }
    let home = Home::new();
    let ctl = |args: &[&str]| run(home.tool("vale-ctl", args));
    let done = |text: &str| (Some(0), text.to_string(), String::new());
    // Short enough for an interface, and nobody else's.
    let name = format!("t{}p", std::process::id());
    let full = format!("vale0:{name}");
    // Keeps the daemon, and with it the port, between two commands.
    let keeper = home.open(&["recv", "vale0:keeper"]);
    let (status, made, _) = ctl(&["-v", "-n", &name, "-C", "512,256,2,2"]);
    assert_eq!(status, Some(0));
    let (rings, mem_id) = made.split_once("mem_id:     ").unwrap();
    assert_eq!(rings, "tx_slots:   512\nrx_slots:   256\ntx_rings:   2\nrx_rings    2\n");
    assert!(mem_id.trim().parse::<u16>().unwrap() > 1);
    let exists = format!("failed to create {name}: File exists\n");
    assert_eq!(ctl(&["-n", &name]), (Some(1), String::new(), exists));
    assert_eq!(ctl(&["-v", "-a", &full]), done("port_index: 1\n"));
    let busy = format!("failed to attach {full}: Device or resource busy\n");
    assert_eq!(ctl(&["-a", &full]), (Some(1), String::new(), busy));
    let busy = format!("failed to remove {name}: Device or resource busy\n");
    assert_eq!(ctl(&["-r", &name]), (Some(1), String::new(), busy));
    assert_eq!(ctl(&["-v", "-d", &full]), done("port_index: 1\n"));
    let absent = format!("failed to detach {full}: No such device or address\n");
    assert_eq!(ctl(&["-d", &full]), (Some(1), String::new(), absent));
    // Of several actions the last one counts.
    assert_eq!(ctl(&["-n", "other", "-r", &name]), done(""));
    let absent = format!("failed to remove {name}: No such device or address\n");
    assert_eq!(ctl(&["-r", &name]), (Some(1), String::new(), absent));
    // A port in another's memory.
    let (_, info, _) = ctl(&["-g", "vale0:keeper"]);
    let (status, made, _) = ctl(&["-v", "-m", "vale0:keeper", "-n", &name]);
    assert_eq!(status, Some(0));
    assert_eq!(made.lines().last(), info.lines().last());
    assert_eq!(ctl(&["-r", &name]), done(""));
    keeper.signal(Signal::INT);
    finish(keeper);
    home.is_left_clean();
}

#[test]
fn info_tells_rings_slots_and_memory() {
    let home = Home::new();
    let keeper = home.open(&["recv", "vale0:keeper"]);
    let (status, text, _) = run(home.tool("vale-ctl", &["-g", "vale0:keeper"]));
    assert_eq!(status, Some(0));
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(
        lines[..5],
        [
            "memsize:    42369024",
            "tx_slots:   1024",
            "rx_slots:   1024",
            "tx_rings:   1",
            "rx_rings    1",
        ]
    );
    assert!(lines[5].starts_with("mem_id:     "), "{text}");
    let absent = "failed to obtain info for nosuch0: No such device or address\n";
    assert_eq!(
        run(home.tool("vale-ctl", &["-g", "nosuch0"])),
        (Some(1), String::new(), absent.into())
    );
    keeper.signal(Signal::INT);
    finish(keeper);
    home.is_left_clean();
}

#[test]
fn polling_without_a_configuration_is_warned_about() {
    let home = Home::new();
    let keeper = home.open(&["recv", "vale0:keeper"]);
    let (status, _, said) = run(home.tool("vale-ctl", &["-p", "vale0:keeper"]));
    assert_eq!(status, Some(1));
    let lines: Vec<_> = said.lines().collect();
    assert_eq!(lines[0], "invalid null/empty config");
    assert!(lines[1].starts_with("failed to enable polling on vale0:keeper: "), "{said}");
    let (status, _, said) = run(home.tool("vale-ctl", &["-P", "vale0:none", "-C", "1,0,1"]));
    assert_eq!(status, Some(1));
    assert_eq!(said, "failed to disable polling on vale0:none: No such device or address\n");
    keeper.signal(Signal::INT);
    finish(keeper);
    home.is_left_clean();
}

#[test]
fn bad_usage_is_explained() {
    let home = Home::new();
    for (args, first) in [
        (&["-x"][..], "vale-ctl: invalid option -- 'x'"),
        (&["-h"], "vale-ctl: option requires an argument -- 'h'"),
        (&["vale0"], "Usage:"),
    ] {
        let (status, printed, said) = run(home.tool("vale-ctl", args));
        assert_eq!((status, printed), (Some(1), String::new()));
        assert!(said.starts_with(first) && said.contains("vale-ctl arguments"), "{said}");
    }
    assert!(!home.dir.join("lock").exists());
}

#[test]
fn a_link_with_the_name_is_the_tool() {
    let home = Home::new();
    let link = home.dir.join("vale-ctl");
    symlink(env!("CARGO_BIN_EXE_ringway"), &link).unwrap();
    let mut command = Command::new(&link);
    command.args(["-g", "vale0:a"]).env("RINGWAY_DIR", &home.dir).env_remove("RINGWAY_SOCKET");
    let (status, printed, _) = run(command);
    assert_eq!(status, Some(0));
    assert!(printed.starts_with("memsize:"), "{printed}");
    home.is_left_clean();
}
