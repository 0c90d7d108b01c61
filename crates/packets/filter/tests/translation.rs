//! A translated filter matches what the classic one does: every expression, and any filter at all,
//! in the kernel, behind its verifier.

mod machines;

use machines::{Loaded, filter, matches, pcap_matches, run};
use proptest::{prelude::*, strategy::ValueTree};
use ringway_filter::{Error, Fault, Insn, Interpreter, Program, compile};
use ringway_testkit::skip_without_root;

const EXPRESSIONS: [&str; 39] = [
    "",
    "ip",
    "ip6",
    "arp",
    "tcp",
    "udp",
    "icmp",
    "icmp6",
    "udp port 53",
    "udp dst port 53",
    "tcp src portrange 1000-2000",
    "host 10.1.1.2",
    "not host 10.1.1.2",
    "src net 10.1.0.0/16 and dst net 10.1.0.0/17",
    "ip6 host fd00::2",
    "ip6 net fd00::/8 and udp",
    "ether host 02:00:00:00:00:01",
    "ether broadcast",
    "ether multicast",
    "ether proto 0x88b5",
    "vlan",
    "vlan 10",
    "vlan 10 and udp port 53",
    "vlan 10 and vlan 20 and ip",
    "mpls 100 and ip",
    "pppoes",
    "tcp[tcpflags] & (tcp-syn|tcp-fin) != 0",
    "ip[6:2] & 0x1fff != 0",
    "ip[0] & 0xf != 5",
    "len > 100",
    "less 64 or greater 1000",
    "ether[26:4] = 0x0a010102",
    "udp[4:2] - 8 = 18",
    "(ip[2:2] / 3) % 7 = 2",
    "ip[len / 4] = 0",
    "(ip[8] << 2) + (ip[9] >> 1) = 264",
    "ip proto 17 and ip[8] ^ 0x40 = 0",
    "tcp port 80 and (((ip[2:2] - ((ip[0]&0xf)<<2)) - ((tcp[12]&0xf0)>>2)) != 0)",
    "port 53 or port 67 or port 68 or port 123 or port 443 or portrange 5000-6000 or icmp or arp",
];

/// A frame like those on a wire: of a handful of protocols, tags, addresses and ports.
fn wire() -> impl Strategy<Value = Vec<u8>> {
    let pick = |of: &'static [u16]| prop::sample::select(of);
    let tags = prop::collection::vec(prop::sample::select(&[10u16, 20, 30][..]), 0..3);
    let ethertype = pick(&[0x0800, 0x0800, 0x0800, 0x86dd, 0x86dd, 0x0806, 0x88b5, 0x8847, 0x8864]);
    let protocol = prop::sample::select(&[6u8, 17, 17, 1, 58, 132][..]);
    let ports = [pick(&[53, 80, 443, 1500, 5500]), pick(&[53, 80, 67, 1500])];
    let rest = (prop::collection::vec(any::<u8>(), 0..1200), any::<[u8; 4]>(), any::<u8>());
    (tags, ethertype, protocol, ports, any::<bool>(), rest).prop_map(
        |(tags, ethertype, protocol, ports, broadcast, (payload, noise, cut))| {
            let to = if broadcast { [0xff; 6] } else { [2, 0, 0, 0, 0, 1] };
            let mut frame = [&to[..], &[2, 0, 0, 0, 0, noise[0] & 3]].concat();
            for tag in tags {
                frame.extend([0x81, 0x00]);
                frame.extend(tag.to_be_bytes());
            }
            frame.extend(ethertype.to_be_bytes());
            match ethertype {
                0x0800 => {
                    let words = 5 + (noise[1] & 1);
                    let len = (payload.len() as u16 + 28).to_be_bytes();
                    frame.extend([0x40 | words, 0, len[0], len[1], 0, 0, 0, noise[1] & 2, 64]);
                    frame.extend([protocol, 0, 0, 10, 1, noise[2] & 0x81, 2, 10, 1, 1, 2]);
                    frame.extend(vec![1; 4 * (usize::from(words) - 5)]);
                }
                0x86dd => {
                    frame.extend([0x60, 0, 0, 0, 0, 99, protocol, 64]);
                    let address = |last| [&[0xfd][..], &[0; 14], &[last]].concat();
                    frame.extend([address(noise[2] & 3), address(2)].concat());
                }
                0x8847 => frame.extend([0, 6, 0x41, 64, 0x45]),
                0x8864 => frame.extend([0x11, 0, 0, 0, 0, 20, 0, 0x21]),
                _ => {}
            }
            frame.extend(ports.into_iter().flat_map(u16::to_be_bytes));
            frame.extend([0, 26]);
            frame.extend(payload);
            if cut < 64 {
                frame.truncate(14 + usize::from(cut));
            }
            frame.resize(frame.len().max(14), 0);
            frame
        },
    )
}

#[test]
fn expressions_match_in_the_kernel_what_they_match_in_libpcap() {
    if skip_without_root("expressions_match_in_the_kernel_what_they_match_in_libpcap") {
        return;
    }
    let filters: Vec<_> = EXPRESSIONS
        .iter()
        .map(|text| {
            let program = compile(text).unwrap_or_else(|e| panic!("{e}"));
            (text, Loaded::new(&program), program)
        })
        .collect();
    let mut hits = vec![[0; 2]; filters.len()];
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    for _ in 0..2000 {
        let frame = wire().new_tree(&mut runner).unwrap().current();
        for ((text, loaded, program), hits) in filters.iter().zip(&mut hits) {
            let expected = pcap_matches(program.insns(), &frame);
            assert_eq!(loaded.matches(&frame), expected, "`{text}` in the kernel: {frame:02x?}");
            assert_eq!(matches(program.insns(), &frame), expected, "`{text}` in the model");
            hits[usize::from(expected)] += 1;
        }
    }
    let idle = filters.iter().zip(hits).skip(1).filter(|(_, hits)| hits.contains(&0));
    let idle: Vec<_> = idle.map(|((text, ..), hits)| (text, hits)).collect();
    assert!(idle.is_empty(), "these tell nothing apart: {idle:?}");
}

#[test]
fn the_verifier_gets_through_long_filters() {
    if skip_without_root("the_verifier_gets_through_long_filters") {
        return;
    }
    let hosts = |n: u32| (0..n).map(|i| format!("host 10.{}.{}.7", i / 200, i % 200));
    let either = hosts(300).collect::<Vec<_>>().join(" or ");
    let ports = (0..150).map(|i| format!("port {}", 3 * i)).collect::<Vec<_>>().join(" or ");
    for text in [format!("({either}) and ({ports})"), format!("not ({either})"), ports] {
        let program = compile(&text).unwrap();
        assert!(program.insns().len() > 300);
        let loaded = Loaded::new(&program);
        let mut runner = proptest::test_runner::TestRunner::deterministic();
        for _ in 0..200 {
            let frame = wire().new_tree(&mut runner).unwrap().current();
            assert_eq!(loaded.matches(&frame), pcap_matches(program.insns(), &frame));
        }
    }
}

/// What the interpreter returns for a whole frame.
fn interpreted(program: &Program, frame: &[u8]) -> u32 {
    Interpreter::new(program).run(&frame, frame.len() as u32)
}

#[test]
fn expressions_match_in_the_interpreter_what_they_match_in_libpcap() {
    let filters = EXPRESSIONS.map(|text| (text, compile(text).unwrap()));
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    for _ in 0..2000 {
        let frame = wire().new_tree(&mut runner).unwrap().current();
        for (text, program) in &filters {
            let expected = pcap_matches(program.insns(), &frame);
            assert_eq!(interpreted(program, &frame) != 0, expected, "`{text}`: {frame:02x?}");
        }
    }
}

/// The shortest frame that the kernel takes in a test.
const SHORTEST: usize = 14;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    #[test]
    fn any_filter_matches_in_the_kernel_what_the_classic_machine_matches(
        bytes in prop::collection::vec(any::<u8>(), 8..512),
        frames in prop::collection::vec(prop::collection::vec(any::<u8>(), SHORTEST..128), 4),
    ) {
        if skip_without_root("any_filter_matches_in_the_kernel_what_the_classic_machine_matches") {
            return Ok(());
        }
        let program = Program::new(filter(&bytes)).unwrap();
        let loaded = Loaded::new(&program);
        for frame in &frames {
            prop_assert_eq!(loaded.matches(frame), matches(program.insns(), frame));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20000))]

    #[test]
    fn any_filter_returns_in_the_interpreter_what_the_classic_machine_returns(
        bytes in prop::collection::vec(any::<u8>(), 8..512),
        frames in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..128), 4),
    ) {
        let program = Program::new(filter(&bytes)).unwrap();
        for frame in &frames {
            prop_assert_eq!(interpreted(&program, frame), run(program.insns(), frame).unwrap_or(0));
        }
    }
}

#[test]
fn what_is_no_filter_is_refused() {
    let insn = |code, k| Insn { code, jt: 0, jf: 0, k };
    let ret = insn(0x06, 1);
    let fault = |insns: &[Insn]| match Program::new(insns.to_vec()) {
        Err(Error::Instruction { at: 0, fault }) => fault,
        other => panic!("{other:?}"),
    };
    assert_eq!(fault(&[insn(0xffff, 0), ret]), Fault::Unknown);
    assert_eq!(fault(&[insn(0x20, 0xffff_f000), ret]), Fault::Extension);
    assert_eq!(fault(&[insn(0x05, 1), ret]), Fault::Target);
    assert_eq!(fault(&[insn(0x05, u32::MAX), ret]), Fault::Target);
    assert_eq!(fault(&[Insn { code: 0x15, jt: 0, jf: 1, k: 0 }, ret]), Fault::Target);
    assert_eq!(fault(&[insn(0x60, 16), ret]), Fault::Memory);
    assert_eq!(fault(&[insn(0x34, 0), ret]), Fault::Division);
    assert_eq!(fault(&[insn(0x64, 32), ret]), Fault::Shift);
    assert_eq!(fault(&[insn(0x00, 0)]), Fault::End);
    assert_eq!(Program::new(vec![]), Err(Error::Length(0)));
    assert_eq!(Program::new(vec![ret; 4097]), Err(Error::Length(4097)));
}

#[test]
fn a_wrong_expression_is_told_with_its_fault() {
    let said = compile("udp prot 53").unwrap_err().to_string();
    assert!(said.contains("udp prot 53") && said.contains("syntax error"), "{said}");
    assert!(compile("a\0b").is_err());
    let said = compile("ip protochain 17").unwrap_err().to_string();
    assert!(said.contains("protochain"), "{said}");
}
