//! The beginning and the end of what programs have of an interface: nothing is lost at either, and
//! an interface that goes away itself ends all that was made of it (S-POLL-4, S-LIFE-7, S-LIFE-9).

use std::{net::UdpSocket, time::Duration};

use ringway::{Control, Error, Port, PortShape};
use ringway_testkit::{Netns, PacketSocket, Proc, Snapshot, skip_without_root};
use ringway_tests::{
    Home, ends,
    frame::{self, Seen},
    inside, isolated, one_at_a_time, until,
    wire::{connect, sockets, wire},
};
use rustix::{
    io::Errno,
    process::{Pid, Signal, kill_process},
};

const LIMIT: Duration = Duration::from_secs(30);

fn assert_sends(from: &UdpSocket, to: &UdpSocket, number: u32) {
    from.send(&number.to_be_bytes()).expect("the stack takes it");
    let mut received = [0; 4];
    to.recv(&mut received).unwrap_or_else(|e| panic!("datagram {number} is lost: {e}"));
    assert_eq!(u32::from_be_bytes(received), number);
}

/// Sends frames of `flow`, all at once.
fn send(port: &mut Port, flow: u32, frames: u64) {
    let (src, mut bytes) = (frame::mac(flow, 0), Vec::new());
    for number in 0..frames {
        frame::build(&mut bytes, frame::BROADCAST, src, flow, number);
        assert!(port.tx(0).push(&bytes), "the ring holds them all");
    }
    port.tx(0).sync();
}

/// Takes frames of `flow`, in order and unharmed.
fn take(port: &mut Port, flow: u32, frames: u64) {
    let (mut next, mut spare) = (0, Vec::new());
    while next < frames {
        assert!(port.wait_rx(Some(LIMIT)).unwrap(), "{next} frames of {frames} have arrived");
        for received in port.rx(0).batch(64) {
            match frame::look(&received.to_vec(), &mut spare) {
                Seen::Ours { flow: its, number } if its == flow => {
                    assert_eq!(number, next);
                    next += 1;
                }
                other => assert_eq!(other, Seen::Foreign),
            }
        }
    }
}

fn open(netns: &Netns, name: &str) -> Result<Port, Error> {
    netns.enter(|| Port::open(name))
}

/// What arrives at an interface between the opening of its port and the first sync is there then:
/// also when it is opened again and again.
#[test]
fn nothing_is_lost_before_the_first_sync() {
    if skip_without_root("nothing_is_lost_before_the_first_sync") {
        return;
    }
    let _turn = one_at_a_time();
    isolated("nothing_is_lost_before_the_first_sync", |_| {
        let (a, b, _pair) = wire();
        let mut sender = open(&b, "netmap:n1").unwrap();
        for flow in 1..5 {
            let mut receiver = open(&a, "netmap:n0").unwrap();
            send(&mut sender, flow, 1000);
            take(&mut receiver, flow, 1000);
        }
    });
}

/// The same for what the stack sends to host rings.
#[test]
fn nothing_is_lost_before_the_first_sync_of_host_rings() {
    if skip_without_root("nothing_is_lost_before_the_first_sync_of_host_rings") {
        return;
    }
    let _turn = one_at_a_time();
    isolated("nothing_is_lost_before_the_first_sync_of_host_rings", |_| {
        let (a, b, _pair) = wire();
        let [stack, _] = sockets(&a, &b);
        for round in 0..4u8 {
            let mut port = open(&a, "netmap:n0*").unwrap();
            for number in 0..100 {
                stack.send(&[round, number]).expect("the stack takes it");
            }
            let mut arrived = 0;
            while arrived < 100 {
                assert!(port.wait_rx(Some(LIMIT)).unwrap(), "{arrived} of 100 have arrived");
                let host = port.rx_rings() - 1;
                for received in port.rx(host).batch(64) {
                    // Behind the headers of Ethernet, IP and UDP.
                    assert_eq!(received.read(42), Some([round, arrived]));
                    arrived += 1;
                }
            }
        }
    });
}

/// When the close of a port returns, the stack has its interface back: it receives and sends.
#[test]
fn after_the_close_the_stack_has_the_interface() {
    if skip_without_root("after_the_close_the_stack_has_the_interface") {
        return;
    }
    let _turn = one_at_a_time();
    isolated("after_the_close_the_stack_has_the_interface", |_| {
        let (a, b, _pair) = wire();
        let [here, there] = sockets(&a, &b);
        for number in 0..8 {
            drop(open(&a, "netmap:n0*").unwrap());
            assert_sends(&there, &here, number);
            drop(open(&a, "netmap:n0").unwrap());
            assert_sends(&here, &there, number);
        }
    });
}

/// A port that has been closed is free for another program, also where it was had alone.
#[test]
fn after_the_close_others_may_have_the_port() {
    if skip_without_root("after_the_close_others_may_have_the_port") {
        return;
    }
    let _turn = one_at_a_time();
    isolated("after_the_close_others_may_have_the_port", |_| {
        let (a, _b, _pair) = wire();
        for name in ["netmap:n0", "vale0:a", "netmap:p{1"] {
            let again = || a.enter(|| Port::options().exclusive().open(name));
            for _ in 0..5 {
                drop(again().unwrap_or_else(|e| panic!("{name}: {e}")));
            }
        }
    });
}

/// Nobody can keep the MTU of an interface in use from growing (S-REG-10): frames that are longer
/// than a buffer then come in several. Frames of more than there are to a packet are refused
/// (S-REG-9), but who only sends may have any MTU.
#[test]
fn frames_that_are_longer_than_a_buffer_come_in_several() {
    if skip_without_root("frames_that_are_longer_than_a_buffer_come_in_several") {
        return;
    }
    let _turn = one_at_a_time();
    isolated("frames_that_are_longer_than_a_buffer_come_in_several", |_| {
        let (a, b, _pair) = wire();
        let [_, stack] = sockets(&a, &b);
        let mut port = open(&a, "netmap:n0").unwrap();
        a.run("ip link set n0 mtu 3000");
        b.run("ip link set n1 mtu 3000");
        for length in [1700, 2500, 1701] {
            assert_eq!(stack.send(&vec![7; length]).expect("the stack takes it"), length);
        }
        // Behind the headers of Ethernet, IP and UDP.
        for slots in [&[42 + 1700][..], &[1792, 42 + 2500 - 1792], &[42 + 1701]] {
            for (i, length) in (1..).zip(slots) {
                assert!(port.wait_rx(Some(LIMIT)).unwrap(), "{length} bytes do not arrive");
                let taken: Vec<_> =
                    port.rx(0).batch(1).map(|slot| (slot.len(), slot.more_fragments())).collect();
                assert_eq!(taken, [(*length, i < slots.len())]);
            }
        }
        assert_eq!(port.stats().too_long, 0);
        drop(port);

        a.run("ip link set n0 mtu 9000");
        open(&a, "netmap:n0").unwrap();
        a.run("ip link set n0 mtu 32243");
        let refused = open(&a, "netmap:n0@mode=copy").unwrap_err();
        assert!(ringway_errno::errno(refused.cause()) == Errno::INVAL.raw_os_error(), "{refused}");
        for remedy in ["ip link set n0 mtu 32242", "n0@buffers=4096", "n0@mode=packet"] {
            assert!(refused.to_string().contains(remedy), "{refused}");
        }
        // Any mode will do: so it is in that which takes them.
        let shown = || Control::connect().unwrap().ports().unwrap().remove(0).mode.unwrap();
        for (spec, mode) in [("netmap:n0", "packet"), ("netmap:n0@buffers=4096", "copy")] {
            let mut port = open(&a, spec).unwrap();
            assert!(shown().starts_with(mode), "{}", shown());
            PacketSocket::new(&b, "n1").send(&ringway_testkit::frame(1, 3000));
            assert!(port.wait_rx(Some(LIMIT)).unwrap());
        }
        a.enter(|| Port::options().tx_only().open("netmap:n0")).unwrap();
    });
}

/// Programs that sleep on an interface learn that it has gone, deleted or moved elsewhere.
#[test]
fn sleepers_learn_that_their_interface_has_gone() {
    if skip_without_root("sleepers_learn_that_their_interface_has_gone") {
        return;
    }
    let _turn = one_at_a_time();
    let before = Snapshot::take();
    let home = Home::new();
    for moved in [false, true] {
        let (a, b, pair) = wire();
        let elsewhere = Netns::quiet("rwb");
        let receiver = Proc::spawn(inside(&b, home.traffic(&["receive", "netmap:n1", "1"])));
        let sender = Proc::spawn(inside(&a, home.traffic(&["send", "netmap:n0", "1"])));
        receiver.wait_for("going", LIMIT);
        sender.kill();
        match elsewhere.name().filter(|_| moved) {
            Some(name) => b.run(&format!("ip link set n1 netns {name}")),
            None => b.run("ip link del n1"),
        };
        let (status, output) = receiver.wait();
        assert!(!status.success() && output.contains("error 5"), "{output}");
        assert!(output.contains("interface has gone"), "{output}");
        drop((pair, a, b, elsewhere));
    }
    home.assert_left();
    before.assert_clean();
}

/// Who has an interface that has gone gets errors; nobody else can open it before it is back, and
/// who has it then is not disturbed by those who still have the old one.
#[test]
fn an_interface_goes_and_comes_back() {
    if skip_without_root("an_interface_goes_and_comes_back") {
        return;
    }
    let _turn = one_at_a_time();
    isolated("an_interface_goes_and_comes_back", |_| {
        let (a, b, pair) = wire();
        let mut old = Some(open(&a, "netmap:n0*").unwrap());
        pair.delete();
        let gone = old.as_mut().expect("it is there");
        assert!(matches!(gone.wait_rx(Some(LIMIT)), Err(Error::NoInterface { .. })));
        assert!(matches!(gone.wait_tx(Some(LIMIT)), Err(Error::NoInterface { .. })));
        assert_eq!(
            ringway_errno::errno(open(&a, "netmap:n0").unwrap_err().cause()),
            Errno::NXIO.raw_os_error()
        );

        let _pair = connect(&a, &b);
        let [mut here, mut there] =
            [(&a, "netmap:n0"), (&b, "netmap:n1")].map(|(netns, name)| open(netns, name).unwrap());
        for flow in 1..3 {
            send(&mut there, flow, 500);
            take(&mut here, flow, 500);
            send(&mut here, flow, 500);
            take(&mut there, flow, 500);
            old = None;
        }
        assert!(old.is_none());
    });
}

/// Without a daemon, who sends through an interface learns by itself that it has gone.
#[test]
fn a_sender_learns_of_it_although_the_daemon_was_killed() {
    if skip_without_root("a_sender_learns_of_it_although_the_daemon_was_killed") {
        return;
    }
    let _turn = one_at_a_time();
    let home = Home::new();
    let (a, _b, pair) = wire();
    let sender = Proc::spawn(inside(&a, home.traffic(&["send", "netmap:n0", "1"])));
    sender.wait_for("going", LIMIT);
    let daemon = home.daemon();
    kill_process(Pid::from_raw(daemon as i32).expect("a pid"), Signal::KILL).expect("it runs");
    assert!(ends(daemon, LIMIT));
    pair.delete();
    let (status, output) = sender.wait();
    assert!(!status.success() && output.contains("interface has gone"), "{output}");
}

/// A NIC on a bridge that is deleted is on it no more, and the daemon need not stay for it.
#[test]
fn a_nic_on_a_bridge_goes() {
    if skip_without_root("a_nic_on_a_bridge_goes") {
        return;
    }
    let _turn = one_at_a_time();
    isolated("a_nic_on_a_bridge_goes", |home| {
        let before = Snapshot::take();
        let (a, b, pair) = wire();
        let control = Control::connect().unwrap();
        a.enter(|| control.switch_attach("vale0", "n0", true)).unwrap();
        let vale = Port::open("vale0:x").unwrap();
        pair.delete();
        until("the port has left the bridge", || {
            let ports = control.switches().unwrap().remove(0).ports;
            let modes = ports.into_iter().map(|port| (port.name, port.mode.unwrap_or_default()));
            let modes: Vec<_> = modes.collect();
            match &modes[..] {
                [(one, _), (two, mode)]
                    if one == "vale0:x"
                        && two == "vale0:n0"
                        && mode.starts_with("not back yet") =>
                {
                    Ok(())
                }
                others => Err(format!("{others:?}")),
            }
        });
        drop(vale);
        let pair = connect(&a, &b);
        // It may be there by itself already, which this does not mind.
        a.enter(|| control.switch_attach("vale0", "n0", true)).unwrap();
        drop(control);
        // Nobody asks the daemon for anything any more.
        pair.delete();
        home.assert_left();
        drop((a, b));
        before.assert_clean();
    });
}

/// A persistent port goes with its device, and that with its namespace; programs that have the port
/// get errors, the bridge goes on, and the daemon need not stay.
#[test]
fn a_persistent_port_goes() {
    if skip_without_root("a_persistent_port_goes") {
        return;
    }
    let _turn = one_at_a_time();
    isolated("a_persistent_port_goes", |home| {
        let before = Snapshot::take();
        for deleted in [true, false] {
            let host = Netns::quiet("rwb");
            let control = Control::connect().unwrap();
            for name in ["p0", "p1", "p2"] {
                host.enter(|| control.interface_new(name, PortShape::default())).unwrap();
            }
            host.enter(|| control.switch_attach("vale0", "p0", true)).unwrap();
            host.enter(|| control.switch_attach("vale0", "p1", false)).unwrap();
            host.enter(|| control.switch_attach("vale1", "p1", false)).unwrap();
            let mut other = Port::open("vale0:x").unwrap();
            // Which a program in the namespace would keep.
            let mut bound = deleted.then(|| open(&host, "netmap:p2*").unwrap());
            let host = match deleted {
                true => {
                    for name in ["p0", "p1", "p2"] {
                        host.run(&format!("ip link del {name}"));
                    }
                    Some(host)
                }
                false => {
                    drop(host);
                    None
                }
            };
            if let Some(bound) = &mut bound {
                assert!(matches!(bound.wait_rx(Some(LIMIT)), Err(Error::NoInterface { .. })));
                assert!(matches!(bound.wait_tx(Some(LIMIT)), Err(Error::NoInterface { .. })));
            }
            until("the bridges have lost their ports", || {
                let switches = control.switches().unwrap();
                let names = switches.iter().flat_map(|s| &s.ports).map(|port| &port.name[..]);
                let names: Vec<_> = names.collect();
                if names == ["vale0:x"] { Ok(()) } else { Err(format!("{names:?}")) }
            });
            let mut peer = Port::open("vale0:y").unwrap();
            send(&mut other, 1, 500);
            take(&mut peer, 1, 500);
            if let Some(host) = &host {
                host.enter(|| control.interface_new("p2", PortShape::default())).unwrap();
                host.enter(|| control.interface_delete("p2")).unwrap();
                host.enter(|| control.interface_new("p0", PortShape::default())).unwrap();
            }
            drop((bound, control, other, peer));
            if let Some(host) = &host {
                // Nobody asks the daemon for anything any more.
                host.run("ip link del p0");
            }
            home.assert_left();
        }
        before.assert_clean();
    });
}
