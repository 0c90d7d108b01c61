//! Action programs on open ports: each verdict, written in C; who may redirect where; what is no program; and
//! what is left when the port goes.

use std::{path::Path, process::Command, time::Duration};

use ringway::{Action, ActionInfo, Cause, Control, Ebpf, Error, Filter, OpenOptions, Port};
use ringway_testkit::{Netns, PacketSocket, Proc, Snapshot, VethPair, frame, skip_without_root};
use ringway_tests::{
    Home, Random,
    c::{Language::C11, Library::Preloaded, compile_bpf},
    compile, ends, inside, isolated, one_at_a_time, until,
};
use rustix::process::Signal;

const LIMIT: Duration = Duration::from_secs(30);

/// Where the testkit's frames come from.
const FROM: [u8; 6] = [2, 0, 0, 0, 0, 1];

/// Frames of the testkit's have a number: its last byte is the verdict.
const BY_NUMBER: &str = "
    #include <net/ringway_xdp.h>

    SEC(\"xdp\") int by_number(struct xdp_md *ctx)
    {
        unsigned char *frame = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;

        if (frame + 18 > end || frame[12] != 0x88)
            return XDP_PASS_TO_KERNEL;
        switch (frame[17]) {
        case 4:
            return RINGWAY_REDIRECT(0);
        case 6:
            return RINGWAY_REDIRECT(1);
        default:
            return frame[17];
        }
    }
";

/// `n0` here, where programs have it, and `n1` there; `c0` here and `c1` elsewhere.
struct Hosts {
    here: Netns,
    there: Netns,
    elsewhere: Netns,
    _pairs: [VethPair; 2],
}

impl Hosts {
    fn new() -> Hosts {
        let [here, there, elsewhere] = ["rwa"; 3].map(Netns::quiet);
        let pairs = [here.veth(&there, "n0", "n1"), here.veth(&elsewhere, "c0", "c1")];
        Hosts { here, there, elsewhere, _pairs: pairs }
    }

    fn control<T: Send>(&self, f: impl FnOnce(&Control) -> T + Send) -> T {
        self.here.enter(|| f(&Control::connect().unwrap()))
    }

    fn open(&self, options: OpenOptions, spec: &str) -> Port {
        self.here.enter(|| options.open(spec)).unwrap_or_else(|e| panic!("{e}"))
    }

    /// A veth end takes what XDP sends at the other if it has a program itself: one that leaves all to the
    /// stack.
    fn receivers(&self) -> [Port; 2] {
        let options = || Port::options().rx_only().action(always(5));
        [(&self.there, "netmap:n1"), (&self.elsewhere, "netmap:c1")]
            .map(|(netns, spec)| netns.enter(|| options().open(spec)).unwrap())
    }

    fn info(&self, port: &str) -> Vec<ActionInfo> {
        let ports = self.control(|control| control.ports().unwrap());
        let port = ports.into_iter().find(|one| one.name == port);
        port.map(|port| port.actions).unwrap_or_default()
    }
}

const fn insn(code: u8, immediate: i32) -> Ebpf {
    Ebpf { code, registers: 0, offset: 0, immediate }
}

/// A program with one verdict.
fn always(verdict: i32) -> Action {
    Action::instructions("always", vec![insn(0xb7, verdict), insn(0x95, 0)])
}

fn by_number(home: &Home) -> Action {
    let source = home.path().join("by_number.c");
    std::fs::write(&source, BY_NUMBER).unwrap();
    Action::read(compile_bpf(home, &source), Some("by_number")).unwrap()
}

/// The next frame of the port's.
fn take(port: &mut Port) -> Vec<u8> {
    assert!(port.wait_rx(Some(LIMIT)).unwrap(), "nothing has come");
    let frames: Vec<_> = port.rx(0).batch(1).map(|frame| frame.to_vec()).collect();
    frames.into_iter().next().unwrap()
}

fn run(test: &str, body: impl FnOnce(&Home)) {
    if skip_without_root(test) {
        return;
    }
    let _turn = one_at_a_time();
    isolated(test, body);
}

fn refused(result: Result<(), Error>) -> String {
    result.unwrap_err().to_string()
}

#[test]
fn each_verdict_does_what_it_says() {
    run("each_verdict_does_what_it_says", |home| {
        let before = Snapshot::take();
        let hosts = Hosts::new();
        let receivers = hosts.receivers();
        let action = by_number(home).redirect_to("netmap:c0").redirect_to("n0");
        let options = Port::options().rx_only().action(action);
        let mut port = hosts.open(options, "netmap:n0");
        let [wire, other] = [(&hosts.there, "n1"), (&hosts.elsewhere, "c1")]
            .map(|(netns, name)| PacketSocket::new(netns, name));
        let stack = PacketSocket::new(&hosts.here, "n0");
        let say = |number: u32, verdict: u32| {
            let bytes = frame(number << 8 | verdict, 60);
            wire.send(&bytes);
            bytes
        };
        for number in 0..10 {
            for gone in [0, 1, 7, 255] {
                say(number, gone);
            }
            let passed = say(number, 2);
            assert_eq!(take(&mut port), passed);
            for back in [3, 6] {
                let sent = say(number, back);
                assert_eq!(wire.hear().bytes, sent);
            }
            let redirected = say(number, 4);
            assert_eq!(other.hear().bytes, redirected);
            let kept = say(number, 5);
            assert_eq!(stack.hear().bytes, kept);
        }
        let [info] = hosts.info("n0").try_into().unwrap();
        assert_eq!((info.passed, info.dropped, info.sent, info.redirected), (10, 40, 10, 20));
        assert!(info.to_stack >= 10 && info.text.ends_with("by_number"), "{info:?}");
        assert_eq!(
            (&info.queues[..], &info.redirects[..]),
            (&[0][..], &["c0".into(), "n0".into()][..])
        );

        // What it lets pass goes through the port's filter, as ever.
        port.set_filter(Filter::new("ether[14:2] = 1").unwrap()).unwrap();
        let (kept, taken) = (say(1, 2), say(0x100, 2));
        assert_eq!(take(&mut port), taken);
        assert_eq!(stack.hear().bytes, kept);
        port.clear_filter().unwrap();
        let gone = say(2, 1);
        assert_ne!(gone, say(3, 2));
        assert_eq!(take(&mut port), frame(3 << 8 | 2, 60));

        // Another, by name; and none.
        hosts.control(|control| control.set_action("netmap:n0", Some(always(5)))).unwrap();
        let kept = say(4, 2);
        assert_eq!(stack.hear().bytes, kept);
        assert_eq!(hosts.info("n0")[0].text, "always");
        port.clear_action().unwrap();
        assert!(hosts.info("n0").is_empty());
        let all = say(5, 1);
        assert_eq!(take(&mut port), all);
        assert!(stack.try_hear().is_none());
        drop((port, receivers));
        home.assert_left();
        drop(hosts);
        before.assert_clean();
    });
}

/// The program of the guide, in front of programs that know nothing of it.
#[test]
fn the_example_is_a_firewall() {
    run("the_example_is_a_firewall", |home| {
        let hosts = Hosts::new();
        let receivers = hosts.receivers();
        let object = compile_bpf(home, Path::new("examples/c/xdp_action.c"));
        let action = Action::read(object, None).unwrap().redirect_to("c0");
        let mut port = hosts.open(Port::options().action(action), "netmap:n0");
        let [wire, other] = [(&hosts.there, "n1"), (&hosts.elsewhere, "c1")]
            .map(|(netns, name)| PacketSocket::new(netns, name));
        let stack = PacketSocket::new(&hosts.here, "n0");
        // With options in IP's header, and without.
        let ip = |words: u8, protocol: u8, port: u16| {
            let mut bytes = [&[0xff; 6][..], &FROM, &[8, 0, 0x40 | words]].concat();
            bytes.resize(14 + 4 * usize::from(words), 0);
            bytes[23] = protocol;
            bytes.extend([0, 9]);
            bytes.extend(port.to_be_bytes());
            bytes.resize(80, 7);
            wire.send(&bytes);
            bytes
        };
        for words in [5, 7, 15] {
            ip(words, 17, 9);
            let passed = ip(words, 17, 53);
            assert_eq!(take(&mut port), passed);
            let redirected = ip(words, 17, 4000);
            assert_eq!(other.hear().bytes, redirected);
            let ping = ip(words, 1, 0);
            assert_eq!(stack.hear().bytes, ping);
            let tcp = ip(words, 6, 9);
            assert_eq!(take(&mut port), tcp);
        }
        let echo = [&FROM[..], &FROM, &[0x90, 0], &[1; 60]].concat();
        wire.send(&echo);
        assert_eq!(wire.hear().bytes, echo);
        let [info] = hosts.info("n0").try_into().unwrap();
        assert_eq!((info.passed, info.dropped, info.sent, info.redirected), (6, 3, 1, 3));
        drop((port, receivers));
    });
}

#[test]
fn a_program_with_af_packet_v4_gets_what_passes() {
    run("a_program_with_af_packet_v4_gets_what_passes", |home| {
        let hosts = Hosts::new();
        let program = compile(home, "tests/c/tpacket4_action.c", C11, Preloaded);
        let last = 20 << 8 | 2;
        let mut command: Command = inside(&hosts.here, home.command(program));
        command.args(["netmap:n0", &last.to_string()]).env("LD_PRELOAD", home.library());
        let program = Proc::spawn(command);
        program.wait_for("bound", LIMIT);
        let action = by_number(home);
        hosts.control(|control| control.set_action("netmap:n0", Some(action))).unwrap();
        let wire = PacketSocket::new(&hosts.there, "n1");
        let stack = PacketSocket::new(&hosts.here, "n0");
        for number in 0..=20 {
            for verdict in [0, 1, 2, 5] {
                wire.send(&frame(number << 8 | verdict, 60));
            }
            assert_eq!(stack.hear().bytes, frame(number << 8 | 5, 60));
        }
        assert!(ends(program.pid(), LIMIT), "{}", program.output());
        let (status, output) = program.wait();
        assert!(status.success(), "{output}");
        let frames: Vec<_> = output.lines().filter(|line| line.starts_with("frame ")).collect();
        let passed: Vec<_> = (0..=20).map(|number| format!("frame {}", number << 8 | 2)).collect();
        assert_eq!(frames, passed);
    });
}

#[test]
fn an_action_goes_with_its_port() {
    run("an_action_goes_with_its_port", |home| {
        let before = Snapshot::take();
        let hosts = Hosts::new();
        let holder = Proc::spawn(inside(&hosts.here, home.traffic(&["hold", "netmap:n0"])));
        holder.wait_for("open", LIMIT);
        hosts.control(|control| control.set_action("netmap:n0", Some(always(1)))).unwrap();
        // Who joins it shares it; who has its rings after all others does not.
        let shared = hosts.open(Port::options().rx_only(), "netmap:n0");
        assert_eq!(hosts.info("n0").len(), 1);
        drop(shared);
        assert_eq!(hosts.info("n0").len(), 1);
        holder.signal(Signal::KILL);
        assert!(ends(holder.pid(), LIMIT));
        until("n0 is the stack's again", || match hosts.here.run("ip -d link show n0") {
            text if text.contains("prog/xdp") => Err(text),
            _ => Ok(()),
        });
        let (wire, stack) =
            (PacketSocket::new(&hosts.there, "n1"), PacketSocket::new(&hosts.here, "n0"));
        wire.send(&frame(1, 60));
        assert_eq!(stack.hear().bytes, frame(1, 60));
        let mut port = hosts.open(Port::options().rx_only(), "netmap:n0");
        wire.send(&frame(2, 60));
        assert_eq!(take(&mut port), frame(2, 60));
        drop(port);
        home.assert_left();
        drop(hosts);
        before.assert_clean();
    });
}

#[test]
fn what_cannot_be_is_refused_with_a_reason() {
    run("what_cannot_be_is_refused_with_a_reason", |_home| {
        let hosts = Hosts::new();
        let set = |spec: &str, action| hosts.control(|c| c.set_action(spec, Some(action)));
        assert!(refused(set("netmap:n0", always(2))).contains("no program of yours has it open"));
        let _other = hosts.open(Port::options(), "vale0:a");
        for other in ["vale0:a", "p{0"] {
            assert!(refused(set(other, always(2))).contains("it is no network interface"));
        }
        let port = hosts.open(Port::options(), "netmap:n0*");
        // The verifier's words.
        let load = Ebpf { code: 0x71, registers: 0x10, offset: 0, immediate: 0 };
        let action = Action::instructions("reads", vec![load, load, insn(0x95, 0)]);
        let said = refused(set("netmap:n0", action));
        assert!(said.contains("n0: the kernel's verifier refuses the action program"), "{said}");
        // Interfaces that there are not, or not here.
        for absent in ["nosuch", "n1", "c1"] {
            let said = refused(set("netmap:n0", always(2).redirect_to(absent)));
            assert!(said.contains(absent) && said.contains("no such network interface"), "{said}");
        }
        let many = (0..17).fold(always(2), |action, _| action.redirect_to("c0"));
        assert!(refused(set("netmap:n0", many)).contains("16 interfaces at most"));
        // By a helper that is not for users: bpf_map_lookup_elem.
        let calls = Action::instructions("calls", vec![insn(0x85, 1), insn(0x95, 0)]);
        assert!(refused(set("netmap:n0", calls)).contains("calls helper 1"));
        let said = refused(set("netmap:n0^", always(2)));
        assert!(said.contains("host rings have no action programs"), "{said}");
        assert!(hosts.info("n0").is_empty());
        drop(port);

        let open = |spec: &str| hosts.here.enter(|| Port::options().action(always(2)).open(spec));
        let said = refused(open("netmap:n0@mode=packet").map(drop));
        assert!(said.contains("packet mode has no action programs"), "{said}");
        let said = refused(open("vale0:a").map(drop));
        assert!(said.contains("network interfaces alone"), "{said}");
        assert!(refused(open("netmap:n0/T").map(drop)).contains("nothing is received"));
    });
}

/// Programs of any bytes: the daemon answers each, and goes on.
#[test]
fn any_instructions_are_answered() {
    run("any_instructions_are_answered", |home| {
        let hosts = Hosts::new();
        let mut port = hosts.open(Port::options().rx_only(), "netmap:n0");
        let daemon = home.daemon();
        let mut random = Random::seeded();
        // Instructions that mean something, mostly.
        let codes =
            [0xb7, 0xbf, 0x07, 0x61, 0x71, 0x7b, 0x63, 0x15, 0x2d, 0x05, 0x85, 0x95, 0x18, 0xdb];
        let mut taken = 0;
        for _ in 0..300 {
            let length = random.below(12);
            let mut insns: Vec<Ebpf> = (0..length)
                .map(|_| Ebpf {
                    code: match random.below(8) {
                        0 => random.draw() as u8,
                        _ => codes[random.below(codes.len() as u64) as usize],
                    },
                    registers: random.draw() as u8 & 0x77,
                    offset: random.below(6) as i16 - 1,
                    immediate: random.below(12) as i32,
                })
                .collect();
            insns.extend([insn(0xb7, 2), insn(0x95, 0)]);
            match port.set_action(Action::instructions("any", insns)) {
                Ok(()) => taken += 1,
                Err(error) => assert!(
                    matches!(error.cause(), Cause::Invalid | Cause::Gone | Cause::System(_)),
                    "{error}"
                ),
            }
        }
        assert!(taken > 0);
        port.set_action(always(2)).unwrap();
        let wire = PacketSocket::new(&hosts.there, "n1");
        wire.send(&frame(9, 60));
        assert_eq!(take(&mut port), frame(9, 60));
        assert_eq!(home.daemon(), daemon);
    });
}
