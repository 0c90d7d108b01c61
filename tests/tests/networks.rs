//! The plugin for networks of containers, called as runtimes call it: by CNI with host-local, and by netavark's
//! subcommands. Containers are network namespaces here; `networks_podman.rs` has podman's.

use std::{
    fs,
    io::{Read, Write},
    net::{TcpListener, TcpStream},
    path::PathBuf,
    process::Stdio,
    time::Duration,
};

use ringway::Control;
use ringway_testkit::{Netns, Proc, install_script, skip_unless, skip_without_root};
use ringway_tests::{GROUP, Home, assert_connected, ends, inside, isolated_with_system, until};
use rustix::process::Signal;
use serde_json::{Value, json};

const LIMIT: Duration = Duration::from_secs(60);
/// Longer than all goes on.
const HANGS: Duration = Duration::from_secs(300);
/// Debian's containernetworking-plugins.
const PLUGINS: &str = "/usr/lib/cni";

/// An IPAM plugin that knows version 1.1.0, which Debian 12's do not, and has no GC, as host-local. It keeps a file
/// for each interface that has an address.
const IPAM: &str = r#"#!/bin/sh
set -eu
cd "$(dirname "$0")/given"
case $CNI_COMMAND in
VERSION) echo '{"cniVersion": "1.1.0", "supportedVersions": ["1.0.0", "1.1.0"]}' ;;
ADD)
    touch "$CNI_CONTAINERID.$CNI_IFNAME"
    echo "{\"cniVersion\": \"1.1.0\", \"ips\": [{\"address\": \"10.9.0.$(($(ls | wc -l) + 1))/24\"}]}" ;;
DEL) rm -f "$CNI_CONTAINERID.$CNI_IFNAME" ;;
GC | STATUS) touch "../$CNI_COMMAND" ;;
esac
"#;

/// The daemon's host, in which the runtime calls the plugin.
struct World<'a> {
    home: &'a Home,
    here: Netns,
}

/// A change, what takes it back, and what CHECK says of it.
type Step<'a> = (&'a dyn Fn(), &'a dyn Fn(), &'a str);

/// What the plugin answers: JSON, or nothing; and what it notes.
type Answer = Result<(Value, String), Value>;

impl<'a> World<'a> {
    fn new(home: &'a Home) -> World<'a> {
        home.install(&[("ringway-networks", "ringway-networks")]);
        World { home, here: Netns::new("rnh") }
    }

    fn daemon(&self) -> Proc {
        self.home.system_daemon_with(GROUP, 0o660, "", |daemon| inside(&self.here, daemon))
    }

    /// Where host-local keeps what it has given.
    fn leases(&self) -> PathBuf {
        self.home.path().join("leases")
    }

    /// A network with addresses of both families by host-local.
    fn network(&self, name: &str, more: Value) -> Value {
        let mut all = json!({
            "cniVersion": "1.1.0",
            "name": name,
            "type": "ringway",
            "isDefaultGateway": true,
            "ipam": {
                "type": "host-local",
                "dataDir": self.leases(),
                "ranges": [[{"subnet": "10.9.0.0/24"}], [{"subnet": "fd09::/64"}]],
            },
        });
        // Debian 12's host-local does not know 1.1.0.
        all["cniVersion"] = "1.0.0".into();
        all.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        all
    }

    fn run(&self, words: &[&str], environment: &[(&str, &str)], input: &str) -> Answer {
        let mut command = self.home.system_command(self.home.bin().join("ringway-networks"));
        command.args(words).envs(environment.iter().copied());
        let mut command = inside(&self.here, command);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut process = command.spawn().unwrap();
        process.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        let output = process.wait_with_output().unwrap();
        let notes = String::from_utf8(output.stderr).unwrap();
        let said = match output.stdout.is_empty() {
            true => Value::Null,
            false => serde_json::from_slice(&output.stdout).expect("the plugin says JSON"),
        };
        match output.status.success() {
            true => Ok((said, notes)),
            false => Err(said),
        }
    }

    fn cni(&self, command: &str, container: Option<(&str, &str)>, config: &Value) -> Answer {
        self.call(command, container.map(|(id, netns)| (id, netns, "eth0")), config)
    }

    /// `at`: a container's id, the path of its namespace, and the interface.
    fn call(&self, command: &str, at: Option<(&str, &str, &str)>, config: &Value) -> Answer {
        let path = format!("{PLUGINS}:{}", self.home.path().join("plugins").display());
        let mut environment = vec![("CNI_COMMAND", command), ("CNI_PATH", &*path)];
        if let Some((id, netns, interface)) = at {
            environment.extend([("CNI_CONTAINERID", id), ("CNI_IFNAME", interface)]);
            environment.push(("CNI_NETNS", netns));
        }
        self.run(&[], &environment, &config.to_string())
    }

    fn add(&self, container: &Netns, config: &Value) -> Value {
        let (id, path) = place(container);
        let (said, notes) = self.cni("ADD", Some((id, &path)), config).unwrap();
        assert_eq!(notes, "");
        said
    }

    fn del(&self, container: &Netns, config: &Value) {
        let (id, path) = place(container);
        let (said, notes) = self.cni("DEL", Some((id, &path)), config).unwrap();
        assert_eq!((said, notes), (Value::Null, String::new()));
    }

    /// CHECK with what ADD has answered.
    fn check(&self, container: &Netns, config: &Value, added: &Value) -> Result<(), String> {
        let (id, path) = place(container);
        let config = with(config, json!({"prevResult": added}));
        let answer = self.cni("CHECK", Some((id, &path)), &config);
        answer
            .map(|(said, _)| assert_eq!(said, Value::Null))
            .map_err(|error| format!("{} {}", error["code"], error["msg"].as_str().unwrap()))
    }

    /// Interfaces of the host that the plugin has made.
    fn links(&self) -> Vec<String> {
        let all = self.here.run("ip -o link show");
        let names = all.lines().filter_map(|line| line.split(": ").nth(1));
        let names = names.map(|name| name.split('@').next().unwrap().to_owned());
        let is_own =
            |name: &String| ["rwc", "rwh", "rwg-"].iter().any(|part| name.starts_with(part));
        names.filter(is_own).collect()
    }

    fn assert_nothing_left(&self, control: &Control) {
        let ports: Vec<String> = ports(control).into_iter().map(|(name, _)| name).collect();
        assert_eq!((self.links(), ports), (vec![], vec![]));
        let leases = fs::read_dir(self.leases()).into_iter().flatten().flatten();
        let given = leases.flat_map(|network| fs::read_dir(network.path()).unwrap().flatten());
        let given: Vec<_> = given.map(|file| file.file_name().into_string().unwrap()).collect();
        let given: Vec<_> =
            given.iter().filter(|name| name.contains("10.9.") || name.contains("fd09")).collect();
        assert!(given.is_empty(), "{given:?}");
    }
}

/// The container's id, and the path of its namespace.
fn place(container: &Netns) -> (&str, String) {
    let name = container.name().unwrap();
    (name, format!("/run/netns/{name}"))
}

fn with(config: &Value, more: Value) -> Value {
    let mut config = config.clone();
    config.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    config
}

/// The ports of all switches, with the modes of those that are interfaces.
fn ports(control: &Control) -> Vec<(String, String)> {
    let ports = control.switches().unwrap().into_iter().flat_map(|switch| switch.ports);
    ports.map(|port| (port.name, port.mode.unwrap_or_default())).collect()
}

fn assert_all_back(control: &Control) {
    until("all ports are back", || {
        let ports = ports(control);
        match ports.iter().any(|(_, mode)| mode.contains("not back yet")) {
            false => Ok(()),
            true => Err(format!("{ports:?}")),
        }
    });
}

fn address(added: &Value) -> String {
    let address = added["ips"][0]["address"].as_str().unwrap();
    address.split('/').next().unwrap().into()
}

/// Each byte of a connection arrives, in order.
fn assert_bytes_cross(a: &Netns, b: &Netns, address_of_b: &str) {
    let sent: Vec<u8> =
        (0..4u32 << 20).map(|at| (at.wrapping_mul(0x9e37_79b9) >> 24) as u8).collect();
    let listener = b.enter(|| TcpListener::bind((address_of_b, 0))).unwrap();
    let port = listener.local_addr().unwrap().port();
    let received = std::thread::scope(|scope| {
        let receiver = scope.spawn(|| {
            let mut received = Vec::new();
            let (mut stream, _) = listener.accept().unwrap();
            stream.set_read_timeout(Some(LIMIT)).unwrap();
            stream.read_to_end(&mut received).unwrap();
            received
        });
        let mut stream = a.enter(|| TcpStream::connect((address_of_b, port))).unwrap();
        stream.write_all(&sent).unwrap();
        drop(stream);
        receiver.join().unwrap()
    });
    assert!(received == sent, "{} of {} bytes, or others", received.len(), sent.len());
}

fn cannot_run(test: &str) -> bool {
    skip_without_root(test)
        || skip_unless(
            fs::exists(format!("{PLUGINS}/host-local")).unwrap(),
            test,
            "needs containernetworking-plugins",
        )
}

/// A test in a world with its daemon.
fn beside_the_daemon(test: &str, body: impl FnOnce(&World<'_>, &Control)) {
    if cannot_run(test) {
        return;
    }
    isolated_with_system(test, HANGS, |home| {
        let world = World::new(home);
        let _daemon = world.daemon();
        body(&world, &Control::connect_running().unwrap());
    });
}

#[test]
fn containers_reach_each_other_and_their_gateway() {
    beside_the_daemon("containers_reach_each_other_and_their_gateway", |world, control| {
        let [a, b] = ["rna", "rnb"].map(Netns::new);
        let config = world.network("red", json!({"mtu": 1400}));
        let added = [&a, &b].map(|container| world.add(container, &config));
        let result = &added[0];
        assert_eq!(result["cniVersion"], "1.0.0");
        let interfaces = result["interfaces"].as_array().unwrap();
        assert_eq!(interfaces[1]["name"], "rwg-red");
        assert_eq!(interfaces[2]["name"], "eth0");
        assert_eq!(interfaces[2]["sandbox"], place(&a).1);
        assert_eq!(
            result["ips"][0],
            json!({"address": "10.9.0.2/24", "gateway": "10.9.0.1", "interface": 2})
        );
        assert_eq!(
            result["ips"][1],
            json!({"address": "fd09::2/64", "gateway": "fd09::1", "interface": 2})
        );
        let routes =
            json!([{"dst": "0.0.0.0/0", "gw": "10.9.0.1"}, {"dst": "::/0", "gw": "fd09::1"}]);
        assert_eq!(result["routes"], routes);
        assert_eq!(a.run("cat /sys/class/net/eth0/mtu 2>/dev/null || true").trim(), "1400");

        let address_of_b = address(&added[1]);
        assert_connected(&a, &b, &address_of_b);
        assert_bytes_cross(&a, &b, &address_of_b);
        for (from, to) in
            [(&a, "10.9.0.1"), (&world.here, "10.9.0.3"), (&a, "fd09::3"), (&b, "fd09::1")]
        {
            from.ping(&format!("-c 3 -i 0.05 -w 30 {to}"));
            from.ping(&format!("-c 3 -i 0.05 -w 30 -s 4000 {to}"));
        }
        assert_bytes_cross(&a, &world.here, "10.9.0.1");
        for (name, mode) in ports(control) {
            assert!(name.starts_with("valered:rw") && mode.starts_with("kernel"), "{name} {mode}");
        }
        for (container, added) in [(&a, &added[0]), (&b, &added[1])] {
            world.check(container, &config, added).unwrap();
        }

        world.del(&a, &config);
        let said = world.check(&a, &config, &added[0]).unwrap_err();
        assert!(said.contains("host-local"), "{said}");
        world.del(&a, &config);
        b.ping("-c 3 -i 0.05 -w 30 10.9.0.1");
        // A container that is stopped may have lost its namespace before.
        let (id, _) = place(&b);
        let id = id.to_owned();
        drop(b);
        let environment = [
            ("CNI_COMMAND", "DEL"),
            ("CNI_PATH", PLUGINS),
            ("CNI_CONTAINERID", &*id),
            ("CNI_IFNAME", "eth0"),
        ];
        world.run(&[], &environment, &config.to_string()).unwrap();
        world.assert_nothing_left(control);
    });
}

/// Only the first has the default route, and only its result says so. What other plugins have added to a result
/// matters to neither CHECK nor DEL.
#[test]
fn two_networks_of_a_container_have_one_default_route() {
    beside_the_daemon("two_networks_of_a_container_have_one_default_route", |world, control| {
        let a = Netns::new("rna");
        let (id, path) = place(&a);
        let networks = [("red", "eth0", 9), ("blue", "eth1", 19)].map(|(name, interface, net)| {
            let subnets = json!([[{"subnet": format!("10.{net}.0.0/24")}]]);
            let ipam = json!({"type": "host-local", "dataDir": world.leases(), "ranges": subnets});
            let config = world.network(name, json!({"ipam": ipam}));
            let at = (id, &*path, interface);
            let (added, _) = world.call("ADD", Some(at), &config).unwrap();
            (at, config, added)
        });
        assert_eq!(networks[0].2["routes"], json!([{"dst": "0.0.0.0/0", "gw": "10.9.0.1"}]));
        assert_eq!(networks[1].2["routes"], Value::Null);
        for (at, config, mut added) in networks {
            let foreign = json!({"name": "tun0", "mac": "00:00:00:00:00:00"});
            added["interfaces"].as_array_mut().unwrap().push(foreign);
            let config = with(&config, json!({"prevResult": added}));
            world.call("CHECK", Some(at), &config).unwrap();
            world.call("DEL", Some(at), &config).unwrap();
        }
        world.assert_nothing_left(control);
    });
}

/// What CHECK compares, one by one.
#[test]
fn check_finds_what_has_changed() {
    beside_the_daemon("check_finds_what_has_changed", |world, control| {
        let a = Netns::new("rna");
        let config = world.network("red", json!({"spoofcheck": true, "vlan": 7, "mtu": 1400}));
        let added = world.add(&a, &config);
        world.check(&a, &config, &added).unwrap();
        let port = added["interfaces"][0]["name"].as_str().unwrap();
        let full = format!("valered:{port}");
        let vlan = |vlan| {
            let settings = ringway::PortSettings { vlan: Some(vlan), ..Default::default() };
            control.switch_port(&full, settings).unwrap();
        };
        let mac = added["interfaces"][2]["mac"].as_str().unwrap();
        let run = |netns: &Netns, line: &str| drop(netns.run(line));
        let steps: [Step<'_>; 9] = [
            (
                &|| run(&a, "ip addr del 10.9.0.2/24 dev eth0"),
                &|| {
                    run(&a, "ip addr add 10.9.0.2/24 dev eth0 && ip route add default via 10.9.0.1")
                },
                "10.9.0.2/24",
            ),
            (
                &|| run(&a, "ip route del default"),
                &|| run(&a, "ip route add default via 10.9.0.1"),
                "0.0.0.0/0",
            ),
            (
                &|| run(&a, "ip link set eth0 mtu 1300"),
                &|| run(&a, "ip link set eth0 mtu 1400"),
                "the MTU 1300",
            ),
            (
                &|| run(&a, "ip link set eth0 address 02:00:00:00:00:77"),
                &|| run(&a, &format!("ip link set eth0 address {mac}")),
                "02:00:00:00:00:77",
            ),
            (
                &|| run(&world.here, "ip addr del 10.9.0.1/24 dev rwg-red"),
                &|| run(&world.here, "ip addr add 10.9.0.1/24 dev rwg-red"),
                "rwg-red has not the address",
            ),
            (
                &|| run(&world.here, &format!("ip link set {port} down")),
                &|| run(&world.here, &format!("ip link set {port} up")),
                "is down",
            ),
            (&|| vlan(ringway::Vlan::Access(8)), &|| vlan(ringway::Vlan::Access(7)), "VLAN"),
            (
                &|| run(&world.here, &format!("ip link set {port} alias other")),
                &|| {
                    run(
                        &world.here,
                        &format!(
                            "ip link set {port} alias 'ringway red {} eth0'",
                            a.name().unwrap()
                        ),
                    )
                },
                "another one",
            ),
            (&|| control.switch_detach("valered", port).unwrap(), &|| (), "is on no switch"),
        ];
        for (change, back, expected) in steps {
            change();
            let said = world.check(&a, &config, &added).unwrap_err();
            assert!(said.starts_with("102 ") && said.contains(expected), "{expected}: {said}");
            back();
            if !expected.contains("no switch") {
                world.check(&a, &config, &added).unwrap();
            }
        }
        world.del(&a, &config);
        world.assert_nothing_left(control);
    });
}

#[test]
fn an_add_that_fails_leaves_nothing() {
    const TEST: &str = "an_add_that_fails_leaves_nothing";
    if cannot_run(TEST) {
        return;
    }
    isolated_with_system(TEST, HANGS, |home| {
        let world = World::new(home);
        let daemon = world.daemon();
        let control = Control::connect_running().unwrap();
        let [a, b] = ["rna", "rnb"].map(Netns::new);
        let (id, path) = place(&a);
        world.here.run("ip link add taken type veth peer name taken-too");
        let base = world.network("red", json!({}));
        let host_local = |ranges: Value| json!({"ipam": {"type": "host-local", "dataDir": world.leases(), "ranges": ranges}});
        let added = world.network("blue", json!({"ipam": {}, "isDefaultGateway": false}));
        let first = world.add(&b, &added);
        let before = world.links();
        for (more, code, said) in [
            (json!({"hostInterface": "taken"}), 7, "taken is there"),
            (json!({"mtu": 40}), 7, "mtu: 40 is not possible"),
            (json!({"ipam": {"type": "no-such-plugin"}}), 7, "no-such-plugin"),
            (
                host_local(json!([[{"subnet": "10.9.1.0/24", "gateway": "10.8.0.1"}]])),
                7,
                "10.8.0.1",
            ),
            (
                host_local(
                    json!([[{"subnet": "10.9.1.0/24", "rangeStart": "10.9.1.1", "rangeEnd": "10.9.1.1", "gateway": "10.9.1.1"}]]),
                ),
                999,
                "host-local",
            ),
            (json!({"prevResult": first}), 7, "prevResult"),
            (json!({"vlan": 5000}), 7, "vlan"),
            (json!({"cniVersion": "0.2.0"}), 1, "0.2.0"),
        ] {
            let config = with(&base, more.clone());
            let error = world.cni("ADD", Some((id, &path)), &config).unwrap_err();
            assert!(error["msg"].as_str().unwrap().contains(said), "{more}: {error}");
            // host-local has numbers of its own.
            assert!(code == 999 || error["code"] == code, "{more}: {error}");
            assert_eq!(world.links(), before, "{more}");
            assert!(!a.run("ip -o link").contains("eth0"));
        }
        // The interface is there already, and stays.
        let error = world.cni("ADD", Some((place(&b).0, &place(&b).1)), &added).unwrap_err();
        assert_eq!(error["code"], 7, "{error}");
        world.check(&b, &added, &first).unwrap();
        // Paths and variables.
        let error = world.cni("ADD", Some((id, "/run/netns/none")), &base).unwrap_err();
        assert_eq!(error["code"], 4, "{error}");
        let error = world.cni("UP", Some((id, &path)), &base).unwrap_err();
        assert_eq!(error["code"], 4, "{error}");
        let error = world.cni("ADD", Some(("a b", &path)), &base).unwrap_err();
        assert_eq!(error["code"], 4, "{error}");
        // That of the host, where the interface would be beside the machine's own.
        let error = world.cni("ADD", Some((id, "/proc/self/ns/net")), &base).unwrap_err();
        assert_eq!(error["code"], 4, "{error}");
        assert!(error["msg"].as_str().unwrap().contains("is the host's"), "{error}");
        // What has become wrong since keeps nothing from being removed.
        let wrong = with(&added, json!({"vlan": 5000, "isDefaultGateway": true}));
        let (_, notes) = world.cni("DEL", Some((place(&b).0, &place(&b).1)), &wrong).unwrap();
        assert!(notes.contains("vlan: 5000") && notes.contains("removed all the same"), "{notes}");
        world.assert_nothing_left(&control);
        world.del(&b, &added);
        world.cni("STATUS", None, &with(&base, json!({"cniVersion": "1.1.0"}))).unwrap();

        daemon.signal(Signal::TERM);
        assert!(ends(daemon.pid(), LIMIT));
        let error = world.cni("ADD", Some((id, &path)), &base).unwrap_err();
        assert_eq!(error["code"], 11, "{error}");
        assert!(error["details"].as_str().unwrap().contains("systemctl start"), "{error}");
        let status = with(&base, json!({"cniVersion": "1.1.0"}));
        assert_eq!(world.cni("STATUS", None, &status).unwrap_err()["code"], 50);
        assert_eq!(world.links(), Vec::<String>::new());
        let leases = fs::read_dir(world.leases().join("red")).into_iter().flatten().flatten();
        assert!(
            leases.into_iter().all(|file| !file.file_name().to_string_lossy().starts_with("10."))
        );
    });
}

/// Containers outlive the daemon, and may end while it is away.
#[test]
fn a_daemon_that_was_killed_has_the_containers_again() {
    const TEST: &str = "a_daemon_that_was_killed_has_the_containers_again";
    if cannot_run(TEST) {
        return;
    }
    isolated_with_system(TEST, HANGS, |home| {
        let world = World::new(home);
        let daemon = world.daemon();
        let [a, b, c] = ["rna", "rnb", "rnc"].map(Netns::new);
        let config = world.network("red", json!({"vlan": 9}));
        let added = [&a, &b, &c].map(|container| world.add(container, &config));
        a.ping("-c 3 -i 0.05 -w 30 10.9.0.3");
        daemon.signal(Signal::KILL);
        assert!(ends(daemon.pid(), LIMIT));

        let (id, path) = place(&c);
        let (_, notes) = world.cni("DEL", Some((id, &path)), &config).unwrap();
        assert!(notes.contains("ten minutes") && notes.contains("switch detach"), "{notes}");
        assert!(!c.run("ip -o link").contains("eth0"));

        let _daemon = world.daemon();
        let control = Control::connect_running().unwrap();
        until("both containers and the gateway are back", || {
            let ports = ports(&control);
            let back = ports.iter().filter(|(_, mode)| !mode.contains("not back yet"));
            if back.count() == 3 { Ok(()) } else { Err(format!("{ports:?}")) }
        });
        // The container that ended meanwhile is waited for, until a second DEL.
        assert_eq!(ports(&control).len(), 4);
        world.del(&c, &config);
        assert_eq!(ports(&control).len(), 3);
        assert_all_back(&control);
        a.ping("-c 3 -i 0.05 -w 30 10.9.0.3");
        b.ping("-c 3 -i 0.05 -w 30 10.9.0.1");
        for (container, added) in [(&a, &added[0]), (&b, &added[1])] {
            world.check(container, &config, added).unwrap();
            world.del(container, &config);
        }
        world.assert_nothing_left(&control);
    });
}

/// Containers do not go to the private daemon of the user whose runtime it is.
#[test]
fn without_the_system_daemon_no_other_gets_the_containers() {
    const TEST: &str = "without_the_system_daemon_no_other_gets_the_containers";
    if cannot_run(TEST) {
        return;
    }
    isolated_with_system(TEST, HANGS, |home| {
        let world = World::new(home);
        let a = Netns::new("rna");
        home.install(&[("ringway", "ringway-cli")]);
        // A private one in its namespace, which a switch keeps.
        let switch = |what| {
            let mut program = home.command(home.bin().join("ringway"));
            program.args(["switch", what, "vale0"]);
            assert!(inside(&world.here, program).status().unwrap().success());
        };
        switch("new");
        assert_eq!(home.daemons().len(), 1);
        let private =
            ["RINGWAY_SOCKET", "", "RINGWAY_DIR", home.run().to_str().unwrap()].map(str::to_owned);
        let [socket, none, dir, run] = private.each_ref().map(String::as_str);
        let (id, path) = place(&a);
        let of_container = [("CNI_CONTAINERID", id), ("CNI_IFNAME", "eth0"), ("CNI_NETNS", &*path)];
        let environment: Vec<_> = [(socket, none), (dir, run), ("CNI_COMMAND", "ADD")]
            .into_iter()
            .chain(of_container)
            .chain([("CNI_PATH", PLUGINS)])
            .collect();
        let config = world.network("red", json!({"switch": "vale0"}));
        let error = world.run(&[], &environment, &config.to_string()).unwrap_err();
        assert_eq!(error["code"], 11, "{error}");
        let said = error["msg"].as_str().unwrap();
        assert!(said.contains("/run/ringway/ringwayd.sock"), "{said}");
        assert_eq!(world.links(), Vec::<String>::new());
        // What is named is the system's, at any path.
        let error = world.cni("ADD", Some((id, &path)), &config).unwrap_err();
        let named = home.system_socket();
        assert!(error["msg"].as_str().unwrap().contains(named.to_str().unwrap()), "{error}");
        switch("delete");
    });
}

#[test]
fn gc_removes_what_is_not_valid() {
    beside_the_daemon("gc_removes_what_is_not_valid", |world, control| {
        let [a, b, c, d] = ["rna", "rnb", "rnc", "rnd"].map(Netns::new);
        let plugins = world.home.path().join("plugins");
        fs::create_dir_all(plugins.join("given")).unwrap();
        install_script(IPAM, plugins.join("files"));
        let given = || {
            let files = fs::read_dir(plugins.join("given")).unwrap().flatten();
            let mut names: Vec<_> =
                files.map(|file| file.file_name().into_string().unwrap()).collect();
            names.sort();
            names
        };
        // Two networks on one switch: what is another one's stays.
        let red = world.network(
            "red",
            json!({
                "cniVersion": "1.1.0", "switch": "vale5", "vlan": 1, "ipam": {"type": "files"},
            }),
        );
        let blue = world.network(
            "blue",
            json!({"switch": "vale5", "vlan": 2, "ipam": {}, "isDefaultGateway": false}),
        );
        let kept = world.add(&a, &red);
        world.add(&b, &red);
        world.add(&c, &red);
        let other = world.add(&d, &blue);
        let c_id = format!("{}.eth0", c.name().unwrap());
        drop(c);
        until("the daemon waits for the container that has gone", || {
            let ports = ports(control);
            match ports.iter().filter(|(_, mode)| mode.contains("not back yet")).count() {
                1 => Ok(()),
                _ => Err(format!("{ports:?}")),
            }
        });
        let valid = json!({
            "cniVersion": "1.1.0",
            "cni.dev/valid-attachments": [{"containerID": a.name().unwrap(), "ifname": "eth0"}],
        });
        // Without a list, nothing is removed.
        let names = || ports(control).into_iter().map(|(name, _)| name).collect::<Vec<_>>();
        let before = names();
        for missing in [json!({}), json!({"cni.dev/valid-attachments": null})] {
            let error = world.cni("GC", None, &with(&red, missing)).unwrap_err();
            assert_eq!(error["code"], 7, "{error}");
        }
        assert_eq!(names(), before);
        world.cni("GC", None, &with(&red, valid)).unwrap();
        assert!(!b.run("ip -o link").contains("eth0"));
        // The id of the container whose namespace has gone is known to the IPAM plugin's GC alone.
        let id = |container: &Netns| format!("{}.eth0", container.name().unwrap());
        let mut left = vec![id(&a), c_id];
        left.sort();
        assert_eq!(given(), left);
        assert!(plugins.join("GC").exists());
        world.cni("STATUS", None, &red).unwrap();
        assert!(plugins.join("STATUS").exists());
        world.check(&d, &blue, &other).unwrap();
        world.check(&a, &red, &kept).unwrap();
        // The two containers, and the gateway of one.
        assert_eq!(ports(control).len(), 3, "{:?}", ports(control));
        let none = json!({"cniVersion": "1.1.0", "cni.dev/valid-attachments": []});
        for config in [&red, &blue] {
            world.cni("GC", None, &with(config, none.clone())).unwrap();
            world.cni("GC", None, &with(config, none.clone())).unwrap();
        }
        assert_eq!((world.links(), ports(control)), (vec![], vec![]));
    });
}

#[test]
fn vlans_divide_a_switch_and_a_container_has_one_address() {
    beside_the_daemon("vlans_divide_a_switch_and_a_container_has_one_address", |world, control| {
        let [a, b, c] = ["rna", "rnb", "rnc"].map(Netns::new);
        let network = |name: &str, vlan: u16| {
            world.network(name, json!({
                "switch": "vale5", "vlan": vlan, "spoofcheck": true, "isDefaultGateway": false,
                "capabilities": {"mac": true}, "runtimeConfig": {"mac": format!("02:00:00:00:0{vlan}:01")},
                "ipam": {
                    "type": "host-local", "dataDir": world.leases(),
                    "ranges": [[{"subnet": "10.9.0.0/24", "rangeStart": format!("10.9.0.{vlan}0")}]],
                },
            }))
        };
        let (red, blue) = (network("red", 1), network("blue", 2));
        let red_too = with(&red, json!({"runtimeConfig": {"mac": "02:00:00:00:00:99"}}));
        world.add(&a, &red);
        world.add(&b, &red_too);
        let added = world.add(&c, &blue);
        assert_eq!(added["ips"][0]["address"], "10.9.0.20/24");
        assert!(a.run("ip link show eth0").contains("02:00:00:00:01:01"));
        a.ping("-c 3 -i 0.05 -w 30 10.9.0.11");
        a.try_ping("-c 1 -w 1 10.9.0.20").unwrap_err();
        // With another address it is not heard.
        a.run("ip link set eth0 address 02:00:00:00:01:02");
        a.try_ping("-c 1 -w 1 10.9.0.11").unwrap_err();
        a.run("ip link set eth0 address 02:00:00:00:01:01");
        a.ping("-c 3 -i 0.05 -w 30 10.9.0.11");
        for (container, config) in [(&a, &red), (&b, &red_too), (&c, &blue)] {
            world.del(container, config);
        }
        world.assert_nothing_left(control);
    });
}

/// In parallel, as runtimes do for different containers: the last one takes the gateway along, and no other.
#[test]
fn containers_come_and_go_at_once() {
    beside_the_daemon("containers_come_and_go_at_once", |world, control| {
        let containers: Vec<Netns> = (0..4).map(|_| Netns::new("rnc")).collect();
        let config = world.network("red", json!({}));
        std::thread::scope(|scope| {
            for container in &containers {
                let (world, config) = (&world, &config);
                scope.spawn(move || {
                    for _ in 0..5 {
                        world.add(container, config);
                        container.ping("-c 2 -i 0.05 -w 30 10.9.0.1");
                        world.del(container, config);
                    }
                });
            }
        });
        world.assert_nothing_left(control);
    });
}

/// At the worst moment: the interface is on the switch, and addresses are asked for.
#[test]
fn what_a_plugin_leaves_that_is_killed_goes_with_del() {
    beside_the_daemon("what_a_plugin_leaves_that_is_killed_goes_with_del", |world, control| {
        let a = Netns::new("rna");
        let plugins = world.home.path().join("plugins");
        fs::create_dir(&plugins).unwrap();
        let killer = "#!/bin/sh\n[ $CNI_COMMAND != ADD ] || kill -9 $PPID\n";
        install_script(killer, plugins.join("killer"));
        let config = world.network("red", json!({"ipam": {"type": "killer"}}));
        let (id, path) = place(&a);
        assert_eq!(world.cni("ADD", Some((id, &path)), &config), Err(Value::Null));
        assert_eq!((world.links().len(), ports(control).len()), (1, 1));
        world.del(&a, &config);
        world.assert_nothing_left(control);
        assert!(!a.run("ip -o link").contains("eth0"));
        // And it can be added again.
        let config = world.network("red", json!({}));
        world.add(&a, &config);
        a.ping("-c 2 -i 0.05 -w 30 10.9.0.1");
        world.del(&a, &config);
        world.assert_nothing_left(control);
    });
}

#[test]
fn every_version_has_its_result() {
    beside_the_daemon("every_version_has_its_result", |world, control| {
        let a = Netns::new("rna");
        let (told, _) = world.cni("VERSION", None, &json!({"cniVersion": "1.0.0"})).unwrap();
        let versions = told["supportedVersions"].as_array().unwrap().clone();
        assert_eq!(versions.len(), 5);
        for version in versions {
            let mut config = world.network("red", json!({"cniVersion": version}));
            if version == "1.1.0" {
                // Debian 12's host-local does not know it.
                config = with(&config, json!({"ipam": {}, "isDefaultGateway": false}));
            }
            let added = world.add(&a, &config);
            assert_eq!(added["cniVersion"], version);
            let is_old = version.as_str() < Some("1.0.0");
            if version != "1.1.0" {
                assert_eq!(added["ips"][0]["version"].is_string(), is_old, "{added}");
            }
            assert_eq!(added["interfaces"][0]["mtu"].is_number(), version == "1.1.0", "{added}");
            world.del(&a, &config);
        }
        world.assert_nothing_left(control);
    });
}

/// What netavark 1.6 and newer says to a plugin for a network that `podman network create` has made.
#[test]
fn netavark_sets_containers_up() {
    const TEST: &str = "netavark_sets_containers_up";
    if skip_without_root(TEST) {
        return;
    }
    isolated_with_system(TEST, HANGS, |home| {
        let world = World::new(home);
        let daemon = world.daemon();
        let control = Control::connect_running().unwrap();
        let [a, b] = ["rna", "rnb"].map(Netns::new);
        let asked = json!({
            "name": "green", "id": "2f259bab93aaaaa2542ba43ef33eb990d0999ee1b9924b557b7be53c0b7a1bb9",
            "driver": "ringway", "created": "2024-05-01T10:00:00.0Z", "ipv6_enabled": false, "internal": false,
            "dns_enabled": true, "options": {"vlan": "12", "mtu": "1400"}, "ipam_options": {"driver": "host-local"},
            "subnets": [{"subnet": "10.9.0.0/24"}],
        });
        let (network, _) = world.run(&["create"], &[], &asked.to_string()).unwrap();
        assert_eq!(network["subnets"][0]["gateway"], "10.9.0.1");
        let exec = |container: &Netns, last: u8| {
            json!({
                "container_id": container.name().unwrap(), "container_name": "web", "port_mappings": [],
                "network": network,
                "network_options": {
                    "aliases": ["0123456789ab"], "interface_name": "eth0", "static_ips": [format!("10.9.0.{last}")],
                    "static_mac": format!("02:00:00:00:00:{last:02}"),
                },
            })
        };
        let call = |command: &str, container: &Netns, input: &Value| {
            world.run(&[command, &place(container).1], &[], &input.to_string())
        };
        let inputs = [exec(&a, 2), exec(&b, 3)];
        let (status, _) = call("setup", &a, &inputs[0]).unwrap();
        let subnets = json!([{"ipnet": "10.9.0.2/24", "gateway": "10.9.0.1"}]);
        let expected = json!({"eth0": {"mac_address": "02:00:00:00:00:02", "subnets": subnets}});
        assert_eq!(status["interfaces"], expected);
        call("setup", &b, &inputs[1]).unwrap();
        assert_connected(&a, &b, "10.9.0.3");
        a.ping("-c 3 -i 0.05 -w 30 10.9.0.1");
        assert!(a.run("ip route").contains("default via 10.9.0.1"));
        for (name, mode) in ports(&control) {
            assert!(
                name.starts_with("valegreen:rw") && mode.starts_with("kernel"),
                "{name} {mode}"
            );
        }
        let mut published = exec(&a, 4);
        published["port_mappings"] = json!([{"container_port": 80, "host_port": 8080, "host_ip": "", "protocol": "tcp", "range": 1}]);
        let error = call("setup", &a, &published).unwrap_err();
        assert!(error["error"].as_str().unwrap().contains("published ports"), "{error}");
        for _ in 0..2 {
            call("teardown", &a, &inputs[0]).unwrap();
        }
        daemon.signal(Signal::KILL);
        assert!(ends(daemon.pid(), LIMIT));
        let error = call("setup", &a, &inputs[0]).unwrap_err();
        assert!(error["error"].as_str().unwrap().contains("systemctl start"), "{error}");
        let (said, notes) = call("teardown", &b, &inputs[1]).unwrap();
        assert_eq!(said, Value::Null);
        assert!(notes.contains("switch detach"), "{notes}");
        assert_eq!(world.links(), Vec::<String>::new());
    });
}
