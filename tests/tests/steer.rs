//! `ringway steer`: what it changes at a NIC, and that all of it is undone, whoever is killed. No
//! virtual interface has an RSS table or flow rules, so `tests/c/rss_nic.c` stands in for one.

use std::{fs, path::PathBuf, time::Duration};

use ringway_testkit::{Netns, Proc, VethPair, json_lines, skip_without_root};
use ringway_tests::{
    Home,
    c::{Language::C11, link},
    ends, inside, until,
};
use rustix::process::{Pid, Signal, kill_process};

const LIMIT: Duration = Duration::from_secs(30);
const TABLE: usize = 16;
const RULES: usize = 8;

/// As `struct state` of `rss_nic.c` has it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Nic {
    table: Vec<u32>,
    ntuple: u32,
    /// Type and queue; 0 for none.
    rules: Vec<[u32; 2]>,
}

impl Nic {
    /// As a driver comes up.
    fn fresh() -> Nic {
        let table = (0..4).cycle().take(TABLE).collect();
        Nic { table, ntuple: 0, rules: vec![[0, 0]; RULES] }
    }

    /// With settings of an administrator's.
    fn used() -> Nic {
        let mut nic = Nic { table: [3, 2, 2, 1].repeat(4), ntuple: 1, ..Nic::fresh() };
        nic.rules[7] = [1, 3];
        nic
    }
}

const TCP4: u32 = 1;
const UDP4: u32 = 2;

struct World {
    home: Home,
    netns: Netns,
    _pair: VethPair,
    _peer: Netns,
    shim: PathBuf,
    state: PathBuf,
}

impl World {
    fn new(nic: &Nic) -> World {
        let home = Home::new();
        home.install(&[("ringway", "ringway-cli")]);
        let shim = link(&home, "tests/c/rss_nic.c", C11, &["-shared", "-fPIC"]);
        let (netns, peer) = (Netns::quiet("rwt"), Netns::quiet("rwt"));
        let pair = netns.veth(&peer, "n0", "n1");
        let state = home.path().join("nic");
        let words = nic.table.iter().chain([&nic.ntuple]).chain(nic.rules.iter().flatten());
        let bytes: Vec<u8> = words.flat_map(|word| word.to_ne_bytes()).collect();
        fs::write(&state, bytes).unwrap();
        World { home, netns, _pair: pair, _peer: peer, shim, state }
    }

    fn daemon(&self) -> Proc {
        let env = [("LD_PRELOAD", self.shim.as_path()), ("RSS_NIC", self.state.as_path())];
        self.home.system_daemon_with(0, 0o600, "", |mut command| {
            command.envs(env);
            command
        })
    }

    fn nic(&self) -> Nic {
        let bytes = fs::read(&self.state).unwrap();
        let (words, _) = bytes.as_chunks::<4>();
        let words: Vec<_> = words.iter().map(|word| u32::from_ne_bytes(*word)).collect();
        let rules = words[TABLE + 1..].chunks(2).map(|rule| [rule[0], rule[1]]).collect();
        Nic { table: words[..TABLE].to_vec(), ntuple: words[TABLE], rules }
    }

    fn becomes(&self, expected: &Nic) {
        until("the NIC is as it was", || match self.nic() {
            nic if nic == *expected => Ok(()),
            nic => Err(format!("{nic:?}")),
        });
    }

    fn steer(&self, args: &[&str]) -> Proc {
        let mut command = self.home.system_command(self.home.bin().join("ringway"));
        command.args(["steer", "n0"]).args(args);
        Proc::spawn(inside(&self.netns, command))
    }

    /// Steers two flows to queue 2, and waits until they are.
    fn steered(&self) -> Proc {
        let steer = self.steer(&["-q2", "udp dst port 53", "tcp src host 10.0.0.1", "--json"]);
        steer.wait_for(r#""type":"steered""#, LIMIT);
        json_lines(&steer.wait_for("}\n", LIMIT));
        steer
    }

    /// Steering that must fail; what it says.
    fn refused(&self, args: &[&str]) -> String {
        let (status, said) = self.steer(args).wait();
        assert_eq!(status.code(), Some(1), "{said}");
        said
    }
}

fn kill(process: &Proc, signal: Signal) {
    process.signal(signal);
    assert!(ends(process.pid(), LIMIT));
}

#[test]
fn a_queue_is_isolated_and_flows_are_led_to_it_until_the_command_ends() {
    if skip_without_root("a_queue_is_isolated_and_flows_are_led_to_it_until_the_command_ends") {
        return;
    }
    for before in [Nic::fresh(), Nic::used()] {
        let world = World::new(&before);
        let daemon = world.daemon();
        for signal in [Signal::KILL, Signal::INT, Signal::TERM] {
            let steer = world.steered();
            let now = world.nic();
            let moved = before.table.iter().filter(|&&queue| queue == 2).count();
            assert!(steer.output().contains(&format!(r#""moved":{moved},"table":16"#)));
            for (old, new) in before.table.iter().zip(&now.table) {
                assert!(old == new && *new != 2 || *old == 2 && before.table.contains(new));
            }
            assert_eq!(now.ntuple, 1);
            let mut rules = before.rules.clone();
            let free = if before.rules[7] == [0, 0] { 7 } else { 6 };
            (rules[free], rules[free - 1]) = ([UDP4, 2], [TCP4, 2]);
            assert_eq!(now.rules, rules);
            let said = world.refused(&["-q1"]);
            assert!(said.contains("n0: flows are steered there already"), "{said}");
            kill(&steer, signal);
            world.becomes(&before);
        }
        kill(&daemon, Signal::TERM);
    }
}

#[test]
fn what_is_steered_is_undone_when_the_daemon_ends() {
    if skip_without_root("what_is_steered_is_undone_when_the_daemon_ends") {
        return;
    }
    for before in [Nic::fresh(), Nic::used()] {
        let world = World::new(&before);
        for signal in [Signal::KILL, Signal::TERM] {
            let daemon = world.daemon();
            let steer = world.steered();
            assert_ne!(world.nic(), before);
            kill_process(Pid::from_raw(daemon.pid() as i32).unwrap(), signal).unwrap();
            assert!(ends(daemon.pid(), LIMIT));
            world.becomes(&before);
            let (status, said) = steer.wait();
            assert_eq!(status.code(), Some(1));
            assert!(said.contains("n0: ringwayd has ended"), "{said}");
        }
    }
}

#[test]
fn what_cannot_be_steered_changes_nothing() {
    if skip_without_root("what_cannot_be_steered_changes_nothing") {
        return;
    }
    let before = Nic::used();
    let world = World::new(&before);
    let daemon = world.daemon();
    for (args, part) in [
        (&["-q2", "udp dst port 53", "udp6 dst port 53"][..], "`udp6 dst port 53`"),
        (&["-q4"], "there is no queue 4, only 4"),
        (&["-q2", "tcp", "tcp", "tcp", "tcp", "tcp", "tcp", "tcp", "tcp"], "all 8 places"),
    ] {
        let said = world.refused(args);
        assert!(said.contains("n0: ") && said.contains(part), "{said}");
        assert_eq!(world.nic(), before);
    }
    kill(&daemon, Signal::TERM);
}

#[test]
fn an_interface_without_a_table_is_told_as_one() {
    if skip_without_root("an_interface_without_a_table_is_told_as_one") {
        return;
    }
    let world = World::new(&Nic::fresh());
    let daemon = world.home.system_daemon(0, 0o600);
    let said = world.refused(&["-q0", "udp dst port 53"]);
    assert!(said.contains("n0: its driver cannot keep other traffic off a queue"), "{said}");
    assert!(said.contains("ringway filter"), "{said}");
    kill(&daemon, Signal::TERM);
}
