//! The program: where it attaches, how it leaves, and what is said when it cannot come.

#[path = "../../../drivers/xdp/tests/common/mod.rs"]
mod common;

use std::net::UdpSocket;
use std::os::fd::AsFd;
use std::time::Duration;

use common::{
    Wire, attach, attach_again, endpoint, open, recv, send, wait_for_link, wait_readable,
};
use ringway_nic_setup::{
    AttachMode, EgressRedirect, Error, HostEnd, IngressDrop, IngressRedirect, Interface, Mode,
    Promiscuous, QUEUES, SwitchProgram, XdpProgram, in_netns, privileges,
};
use ringway_testkit::{frame, skip_without_root};
use ringway_xdp::{FrameQueue, KickOutcome};

/// Whether an XDP program is on `a0`.
fn attached(wire: &Wire) -> bool {
    wire.a.run("ip link show a0").contains("xdp")
}

#[test]
fn the_program_goes_with_the_last_holder_of_its_link() {
    if skip_without_root("the_program_goes_with_the_last_holder_of_its_link") {
        return;
    }
    let wire = Wire::new();
    let program = attach(&wire.a, "a0").unwrap();
    assert_eq!(program.mode(), AttachMode::Native);
    assert!(program.native_refused().is_none());
    assert!(attached(&wire));

    let other_holder = program.link_fd().try_clone_to_owned().unwrap();
    drop(program);
    assert!(attached(&wire), "a copy of the link keeps the program");
    drop(other_holder);
    wait_for_link(&wire.a, "a0", |shown| !shown.contains("xdp"));
}

#[test]
fn without_a_native_hook_the_generic_one_is_taken_and_the_reason_kept() {
    if skip_without_root("without_a_native_hook_the_generic_one_is_taken_and_the_reason_kept") {
        return;
    }
    let wire = Wire::new();
    let program = attach(&wire.a, "lo").unwrap();
    assert_eq!(program.mode(), AttachMode::Generic);
    assert!(program.native_refused().unwrap().contains("not supported"));
    assert_eq!(Mode::preference(program.mode()), [Mode::Generic]);
}

/// lo has no native hook, and gives back what is sent on it.
#[test]
fn frames_travel_in_generic_mode() {
    if skip_without_root("frames_travel_in_generic_mode") {
        return;
    }
    let wire = Wire::new();
    let (_program, xsk, umem) = endpoint(&wire.a, "lo");
    assert_eq!(xsk.mode, Mode::Generic);
    let mut queue = FrameQueue::new(xsk.socket, umem).unwrap();
    for number in 0..1000 {
        assert!(send(&mut queue, &frame(number, 100)));
        queue.flush().unwrap();
        wait_readable(&queue);
        assert_eq!(recv(&mut queue), [frame(number, 100)]);
    }
    assert_eq!(queue.flush(), Ok(KickOutcome::Sent));
    assert_eq!(queue.tx_in_flight(), 0);
}

#[test]
fn a_queue_without_a_socket_belongs_to_the_stack() {
    if skip_without_root("a_queue_without_a_socket_belongs_to_the_stack") {
        return;
    }
    let wire = Wire::new();
    wire.a.run("ip address add 10.1.1.1/24 dev a0");
    wire.b.run("ip address add 10.1.1.2/24 dev b0");
    let stack = wire.a.enter(|| UdpSocket::bind("10.1.1.1:9").unwrap());
    stack.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    let sender = wire.b.enter(|| UdpSocket::bind("10.1.1.2:9").unwrap());
    let say = |text: &str| sender.send_to(text.as_bytes(), "10.1.1.1:9").unwrap();
    let heard = || {
        let mut bytes = [0; 64];
        let n = stack.recv(&mut bytes).unwrap();
        String::from_utf8(bytes[..n].to_vec()).unwrap()
    };

    let mut program = attach(&wire.a, "a0").unwrap();
    let (xsk, umem) = open(&wire.a, "a0", 0, &[Mode::Copy]).unwrap();
    say("no socket yet");
    assert_eq!(heard(), "no socket yet");

    program.set_queue(0, &xsk.socket).unwrap();
    let mut queue = FrameQueue::new(xsk.socket, umem).unwrap();
    say("to the socket");
    wait_readable(&queue);
    assert!(recv(&mut queue)[0].ends_with(b"to the socket"));

    program.unset_queue(0);
    say("to the stack again");
    assert_eq!(heard(), "to the stack again");

    let error = program.set_queue(QUEUES, queue.socket()).err().unwrap().to_string();
    assert!(error.starts_with("a0: ") && error.contains("first 224 queues"), "{error}");
}

/// Both kinds of foreign program in both modes: by link (ours, once more) and by netlink (ip).
#[test]
fn another_program_is_named_and_left_alone() {
    if skip_without_root("another_program_is_named_and_left_alone") {
        return;
    }
    let object = concat!(env!("CARGO_TARGET_TMPDIR"), "/foreign.bpf.o");
    let wire = Wire::new();
    let source = "__attribute__((section(\"xdp\"))) int foreign(void *frame) { return 2; }";
    wire.a.run(&format!("echo '{source}' | clang -O2 -target bpf -x c -c - -o {object}"));
    for (ip_mode, mode) in [("xdpdrv", AttachMode::Native), ("xdpgeneric", AttachMode::Generic)] {
        wire.a.run(&format!("ip link set dev a0 {ip_mode} obj {object} sec xdp"));
        let error = attach(&wire.a, "a0").err().expect("someone else is there");
        let text = error.to_string();
        let Error::Occupied { interface, program } = error else { panic!("{text}") };
        assert_eq!((interface.as_str(), program.mode), ("a0", Some(mode)));
        assert_eq!(program.name.as_deref(), Some("foreign"));
        assert!(wire.a.run("ip link show a0").contains(&format!("id {}", program.id)));
        assert!(text.contains(&format!("ip link set dev a0 {ip_mode} off")), "{text}");
        wire.a.run(&format!("ip link set dev a0 {ip_mode} off"));
    }

    let first = attach(&wire.a, "a0").unwrap();
    let text = attach(&wire.a, "a0").err().expect("the first is there").to_string();
    assert!(text.contains("a Ringway program (native mode, id "), "{text}");
    let holder = format!("end process {} (", std::process::id());
    assert!(text.contains(&holder), "{text}");
    drop(first);
    attach_again(&wire.a, || XdpProgram::attach(&Interface::by_name("a0")?));
}

#[test]
fn an_absent_interface_and_a_queue_beyond_the_device_are_named() {
    if skip_without_root("an_absent_interface_and_a_queue_beyond_the_device_are_named") {
        return;
    }
    let wire = Wire::new();
    let error = attach(&wire.a, "nosuch0").err().unwrap();
    assert!(matches!(error, Error::NoInterface { .. }), "{error}");
    assert!(error.to_string().starts_with("nosuch0: "), "{error}");
    let error = attach(&wire.a, "a-name-too-long-for-linux").err().unwrap();
    assert!(matches!(error, Error::NoInterface { .. }), "{error}");

    let error = open(&wire.a, "a0", 1, &[Mode::Copy]).err().unwrap();
    assert!(matches!(error, Error::NoQueue { queue: 1, queues: 1, .. }), "{error}");
    assert!(error.to_string().starts_with("a0: there is no queue 1"), "{error}");
}

#[test]
fn an_interface_is_described() {
    if skip_without_root("an_interface_is_described") {
        return;
    }
    let wire = Wire::new();
    let _queues = wire.a.veth_queues(&wire.b, "a1", "b1", 3);
    wire.a.run("ip link set a1 mtu 1400 address 02:11:22:33:44:55");
    wire.a.run("ip link set a0 down");
    let interface = in_netns(wire.a.fd().as_fd(), || Interface::by_name("a1").unwrap()).unwrap();
    assert_eq!(interface.mtu, 1400);
    assert_eq!(interface.mac, [2, 0x11, 0x22, 0x33, 0x44, 0x55]);
    assert_eq!((interface.rx_queues, interface.tx_queues, interface.queues()), (3, 3, 3));
    assert_eq!(interface.driver, "veth");
    assert!(interface.up);
    assert!(!in_netns(wire.a.fd().as_fd(), || Interface::by_name("a0").unwrap()).unwrap().up);
    assert!(wire.a.run("ip link show a1").starts_with(&format!("{}: ", interface.index)));
}

/// On a thread of its own, since capabilities belong to threads.
#[test]
fn missing_capabilities_are_listed_with_the_command_that_grants_them() {
    use rustix::thread::{CapabilitySet, CapabilitySets, set_capabilities};
    std::thread::spawn(|| {
        let none = CapabilitySet::empty();
        let sets = CapabilitySets { effective: none, permitted: none, inheritable: none };
        set_capabilities(None, sets).unwrap();
        let missing = privileges().unwrap_err();
        assert_eq!(missing.capabilities, ["CAP_NET_RAW", "CAP_NET_ADMIN", "CAP_BPF"]);

        let loopback = Interface::by_name("lo").unwrap();
        let error = XdpProgram::attach(&loopback).err().unwrap();
        let text = error.to_string();
        assert!(matches!(error, Error::Privileges { .. }), "{text}");
        assert!(text.starts_with("lo: needs CAP_NET_RAW, CAP_NET_ADMIN, CAP_BPF: "), "{text}");
        assert!(text.contains("sudo setcap cap_net_raw,cap_net_admin,cap_bpf=ep /"), "{text}");
        // In packet mode, and for host rings: not the kernel's fault, and by the name that people know.
        let receiving = IngressRedirect::begin(&loopback, false).err().unwrap().to_string();
        assert!(receiving.starts_with("lo: needs CAP_NET_RAW, CAP_NET_ADMIN, "), "{receiving}");
        let host = HostEnd::new(&loopback, 1).err().unwrap().to_string();
        assert!(host.starts_with("lo: needs CAP_NET_ADMIN, CAP_SYS_ADMIN: "), "{host}");
    })
    .join()
    .unwrap();
}

/// Between a look at an interface and each operation at it.
#[test]
fn an_interface_that_has_gone_is_said_to_have_gone() {
    if skip_without_root("an_interface_that_has_gone_is_said_to_have_gone") {
        return;
    }
    let wire = Wire::new();
    let interface = wire.a.enter(|| Interface::by_name("a0").unwrap());
    wire.a.run("ip link del a0");
    let (program, _table) = SwitchProgram::new([1, 2]).unwrap();
    let modes = [AttachMode::Native, AttachMode::Generic];
    let refused = wire.a.enter(|| {
        [
            ("xdp", XdpProgram::attach_as(&interface, &modes, None).err()),
            ("packet", IngressDrop::begin(&interface).err()),
            ("filter", IngressRedirect::begin(&interface, true).err()),
            ("stack", EgressRedirect::begin(&interface).err()),
            ("promiscuous", Promiscuous::hold(&interface).err()),
            ("switch", program.attach(&interface).err()),
        ]
    });
    for (what, error) in refused {
        let error = error.unwrap_or_else(|| panic!("{what}: it is not there"));
        assert_eq!(error.to_string(), "a0: it has gone", "{what}");
    }
}

/// Of several who open packet mode at the same moment one has it.
#[test]
fn packet_mode_is_had_by_one() {
    if skip_without_root("packet_mode_is_had_by_one") {
        return;
    }
    const AT_ONCE: usize = 4;
    let wire = Wire::new();
    for _ in 0..10 {
        let start = std::sync::Barrier::new(AT_ONCE);
        let (wire, start) = (&wire, &start);
        let begun = std::thread::scope(|scope| {
            let begin = || {
                wire.a.enter(|| {
                    let interface = Interface::by_name("a0").unwrap();
                    start.wait();
                    IngressDrop::begin(&interface)
                })
            };
            let all: Vec<_> = (0..AT_ONCE).map(|_| scope.spawn(begin)).collect();
            all.into_iter().map(|one| one.join().unwrap()).collect::<Vec<_>>()
        });
        assert_eq!(begun.iter().filter(|one| one.is_ok()).count(), 1);
        for error in begun.iter().filter_map(|one| one.as_ref().err()) {
            assert!(matches!(error, Error::Occupied { .. }), "{error}");
        }
        // A process that another test is starting may have a copy of its link.
        begun.iter().flatten().for_each(IngressDrop::end);
    }
}

/// A driver says in words why it refuses a program, by netlink alone: nothing stays of that question.
#[test]
fn a_driver_is_heard_that_refuses_a_program() {
    if skip_without_root("a_driver_is_heard_that_refuses_a_program") {
        return;
    }
    let wire = Wire::new();
    wire.a.run("ip link add few numrxqueues 1 numtxqueues 1 type veth peer name many numrxqueues 4 numtxqueues 4");
    wire.a.run("ip link set few up");
    wire.a.run("ip link set many up");
    let error = wire.a.enter(|| {
        let interface = Interface::by_name("few").unwrap();
        XdpProgram::attach_as(&interface, &[AttachMode::Native], None).err().map(|e| e.to_string())
    });
    let error =
        error.expect("veth takes no program that has fewer queues than the other end sends by");
    assert!(error.contains("peer tx queues"), "{error}");
    assert!(!wire.a.run("ip link show few").contains("xdp"));
}
