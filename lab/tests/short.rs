//! The laboratory's short form: one kernel, the two cards that have zero copy, and that of a switch.

use std::env;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use ringway_lab::card::Card;
use ringway_lab::kernel::Kernel;
use ringway_lab::machine::Machine;
use ringway_testkit::skip;

/// The newest that Debian has: the first where both drivers have zero copy that works.
const SERIES: &str = "7.2";

/// What is checked, in the mode that the card gets by itself.
const CHECKS: [&str; 8] =
    ["any", "doctor", "open", "in", "out", "host-rings", "switch", "kill-daemon"];

/// Of a guest, on a machine that is busy with others.
const LIMIT: Duration = Duration::from_secs(900);

/// Frames of every size arrive, both ways, on host rings and on a switch, and a kill leaves nothing behind: on
/// cards whose drivers write into the region, and on a port of a switch of the host's.
#[test]
fn cards_with_zero_copy() {
    let kernel = match Kernel::of_series(SERIES) {
        Ok(kernel) => kernel,
        Err(reason) => return skip("cards_with_zero_copy", &reason),
    };
    let checks = CHECKS.map(String::from);
    let (kernel, checks) = (&kernel, &checks);
    let guest = |name: &str| {
        let card = Card::named(name).expect("there is such a card");
        let program = PathBuf::from(env!("CARGO_BIN_EXE_ringway-lab"));
        let machine = Machine { kernel, card, program, checks, limit: LIMIT };
        machine.run(|_| ()).unwrap_or_else(|e| panic!("{name}: {e}"))
    };
    let reports = thread::scope(|scope| {
        // Two at once; the third when the second has ended.
        let lines = [&["igb"][..], &["virtio-iommu", "vhost-user"]].map(|names| {
            scope.spawn(move || names.iter().map(|name| guest(name)).collect::<Vec<_>>())
        });
        let reports = lines.map(|line| line.join().expect("it says what is wrong"));
        reports.into_iter().flatten().collect::<Vec<_>>()
    });
    for report in &reports {
        let opened = report.entries.iter().find(|entry| entry.check == "open");
        let mode = opened.map(|entry| entry.detail.as_str()).unwrap_or_default();
        let expected = if report.card == "vhost-user" { "copy" } else { "zerocopy" };
        assert!(mode.starts_with(expected), "{}: {mode}", report.card);
        // All of `CHECKS` but the mode; the cable, and whether the card is as it was after the first port.
        assert_eq!(report.entries.len(), CHECKS.len() + 1, "{report:?}");
    }
    let failures: String = reports.iter().map(|report| report.failures()).collect();
    assert!(failures.is_empty(), "{failures}");
}
