//! Names of switches and ports among the users of one daemon: whose a switch is, everybody who
//! joins it is told, and an operator keeps names for some users.

use std::{process::Command, time::Duration};

use ringway_testkit::{Proc, skip_without_root};
use ringway_tests::{
    GROUP, Home, NOBODY, as_nobody,
    c::{Language::C11, link},
    connect, until,
};
use rustix::process::Signal;

const LIMIT: Duration = Duration::from_secs(30);

/// Another user of the group, and one who is in a further group, too.
const OTHER: u32 = 54322;
const MEMBER: u32 = 54323;
const STAFF: u32 = 54330;

fn as_user(uid: u32, groups: &str, command: Command) -> Command {
    let mut setpriv = Command::new("setpriv");
    setpriv.args([format!("--reuid={uid}"), format!("--regid={GROUP}")]);
    setpriv.arg(if groups.is_empty() {
        "--clear-groups".into()
    } else {
        format!("--groups={groups}")
    });
    setpriv.args(["--inh-caps=-all", "--"]).arg(command.get_program()).args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => setpriv.env(name, value),
            None => setpriv.env_remove(name),
        };
    }
    setpriv
}

fn home() -> Home {
    let home = Home::new();
    home.install(&[("ringway", "ringway-cli")]);
    home
}

fn ringway(home: &Home, args: &str) -> Command {
    let mut command = home.system_command(home.bin().join("ringway"));
    command.args(args.split_whitespace());
    command
}

/// What a command has said, and whether it succeeded.
fn said(command: Command) -> (bool, String) {
    let (status, said) = Proc::spawn(command).wait();
    (status.success(), said)
}

#[test]
fn who_joins_a_switch_is_told_whose_it_is() {
    if skip_without_root("who_joins_a_switch_is_told_whose_it_is") {
        return;
    }
    let home = home();
    let daemon = home.system_daemon(GROUP, 0o660);
    let bob = Proc::spawn(as_nobody(home.system_traffic(&["hold", "vale0:bob"])));
    bob.wait_for("open", LIMIT);
    assert_eq!(said(ringway(&home, "switch new valer")), (true, String::new()));
    let owner = format!("user {NOBODY}");

    // In words, in JSON, in the lists; nothing where the switch is one's own, or root's.
    let recv = |port: &str| format!("recv {port} --idle 1ms");
    for (name, uid, is_told) in
        [("vale0:x", OTHER, true), ("valer:x", OTHER, false), ("vale0:y", NOBODY, false)]
    {
        let (done, text) = said(as_user(uid, "", ringway(&home, &recv(name))));
        assert!(done, "{text}");
        assert_eq!(text.contains(&format!("{owner}'s")), is_told, "{name} of {uid}: {text}");
        let (done, text) = said(as_user(uid, "", ringway(&home, &(recv(name) + " --json"))));
        assert!(done, "{text}");
        let field = format!("\"switch_owner\":{NOBODY}");
        assert_eq!(text.contains(&field), is_told, "{name} of {uid}: {text}");
    }
    let holds = Proc::spawn(as_user(OTHER, "", home.system_traffic(&["hold", "vale0:x"])));
    holds.wait_for("open", LIMIT);
    for (args, words) in [
        ("switch list", &["owner", &owner][..]),
        ("ports", &["switch of", &owner]),
        ("switch list --json", &[&format!("\"owner\":{NOBODY}"), "\"owner\":0"]),
        ("ports --json", &[&format!("\"switch_owner\":{NOBODY}")]),
    ] {
        let (done, text) = said(as_user(OTHER, "", ringway(&home, args)));
        assert!(done && words.iter().all(|word| text.contains(word)), "{args}: {text}");
    }
    // To the user's own eyes there is no other.
    let (_, text) = said(as_nobody(ringway(&home, "switch list")));
    assert!(!text.contains("owner"), "{text}");
    drop((bob, holds));
    daemon.kill();
}

/// By whichever API a program joins a switch, standard error says with `RINGWAY_VERBOSE` whose it is.
#[test]
fn programs_of_every_api_are_told_whose_a_switch_is() {
    if skip_without_root("programs_of_every_api_are_told_whose_a_switch_is") {
        return;
    }
    let home = home();
    home.install(&[
        ("libnetmap.so", "ringway-libnetmap"),
        ("libpfring.so", "ringway-libpfring"),
        ("libringway_pcap.so", "ringway-pcap"),
    ]);
    let build = |name: &str, libraries: &[&str]| {
        link(&home, &format!("tests/c/{name}.c"), C11, libraries).display().to_string()
    };
    let netmap = build("own_options", &["-lnetmap"]);
    let pfring = build("pfring_count", &["-lpfring", "-lpthread"]);
    let tpacket4 = build("tpacket4_modes", &["-lringway_netmap"]);
    let _daemon = home.system_daemon(GROUP, 0o660);
    let bob = Proc::spawn(as_nobody(home.system_traffic(&["hold", "vale0:bob"])));
    bob.wait_for("open", LIMIT);
    let tcpdump = "ringway run -- tcpdump -i vale0:x";
    for (api, line) in [
        ("netmap", format!("{netmap} vale0:x")),
        ("libpcap", tcpdump.into()),
        ("PF_RING", format!("{pfring} vale0:x 1 recv")),
        ("AF_PACKET V4", format!("{tpacket4} vale0:x vale0:y poll 640")),
    ] {
        let start = |uid, verbose: bool| {
            let mut shell = home.system_command("sh");
            shell.args(["-c", &format!("exec {line}")]);
            if verbose {
                shell.env("RINGWAY_VERBOSE", "1");
            }
            Proc::spawn(as_user(uid, "", shell))
        };
        let words = format!("vale0:x: the switch is user {NOBODY}'s");
        let told = start(OTHER, true);
        until(&format!("a program of {api} is told"), || {
            let said = told.output();
            if said.contains(&words) { Ok(()) } else { Err(said) }
        });
        drop(told);
        // Nobody is told who does not want to know, or whose the switch is.
        for (uid, verbose) in [(OTHER, false), (NOBODY, true)] {
            let mut program = start(uid, verbose);
            until("it has joined the switch", || {
                let (_, ports) = said(as_user(uid, "", ringway(&home, "ports")));
                if ports.contains("vale0:x") || !program.is_running() { Ok(()) } else { Err(ports) }
            });
            assert!(!program.output().contains("the switch is"), "{api}: {}", program.output());
        }
    }
    // What the killed programs of PF_RING have left in their users' folders goes when they look.
    for uid in [OTHER, NOBODY] {
        let (_, rings) = said(as_user(uid, "", ringway(&home, "ports --pf-ring")));
        assert_eq!(rings.trim(), "no rings of PF_RING are open");
    }
}

#[test]
fn reserved_names_are_for_those_whom_they_are_for() {
    if skip_without_root("reserved_names_are_for_those_whom_they_are_for") {
        return;
    }
    let home = home();
    let reserve = format!(
        "[[reserve]]\nname = 'vale0:db'\nusers = ['{NOBODY}']\n\
         [[reserve]]\nname = 'vale0:open*'\nusers = ['{OTHER}', '{NOBODY}']\ngroups = ['{STAFF}']\n\
         [[reserve]]\nname = 'vale0:*'\ngroups = ['{STAFF}']\n\
         [[reserve]]\nname = 'vale_prod*'\nusers = ['{NOBODY}']\n"
    );
    let daemon = home.system_daemon_with(GROUP, 0o660, &reserve, |daemon| daemon);
    let staff = &STAFF.to_string();
    let open = |port: &str| home.system_traffic(&["close", port]);
    let new = |switch: &str| ringway(&home, &format!("switch new {switch}"));
    let delete = |switch: &str| ringway(&home, &format!("switch delete {switch}"));
    for (uid, groups, command, reserved) in [
        (OTHER, "", open("vale0:db"), Some("vale0:db")),
        (NOBODY, "", open("vale0:db"), None),
        // The first pattern decides.
        (MEMBER, staff, open("vale0:db"), Some("vale0:db")),
        (MEMBER, staff, open("vale0:x"), None),
        (MEMBER, "", open("vale0:x"), Some("vale0:*")),
        (OTHER, "", open("vale0:x"), Some("vale0:*")),
        (OTHER, "", open("vale0:x{1"), Some("vale0:*")),
        (OTHER, "", open("vale0:open1"), None),
        (OTHER, "", open("vale1:db"), None),
        (OTHER, "", new("vale_prod1"), Some("vale_prod*")),
        (OTHER, "", open("vale_prod1:x"), Some("vale_prod*")),
        (NOBODY, "", new("vale_prod1"), None),
        // It is there: what joins it, its ports' patterns say.
        (OTHER, "", open("vale_prod1:x"), None),
        (OTHER, "", ringway(&home, "switch forward vale_prod1 flood"), Some("vale_prod*")),
        (OTHER, "", delete("vale_prod1"), Some("vale_prod*")),
        (NOBODY, "", delete("vale_prod1"), None),
        (0, "", open("vale0:x"), None),
        (0, "", new("vale_prod2"), None),
    ] {
        let what = format!("{uid} {groups} {command:?}");
        let (done, text) = said(as_user(uid, groups, command));
        assert_eq!(done, reserved.is_none(), "{what}: {text}");
        if let Some(pattern) = reserved {
            assert!(
                text.contains(&format!("reserved for other users: `{pattern}`")),
                "{what}: {text}"
            );
            assert!(text.contains(&format!("[[reserve]] of {pattern}")), "{what}: {text}");
        }
    }
    let (_, text) = said(as_user(OTHER, "", open("vale0:db")));
    assert!(text.contains(&format!("error {}", libc::EPERM)), "{text}");

    // The log and the doctor know of it; users know of what they have asked for, and of what is theirs.
    until("the log says so", || {
        let _ = connect(&home.system_socket());
        let log = daemon.output();
        let words = format!("vale0:db: user {OTHER} asked for it");
        if log.contains(&words) { Ok(()) } else { Err(log) }
    });
    let taken = Proc::spawn(as_nobody(home.system_traffic(&["hold", "valet:a"])));
    taken.wait_for("open", LIMIT);
    let (done, text) = said(as_user(OTHER, "", open("valet:a")));
    assert!(!done && text.contains("in use"), "{text}");
    for (uid, words, without) in [
        (0, &["vale0:db", "vale_prod1", "valet:a", "reserve"][..], &["no such words"][..]),
        (OTHER, &["vale0:db", "valet:a"], &["no such words"]),
        // They are that user's.
        (NOBODY, &["vale0:db", "vale_prod1", "valet:a"], &["no such words"]),
        (MEMBER, &["vale0:db"], &["valet:a", "vale_prod1"]),
    ] {
        let (_, text) = said(as_user(uid, "", ringway(&home, "doctor")));
        assert!(words.iter().all(|word| text.contains(word)), "{uid}: {text}");
        assert!(without.iter().all(|word| !text.contains(word)), "{uid}: {text}");
    }
    drop(taken);
    daemon.signal(Signal::TERM);
    let (status, log) = daemon.wait();
    assert!(status.success(), "{log}");
}
