//! What a machine uses is not taken without a word, and what it, or its user, cannot do without,
//! not without `--force`.

use crate::home::{Home, LIMIT, find, lines};
use crate::log::System;
use ringway_testkit::{Netns, Proc, VethPair, skip_without_root};
use rustix::process::Signal;
use std::process::{Command, Output};

/// What becomes of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    /// It does what it is asked to.
    Silent,
    /// It does, and says what stops.
    Warned,
    /// It says what would stop.
    Refused,
}

use Outcome::{Refused, Silent, Warned};

const ADDRESS: &str = "ip addr add 10.77.0.1/24 dev vu0";
const DEFAULT: &str = "ip addr add 10.77.0.1/24 dev vu0 && ip route add default via 10.77.0.2";
const BRIDGE: &str =
    "ip link add br7 type bridge && ip link set vu0 master br7 && ip link set br7 up &&
                      ip addr add 10.77.0.1/24 dev br7";
const UPPER: &str = "ip link add link vu0 name vm0 type macvlan && ip link set vm0 up &&
                     ip addr add 10.77.0.1/24 dev vm0";
const SESSION: &str = "10.77.0.9 51234 10.77.0.1 22";
/// To an address that another interface has: the way back is what counts.
const ROUTED: &str = "10.77.0.9 51234 192.0.2.1 22";
const ELSEWHERE: &str = "192.0.2.9 51234 192.0.2.1 22";

/// A namespace with an interface that is used as `uses` says.
fn used(uses: &str) -> (Netns, VethPair, Netns) {
    let [near, far] = [(); 2].map(|()| Netns::quiet("use"));
    let pair = near.veth(&far, "vu0", "vu1");
    if !uses.is_empty() {
        near.run(uses);
    }
    (near, pair, far)
}

fn outcome(command: &mut Command, session: &str) -> (Outcome, Output) {
    let output = command.env("SSH_CONNECTION", session).output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    let outcome = match (output.status.success(), text.contains("this stops")) {
        (true, true) => Warned,
        (true, false) => Silent,
        (false, _) if text.contains("this would stop") => Refused,
        (false, _) => panic!("{command:?}: {text}"),
    };
    (outcome, output)
}

/// Force does not help a user that may not have the interface.
#[test]
fn a_user_without_rights_is_not_sent_to_force() {
    if skip_without_root("interface_use::a_user_without_rights_is_not_sent_to_force") {
        return;
    }
    const NOBODY: u32 = 65534;
    let home = Home::new();
    let (near, _pair, _far) = used(DEFAULT);
    let dir = home.dir.join("nobodys");
    std::fs::create_dir(&dir).unwrap();
    std::os::unix::fs::chown(&dir, Some(NOBODY), Some(NOBODY)).unwrap();
    let mut command = near.command("setpriv");
    let ids = [format!("--reuid={NOBODY}"), format!("--regid={NOBODY}")];
    command.args(ids).args(["--clear-groups", "--inh-caps=-all", "--"]);
    command.arg(env!("CARGO_BIN_EXE_ringway")).args(["recv", "netmap:vu0", "--idle", "1ms"]);
    command.env("RINGWAY_DIR", dir).env_remove("RINGWAY_SOCKET");
    let output = command.output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success() && !said.contains("--force"), "{said}");
    assert!(
        said.contains("vu0: a private daemon could not open NICs without CAP_NET_RAW"),
        "{said}"
    );
}

#[test]
fn what_is_used_is_not_taken_without_a_word() {
    if skip_without_root("interface_use::what_is_used_is_not_taken_without_a_word") {
        return;
    }
    let home = Home::new();
    let recv = &["recv", "netmap:vu0", "--idle", "1ms"][..];
    for (uses, session, args, expected, words) in [
        ("", "", recv, Silent, &[][..]),
        ("", SESSION, recv, Silent, &[]),
        (
            ADDRESS,
            "",
            recv,
            Warned,
            &["the address 10.77.0.1/24", "--filter", "ringway bridge vu0"],
        ),
        (ADDRESS, ELSEWHERE, recv, Warned, &["the address 10.77.0.1/24"]),
        (ADDRESS, SESSION, recv, Refused, &["your own session from 10.77.0.9", "--force"]),
        (ADDRESS, ROUTED, recv, Refused, &["your own session from 10.77.0.9"]),
        (DEFAULT, "", recv, Refused, &["the default route", "the address", "--force"]),
        (UPPER, "", recv, Warned, &["the address 10.77.0.1/24 on vm0"]),
        (BRIDGE, "", recv, Warned, &["its part in the bridge br7", "10.77.0.1/24 on br7"]),
        (BRIDGE, SESSION, recv, Refused, &["its part in the bridge br7", "your own session"]),
    ] {
        let (near, _pair, _far) = used(uses);
        let what = format!("{uses:?} {session:?}");
        let (outcome, output) = self::outcome(&mut home.command_in(&near, args), session);
        let text = String::from_utf8(output.stderr).unwrap();
        assert_eq!(outcome, expected, "{what}: {text}");
        assert!(words.iter().all(|word| text.contains(word)), "{what}: {text}");
        // For machines as well; and with the word that it is meant.
        let json = [args, &["--json"]].concat();
        let (_, output) = self::outcome(&mut home.command_in(&near, &json), session);
        let said = lines(&String::from_utf8(output.stderr).unwrap());
        match expected {
            Silent => assert!(!said.iter().any(|line| line["text"].to_string().contains("stop"))),
            Warned => assert!(find(&said, "note")["text"].to_string().contains("this stops")),
            Refused => {
                let error = find(&said, "error");
                assert_eq!((&error["cause"], &error["port"]), (&"busy".into(), &"vu0".into()));
                let forced = [args, &["--force"]].concat();
                let (outcome, _) = self::outcome(&mut home.command_in(&near, &forced), session);
                assert_eq!(outcome, Warned, "{what}, forced");
            }
        }
        home.is_left_clean();
    }
}

/// Where the daemon grants no interface, --force would not help, and is not named.
#[test]
fn rights_come_before_what_would_stop() {
    if skip_without_root("interface_use::rights_come_before_what_would_stop") {
        return;
    }
    let (near, _pair, _far) = used(DEFAULT);
    let system = System::new();
    let daemon = Proc::spawn(system.daemon(&[]));
    system.wait();
    for args in [&["recv", "netmap:vu0"][..], &["switch", "attach", "vale0", "vu0"]] {
        let output = system.as_nobody_by(near.command("setpriv"), args).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains("does not grant you network interfaces"), "{args:?}: {said}");
        assert!(!said.contains("--force"), "{args:?}: {said}");
    }
    daemon.signal(Signal::TERM);
    daemon.wait();
}

/// What is not done stops nothing, and the error says what to write.
#[test]
fn what_fails_is_not_said_to_stop_anything() {
    if skip_without_root("interface_use::what_fails_is_not_said_to_stop_anything") {
        return;
    }
    let home = Home::new();
    let (near, _pair, _far) = used(ADDRESS);
    let taken = home.command_in(&near, &["switch", "attach", "vale0", "vu0"]).output().unwrap();
    let said = String::from_utf8(taken.stderr).unwrap();
    assert!(taken.status.success() && said.contains("this stops the address"), "{said}");
    for (args, words) in [
        (&["switch", "attach", "vale0", "vu0"][..], "vu0"),
        (&["switch", "attach", "vale1", "netmap:vu0"], "name it as `ip link` does"),
        (&["switch", "attach", "vale0", "vu0@mode=none"], "no mode of an interface"),
        (&["recv", "netmap:vu0"], "vu0"),
        (&["bridge", "netmap:vu0^"], "netmap:vu0^: the stack is behind the interface as a whole"),
        (&["bridge", "netmap:vu0/T"], "netmap:vu0/T: the stack is behind the interface as a whole"),
    ] {
        let output = home.command_in(&near, args).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(!output.status.success() && said.contains(words), "{args:?}: {said}");
        assert!(!said.contains("this stops"), "{args:?}: {said}");
    }
    assert!(home.command_in(&near, &["switch", "delete", "vale0"]).status().unwrap().success());
    home.is_left_clean();
}

/// A look at an interface that no program has open leaves it to its stack, as in libpcap.
#[test]
fn a_look_at_a_free_interface_takes_nothing() {
    if skip_without_root("interface_use::a_look_at_a_free_interface_takes_nothing") {
        return;
    }
    let home = Home::new();
    let (near, _pair, far) = used(DEFAULT);
    far.run("ip addr add 10.77.0.2/24 dev vu1");
    for (name, filter, sent, received) in [
        ("netmap:vu0/rt", "icmp", 2, 2),
        ("netmap:vu0/r", "icmp", 0, 2),
        ("netmap:vu0/t", "icmp", 2, 0),
        ("netmap:vu0/rt", "icmp and src host 10.77.0.2", 0, 2),
    ] {
        let file = home.dir.join("seen.pcapng");
        let count = (sent + received).to_string();
        let file = file.to_str().unwrap();
        let how = ["--overwrite", "--filter", filter, "-n", &count, "--json"];
        let args = [&["capture", name, "-w", file], &how[..]].concat();
        let mut command = home.command_in(&near, &args);
        command.env("SSH_CONNECTION", SESSION);
        let capture = Proc::spawn(command);
        capture.wait_for(r#""type":"open""#, LIMIT);
        // The stack answers meanwhile.
        near.run("ping -c 2 -i 0.2 -W 20 10.77.0.2");
        let (status, text) = capture.wait();
        assert!(status.success() && text.contains(r#""kind":"listener""#), "{name}: {text}");
        let read = lines(&text);
        assert_eq!(find(&read, "summary")["packets"], sent + received, "{name}: {text}");
        let printed = home.run(&["recv", &format!("file:{file}"), "--print"]).stdout;
        let printed = String::from_utf8(printed).unwrap();
        let from = |host: &str| printed.matches(&format!("{host} > ")).count();
        assert_eq!((from("10.77.0.1"), from("10.77.0.2")), (sent, received), "{printed}");
    }
    home.is_left_clean();
}

/// Each command that takes an interface, and each way that leaves it to the machine.
#[test]
fn every_command_says_so() {
    if skip_without_root("interface_use::every_command_says_so") {
        return;
    }
    let home = Home::new();
    let (near, _pair, _far) = used(ADDRESS);
    let file = home.dir.join("seen.pcapng");
    let file = file.to_str().unwrap();
    let short = ["--duration", "1ms"];
    let with = |args: &[&'static str]| -> Vec<String> {
        args.iter().chain(&short).map(|arg| arg.to_string()).collect()
    };
    let mut capture = with(&["capture", "netmap:vu0"]);
    capture.extend(["--write", file].map(String::from));
    for (args, expected) in [
        (with(&["recv", "netmap:vu0"]), Refused),
        (with(&["recv", "netmap:vu0-0"]), Refused),
        // Nothing is diverted while no program sends in the stack's place.
        (with(&["recv", "netmap:vu0^"]), Silent),
        (with(&["recv", "netmap:vu0*"]), Refused),
        (with(&["recv", "netmap:vu0", "--filter", "udp port 9"]), Silent),
        (with(&["recv", "netmap:vu0@filter=udp port 9"]), Silent),
        (capture, Refused),
        (with(&["pong", "netmap:vu0"]), Refused),
        (with(&["lb", "netmap:vu0", "--to", "p{1"]), Refused),
        (with(&["shape", "netmap:vu0", "p{1"]), Refused),
        (with(&["shape", "netmap:vu0", "netmap:vu0^"]), Silent),
        (with(&["bridge", "netmap:vu0", "p{1"]), Refused),
        (with(&["bridge", "p{1", "netmap:vu0"]), Refused),
        (with(&["bridge", "netmap:vu0"]), Silent),
        // It sends on what the stack sends.
        (with(&["pong", "netmap:vu0", "--filter", "udp port 9"]), Silent),
        // What sends takes the stack's way out.
        (with(&["gen", "netmap:vu0", "--count", "1"]), Refused),
        (vec!["switch".into(), "attach".into(), "vale0".into(), "vu0".into()], Refused),
        (["switch", "attach", "vale0", "vu0", "--host"].map(String::from).to_vec(), Silent),
    ] {
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let (outcome, output) = self::outcome(&mut home.command_in(&near, &args), SESSION);
        assert_eq!(outcome, expected, "{args:?}: {output:?}");
    }
    let deleted = home.command_in(&near, &["switch", "delete", "vale0"]).status().unwrap();
    assert!(deleted.success());
    home.is_left_clean();

    // netmap's tools, which take `--force` besides their own options; a program that is run
    // unchanged is its user's affair.
    let tool = |name: &str, args: &[&str]| {
        let path = home.dir.join(name);
        let _ = std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_ringway"), &path);
        let mut command = home.program_in(&near, path.to_str().unwrap(), args);
        let output = command.env("SSH_CONNECTION", SESSION).output().unwrap();
        let text = [output.stdout, output.stderr].concat();
        (output.status.success(), String::from_utf8(text).unwrap())
    };
    let rx = ["-i", "netmap:vu0", "-f", "rx", "-n", "1", "-w", "0"];
    let (done, text) = tool("pkt-gen", &rx);
    assert!(!done && text.contains("your own session"), "{text}");
    let (done, text) = tool("vale-ctl", &["-a", "vale0:vu0"]);
    assert!(!done && text.contains("your own session"), "{text}");
    let (done, text) = tool("vale-ctl", &["-a", "vale0:vu0", "--force"]);
    assert!(done && text.contains("this stops"), "{text}");
    assert!(tool("vale-ctl", &["-d", "vale0:vu0"]).0);
}

/// Filters, captures and host rings rely on Ethernet headers. A loopback's frames have some.
#[test]
fn what_has_no_ethernet_headers_is_refused() {
    if skip_without_root("interface_use::what_has_no_ethernet_headers_is_refused") {
        return;
    }
    let home = Home::new();
    let netns = Netns::quiet("use");
    netns.run("ip tuntap add vu9 mode tun && ip link set vu9 up && ip link set lo up");
    let receive = |name: &str| {
        home.command_in(&netns, &["recv", name, "--duration", "10ms"]).output().unwrap()
    };
    for name in ["netmap:vu9", "netmap:vu9^", "netmap:vu9@mode=packet"] {
        let output = receive(name);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && said.contains("vu9: no Ethernet interface"), "{said}");
        assert!(said.contains("`tcpdump -i vu9`"), "{said}");
    }
    let doctor = home.command_in(&netns, &["doctor", "vu9"]).output().unwrap();
    let said = String::from_utf8_lossy(&doctor.stdout).into_owned();
    // Where sysfs is that of this namespace.
    assert!(!said.contains("native XDP") || said.contains("/sys shows another"), "{said}");
    let output = receive("netmap:lo@mode=packet");
    assert!(output.status.success(), "{output:?}");
}
