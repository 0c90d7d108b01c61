//! `tlem`.

use super::run;
use crate::home::{Home, LIMIT, find, finish};
use ringway_testkit::Proc;
use rustix::process::Signal;

#[test]
fn packets_cross_in_order_and_are_lost_in_one_direction() {
    let home = Home::new();
    let args = ["-i", "netmap:p}0", "-i", "netmap:p{1", "-D", "2m", "-L", "none", "-L", "1"];
    let tlem = Proc::spawn(home.tool("tlem", &args));
    tlem.wait_for("Ready to go", LIMIT);
    let receiver = home.open(&["recv", "p}1", "--verify", "--count", "300"]);
    home.json(&["gen", "p{0", "--count", "300", "--size", "60-1514"]);
    let lines = finish(receiver);
    let verified = find(&lines, "verify");
    assert_eq!([&verified["good"], &verified["reordered"]], [300, 0]);
    home.json(&["gen", "p}1", "--count", "100"]);
    tlem.signal(Signal::INT);
    let (status, said) = tlem.wait();
    assert_eq!(status.code(), Some(0), "{said}");
    let last = said.lines().last().unwrap();
    assert!(last.contains("] 300 -> 300 maxq 0 round "), "{last}");
    assert!(
        last.contains(" drop 0/0, 100 <- 0 maxq 0 round ") && last.ends_with(" drop 0/100"),
        "{last}"
    );
    home.is_left_clean();
}

#[test]
fn bad_usage_is_explained() {
    let home = Home::new();
    for (args, told) in [
        (&["-i", "vale0:a"][..], "give -i twice"),
        (&["-i", "vale0:a", "-i", "vale0:b", "-B", "fast"], "-B fast"),
        (&["-r"], "route mode"),
    ] {
        let (status, printed, said) = run(home.tool("tlem", args));
        assert_eq!((status, printed), (Some(1), String::new()));
        assert!(said.contains(told) && said.contains("usage: tlem"), "{said}");
    }
    home.is_left_clean();
}
