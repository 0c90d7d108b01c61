//! The selectable descriptor is readable as long as there are packets, and no longer.

use ringway_testkit::{Netns, skip_without_root};
use ringway_tests::{
    Home,
    c::{Language::C11, link},
    isolated,
};

use crate::{install, run};

/// An event loop that reads one packet each time that the descriptor is readable reads them all.
fn assert_read_singly(home: &Home, netns: Option<&Netns>, devices: &[[&str; 2]]) {
    let program = link(home, "tests/c/pcap_singly.c", C11, &["-lpcap"]);
    for [device, peer] in devices {
        for late in ["", "late"] {
            let line = format!("{} '{device}' '{peer}' {late}", program.display());
            let (status, said) = run(home, netns, &line).wait();
            assert!(status.success(), "{device} {late}: {said}");
        }
    }
}

#[test]
fn packets_of_an_interface_are_read_one_by_one() {
    if skip_without_root("selectable::packets_of_an_interface_are_read_one_by_one") {
        return;
    }
    isolated("selectable::packets_of_an_interface_are_read_one_by_one", |home| {
        install(home);
        let netns = Netns::quiet("rwp");
        let _pair = netns.veth(&netns, "n0", "n1");
        let peer = "n1";
        let devices = ["netmap:n0", "netmap:n0@mode=copy", "netmap:n0@mode=packet", "netmap:n0/rt"];
        assert_read_singly(home, Some(&netns), &devices.map(|device| [device, peer]));
    });
}

#[test]
fn packets_of_switches_and_pipes_are_read_one_by_one() {
    isolated("selectable::packets_of_switches_and_pipes_are_read_one_by_one", |home| {
        install(home);
        let devices = [["vale0:a", "vale0:b"], ["netmap:x{1", "netmap:x}1"]];
        assert_read_singly(home, None, &devices);
    });
}
