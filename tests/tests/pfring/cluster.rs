//! Programs that share the packets of an interface.

use std::{
    collections::BTreeSet,
    fs,
    os::unix::fs::DirBuilderExt,
    time::{Duration, Instant},
};

use super::*;
use ringway_tests::until;
use rustix::time::{ClockId, clock_gettime};

const FIVE_TUPLE: u32 = 4;
const ROUND_ROBIN: u32 = 1;
const AUTO: u32 = 64;

/// Packets of UDP to many ports, each a flow of its own.
fn flows(round: u8) -> Vec<Vec<u8>> {
    (0..60)
        .map(|port| {
            let mut frame = vec![0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2, 0, 0, 0, 0, 7, 8, 0];
            frame.extend([0x45, 0, 0, 46, 0, 1, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
            frame.extend([3, 232, 0, port, 0, 26, 0, 0, round]);
            frame.resize(60, 0);
            frame
        })
        .collect()
}

/// The queue by PF_RING's rule: a plain sum, modulo the queues.
fn queue_of(frame: &[u8], queues: u32) -> u32 {
    let sum = 0x0a00_0001 + 0x0a00_0002 + 17 + 1000 + u32::from(frame[37]);
    sum % queues
}

struct Members<'a> {
    home: &'a Home,
    netns: Option<&'a Netns>,
    device: &'a str,
    program: String,
}

impl Members<'_> {
    fn start(&self, id: u32, kind: u32, queue: u32) -> Proc {
        let Members { program, device, .. } = self;
        run(self.home, self.netns, &format!("{program} '{device}' {id} {kind} {queue}"))
    }

    fn join(&self, id: u32, kind: u32, queue: u32) -> Proc {
        let member = self.start(id, kind, queue);
        member.wait_for("ready", LIMIT);
        member
    }
}

fn got(member: &Proc) -> BTreeSet<String> {
    let said = member.output();
    said.lines().filter_map(|line| line.strip_prefix("got ")).map(str::to_owned).collect()
}

/// Waits until a member has all that is its share, and sees that it has nothing else.
fn assert_share(member: &Proc, queue: u32, queues: u32, frames: &[Vec<u8>]) {
    let share = frames.iter().filter(|frame| queue_of(frame, queues) == queue);
    let share: BTreeSet<String> = share.map(|frame| hex(frame)).collect();
    let others = |got: &BTreeSet<String>| {
        let all: BTreeSet<String> = frames.iter().map(|frame| hex(frame)).collect();
        got.intersection(&all).filter(|frame| !share.contains(*frame)).count()
    };
    until("a member has its share", || {
        let got = got(member);
        match share.is_subset(&got) {
            true => Ok(()),
            false => Err(format!("queue {queue}: {} of {}", got.len(), share.len())),
        }
    });
    assert_eq!(others(&got(member)), 0, "queue {queue} has what is another's");
}

/// The files that members have in common.
fn cluster_files(home: &Home) -> usize {
    let folder = home.socket().parent().map(fs::read_dir);
    let entries = folder.into_iter().flatten().flatten().flatten();
    let name = |entry: &fs::DirEntry| entry.file_name().to_string_lossy().into_owned();
    entries.filter(|entry| name(entry).starts_with("pf_ring-cluster-")).count()
}

/// Each has its share; one is killed, the others go on, and who comes next has what it had.
#[test]
fn members_share_an_interface_and_replace_each_other() {
    if skip_without_root("cluster::members_share_an_interface_and_replace_each_other") {
        return;
    }
    isolated("cluster::members_share_an_interface_and_replace_each_other", |home| {
        install(home);
        let (a, b) = (Netns::quiet("rwf"), Netns::quiet("rwf"));
        let _pair = a.veth(&b, "n0", "n1");
        let socket = PacketSocket::new(&b, "n1");
        let program = build(home, "pfring_cluster");
        let members = Members { home, netns: Some(&a), device: "n0", program };
        let mut all: Vec<Proc> = (0..3).map(|_| members.join(7, FIVE_TUPLE, AUTO)).collect();
        let refused = members.start(7, FIVE_TUPLE, 1).wait().1;
        assert!(refused.contains("refused Device or resource busy"), "{refused}");
        let round = |number: u8, all: &[Proc]| {
            let frames = flows(number);
            frames.iter().for_each(|frame| socket.send(frame));
            for (queue, member) in (0..).zip(all) {
                assert_share(member, queue, 3, &frames);
            }
        };
        round(0, &all);
        for (number, dies) in [(1, 1), (2, 0), (3, 2), (4, 1)] {
            let killed = all.remove(dies);
            killed.signal(Signal::KILL);
            // Its place is free as soon as it has ended.
            killed.wait();
            all.insert(dies, members.join(7, FIVE_TUPLE, AUTO));
            round(number, &all);
        }
        assert_eq!(cluster_files(home), 1);
        for member in all {
            ends_by_signal(member);
        }
        assert_eq!(cluster_files(home), 0, "the last member removes it");
    });
}

#[test]
fn members_take_turns() {
    if skip_without_root("cluster::members_take_turns") {
        return;
    }
    isolated("cluster::members_take_turns", |home| {
        install(home);
        let (a, b) = (Netns::quiet("rwf"), Netns::quiet("rwf"));
        let _pair = a.veth(&b, "n0", "n1");
        let socket = PacketSocket::new(&b, "n1");
        let program = build(home, "pfring_cluster");
        // A cluster of the same number, as another user has it.
        let elsewhere = home.path().join("elsewhere");
        fs::DirBuilder::new().mode(0o700).create(&elsewhere).unwrap();
        let of_other = format!("env RINGWAY_DIR={} {program}", elsewhere.display());
        let others = Members { home, netns: Some(&a), device: "n0", program: of_other };
        let other = others.join(9, ROUND_ROBIN, AUTO);
        let members = Members { home, netns: Some(&a), device: "n0", program };
        let all: Vec<Proc> = (0..3).map(|_| members.join(9, ROUND_ROBIN, AUTO)).collect();
        let frames = flows(0);
        frames.iter().for_each(|frame| socket.send(frame));
        until("each packet has come to a member", || {
            let count: Vec<usize> = all.iter().map(|member| got(member).len()).collect();
            if count == [20; 3] { Ok(()) } else { Err(format!("{count:?}")) }
        });
        let together: BTreeSet<String> = all.iter().flat_map(got).collect();
        assert_eq!(together.len(), frames.len(), "each to one");
        until("the other cluster has all", || match got(&other).len() {
            60 => Ok(()),
            count => Err(count.to_string()),
        });
        ends_by_signal(other);
        for member in all {
            ends_by_signal(member);
        }
    });
}

/// A packet of `queue`'s share, of `queues`, which no other is like.
fn marked(queue: u32, queues: u32, number: u32) -> Vec<u8> {
    let share = flows(0).into_iter().find(|frame| queue_of(frame, queues) == queue);
    let mut frame = share.expect("each queue has flows");
    frame[42..46].copy_from_slice(&number.to_be_bytes());
    frame
}

fn has(member: &Proc, frame: &[u8]) -> bool {
    member.output().contains(&hex(frame))
}

fn wait_for_each<'a>(what: &str, expected: impl Iterator<Item = (&'a Proc, Vec<u8>)>) {
    for (member, frame) in expected {
        until(what, || if has(member, &frame) { Ok(()) } else { Err(member.output()) });
    }
}

/// Says how long it took until dead members' shares were others'.
fn print_take_overs(device: &str, mut times: Vec<Duration>) {
    times.sort();
    if let [first, .., last] = times[..] {
        let median = times[times.len() / 2];
        println!(
            "{device}: take-over in {median:.1?} ({first:.1?} to {last:.1?}), {}",
            times.len()
        );
    }
}

/// Members are killed at random: the others go on, and one of them gets what was the dead one's share, until another
/// takes its place.
#[test]
fn members_are_killed_at_random() {
    const QUEUES: u32 = 4;
    /// Packets of the dead one's share that may be lost; each is sent when those before have come.
    const LOST: u32 = 1000;
    if skip_without_root("cluster::members_are_killed_at_random") {
        return;
    }
    isolated("cluster::members_are_killed_at_random", |home| {
        install(home);
        let (a, b) = (Netns::quiet("rwf"), Netns::quiet("rwf"));
        let _pair = a.veth(&b, "n0", "n1");
        let socket = PacketSocket::new(&b, "n1");
        let program = build(home, "pfring_cluster");
        let members = Members { home, netns: Some(&a), device: "n0", program };
        let mut all: Vec<Proc> = (0..QUEUES).map(|_| members.join(8, FIVE_TUPLE, AUTO)).collect();
        let (mut number, mut random) = (0, 7u32);
        let mut send = |queue| {
            number += 1;
            let frame = marked(queue, QUEUES, number);
            socket.send(&frame);
            frame
        };
        let mut take_overs = Vec::new();
        for _ in 0..ringway_tests::kills(200) {
            random = random.wrapping_mul(1_103_515_245).wrapping_add(12345);
            let dies = random >> 16 & (QUEUES - 1);
            let killed = all.remove(dies as usize);
            let death = Instant::now();
            killed.signal(Signal::KILL);
            killed.wait();
            let living = || (0..QUEUES).filter(|queue| *queue != dies).zip(&all);
            let moved = (0..LOST).any(|_| {
                let of_dead = send(dies);
                let own: Vec<_> = living().map(|(queue, member)| (member, send(queue))).collect();
                wait_for_each("the others go on", own.into_iter());
                let owners = all.iter().filter(|member| has(member, &of_dead)).count();
                assert!(owners <= 1, "{owners} have the dead one's packet");
                owners == 1
            });
            assert!(moved, "nobody has the share of queue {dies}");
            take_overs.push(death.elapsed());
            all.insert(dies as usize, members.join(8, FIVE_TUPLE, AUTO));
            let own: Vec<_> = (0..QUEUES).zip(&all).map(|(queue, of)| (of, send(queue))).collect();
            wait_for_each("each has its share", own.into_iter());
        }
        print_take_overs("interface", take_overs);
        for member in all {
            ends_by_signal(member);
        }
    });
}

/// Members on a port: whoever distributes may be the one that is killed. The others get theirs again, and one of them
/// what was the dead one's.
fn kill_on_a_port(home: &Home, device: &str, sender: &str, kills: u32) {
    const QUEUES: u32 = 4;
    install(home);
    let program = build(home, "pfring_cluster");
    let members = Members { home, netns: None, device, program };
    let mut source = Source::port(sender);
    let mut all: Vec<Proc> = (0..QUEUES).map(|_| members.join(8, FIVE_TUPLE, AUTO)).collect();
    let (mut number, mut random) = (0, 7u32);
    let mut send_round = || {
        number += 1;
        let round: Vec<_> = (0..QUEUES).map(|queue| marked(queue, QUEUES, number)).collect();
        source.send(&round);
        round
    };
    let mut take_overs = Vec::new();
    for _ in 0..kills {
        random = random.wrapping_mul(1_103_515_245).wrapping_add(12345);
        let dies = (random >> 16 & (QUEUES - 1)) as usize;
        let killed = all.remove(dies);
        let death = Instant::now();
        killed.signal(Signal::KILL);
        killed.wait();
        let living = || (0..QUEUES as usize).filter(|queue| *queue != dies).zip(&all);
        let mut rounds = Vec::new();
        until("each of the others has its own, and one what was the dead one's", || {
            rounds.push(send_round());
            let is_there = |round: &Vec<Vec<u8>>| {
                let owners = all.iter().filter(|member| has(member, &round[dies])).count();
                assert!(owners <= 1, "{owners} have the dead one's packet");
                owners == 1 && living().all(|(queue, member)| has(member, &round[queue]))
            };
            match rounds.iter().any(is_there) {
                true => Ok(()),
                false => Err(format!("after {} rounds, {dies} is dead", rounds.len())),
            }
        });
        take_overs.push(death.elapsed());
        all.insert(dies, members.join(8, FIVE_TUPLE, AUTO));
        let own = send_round();
        wait_for_each("each has its share", all.iter().zip(own));
    }
    print_take_overs(device, take_overs);
    assert_eq!(cluster_files(home), 1);
    for member in all {
        ends_by_signal(member);
    }
    assert_eq!(cluster_files(home), 0, "the last member removes it");
}

#[test]
fn members_on_a_pipe_are_killed_at_random() {
    isolated("cluster::members_on_a_pipe_are_killed_at_random", |home| {
        kill_on_a_port(home, "netmap:q}1", "netmap:q{1", ringway_tests::kills(200));
    });
}

#[test]
fn members_on_a_switch_are_killed_at_random() {
    isolated("cluster::members_on_a_switch_are_killed_at_random", |home| {
        kill_on_a_port(home, "vale0:a", "vale0:b", ringway_tests::kills(50));
    });
}

/// They open a port that others are closing, and join a cluster that others are leaving: none is refused.
#[test]
fn members_come_and_go_at_once() {
    isolated("cluster::members_come_and_go_at_once", |home| {
        install(home);
        let program = build(home, "pfring_race");
        for device in ["vale0:a", "netmap:q}2"] {
            succeeds(run(home, None, &format!("{program} '{device}' 7 25")));
        }
        assert_eq!(cluster_files(home), 0);
    });
}

/// What threads of a process have done so far: how long they ran, and how often they began to.
fn activity(process: &Proc) -> Vec<String> {
    let tasks = fs::read_dir(format!("/proc/{}/task", process.pid())).expect("it runs");
    let of = |task: fs::DirEntry| fs::read_to_string(task.path().join("schedstat"));
    tasks.flatten().map(|task| of(task).expect("it runs")).collect()
}

/// Members that have released what they had sleep until there is more, the one that distributes too.
#[test]
fn idle_members_sleep() {
    const WATCHED: Duration = Duration::from_millis(100);
    isolated("cluster::idle_members_sleep", |home| {
        install(home);
        let program = build(home, "pfring_cluster");
        let members = Members { home, netns: None, device: "netmap:q}3", program };
        let mut source = Source::port("netmap:q{3");
        let all: Vec<Proc> = (0..3).map(|_| members.join(5, FIVE_TUPLE, AUTO)).collect();
        let frames = flows(0);
        source.send(&frames);
        (0..).zip(&all).for_each(|(queue, member)| assert_share(member, queue, 3, &frames));
        let spent = || Duration::try_from(clock_gettime(ClockId::ProcessCPUTime)).unwrap();
        let activity = || all.iter().flat_map(activity).collect::<Vec<_>>();
        until("nothing runs while this process works", || {
            let (before, end) = (activity(), spent() + WATCHED);
            while spent() < end {
                std::hint::spin_loop();
            }
            let after = activity();
            if before == after { Ok(()) } else { Err(format!("{before:?}, then {after:?}")) }
        });
        all.into_iter().for_each(|member| drop(ends_by_signal(member)));
    });
}

/// What killed members have left goes when a ring is opened, of any kind.
#[test]
fn what_killed_members_have_left_goes() {
    isolated("cluster::what_killed_members_have_left_goes", |home| {
        install(home);
        let program = build(home, "pfring_cluster");
        let members = Members { home, netns: None, device: "netmap:q}4", program };
        let killed = members.join(6, FIVE_TUPLE, AUTO);
        killed.signal(Signal::KILL);
        killed.wait();
        assert_eq!(cluster_files(home), 1);
        let count = build(home, "pfring_count");
        let another = run(home, None, &format!("{count} vale0:a 0 recv"));
        another.wait_for("ready", LIMIT);
        assert_eq!(cluster_files(home), 0);
        another.signal(Signal::KILL);
        another.wait();
    });
}

/// What members say that they have received and lost, with each signal anew.
fn counted(member: &Proc) -> [u64; 2] {
    let lines = |said: &str| said.lines().filter(|line| line.starts_with("stats ")).count();
    let before = lines(&member.output());
    member.signal(Signal::USR1);
    until("counters are told", || match lines(&member.output()) > before {
        true => Ok(()),
        false => Err(member.output()),
    });
    let said = member.output();
    let line = said.lines().rfind(|line| line.starts_with("stats ")).expect("there is one");
    let mut numbers = line.split(' ').skip(1).map(|number| number.parse().expect("a number"));
    [(); 2].map(|()| numbers.next().expect("two numbers"))
}

/// While the member that distributes stands still, the port's ring is full: what it has no room
/// for, members have lost.
#[test]
fn what_the_port_loses_members_have_lost() {
    const ROUNDS: u8 = 200;
    isolated("cluster::what_the_port_loses_members_have_lost", |home| {
        install(home);
        let program = build(home, "pfring_cluster");
        let members = Members { home, netns: None, device: "vale0:a", program };
        let mut source = Source::port("vale0:b");
        let all: Vec<Proc> = (0..3).map(|_| members.join(5, FIVE_TUPLE, AUTO)).collect();
        let frames = flows(0);
        source.send(&frames);
        (0..).zip(&all).for_each(|(queue, member)| assert_share(member, queue, 3, &frames));
        all[0].stop();
        (1..ROUNDS).for_each(|number| source.send(&flows(number)));
        all[0].signal(Signal::CONT);
        let sent = u64::from(ROUNDS) * frames.len() as u64;
        until("received and lost make what was sent", || {
            let counted: Vec<[u64; 2]> = all.iter().map(counted).collect();
            match counted.iter().flatten().sum::<u64>() {
                sum if sum == sent => Ok(()),
                _ => Err(format!("{sent} were sent: {counted:?}")),
            }
        });
        let lost = all.iter().map(|member| counted(member)[1]).sum::<u64>();
        assert!(lost > 0, "the ring was full");
        all.into_iter().for_each(|member| drop(ends_by_signal(member)));
    });
}

/// On a port that another program has, members are told that they cannot send, as soon as they can,
/// that they can.
#[test]
fn members_are_told_whether_they_send() {
    const NOT_SUPPORTED: &str = "sent -7 95";
    const SENT: &str = "sent 60 0";
    isolated("cluster::members_are_told_whether_they_send", |home| {
        install(home);
        let program = build(home, "pfring_cluster");
        let members = Members { home, netns: None, device: "vale0:a", program };
        let holder = Port::open("vale0:a").expect("a port");
        let mut far = Port::open("vale0:b").expect("a port");
        let all: Vec<Proc> = (0..3).map(|_| members.join(5, FIVE_TUPLE, AUTO)).collect();
        let says = |member: &Proc, expected: &str| {
            until(expected, || {
                // A break outside of a call that receives is lost.
                member.signal(Signal::USR2);
                let said = member.output();
                match said.lines().rfind(|line| line.starts_with("sent ")) {
                    Some(line) if line == expected => Ok(()),
                    _ => Err(said),
                }
            });
        };
        all.iter().for_each(|member| says(member, NOT_SUPPORTED));
        assert_eq!(far.rx(0).sync(), 0, "nothing was sent");
        drop(holder);
        all.iter().for_each(|member| says(member, SENT));
        until("what they have sent comes", || match far.rx(0).sync() {
            come if come >= all.len() => Ok(()),
            come => Err(format!("{come} frames")),
        });
        all.into_iter().for_each(|member| drop(ends_by_signal(member)));
    });
}
