//! `action`: what a program of the user's makes of the frames of an open port.

use crate::home::{Home, LIMIT, find, finish, lines, sentence};
use ringway_testkit::{Netns, PacketSocket, Proc, frame, skip_without_root};
use rustix::process::Signal;
use std::process::Command;

/// A program for each verdict that needs nothing else.
const PROGRAMS: &str = "
    #include <net/ringway_xdp.h>
    SEC(\"xdp/pass\") int pass(struct xdp_md *ctx) { return XDP_PASS; }
    SEC(\"xdp/drop\") int drop(struct xdp_md *ctx) { return XDP_DROP; }
    SEC(\"xdp/on\") int on(struct xdp_md *ctx) { return RINGWAY_REDIRECT(1); }
    SEC(\"xdp/blind\") int blind(struct xdp_md *ctx) { return *(char *)(long)ctx->data; }
";

#[test]
fn a_program_is_set_shown_and_cleared() {
    if skip_without_root("action::a_program_is_set_shown_and_cleared") {
        return;
    }
    let home = Home::new();
    let [near, far] = [(); 2].map(|()| Netns::quiet("act"));
    let _pair = near.veth(&far, "vc0", "vf0");
    let [source, object] = ["programs.c", "programs.o"].map(|name| home.dir.join(name));
    std::fs::write(&source, PROGRAMS).unwrap();
    let include = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../include");
    let clang = std::env::var("CLANG").unwrap_or_else(|_| "clang".into());
    let compiled = Command::new(clang)
        .args(["-target", "bpf", "-O2", "-I", include, "-c"])
        .arg(&source)
        .arg("-o")
        .arg(&object)
        .status();
    assert!(compiled.unwrap().success());
    let object = object.to_str().unwrap();

    let json = |args: &[&str]| {
        let output = home.command_in(&near, &[args, &["--json"]].concat()).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        lines(&String::from_utf8(output.stdout).unwrap())
    };
    let failure = |args: &[&str]| sentence(home.command_in(&near, args).output().unwrap());
    let receiver = Proc::spawn(home.command_in(&near, &["recv", "netmap:vc0", "--json"]));
    receiver.wait_for(r#""type":"open""#, LIMIT);
    let wire = PacketSocket::new(&far, "vf0");

    assert!(json(&["action", "show"]).is_empty());
    let set = |program: &str| json(&["action", "set", "netmap:vc0", object, "--program", program]);
    let done = set("drop");
    assert_eq!(find(&done, "done")["now"][0]["queues"][0], 0);
    for number in 0..10 {
        wire.send(&frame(number, 60));
    }
    let shown = json(&["action", "show", "vc0"]);
    let action = find(&shown, "action");
    assert_eq!((&action["port"], &action["dropped"]), (&"vc0".into(), &10.into()));
    assert!(action["text"].as_str().unwrap().ends_with("programs.o:drop"), "{action}");
    let text = home.command_in(&near, &["action", "show"]).output().unwrap();
    assert!(String::from_utf8(text.stdout).unwrap().contains("programs.o:drop"));

    // What is refused leaves the one that is there.
    let on = ["action", "set", "netmap:vc0", object, "--program", "on", "--redirect", "vf0"];
    assert!(failure(&on).contains("vf0: no such network interface"));
    let set_to =
        |rest: &[&str]| failure(&[&["action", "set", "netmap:vc0", object][..], rest].concat());
    assert!(set_to(&[]).contains("name one of them"), "{}", set_to(&[]));
    assert!(set_to(&["--program", "off"]).contains("no program off, only "));
    let blind = set_to(&["--program", "blind"]);
    assert!(blind.contains("verifier refuses") && blind.contains("packet"), "{blind}");
    assert!(
        failure(&["action", "set", "netmap:vc0", "/nosuch.o"]).starts_with("ringway: /nosuch.o: ")
    );
    assert!(failure(&["action", "set", "netmap:vf0", object, "--program", "drop"]).contains("vf0"));
    assert_eq!(find(&json(&["action", "show"]), "action")["dropped"], 10);

    set("pass");
    wire.send(&frame(11, 60));
    json(&["action", "clear", "netmap:vc0"]);
    assert!(json(&["action", "show", "netmap:vc0"]).is_empty());
    wire.send(&frame(12, 60));
    receiver.signal(Signal::INT);
    let summary = finish(receiver);
    assert_eq!(find(&summary, "summary")["packets"], 2, "{summary:?}");
    home.is_left_clean();
}
