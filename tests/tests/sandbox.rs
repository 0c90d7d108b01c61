//! Programs in a container of their own: other network, mount and user namespaces, no capabilities
//! outside, and nothing of the machine's but what they run and the socket of the system daemon.

use std::{process::Command, time::Duration};

use ringway_testkit::{Netns, Proc, Snapshot, skip_without_root};
use ringway_tests::{GROUP, Home, as_nobody, ends, inside, one_at_a_time, until};
use rustix::process::Signal;

const LIMIT: Duration = Duration::from_secs(30);

/// Puts the program of the arguments behind `$home` in a root of its own. There is a process file
/// system if `$proc` is not empty: without one, too, the daemon knows where the program is.
const CONTAINER: &str = r#"
set -e
home=$1 proc=$2; shift 2
mount -t tmpfs none /mnt
for dir in /usr /bin /lib /lib64 /dev "$home/bin" "$home/system"; do
    if [ -d "$dir" ]; then mkdir -p "/mnt$dir" && mount --rbind "$dir" "/mnt$dir"; fi
done
if [ -n "$proc" ]; then mkdir /mnt/proc && mount -t proc none /mnt/proc; fi
exec chroot /mnt "$@"
"#;

fn contained(home: &Home, with_proc: bool, args: &[&str]) -> Command {
    let mut command = home.system_command("unshare");
    command.args(["--user", "--map-root-user", "--net", "--mount", "--pid", "--fork"]);
    // Who launches it goes: so do all that it launched.
    command.args(["--kill-child", "sh", "-c", CONTAINER, "sh"]).arg(home.path());
    command.arg(if with_proc { "proc" } else { "" });
    command.arg(home.bin().join("traffic")).args(args);
    as_nobody(command)
}

#[test]
fn programs_in_containers_open_what_policy_grants_them() {
    if skip_without_root("programs_in_containers_open_what_policy_grants_them") {
        return;
    }
    let _turn = one_at_a_time();
    let before = Snapshot::take();
    let home = Home::new();
    let (a, b) = (Netns::quiet("rwc"), Netns::quiet("rwc"));
    let wires = [a.veth(&b, "c0", "c1"), a.veth(&b, "d0", "d1")];
    let grant = "[[grant]]\ninterface = 'c0'\nusers = ['65534']\n";
    let daemon = home.system_daemon_with(GROUP, 0o660, grant, |daemon| inside(&a, daemon));

    for with_proc in [true, false] {
        // An AF_PACKET socket would reach the other interfaces, too.
        let packets = ["hold", "netmap:c0@mode=packet"];
        let (status, output) = Proc::spawn(contained(&home, with_proc, &packets)).wait();
        assert!(!status.success() && output.contains("granted"), "{output}");

        let receiver = Proc::spawn(inside(&b, home.traffic(&["receive", "netmap:c1", "1"])));
        let sender = Proc::spawn(contained(&home, with_proc, &["send", "netmap:c0", "1"]));
        sender.wait_for("going", LIMIT);
        receiver.wait_for("going", LIMIT);

        let (status, output) =
            Proc::spawn(contained(&home, with_proc, &["hold", "netmap:d0"])).wait();
        assert!(!status.success(), "{output}");
        // Where it is, there is no such interface; nor is the daemon's granted.
        assert!(output.contains("error 6") && output.contains("no such"), "{output}");

        for process in [sender, receiver] {
            process.signal(Signal::KILL);
            assert!(ends(process.pid(), LIMIT));
        }
        home.assert_left();
        until("the interface is as it was", || match a.run("ip -d link show c0") {
            link if link.contains("prog/xdp") => Err(link),
            _ => Ok(()),
        });
    }
    daemon.signal(Signal::TERM);
    assert!(daemon.wait().0.success());
    drop((wires, a, b));
    before.assert_clean();
}
