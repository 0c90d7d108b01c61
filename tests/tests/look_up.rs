//! A name that a client makes up is not asked of the kernel in a way that makes it load a module for
//! it, as root: `SIOCGIFINDEX` and its kin load `netdev-NAME`.

use std::time::Duration;

use ringway_testkit::{Netns, Proc, forbid_ioctls, skip_without_root};
use ringway_tests::{GROUP, Home, as_nobody, ends, inside, one_at_a_time};
use rustix::process::Signal;

const LIMIT: Duration = Duration::from_secs(30);

/// All of `netdevice(7)` that take a name.
const BY_NAME: [libc::Ioctl; 8] = [
    libc::SIOCGIFINDEX as _,
    libc::SIOCGIFFLAGS as _,
    libc::SIOCGIFHWADDR as _,
    libc::SIOCGIFMTU as _,
    libc::SIOCGIFMETRIC as _,
    libc::SIOCGIFTXQLEN as _,
    libc::SIOCGIFMAP as _,
    libc::SIOCSIFFLAGS as _,
];

#[test]
fn names_that_clients_make_up_load_no_modules() {
    if skip_without_root("names_that_clients_make_up_load_no_modules") {
        return;
    }
    let _turn = one_at_a_time();
    let home = Home::new();
    home.install(&[("ringway", "ringway-cli")]);
    let (a, b) = (Netns::quiet("rwq"), Netns::quiet("rwq"));
    let _wire = a.veth(&b, "n0", "n1");
    a.run("ip link property add dev n0 altname another0");
    let daemon = |forbidden: &[libc::Ioctl]| {
        home.system_daemon_with(GROUP, 0o660, "nic_users = ['65534']\n", |daemon| {
            let mut daemon = inside(&a, daemon);
            forbid_ioctls(&mut daemon, forbidden);
            daemon
        })
    };
    let end = |mut daemon: Proc| {
        assert!(daemon.is_running(), "it asked for what loads modules: {}", daemon.output());
        daemon.signal(Signal::TERM);
        assert!(ends(daemon.pid(), LIMIT));
        let (status, output) = daemon.wait();
        assert!(status.success(), "{output}");
    };

    // An interface that is not there is not asked about by ethtool's ioctl, either.
    let mut all = BY_NAME.to_vec();
    all.push(libc::SIOCETHTOOL as _);
    let strict = daemon(&all);
    for home_of_caller in [&a, &b] {
        for port in ["netmap:rwnosuch0", "netmap:rwnosuch0^", "netmap:rwnosuch0@mode=packet"] {
            let traffic = as_nobody(home.system_traffic(&["hold", port]));
            let (status, output) = Proc::spawn(inside(home_of_caller, traffic)).wait();
            assert!(!status.success() && output.contains("error 6"), "{output}");
        }
        let commands: [&[&str]; 4] = [
            &["switch", "attach", "vale7", "rwnosuch0"],
            &["steer", "--queue", "1", "rwnosuch0"],
            &["filter", "set", "netmap:rwnosuch0", "tcp"],
            &["queue", "remove", "netmap:rwnosuch0", "0"],
        ];
        for command in commands {
            let mut ringway = home.system_command(home.bin().join("ringway"));
            ringway.args(command);
            let (status, output) = Proc::spawn(inside(home_of_caller, ringway)).wait();
            assert!(!status.success() && output.contains("rwnosuch0"), "{command:?}: {output}");
        }
    }
    end(strict);

    // One that is there is opened without the others, whatever it is called.
    let daemon = daemon(&BY_NAME);
    for name in ["netmap:n0", "netmap:another0", "netmap:n0^"] {
        let traffic = as_nobody(home.system_traffic(&["hold", name]));
        let held = Proc::spawn(inside(&a, traffic));
        held.wait_for("open", LIMIT);
        held.kill();
    }
    end(daemon);
}
