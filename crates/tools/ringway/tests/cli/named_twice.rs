//! What a command line says twice, or says of what it is not for: refused before anything is opened.

use crate::files::named;
use crate::home::Home;

#[test]
fn a_ring_has_one_writer_and_one_reader() {
    let home = Home::new();
    let lb = ["lb", "in}0", "--to"];
    for (args, said) in [
        (&[&lb[..], &["vale0:b", "netmap:vale0:b"]].concat()[..], "an output twice"),
        (&[&lb[..], &["out{1", "vale0:b", "out{1"]].concat(), "an output twice"),
        (&[&lb[..], &["vale0:b", "netmap:in}0"]].concat(), "would come back"),
        (&[&lb[..], &["vale0:b", "--name", "out"]].concat(), "--name out: it names the pipes"),
        (&["bridge", "vale0:a", "netmap:vale0:a"], "are one port"),
        (&["bridge", "vale0:a", "vale0:a"], "are one port"),
        (&["shape", "vale0:a", "vale0:a"], "are one port"),
        (&["capture", "vale0:a", "netmap:vale0:a", "--print"], "recorded twice"),
    ] {
        let error = home.failure(args);
        assert!(error.contains(said) && error.contains(';'), "{args:?}: {error}");
    }
    // As often as one likes: each has its own copy of the frames.
    let (from, _) = named(&home, "from.pcap");
    home.json(&["gen", &format!("file:{from}"), "--count", "10"]);
    let files = ["capture", &format!("file:{from}"), &format!("file:{from}"), "--print"];
    assert!(home.run(&files).status.success());
    home.is_left_clean();
}

#[test]
fn names_of_open_ports_say_nothing_that_would_be_ignored() {
    let home = Home::new();
    for (args, remedy) in [
        (&["filter", "set", "netmap:mq1@sample=7", "tcp"][..], "leave them out"),
        (&["filter", "set", "netmap:mq1@filter=udp@mode=zerocopy", "tcp"], "leave them out"),
        (&["filter", "set", "netmap:mq1/t", "icmp"], "leave them out"),
        (&["filter", "set", "netmap:mq1^1", "icmp"], "write mq1"),
        (&["filter", "clear", "netmap:mq1*"], "write mq1"),
        (&["filter", "show", "netmap:mq1@sample=7"], "leave them out"),
        (&["action", "clear", "netmap:mq1@mode=copy"], "leave them out"),
        (&["queue", "remove", "netmap:mq1~1", "0"], "write mq1"),
        (&["queue", "add", "netmap:mq1/rt@mode=zerocopy", "0"], "leave them out"),
    ] {
        let error = home.failure(args);
        assert!(error.contains(remedy), "{args:?}: {error}");
    }
    home.is_left_clean();
}
