//! What a command line says twice, or says of what it is not for: refused before anything is opened.

use crate::home::Home;

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
