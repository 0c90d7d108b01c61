//! What a port has sent has been received, or is counted as dropped: each frame once, with anything that may happen to the
//! ports meanwhile, on each path. The kernel's own counters are the witness.

use std::time::Instant;

use ringway::{Control, Filter, FloodLimit, Port, PortSettings, RateLimit};
use ringway_proto::PortTotals;
use ringway_testkit::{Netns, PacketSocket, VethPair, frame, skip_without_root};
use ringway_tests::{isolated, one_at_a_time, until};

/// Bytes of a frame, and frames that are sent at once.
const LENGTH: usize = 1000;
const AT_ONCE: u32 = 300;

/// By which path the frames go: how both interfaces are attached, and whether there is a monitor.
const PATHS: [(&str, bool); 5] = [
    ("", false),
    ("", true),
    ("@mode=packet", false),
    ("@mode=copy", false),
    ("@mode=generic", false),
];

/// What happens to the frames on their way.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Trouble {
    Nothing,
    /// The receiver's far end is set down, and up again: there is no carrier.
    FarDown,
    /// The receiver's interface is.
    NearDown,
    /// A program is the receiver, and reads nothing.
    SmallRing,
    FilterIn,
    FilterOut,
    Rate,
    /// To an address that is not known, which the port may not send to as often.
    Storm,
    /// The same, by the limit of such frames.
    StormUnknown,
    /// The sources are a group's, and zero.
    BadSource,
    /// The receiver's MTU is less than what is sent; that of its far end is.
    Mtu,
    FarMtu,
}

const ALL: [Trouble; 12] = [
    Trouble::Nothing,
    Trouble::FarDown,
    Trouble::NearDown,
    Trouble::SmallRing,
    Trouble::FilterIn,
    Trouble::FilterOut,
    Trouble::Rate,
    Trouble::Storm,
    Trouble::StormUnknown,
    Trouble::BadSource,
    Trouble::Mtu,
    Trouble::FarMtu,
];

/// The interface `c0`, from whose far end all is sent, and `c1`, from whose far end it is heard.
struct World {
    here: Netns,
    far: [Netns; 2],
    control: Control,
    ends: [PacketSocket; 2],
    number: u32,
    /// Numbered frames have sources that no machine has.
    without_source: bool,
    /// Frames that were sent by both ends, and those of a port that is gone which were received or dropped.
    sent: u64,
    gone: u64,
    begun: Instant,
    _wires: [VethPair; 2],
    _monitor: Option<Port>,
}

fn mac(number: u8) -> [u8; 6] {
    [2, 0, 0, 0, 0, number]
}

/// What a port took in, and what it lost, by reason.
fn counted(totals: &PortTotals) -> (u64, Vec<(&'static str, u64)>) {
    let lost = totals.drops.reasons().into_iter().filter(|(_, count)| *count > 0);
    (totals.received_packets, lost.collect())
}

impl World {
    fn new((mode, monitored): (&str, bool)) -> World {
        let (here, far) = (Netns::quiet("rwk"), [(); 2].map(|()| Netns::quiet("rwk")));
        let _wires = [0, 1].map(|at| here.veth(&far[at], &format!("c{at}"), "eth0"));
        let control = Control::connect().unwrap();
        let _monitor = here.enter(|| {
            for name in ["c0", "c1"] {
                control.switch_attach("vale0", &format!("{name}{mode}"), false).unwrap();
            }
            monitored.then(|| Port::open("vale0:c0/t").unwrap())
        });
        let ends = far.each_ref().map(|far| PacketSocket::new(far, "eth0"));
        let mut world = World {
            here,
            far,
            control,
            ends,
            number: 0,
            without_source: false,
            sent: 0,
            gone: 0,
            begun: Instant::now(),
            _wires,
            _monitor,
        };
        world.say_hello();
        world
    }

    /// The switch knows the address behind each interface from now on.
    fn say_hello(&mut self) {
        until("both are known", || {
            for (number, end) in (1..).zip(&self.ends) {
                let mut hello = frame(0, 60);
                hello[..6].copy_from_slice(&mac(9));
                hello[6..12].copy_from_slice(&mac(number));
                self.sent += u64::from(end.try_send(&hello));
            }
            let known = ["c0", "c1"].map(|name| self.totals(name).known);
            if known == [1, 1] { Ok(()) } else { Err(format!("{known:?}")) }
        });
    }

    fn totals(&self, name: &str) -> PortTotals {
        let switches = self.control.switches().unwrap();
        let mut ports = switches.into_iter().flat_map(|switch| switch.ports);
        let name = format!("vale0:{name}");
        let port = ports.find(|port| port.name == name);
        port.map(|port| port.totals).unwrap_or_default()
    }

    fn set(&self, name: &str, settings: PortSettings) {
        self.control.switch_port(&format!("vale0:{name}"), settings).unwrap();
    }

    /// Both interfaces have nothing to do with each other.
    fn isolate(&self, isolated: bool) {
        for name in ["c0", "c1"] {
            self.set(name, PortSettings { isolated: Some(isolated), ..PortSettings::default() });
        }
    }

    /// Sends numbered frames from the far end of `c0`.
    fn send(&mut self, to: [u8; 6]) {
        for _ in 0..AT_ONCE {
            self.number += 1;
            let mut bytes = frame(self.number, LENGTH);
            bytes[..6].copy_from_slice(&to);
            if self.without_source {
                let source =
                    if self.number.is_multiple_of(2) { [0; 6] } else { [3, 0, 0, 0, 0, 1] };
                bytes[6..12].copy_from_slice(&source);
            }
            self.ends[0].send(&bytes);
        }
        self.sent += u64::from(AT_ONCE);
    }

    /// Frames that the far end of `c1` has had, and those that `c1` has dropped: by the kernel's counters.
    fn witness(&self) -> [u64; 2] {
        let count = |netns: &Netns, name: &str, counter: &str| -> u64 {
            let text = netns.run(&format!("cat /sys/class/net/{name}/statistics/{counter}"));
            text.trim().parse().unwrap()
        };
        [count(&self.far[1], "eth0", "rx_packets"), count(&self.here, "c1", "tx_dropped")]
    }

    /// Waits until each frame that was sent so far is counted once, and no more often.
    fn assert_conserved(&mut self, what: &str) {
        let told = until(&format!("each frame is counted once: {what}"), || {
            let ports = ["c0", "c1", "p"].map(|name| self.totals(name));
            let counted = ports.each_ref().map(counted);
            let all = counted.iter().map(|(received, lost)| {
                received + lost.iter().map(|(_, count)| count).sum::<u64>()
            });
            let sum = self.gone + all.sum::<u64>();
            let [arrived, dropped] = self.witness();
            let told = format!("{} sent, {sum} counted, {arrived} arrived: {counted:?}", self.sent);
            let received = ports[1].received_packets;
            // The switch looks for loops by a frame of its own, once a second at most.
            let own = self.begun.elapsed().as_secs() + 2;
            let is_seen = arrived <= received + own && received <= arrived + dropped;
            if sum == self.sent && is_seen { Ok(told) } else { Err(told) }
        });
        eprintln!("{what}: {told}");
    }

    /// Sends, with trouble meanwhile, to a receiver of the switch.
    fn suffer(&mut self, trouble: Trouble, what: &str) {
        let (on, off) = match trouble {
            Trouble::FarDown | Trouble::NearDown => ("down", "up"),
            _ => ("mtu 600", "mtu 1500"),
        };
        let change = |world: &World, to: &str| match trouble {
            Trouble::FarDown | Trouble::FarMtu => {
                world.far[1].run(&format!("ip link set eth0 {to}"));
            }
            Trouble::NearDown | Trouble::Mtu => {
                world.here.run(&format!("ip link set c1 {to}"));
            }
            _ => {}
        };
        let filter = || Some(Some(Filter::new("greater 2000").unwrap().into()));
        let limit = RateLimit { bits_per_second: 800_000, burst_bytes: 20_000 };
        let none = PortSettings::default;
        match trouble {
            Trouble::FilterIn => self.set("c0", PortSettings { filter_in: filter(), ..none() }),
            Trouble::FilterOut => self.set("c1", PortSettings { filter_out: filter(), ..none() }),
            Trouble::Rate => self.set("c0", PortSettings { rate: Some(Some(limit)), ..none() }),
            Trouble::Storm => self.set("c0", PortSettings { storm: Some(Some(50)), ..none() }),
            Trouble::StormUnknown => {
                let storm_unknown = Some(Some(FloodLimit::new(50)));
                self.set("c0", PortSettings { storm_unknown, ..none() });
            }
            _ => {}
        }
        // A program that reads nothing.
        let is_program = trouble == Trouble::SmallRing;
        let program = is_program.then(|| Port::open("vale0:p@conf:slots=64").unwrap());
        self.isolate(is_program);
        self.without_source = trouble == Trouble::BadSource;
        let before = self.totals("c0").drops.bad_source;
        let received = self.totals("c1").received_packets;
        let is_storm = matches!(trouble, Trouble::Storm | Trouble::StormUnknown);
        let is_unknown = is_program || is_storm;
        let to = if is_unknown { mac(77) } else { mac(2) };
        self.send(to);
        change(self, on);
        self.send(to);
        self.send(to);
        change(self, off);
        self.send(to);
        self.assert_conserved(&format!("{what}, {trouble:?}"));
        let bad = self.totals("c0").drops.bad_source - before;
        assert_eq!(bad > 0, self.without_source, "{what}, {trouble:?}: {bad}");
        if self.without_source {
            assert_eq!(self.totals("c1").received_packets, received, "{what}: they are for none");
            assert_eq!(self.totals("c0").known, 1, "{what}: no such address is learned");
            self.without_source = false;
        }
        if program.is_some() {
            let (received, lost) = counted(&self.totals("p"));
            self.gone += received + lost.iter().map(|(_, count)| count).sum::<u64>();
        }
        drop(program);
        self.isolate(false);
        let (filter_in, rate) = (Some(None), Some(None));
        let (storm, storm_unknown) = (Some(None), Some(None));
        self.set("c0", PortSettings { filter_in, rate, storm, storm_unknown, ..none() });
        self.set("c1", PortSettings { filter_out: Some(None), ..none() });
        self.say_hello();
    }
}

#[test]
fn each_frame_is_received_or_dropped_once() {
    if skip_without_root("each_frame_is_received_or_dropped_once") {
        return;
    }
    let _turn = one_at_a_time();
    isolated("each_frame_is_received_or_dropped_once", |home| {
        for path in PATHS {
            let mut world = World::new(path);
            for trouble in ALL {
                world.suffer(trouble, &format!("{path:?}"));
            }
            world.control.switch_delete("vale0").unwrap();
        }
        home.assert_left();
    });
}
