//! `nmreplay`.

use super::run;
use crate::files::named;
use crate::home::{Home, LIMIT, find, finish};
use ringway_testkit::Proc;
use rustix::process::Signal;

#[test]
fn a_file_is_sent_for_ever() {
    let home = Home::new();
    let (path, port) = named(&home, "some.pcap");
    home.json(&["gen", &port, "--count", "500"]);
    let receiver = home.open(&["recv", "p}0", "--count", "25000"]);
    let args = ["-f", &path, "-i", "netmap:p{0", "-B", "ether,1g", "-D", "uniform,0,1m"];
    let nmreplay = Proc::spawn(home.tool("nmreplay", &args));
    // More than one schedule of 10000.
    assert_eq!(find(&finish(receiver), "summary")["packets"], 25_000);
    nmreplay.signal(Signal::INT);
    let (status, said) = nmreplay.wait();
    assert_eq!(status.code(), Some(0), "{said}");
    assert!(
        said.contains(" maxq 0 round ") && said.contains("plr nominal 0e0 actual 0e0"),
        "{said}"
    );
    home.is_left_clean();
}

#[test]
fn what_is_lost_is_said() {
    let home = Home::new();
    let (path, port) = named(&home, "some.pcap");
    home.json(&["gen", &port, "--count", "500"]);
    let nmreplay =
        Proc::spawn(home.tool("nmreplay", &["-f", &path, "-i", "vale0:a", "-L", "plr,1"]));
    let said = nmreplay.wait_for("actual", LIMIT);
    assert!(said.contains("plr nominal 1e0 actual 1e0"), "{said}");
    nmreplay.signal(Signal::INT);
    assert_eq!(nmreplay.wait().0.code(), Some(0));
    home.is_left_clean();
}

#[test]
fn errors_are_counted() {
    let home = Home::new();
    let missing = home.tool("nmreplay", &["-f", "/nonexistent.pcap", "-i", "p{0"]);
    let (status, _, said) = run(missing);
    assert_eq!(status, Some(1));
    assert!(said.contains("/nonexistent.pcap"), "{said}");
    let wrong = ["-f", "x", "-i", "p{0", "-B", "fast", "-L", "much"];
    let (status, _, said) = run(home.tool("nmreplay", &wrong));
    assert_eq!(status, Some(2));
    assert!(said.contains("-B fast") && said.contains("usage: nmreplay"), "{said}");
    home.is_left_clean();
}
