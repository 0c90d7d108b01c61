//! An interface that receives frames of which its port gets none: told once, and when it is over; and no port that rightly
//! gets none.

use std::{fs, time::Duration};

use ringway::{Control, Event, EventKind, Level, Port};
use ringway_testkit::{Netns, PacketSocket, VethPair, bpf_object, frame, skip_without_root};
use ringway_tests::{isolated, packet::receive, until};

const LIMIT: Duration = Duration::from_secs(30);

/// A program in front of the port's socket.
const DROP: &str = "
    #include <net/ringway_xdp.h>
    SEC(\"xdp\") int drop(struct xdp_md *ctx) { return XDP_DROP; }
";

fn told(control: &Control) -> Vec<Event> {
    let page = control.events(0, false).unwrap();
    page.events.into_iter().filter(|event| event.kind == EventKind::NotReceived).collect()
}

#[test]
fn an_interface_whose_frames_do_not_come_to_its_port_is_told() {
    if skip_without_root("an_interface_whose_frames_do_not_come_to_its_port_is_told") {
        return;
    }
    isolated("an_interface_whose_frames_do_not_come_to_its_port_is_told", |home| {
        let (far, near) = (Netns::quiet("rwn"), Netns::quiet("rwn"));
        // The first loses what it receives; programs of the next two do not read; the last has a filter.
        let specs = ["mode=packet", "mode=packet", "mode=copy", "mode=copy@filter=udp port 7"];
        let wire = |(number, options): (usize, &&str)| -> (PacketSocket, Port, VethPair) {
            let pair = far.veth(&near, &format!("a{number}"), &format!("b{number}"));
            let name = format!("netmap:b{number}@{options}");
            let port = near.enter(|| Port::open(&name)).unwrap_or_else(|e| panic!("{name}: {e}"));
            (PacketSocket::new(&far, &format!("a{number}")), port, pair)
        };
        let mut wires: Vec<_> = specs.iter().enumerate().map(wire).collect();
        let source = home.path().join("drop.c");
        fs::write(&source, DROP).unwrap();
        let object = bpf_object(home.path(), &source);
        near.run(&format!("ip link set dev b0 xdpgeneric obj {} sec xdp", object.display()));

        let control = Control::connect().unwrap();
        let of_ports = || {
            let ports = control.ports().unwrap();
            ports.into_iter().filter(|port| port.gets_nothing).collect::<Vec<_>>()
        };
        until("it is told", || {
            for (from, ..) in &wires {
                from.send(&frame(1, 60));
            }
            if told(&control).is_empty() { Err(format!("{:?}", of_ports())) } else { Ok(()) }
        });
        let events = told(&control);
        let [event] = &events[..] else { panic!("{events:?}") };
        assert_eq!((event.level, event.port.as_str()), (Level::Warn, "b0"));
        assert!(event.text.contains("has got none (packet mode, queue 0)"), "{}", event.text);
        assert!(event.text.contains("`ringway doctor b0 --try`"), "{}", event.text);
        let missing = of_ports();
        assert_eq!(missing.iter().map(|port| port.name.as_str()).collect::<Vec<_>>(), ["b0"]);
        let mode = missing[0].mode.as_deref().unwrap();
        assert!(mode.contains("receives frames and the port gets none"), "{mode}");

        near.run("ip link set dev b0 xdpgeneric off");
        let (from, port, _) = &mut wires[0];
        from.send(&frame(2, 60));
        assert_eq!(receive(port, 0, LIMIT).0, frame(2, 60));
        let last = until("the end is told", || {
            told(&control).into_iter().nth(1).ok_or("it is not".into())
        });
        assert_eq!((last.level, last.port.as_str()), (Level::Info, "b0"));
        assert!(last.text.contains("gets frames again"), "{}", last.text);
        assert_eq!((of_ports().len(), told(&control).len()), (0, 2));
        drop((control, wires));
        home.assert_left();
    });
}
