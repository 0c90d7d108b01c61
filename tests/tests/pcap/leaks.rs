//! Handles that are closed leave nothing behind.

use super::*;

/// Each kind of port, and how many times it is opened.
const KINDS: [(&str, &str, u32); 5] = [
    ("vale0:a", "vale0:b", 30),
    ("netmap:x{1", "netmap:x}1", 30),
    // A monitor of what another program has open.
    ("vale9:a", "vale9:held/r", 10),
    ("n1", "netmap:n0/r", 30),
    ("n1", "netmap:n0", 6),
];

/// What the allocator may keep, in KiB. A ring is more, and so is anything that is forgotten every time.
const MAY_KEEP: i64 = 1024;

fn program(home: &Home) -> PathBuf {
    link(home, "tests/c/pcap_leaks.c", C11, &["-lpcap"])
}

#[test]
fn handles_leave_nothing_behind() {
    if skip_without_root("leaks::handles_leave_nothing_behind") {
        return;
    }
    isolated("leaks::handles_leave_nothing_behind", |home| {
        install(home);
        let program = program(home);
        let netns = Netns::quiet("rwp");
        let _pair = netns.veth(&netns, "n0", "n1");
        // The daemon lives as long as one port does: it is not started anew each time.
        let _held = Port::open("vale9:held").unwrap();
        for (from, to, rounds) in KINDS {
            let netns = to.contains("n0").then_some(&netns);
            let line =
                format!("{} {rounds} '{from}' '{to}' 'ether proto 0x88b5'", program.display());
            let said = succeeds(run(home, netns, &line));
            assert!(said.contains("descriptors +0"), "{from} to {to}: {said}");
            assert!(mapped(&said) <= MAY_KEEP, "{from} to {to}: {said}");
        }
    });
}

/// How many KiB more are mapped, from what the program has printed.
fn mapped(said: &str) -> i64 {
    let (_, rest) = said.split_once("mapped ").expect(said);
    rest.split_once(" KiB").expect(said).0.parse().expect(said)
}

/// valgrind finds no memory that nothing points to any more, and no use of memory that is not there. Ports are left
/// out: what tells their rings the time does not run under valgrind. So is what is mapped: valgrind's own memory, too.
#[test]
fn valgrind_finds_nothing_lost() {
    if skip_without_root("leaks::valgrind_finds_nothing_lost") {
        return;
    }
    isolated("leaks::valgrind_finds_nothing_lost", |home| {
        install(home);
        let program = program(home);
        let netns = Netns::quiet("rwp");
        let _pair = netns.veth(&netns, "n0", "n1");
        let valgrind = "valgrind --quiet --leak-check=full --errors-for-leak-kinds=definite \
                        --show-leak-kinds=definite --error-exitcode=9";
        let line =
            format!("{valgrind} {} 2 n1 netmap:n0/r 'ether proto 0x88b5'", program.display());
        let said = succeeds(run(home, Some(&netns), &line));
        assert!(said.contains("descriptors +0"), "{said}");
    });
}
