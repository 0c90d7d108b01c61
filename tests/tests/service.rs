//! The units of `dist`, run by a systemd that is the first process of namespaces of its own: what the
//! sandbox leaves the daemon, and what becomes of clients while it starts and after it has died.

use std::{
    collections::BTreeSet,
    fs, iter,
    os::unix::net::{UnixDatagram, UnixStream},
    path::PathBuf,
    process::{Command, Output},
    time::Duration,
};

use ringway_testkit::{Folder, Proc, Snapshot, skip_without_root, unique_name};
use ringway_tests::{GROUP, Home, c::project, ends, one_at_a_time, until};
use ringway_vhost::guest::{Guest, Setup};
use rustix::process::Signal;

const LIMIT: Duration = Duration::from_secs(60);

/// Mounts hide the machine's units, its console and its control groups, and what it sets for all;
/// `default.target` wants nothing. Programs and units are those of the arguments.
const BOOT: &str = r#"
set -e
mount --make-rprivate /
mount --bind /dev/null /dev/console
mount --bind /proc/sys /proc/sys
mount -o remount,bind,ro /proc/sys
mount -t tmpfs none /sys/fs/cgroup
mount -t cgroup2 none /sys/fs/cgroup
mount -t tmpfs none /run
mount -t tmpfs none /mnt
mount -t tmpfs none /var/lib
mkdir -p /run/lock /run/units/ringwayd.service.d /mnt/bin
cp -a "$1"/. /mnt/bin
sed 's|@PREFIX@|/mnt|' "$2/ringwayd.service" > /run/units/ringwayd.service
cp "$2/ringwayd.socket" /run/units
# A silent daemon is ended sooner than on a machine that is used. Its configuration is none of the machine's.
echo 'group = "ringway"' > /mnt/ringwayd.toml
cat > /run/units/ringwayd.service.d/test.conf <<'END'
[Service]
WatchdogSec=15
ExecStart=
ExecStart=/mnt/bin/ringwayd --config /mnt/ringwayd.toml
ExecReload=
ExecReload=/mnt/bin/ringwayd --check /mnt/ringwayd.toml
ExecReload=/bin/sh -c "kill -HUP $$MAINPID"
END
for unit in ringway-metrics ringway-vm@ ringway-mirror@; do
    sed 's|@PREFIX@|/mnt|; s|/etc/ringway|/mnt/etc|' "$2/$unit.service" > "/run/units/$unit.service"
done
# The groups of the package, and of QEMU's.
grep -v '^ringway:\|^kvm:' /etc/group > /mnt/group
printf 'ringway:x:54321:\nkvm:x:54322:\n' >> /mnt/group
mount --bind /mnt/group /etc/group
for target in default basic sysinit sockets shutdown multi-user; do
    printf '[Unit]\nDescription=%s\nDefaultDependencies=no\n' $target > /run/units/$target.target
done
export container=docker SYSTEMD_UNIT_PATH=/run/units SYSTEMD_LOG_TARGET=console
exec /lib/systemd/systemd --system --unit=default.target --show-status=0
"#;

/// What a scraper gets.
const SCRAPE: &str = r#"python3 -c "
import socket
scraper = socket.socket(socket.AF_UNIX)
scraper.connect('/run/ringway-metrics/metrics.sock')
scraper.sendall(b'GET /metrics HTTP/1.1\r\nHost: here\r\n\r\n')
print(scraper.makefile().read())
""#;

/// A control group for the machine's processes, which goes with it.
struct Group(PathBuf);

impl Group {
    fn new() -> Group {
        let v2 = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"].map(PathBuf::from);
        let is_v2 = |dir: &&PathBuf| dir.join("cgroup.procs").exists();
        let root = v2.iter().find(is_v2).expect("control groups of version 2 are mounted");
        let group = Group(root.join(unique_name("ringway")));
        fs::create_dir(&group.0).unwrap();
        group
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // The kernel takes a moment to empty those of processes that have been killed.
        until("the control groups are gone", || {
            let mut find = Command::new("find");
            find.arg(&self.0).args(["-depth", "-type", "d", "-delete"]);
            let output = find.output().expect("find starts");
            if self.0.exists() { Err(text(&output)) } else { Ok(()) }
        });
    }
}

struct Machine {
    boot: Proc,
    manager: u32,
    _group: Group,
}

impl Machine {
    fn boot(home: &Home) -> Machine {
        let group = Group::new();
        let mut boot = Command::new("sh");
        boot.args(["-c", "echo $$ > \"$1\" && shift && exec unshare \"$@\"", "sh"]);
        boot.arg(group.0.join("cgroup.procs")).args([
            "--pid",
            "--fork",
            "--kill-child",
            "--mount",
            "--mount-proc",
            "--cgroup",
        ]);
        boot.args(["--ipc", "--uts", "--net", "sh", "-c", BOOT, "sh"]);
        boot.arg(home.bin()).arg(project().join("dist"));
        let boot = Proc::spawn(boot);
        let children = PathBuf::from(format!("/proc/{0}/task/{0}/children", boot.pid()));
        let manager = until("there is a first process", || {
            let list = fs::read_to_string(&children).unwrap_or_default();
            list.split_whitespace().next().and_then(|pid| pid.parse().ok()).ok_or(list)
        });
        let machine = Machine { boot, manager, _group: group };
        until("systemd answers", || match machine.run("systemctl is-system-running") {
            output if text(&output).starts_with("running") => Ok(()),
            output => Err(text(&output)),
        });
        machine
    }

    fn run(&self, script: &str) -> Output {
        let mut enter = Command::new("nsenter");
        enter.args(["--target", &self.manager.to_string(), "--all", "sh", "-c", script]);
        enter.env("PATH", "/mnt/bin:/usr/sbin:/usr/bin:/sbin:/bin");
        enter.env_remove("RINGWAY_SOCKET").env_remove("RINGWAY_DIR");
        enter.output().expect("nsenter starts")
    }

    /// What a script prints that does not fail.
    fn say(&self, script: &str) -> String {
        let output = self.run(script);
        let said = text(&output);
        let journal = || self.boot.output();
        assert!(output.status.success(), "{script}: {said}\n{:?}", journal());
        said
    }

    fn daemon(&self) -> u32 {
        self.process("ringwayd")
    }

    /// A unit's process; 0: it has none.
    fn process(&self, unit: &str) -> u32 {
        let line = self.say(&format!("systemctl show --property MainPID --value {unit}"));
        line.trim().parse().expect("a number")
    }

    /// Waits until the daemon is another one; its process.
    fn wait_for_another(&self, than: u32) -> u32 {
        self.wait_for_another_process("ringwayd", than)
    }

    fn wait_for_another_process(&self, unit: &str, than: u32) -> u32 {
        until("another process is there", || match self.process(unit) {
            0 => Err(0.to_string()),
            same if same == than => Err(same.to_string()),
            other => Ok(other),
        })
    }
}

/// A test on a machine of its own, which has ended after it, and left nothing.
fn on_machine(test: &str, body: impl FnOnce(&Machine)) {
    if skip_without_root(test) {
        return;
    }
    let _turn = one_at_a_time();
    let before = Snapshot::take();
    let home = Home::new();
    home.install(&[("ringway", "ringway-cli")]);
    let machine = Machine::boot(&home);
    body(&machine);
    machine.boot.signal(Signal::KILL);
    assert!(ends(machine.boot.pid(), LIMIT));
    drop(machine);
    before.assert_clean();
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

#[test]
fn the_unit_serves_and_comes_back() {
    on_machine("the_unit_serves_and_comes_back", |machine| {
        // Daemons start more often than on a machine that is used.
        machine.say(
        "printf '[Unit]\\nStartLimitIntervalSec=0\\n' > /run/units/ringwayd.service.d/often.conf && \
         systemctl daemon-reload",
    );

        // The socket alone is enough: the first client starts the daemon, and meets no other.
        machine.say("systemctl start ringwayd.socket && ringway switch new vale0");
        assert!(machine.say("ringway switch list").contains("vale0"));
        assert!(machine.say("systemctl is-active ringwayd").starts_with("active"));
        let daemons = machine.say("cat /proc/[0-9]*/cmdline | tr '\\0' ' '");
        assert!(!daemons.contains("--private"), "{daemons}");

        // What the sandbox is to leave: interfaces in each mode, on a switch, of another namespace, and
        // interfaces of the daemon's own making.
        machine.say(
            "ip link set lo up; ip link add w0 type veth peer name w1; \
         ip link set w0 up; ip link set w1 up; ln -s ringway /mnt/bin/vale-ctl",
        );
        for mode in ["copy", "generic", "packet"] {
            let script = format!("ringway gen netmap:w0@mode={mode} -n 10");
            assert!(machine.say(&script).contains("drops at w0: none"), "{mode}");
        }
        machine.say("ringway gen netmap:w0^ -n 3");
        machine.say("ringway switch attach vale0 w0");
        assert!(machine.say("ringway switch list").contains("vale0:w0"));
        machine.say("vale-ctl -n p0 && ip link show p0 && vale-ctl -r p0");
        machine.say(
            "unshare --net sh -c 'ip link add v0 type veth peer name v1 && ip link set v0 up && \
         ip link set v1 up && ringway gen netmap:v0 -n 10'",
        );
        // And what it is to refuse.
        let status = machine.say(&format!("cat /proc/{}/status", machine.daemon()));
        for line in ["Seccomp:\t2", "NoNewPrivs:\t1"] {
            assert!(status.contains(line), "{line}: {status}");
        }

        // Killed: the manager starts it anew, and a client that comes meanwhile waits.
        let first = machine.daemon();
        machine.say(&format!("kill -KILL {first} && ringway switch new vale1"));
        assert!(machine.say("ringway switch list").contains("vale1"));
        let second = machine.daemon();
        assert_ne!(first, second);
        // What was set up to stay is there again.
        let back = || {
            until("the switch is back, with its interface", || {
                match machine.say("ringway switch list") {
                    list if list.contains("vale0:w0 (kernel") => Ok(()),
                    list => Err(list),
                }
            });
        };
        back();

        // Silent: the watchdog ends it. The client waits for the next daemon.
        machine.say(&format!("kill -STOP {second} && ringway switch new vale2"));
        let third = machine.wait_for_another(second);

        // Upgraded, with a port open: the program opens it again, and the port has its settings.
        machine.say(
            "systemd-run --quiet --unit=program --property=StandardOutput=append:/mnt/program \
         /mnt/bin/traffic echo vale0:program",
        );
        let opened = |times: usize| {
            until("the program has opened its port", || {
                match text(&machine.run("cat /mnt/program")) {
                    said if said == "open\n".repeat(times) => Ok(()),
                    said => Err(said),
                }
            });
        };
        opened(1);
        machine.say("ringway switch port vale0:program --access 7");
        machine.say("systemctl restart ringwayd.service");
        assert_ne!(third, machine.daemon());
        back();
        opened(2);
        let list = machine.say("ringway switch list");
        let line = list.lines().find(|line| line.contains("vale0:program"));
        assert!(line.is_some_and(|line| line.contains("VLAN 7")), "{list}");
        machine.say("systemctl stop program.service");

        // Its configuration is read again, in the sandbox, and by another daemon after the machine's boot.
        let fourth = machine.daemon();
        let declared =
            "[[switch]]\nname = 'vale9'\n[[switch.port]]\ninterface = 'w1'\naccess = 9\n";
        machine.say(&format!(
            "mkdir /mnt/ringwayd.d && printf \"{}\" > /mnt/ringwayd.d/lab.toml && \
         systemctl reload ringwayd.service",
            declared.replace('\n', "\\n")
        ));
        let is_declared = || {
            until("what is declared is there", || match machine.say("ringway switch list") {
                list if list.contains("vale9:w1 (kernel; VLAN 9)") => Ok(()),
                list => Err(list),
            });
        };
        is_declared();
        assert_eq!(fourth, machine.daemon());
        // A file with an error changes nothing, and the administrator is told.
        machine.say("echo nonsense > /mnt/ringwayd.d/wrong.toml");
        let output = machine.run("systemctl reload ringwayd.service");
        assert!(!output.status.success(), "{}", text(&output));
        assert_eq!(fourth, machine.daemon());
        machine.say("systemctl is-active ringwayd.service && rm /mnt/ringwayd.d/wrong.toml");
        is_declared();
        machine.say("systemctl stop ringwayd.service && rm /run/ringway/ringwayd.state");
        is_declared();
        machine.say("rm -r /mnt/ringwayd.d && systemctl reload ringwayd.service");
        until("it has gone", || match machine.say("ringway switch list") {
            list if list.contains("vale9") => Err(list),
            _ => Ok(()),
        });
        machine.say("ringway switch new vale0 && ringway switch attach vale0 w0");
        // Another unit serves what the daemon counts.
        machine.say("systemctl start ringway-metrics.service");
        until("metrics are served", || match machine.run(SCRAPE) {
            output if text(&output).contains("\nringway_up 1\n") => Ok(()),
            output => Err(text(&output)),
        });
        machine.say("systemctl stop ringway-metrics.service && test ! -e /run/ringway-metrics");

        // Stopped: the socket stays, and the next client starts the daemon.
        machine.say("systemctl stop ringwayd.service && ringway switch new vale3");
        assert_ne!(third, machine.daemon());
        back();
        machine.say("ringway switch delete vale0");
        assert!(!machine.say("cat /run/ringway/ringwayd.state").contains("vale0"));
    });
}

/// Two containers, on ports `p1` and `p2`.
const CONTAINERS: &str = "
ip link set lo up
for n in 1 2; do
    ip netns add c$n
    ip link add p$n type veth peer name e$n netns c$n
    ip link set p$n up
    ip -n c$n link set e$n up
    ip -n c$n addr add 10.9.0.$n/24 dev e$n
done
ringway switch attach vale0 p1 p2
";

/// Both interfaces forward in the kernel.
const ARE_THERE: &str = "list=$(ringway switch list); echo \"$list\"; \
    echo \"$list\" | grep -q 'vale0:p1 (kernel' && echo \"$list\" | grep -q 'vale0:p2 (kernel'";

/// A guest on the card that a unit serves, at its socket.
fn guest(machine: &Machine, port: &str) -> Guest {
    // Below the root of the machine's first process, because its mounts are not here.
    let path = format!("/proc/{}/root/run/ringway-vm/{port}/socket", machine.manager);
    let socket = until("the unit listens", || {
        UnixStream::connect(&path).map_err(|error| format!("{error}\n{:?}", machine.boot.output()))
    });
    Guest::over(Setup::default(), socket).unwrap()
}

/// Sends a frame until it arrives: the units may only be setting up their ports.
fn exchange(machine: &Machine, guests: &mut [Guest; 2], number: u8) {
    let [from, to] = guests;
    let frame = [&[0xff; 6][..], &[2, 0, 0, 0, 0, 1, 0x88, 0xb5], &[number; 46]].concat();
    until("a frame arrives", || {
        while to.offer_buffer(0, 2048) {}
        from.send(0, &[&[0; 12], frame.as_slice()].concat(), 1000);
        from.reap(0);
        let arrived = iter::from_fn(|| to.receive(0)).any(|received| received[12..] == frame);
        arrived.then_some(()).ok_or_else(|| {
            text(&machine.run("ringway switch list; systemctl --no-pager status 'ringway-vm@*'"))
        })
    });
}

/// Machines and mirrors that are there as long as the system runs.
#[test]
fn units_serve_machines_and_mirrors() {
    on_machine("units_serve_machines_and_mirrors", |machine| {
        let ports = ["vale0:vm1", "vale0:vm2"];
        machine.say("systemctl start ringwayd.service");
        machine.say(
            "mkdir -p /mnt/etc/mirror && \
             echo 'MIRROR=vale0 vm1 --to file:/var/lib/ringway-mirror/seen/seen.pcapng' > /mnt/etc/mirror/seen.conf",
        );
        machine
            .say("systemctl start ringway-vm@vale0:vm1 ringway-vm@vale0:vm2 ringway-mirror@seen");
        until("the machine is mirrored", || match machine.say("ringway ports") {
            list if list.contains("vale0:vm1/rt") => Ok(()),
            list => Err(list),
        });
        let mut guests = ports.map(|port| guest(machine, port));
        exchange(machine, &mut guests, 1);
        for port in ports {
            let process = machine.process(&format!("ringway-vm@{port}"));
            let status = machine.say(&format!("cat /proc/{process}/status"));
            for line in ["Seccomp:\t2", "NoNewPrivs:\t1", "CapEff:\t0000000000000000"] {
                assert!(status.contains(line), "{port}: {line}: {status}");
            }
            assert!(!status.contains("\nUid:\t0"), "{port}: {status}");
        }
        // They outlive the daemon, with the machine connected.
        machine.replace_daemon(KILL);
        exchange(machine, &mut guests, 2);
        // A unit that is started again makes the socket anew.
        let unit = "ringway-vm@vale0:vm1";
        let process = machine.process(unit);
        machine.say(&format!("systemctl kill --signal=KILL {unit}"));
        machine.wait_for_another_process(unit, process);
        guests[0] = guest(machine, ports[0]);
        exchange(machine, &mut guests, 3);
        machine.say("systemctl stop ringway-mirror@seen ringway-vm@vale0:vm1 ringway-vm@vale0:vm2");
        machine.say("! ls /run/ringway-vm/*/socket");
        machine.say("ringway recv file:/var/lib/ringway-mirror/seen/seen.pcapng --count 1");
    });
}

/// How the daemon of the unit ends, and another comes.
const KILL: &str = "kill -KILL $(systemctl show --property MainPID --value ringwayd)";
const RESTART: &str = "systemctl restart ringwayd";

const STOP: &str = "systemctl stop ringwayd.socket ringwayd.service";

impl Machine {
    /// A machine whose [containers](CONTAINERS) are on a switch.
    fn attach_containers(&self) {
        self.say("systemctl start ringwayd.socket");
        self.say(CONTAINERS);
        self.wait_for_containers();
    }

    fn wait_for_containers(&self) {
        until("both interfaces are there", || match self.run(ARE_THERE) {
            output if output.status.success() => Ok(()),
            output => Err(text(&output)),
        });
    }

    /// Ends the daemon, and waits for another.
    fn replace_daemon(&self, end: &str) {
        let daemon = self.daemon();
        self.say(end);
        self.wait_for_another(daemon);
    }

    /// How many descriptors the manager has for the next daemon.
    fn stored(&self) -> String {
        let said = self.say("systemctl show --property NFileDescriptorStore --value ringwayd");
        said.trim().into()
    }

    /// How many hold the interfaces promiscuous.
    fn promiscuity(&self) -> [String; 2] {
        ["p1", "p2"].map(|name| {
            let said = self.say(&format!("ip -d link show {name}"));
            promiscuity(&said).unwrap_or_else(|| panic!("{said}")).into()
        })
    }

    fn wait_for_promiscuity(&self, wanted: [&str; 2]) {
        until("the interfaces are as promiscuous", || match self.promiscuity() {
            counts if counts == wanted => Ok(()),
            counts => Err(format!("{counts:?}, not {wanted:?}")),
        });
    }
}

/// The count in what `ip -d link` says.
fn promiscuity(said: &str) -> Option<&str> {
    said.split_once("promiscuity ")?.1.split_whitespace().next()
}

/// While the manager restarts the daemon, known addresses are forwarded between interfaces all the time; a unit that
/// was stopped forwards nothing.
#[test]
fn traffic_goes_on_while_the_unit_is_restarted() {
    on_machine("traffic_goes_on_while_the_unit_is_restarted", |machine| {
        machine.attach_containers();
        machine.say("ip netns exec c1 ping -q -c 3 -i 0.01 10.9.0.2");
        for end in [KILL, RESTART] {
            let ping = "ip netns exec c1 ping -q -i 0.002 10.9.0.2";
            machine.say(&format!("{ping} >/mnt/pings 2>&1 & echo $! >/mnt/pid"));
            for _ in 0..3 {
                machine.replace_daemon(end);
                machine.wait_for_containers();
            }
            machine.say("kill -INT $(cat /mnt/pid)");
            let said = until("the pings are over", || match machine.say("cat /mnt/pings") {
                said if said.contains("packets transmitted") => Ok(said),
                said => Err(said),
            });
            assert!(said.contains(" 0% packet loss"), "{end}: {said}\n{}", machine.boot.output());
        }
        // The programs of all daemons but the last have gone.
        until("what the manager has is of one daemon", || match machine.stored() {
            stored if stored == "4" => Ok(()),
            stored => Err(format!("{stored}, not a link and a socket for each interface")),
        });

        machine.say("ip netns exec c1 ping -q -c 1 -W 5 10.9.0.2");
        machine.say(STOP);
        assert_eq!(machine.stored(), "0");
        let output = machine.run("ip netns exec c1 ping -q -c 1 -W 1 10.9.0.2");
        assert!(!output.status.success(), "a stopped unit forwards: {}", text(&output));
    });
}

/// While the manager restarts the daemon, attached interfaces are promiscuous all the time, as network cards have to be
/// that receive for all addresses. They are not any more when they were detached, when the next daemon does not attach
/// them, or when the unit has stopped.
#[test]
fn interfaces_are_promiscuous_while_the_unit_is_restarted() {
    on_machine("interfaces_are_promiscuous_while_the_unit_is_restarted", |machine| {
        machine.attach_containers();
        machine.wait_for_promiscuity(["1", "1"]);
        // The kernel tells of each change.
        machine.say("ip -o -d monitor link >/mnt/changes 2>&1 & echo $! >/mnt/pid");
        until("changes are seen", || {
            let output = machine.run("ip link set lo alias seen && grep -q seen /mnt/changes");
            if output.status.success() { Ok(()) } else { Err(text(&output)) }
        });
        for end in [KILL, RESTART] {
            machine.replace_daemon(end);
            machine.wait_for_containers();
            machine.wait_for_promiscuity(["1", "1"]);
        }
        let changes = machine.say("kill $(cat /mnt/pid); cat /mnt/changes");
        for name in [": p1@", ": p2@"] {
            let lines = changes.lines().filter(|line| line.contains(name));
            let counts: Vec<_> = lines.filter_map(promiscuity).collect();
            assert!(counts.contains(&"2"), "no change of {name} is seen: {changes}");
            assert!(!counts.contains(&"0"), "{name}: {counts:?}");
        }

        machine.say("ringway switch detach vale0 p2");
        assert_eq!(machine.promiscuity(), ["1", "0"]);
        // The next daemon does not know of p1.
        machine.say(
            "printf '[Service]\\nExecStartPre=/bin/rm -f /run/ringway/ringwayd.state\\n' \
             > /run/units/ringwayd.service.d/forget.conf && systemctl daemon-reload",
        );
        machine.replace_daemon(KILL);
        machine.wait_for_promiscuity(["0", "0"]);
        until("the manager has nothing", || match machine.stored() {
            stored if stored == "0" => Ok(()),
            stored => Err(stored),
        });

        for end in ["true", KILL] {
            machine.say("systemctl start ringwayd.socket; ringway switch attach vale0 p1 p2");
            machine.wait_for_promiscuity(["1", "1"]);
            machine.say(&format!("{end}; {STOP}"));
            machine.wait_for_promiscuity(["0", "0"]);
        }
    });
}

/// An interface for which the manager has no room is attached, and the log says what it lacks.
#[test]
fn a_full_store_is_told() {
    on_machine("a_full_store_is_told", |machine| {
        // systemd before 254 sets no FDSTORE.
        machine.say(
            "printf '[Service]\\nFileDescriptorStoreMax=3\\nEnvironment=FDSTORE=3\\n' \
             > /run/units/ringwayd.service.d/few.conf && systemctl daemon-reload",
        );
        machine.attach_containers();
        until("the manager has one interface's", || match machine.stored() {
            stored if stored == "2" => Ok(()),
            stored => Err(stored),
        });
        let log = machine.say("ringway log");
        assert_eq!(log.matches("FileDescriptorStoreMax").count(), 1, "{log}");
        machine.say(STOP);
    });
}

/// Where the manager listens, the configuration's `socket` changes nothing, and the administrator is told what does.
#[test]
fn the_socket_is_where_its_unit_says() {
    const CLIENT: &str = "RINGWAY_SOCKET=/srv/ringway/ringwayd.sock";
    on_machine("the_socket_is_where_its_unit_says", |machine| {
        let remedy = "ListenSequentialPacket=PATH";
        let told = |reading: usize| {
            until("the administrator is told", || match machine.say("ringway log") {
                log if log.matches(remedy).count() == reading => Ok(()),
                log => Err(log),
            });
        };
        let check = || machine.say("ringwayd --check /mnt/ringwayd.toml");
        machine.say("systemctl start ringwayd.socket && ringway switch new vale0");
        told(0);
        // A reading changes nothing either, nor does a restart.
        machine.say(
            "mount -t tmpfs none /srv && \
             echo 'socket = \"/srv/ringway/ringwayd.sock\"' >> /mnt/ringwayd.toml && \
             systemctl reload ringwayd.service",
        );
        told(1);
        machine.say("systemctl restart ringwayd.service && ringway switch new vale1");
        told(1);
        let said = check();
        for words in ["`socket`", "listens at /run/ringway/ringwayd.sock", remedy] {
            assert!(said.contains(words), "{words}: {said}");
        }
        // As docs/guide/containers.md has it.
        machine.say(
            "mkdir /run/units/ringwayd.socket.d && cd /run/units && \
             printf '[Socket]\\nListenSequentialPacket=\\nListenSequentialPacket=/srv/ringway/ringwayd.sock\\n' \
                 > ringwayd.socket.d/override.conf && \
             printf '[Service]\\nReadWritePaths=/srv/ringway\\n' > ringwayd.service.d/override.conf && \
             systemctl daemon-reload && systemctl restart ringwayd.socket",
        );
        machine.say(&format!("{CLIENT} ringway switch new vale2"));
        let log = machine.say(&format!("{CLIENT} ringway log"));
        assert!(!log.contains(remedy), "{log}");
        let said = check();
        assert!(!said.contains("no daemon runs") && !said.contains("`socket`"), "{said}");
        machine.say("grep -q vale2 /srv/ringway/ringwayd.state");
        machine.say(STOP);
    });
}

/// A daemon that cannot start is given up, and neither the manager nor clients start it for ever. It starts again when the
/// administrator has mended what is wrong, and says so.
#[test]
fn a_broken_configuration_is_not_tried_for_ever() {
    on_machine("a_broken_configuration_is_not_tried_for_ever", |machine| {
        machine.say("echo nonsense > /mnt/ringwayd.toml && systemctl start ringwayd.socket");
        let client = machine.run("timeout 60 ringway switch new vale0");
        assert!(matches!(client.status.code(), Some(1)), "{:?} {}", client.status, text(&client));
        until("the manager gives up", || {
            let script = "systemctl show --property ActiveState,Result,NRestarts ringwayd.service";
            match machine.say(script) {
                state if state.contains("ActiveState=failed") => Ok(()),
                state => Err(state),
            }
        });
        let restarts = "systemctl show --property NRestarts --value ringwayd.service";
        let restarts: u32 = machine.say(restarts).trim().parse().unwrap();
        assert!((1..=10).contains(&restarts), "{restarts}");
        // Nothing listens any more that would start it for the next client.
        assert!(machine.say("systemctl is-failed ringwayd.socket").starts_with("failed"));
        assert!(!machine.run("timeout 60 ringway switch new vale0").status.success());

        machine.say(
            ": > /mnt/ringwayd.toml && systemctl reset-failed ringwayd.service && \
         systemctl start ringwayd.service && ringway switch new vale0",
        );
        assert!(machine.say("systemctl is-active ringwayd.socket").starts_with("active"));
    });
}

/// The manager knows when the daemon serves, and from when to when it reads its configuration again, with the time that
/// tells one reading from another.
#[test]
fn the_manager_is_told_of_a_reading() {
    if skip_without_root("the_manager_is_told_of_a_reading") {
        return;
    }
    let _turn = one_at_a_time();
    let home = Home::new();
    let manager = UnixDatagram::bind(home.path().join("manager")).unwrap();
    manager.set_read_timeout(Some(LIMIT)).unwrap();
    let told = || {
        let mut message = [0; 4096];
        let length = manager.recv(&mut message).expect("the manager is told");
        String::from_utf8_lossy(&message[..length]).into_owned()
    };
    let daemon = home.system_daemon_with(GROUP, 0o660, "", |mut daemon| {
        daemon.env("NOTIFY_SOCKET", home.path().join("manager"));
        daemon
    });
    assert_eq!(told(), "READY=1\n");
    let config = home.path().join("ringwayd.toml");
    let good = fs::read_to_string(&config).unwrap();
    for text in [&*good, "nonsense"] {
        fs::write(&config, text).unwrap();
        let now = || rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
        let before = Duration::try_from(now()).unwrap().as_micros();
        daemon.signal(Signal::HUP);
        let reloading = told();
        let since = reloading.strip_prefix("RELOADING=1\nMONOTONIC_USEC=").expect("it reads");
        assert!(since.trim_end().parse::<u128>().unwrap() >= before, "{before} {reloading}");
        assert_eq!(told(), "READY=1\n");
    }
    daemon.wait_for("the configuration stays as it was", LIMIT);
    daemon.signal(Signal::TERM);
    assert_eq!(told(), "STOPPING=1\n");
    assert!(ends(daemon.pid(), LIMIT));
}

/// What `systemd-analyze` says that the unit leaves open, and the table that argues it.
#[test]
fn what_the_unit_leaves_open_is_argued() {
    let folder = Folder::new();
    let unit = fs::read_to_string(project().join("dist/ringwayd.service")).unwrap();
    let file = folder.path().join("ringwayd.service");
    fs::write(&file, unit.replace("@PREFIX@", "/usr")).unwrap();
    let mut analyze = Command::new("systemd-analyze");
    analyze.args(["security", "--offline=yes", "--no-pager", "--json=short"]).arg(&file);
    let output = analyze.output().expect("systemd-analyze starts");
    let settings: Vec<serde_json::Value> =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{e}: {}", text(&output)));
    // A setting that costs nothing is one that makes no difference.
    let open = settings.iter().filter(|it| it["set"] == false && it["exposure"].is_string());
    let open: BTreeSet<&str> = open.filter_map(|it| it["name"].as_str()).collect();

    let page = fs::read_to_string(project().join("docs/security.md")).unwrap().replace("\\|", "|");
    let (_, table) = page.split_once("\n## The unit\n").expect("a section about it");
    let rows = table.lines().filter_map(|line| line.strip_prefix("| `")?.split_once("` | "));
    let argued: BTreeSet<&str> = rows.map(|(setting, _)| setting).collect();
    assert_eq!(open, argued);
    assert!(open.len() > 10, "systemd-analyze: {}", text(&output));
}
