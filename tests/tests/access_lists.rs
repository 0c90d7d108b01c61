//! Filters of a switch's ports, in the kernel's program and in the worker: both let pass what the same filter lets
//! pass of a frame in memory, and count the rest.

use std::time::Duration;

use ringway::{BridgePortInfo, Control, Filter, PortSettings, Vlan};
use ringway_filter::{Insn, Interpreter, compile};
use ringway_testkit::{Netns, PacketSocket, VethPair, skip_without_root};
use ringway_tests::{Random, isolated, one_at_a_time, until};

const LIMIT: Duration = Duration::from_secs(30);
/// Pairs of filters, and frames for each.
const PAIRS: usize = 60;
const FRAMES: usize = 12;

const EXPRESSIONS: [&str; 20] = [
    "",
    "arp",
    "ip or ip6",
    "not ip",
    "icmp or arp",
    "udp port 53",
    "tcp dst port 80 or udp src portrange 50-60",
    "src net 10.1.0.0/16 or ip6 host 2001:db8::7",
    "tcp[tcpflags] & (tcp-syn|tcp-ack) = tcp-syn",
    "ip[8] > 60 and ip[6:2] & 0x1fff = 0",
    "len > 200",
    "less 100",
    "ether[20] & 1 = 1",
    "ether[100:4] > 0x7fffffff",
    "ip[2:2] - ((ip[0] & 0xf) << 2) > 100",
    "ether[14] / 3 % 5 = 2 or ether[15] * 7 > 900",
    "vlan",
    "vlan 5 and udp",
    "ether proto 0x88a8",
    "not ether proto 0x88a8",
];

/// A switch with two interfaces.
struct Switch {
    name: &'static str,
    ports: [String; 2],
    _wires: [VethPair; 2],
    ends: [PacketSocket; 2],
}

impl Switch {
    fn new(control: &Control, here: &Netns, there: &Netns, name: &'static str, mode: &str) -> Self {
        let letter = &name[4..];
        let names = [0, 1].map(|at| format!("a{letter}{at}"));
        let far = |name: &String| format!("{name}f");
        let wires = names.each_ref().map(|name| here.veth(there, name, &far(name)));
        let ends = names.each_ref().map(|name| PacketSocket::of_all(there, &far(name)));
        for interface in &names {
            let port = format!("{interface}{mode}");
            here.enter(|| control.switch_attach(name, &port, false)).unwrap();
        }
        let ports = names.map(|interface| format!("{name}:{interface}"));
        Switch { name, ports, _wires: wires, ends }
    }

    fn set_vlan(&self, control: &Control, vlan: Vlan) {
        for port in &self.ports {
            let settings = PortSettings { vlan: Some(vlan.clone()), ..PortSettings::default() };
            control.switch_port(port, settings).unwrap();
        }
    }

    fn filter(&self, control: &Control, [filter_in, filter_out]: [&str; 2]) {
        let wanted = |text| Some(Some(Filter::new(text).unwrap().into()));
        let filter_in = PortSettings { filter_in: wanted(filter_in), ..<_>::default() };
        let filter_out = PortSettings { filter_out: wanted(filter_out), ..<_>::default() };
        control.switch_port(&self.ports[0], filter_in).unwrap();
        control.switch_port(&self.ports[1], filter_out).unwrap();
    }

    fn info(&self, control: &Control, at: usize) -> BridgePortInfo {
        let switches = control.switches().unwrap();
        let mut ports = switches.into_iter().flat_map(|switch| switch.ports);
        ports.find(|port| port.name == self.ports[at]).expect("it is attached")
    }

    /// Packets and bytes that the first has sent.
    fn sent(&self, control: &Control) -> [u64; 2] {
        let totals = self.info(control, 0).totals;
        [totals.sent_packets, totals.sent_bytes]
    }

    fn denied(&self, control: &Control, at: usize) -> u64 {
        self.info(control, at).totals.drops.denied
    }

    /// The next frame at a far end, with its tag in its bytes.
    fn next(&self, at: usize, limit: Duration) -> Option<Vec<u8>> {
        loop {
            let mut heard = self.ends[at].hear_within(limit)?;
            if heard.bytes[6..12] != mac(1 - at) {
                continue;
            }
            if let Some((kind, tag)) = heard.tag {
                heard.bytes.splice(12..12, [kind, tag].map(u16::to_be_bytes).concat());
            }
            return Some(heard.bytes);
        }
    }
}

/// The address behind a port.
fn mac(at: usize) -> [u8; 6] {
    [2, 0, 0, 0, 7, at as u8]
}

/// A frame from port 0 to port 1, of some protocol, with a tag or without.
fn any_frame(random: &mut Random) -> Vec<u8> {
    let mut any = |of: &[u16]| of[random.below(of.len() as u64) as usize];
    let mut frame = [mac(1), mac(0)].concat();
    let tag = any(&[0, 0, 0x8100, 0x8100, 0x88a8]);
    if tag != 0 {
        frame.extend(tag.to_be_bytes());
        frame.extend([any(&[0, 2, 14]) as u8 * 16, 5]);
    }
    let kind = any(&[0x0800, 0x0800, 0x0800, 0x86dd, 0x0806, 0x1234]);
    frame.extend(kind.to_be_bytes());
    let begin = frame.len();
    let length = begin + any(&[28, 46, 60, 90, 200, 600, 1400]) as usize;
    frame.extend((begin..length).map(|_| random.below(256) as u8));
    let mut any = |of: &[u16]| of[random.below(of.len() as u64) as usize];
    let body = &mut frame[begin..];
    let protocol = any(&[1, 6, 17, 17, 58]) as u8;
    let ports = [any(&[53, 55, 80, 999]), any(&[53, 80, 7])].map(u16::to_be_bytes).concat();
    match kind {
        0x0800 => {
            body[0] = 0x45;
            body[2..4].copy_from_slice(&any(&[40, 120, 500]).to_be_bytes());
            body[6..8].copy_from_slice(&any(&[0, 0, 0x4000, 0x2003]).to_be_bytes());
            body[9] = protocol;
            body[12..14].copy_from_slice(&[10, any(&[1, 2]) as u8]);
            body[20..24].copy_from_slice(&ports);
        }
        0x86dd if body.len() >= 44 => {
            body[0] = 0x60;
            body[6] = protocol;
            let address = [&[0x20, 1, 0xd, 0xb8], &[0; 11][..], &[any(&[7, 8]) as u8]].concat();
            body[8..24].copy_from_slice(&address);
            body[40..44].copy_from_slice(&ports);
        }
        _ => {}
    }
    frame
}

#[test]
fn the_kernel_filters_as_the_worker_does() {
    if skip_without_root("the_kernel_filters_as_the_worker_does") {
        return;
    }
    let _turn = one_at_a_time();
    isolated("the_kernel_filters_as_the_worker_does", |home| {
        let control = Control::connect().unwrap();
        let mut random = Random::seeded();
        let (here, there) = (Netns::quiet("rwa"), Netns::quiet("rwa"));
        let switches = [("vale0", ""), ("vale1", "@mode=packet")]
            .map(|(name, mode)| Switch::new(&control, &here, &there, name, mode));
        // Where both are, in both VLANs.
        for switch in &switches {
            let trunk = Vlan::Trunk { allowed: [5].into(), native: Some(1) };
            switch.set_vlan(&control, trunk);
            for (from, tag) in
                [(0, &[][..]), (1, &[]), (0, &[0x81, 0, 0, 5]), (1, &[0x81, 0, 0, 5])]
            {
                let to = 1 - from;
                let frame = [&mac(to)[..], &mac(from), tag, &[0x12, 0x34], &[0; 46]].concat();
                switch.ends[from].send(&frame);
                assert_eq!(switch.next(to, LIMIT).as_ref(), Some(&frame));
            }
        }
        let begun = switches.each_ref().map(|switch| switch.sent(&control));
        let (mut outcomes, mut bytes) = ([0; 3], 0);
        for _ in 0..PAIRS {
            let texts = [(); 2].map(|()| {
                // The first is taken more often: what comes so far is the second's.
                let at = random.below(2 * EXPRESSIONS.len() as u64) as usize;
                EXPRESSIONS.get(at).copied().unwrap_or_default()
            });
            let filters = texts.map(|text| Interpreter::new(&compile(text).unwrap()));
            switches.iter().for_each(|switch| switch.filter(&control, texts));
            // The program in the kernel has no scratch memory.
            for (at, text) in texts.iter().enumerate() {
                let stores = |insn: &Insn| matches!(insn.code, 2 | 3);
                let mode = match compile(text).unwrap().insns().iter().any(stores) {
                    true => "kernel, by the worker: it has a filter",
                    false => "kernel",
                };
                assert_eq!(switches[0].info(&control, at).mode.as_deref(), Some(mode), "{text}");
            }
            for _ in 0..FRAMES {
                let frame = any_frame(&mut random);
                bytes += frame.len() as u64;
                let matches = |at: usize| filters[at].run(&&frame[..], frame.len() as u32) != 0;
                let denied_by = [0, 1].into_iter().find(|at| !matches(*at));
                outcomes[denied_by.unwrap_or(2)] += 1;
                for switch in &switches {
                    let what = format!("{}: {texts:?}, {frame:02x?}", switch.name);
                    let before = denied_by.map(|at| switch.denied(&control, at));
                    switch.ends[0].send(&frame);
                    let Some((at, before)) = denied_by.zip(before) else {
                        assert_eq!(switch.next(1, LIMIT).as_ref(), Some(&frame), "{what}");
                        continue;
                    };
                    until(&what, || match switch.denied(&control, at) - before {
                        1 => Ok(()),
                        count => Err(format!("{count} denied")),
                    });
                }
            }
        }
        assert!(outcomes.iter().all(|count| *count > PAIRS), "{outcomes:?}");
        for (switch, [packets_before, bytes_before]) in switches.iter().zip(begun) {
            assert_eq!(switch.next(1, Duration::ZERO), None, "{}", switch.name);
            let denied = [0, 1].map(|at| switch.denied(&control, at) as usize);
            assert_eq!(denied, [outcomes[0], outcomes[1]], "{}", switch.name);
            let sent = [packets_before + (PAIRS * FRAMES) as u64, bytes_before + bytes];
            assert_eq!(switch.sent(&control), sent, "{}: with what was denied", switch.name);
            control.switch_delete(switch.name).unwrap();
        }
        drop((control, switches));
        home.assert_left();
    });
}

/// Where a switch does not look at tags, those of services are the kernel's to forward, and are their own to filters: of
/// what a port sends, and of what it gets.
#[test]
fn a_services_tag_is_no_customers() {
    if skip_without_root("a_services_tag_is_no_customers") {
        return;
    }
    let _turn = one_at_a_time();
    isolated("a_services_tag_is_no_customers", |home| {
        let control = Control::connect().unwrap();
        let (here, there) = (Netns::quiet("rwa"), Netns::quiet("rwa"));
        let switches = [("vale0", ""), ("vale1", "@mode=packet")]
            .map(|(name, mode)| Switch::new(&control, &here, &there, name, mode));
        let frame = |from: usize, kind: u16| {
            let tag = [kind.to_be_bytes(), [0x60, 5], [0x12, 0x34]].concat();
            [&mac(1 - from)[..], &mac(from), &tag, &[0; 46]].concat()
        };
        for switch in &switches {
            for from in [0, 1] {
                switch.ends[from].send(&frame(from, 0x8100));
                assert_eq!(switch.next(1 - from, LIMIT), Some(frame(from, 0x8100)));
            }
            for (text, passing) in [
                ("not ether proto 0x88a8", 0x8100),
                ("not ether proto 0x8100", 0x88a8),
                ("ether[14:2] = 0x6005 and ether proto 0x88a8", 0x88a8),
            ] {
                for (at, filters) in [[text, ""], ["", text]].into_iter().enumerate() {
                    switch.filter(&control, filters);
                    for kind in [0x8100, 0x88a8] {
                        let what = format!("{}: {filters:?}, {kind:x}", switch.name);
                        let before = switch.denied(&control, at);
                        switch.ends[0].send(&frame(0, kind));
                        if kind == passing {
                            assert_eq!(switch.next(1, LIMIT), Some(frame(0, kind)), "{what}");
                        } else {
                            until(&what, || match switch.denied(&control, at) - before {
                                1 => Ok(()),
                                count => Err(format!("{count} denied")),
                            });
                        }
                    }
                }
            }
            assert_eq!(switch.next(1, Duration::ZERO), None, "{}", switch.name);
            control.switch_delete(switch.name).unwrap();
        }
        drop((control, switches));
        home.assert_left();
    });
}
