//! podman, with two containers on a Ringway network: by CNI with podman 4, by netavark with later ones. It finds
//! the plugin as `ringway` in a folder of its own, sees no configuration of this machine's, and has its storage,
//! its state and its network namespace to itself.

use std::{
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::Command,
};

use ringway_testkit::{Folder, install, install_script, skip_unless, skip_without_root};
use ringway_tests::Home;
use serde_json::json;

/// The first process of the namespaces; its argument is the folder of the test. The cleanup of a container is
/// started without most variables, so the daemon is where it is by default.
const SCRIPT: &str = r#"
set -eu
mount -t tmpfs none /run
# crun refuses a mixture of both versions.
umount -R /sys/fs/cgroup
mount -t cgroup2 none /sys/fs/cgroup
mkdir /run/ringway /run/lock
ip link set lo up
cd "$1"
bin/ringwayd --config ringwayd.toml > daemon.log 2>&1 &
daemon=$!
trap 'kill $daemon 2>/dev/null; wait' EXIT
until [ -S /run/ringway/ringwayd.sock ]; do kill -0 $daemon; done
podman() { command podman --root "$PWD/storage" --runroot "$PWD/runroot" --storage-driver vfs "$@"; }
podman import image.tar localhost/busybox > /dev/null 2>&1
podman network exists red || podman network create --driver ringway --subnet 10.9.0.0/24 red
echo "driver $(podman network inspect red --format '{{.Driver}}')"
for name in a b; do
    podman run -d --name $name --cap-add NET_RAW --cgroups=disabled --security-opt seccomp=unconfined \
        --ulimit nofile=1024:1024 --ulimit nproc=1000:1000 --network red localhost/busybox sleep 1000 > /dev/null
done
address() { podman inspect $1 --format '{{.NetworkSettings.Networks.red.IPAddress}}'; }
bin/ringway switch list
echo "a to b"
podman exec a ping -c 3 -i 0.1 -w 30 "$(address b)"
echo "b to the gateway"
podman exec b ping -c 3 -i 0.1 -w 30 -s 4000 10.9.0.1
echo "the host to a"
ping -c 3 -i 0.1 -w 30 "$(address a)"
kill -9 $daemon
wait $daemon || true
bin/ringwayd --config ringwayd.toml > daemon.log 2>&1 &
daemon=$!
until bin/ringway switch list 2>/dev/null | grep valered | grep -v 'not back yet'; do kill -0 $daemon; done
echo "a to b, with the next daemon"
podman exec a ping -c 3 -i 0.1 -w 30 "$(address b)"
podman stop -t 0 b > /dev/null
podman start b > /dev/null
echo "a to b, which was started again"
podman exec a ping -c 3 -i 0.1 -w 30 "$(address b)"
podman rm -f -t 0 a b > /dev/null
ip -br link | grep -c '^rw' || echo "no interface is left"
bin/ringway switch list
"#;

/// The same without root: the user is in this copy of `/etc` alone.
const ROOTLESS: &str = r#"
set -eu
mount -t tmpfs none /run
umount -R /sys/fs/cgroup
mount -t cgroup2 none /sys/fs/cgroup
ip link set lo up
cd "$1"
chmod 755 .
cp -a /etc etc
mount --bind etc /etc
useradd --create-home --home-dir "$PWD/home" rwtest
mkdir -p sock "/run/user/$(id -u rwtest)" tmp leases
chown rwtest "/run/user/$(id -u rwtest)" tmp leases net.d
bin/ringwayd --config ringwayd.toml > daemon.log 2>&1 &
daemon=$!
trap 'kill $daemon 2>/dev/null; wait' EXIT
until [ -S sock/ringwayd.sock ]; do kill -0 $daemon; done
cat > user.sh <<'END'
@USER@
END
setpriv --reuid=rwtest --regid=rwtest --init-groups env HOME="$PWD/home" \
    XDG_RUNTIME_DIR="/run/user/$(id -u rwtest)" RINGWAY_SOCKET="$PWD/sock/ringwayd.sock" sh user.sh
"#;

const AS_USER: &str = r#"
set -eu
podman() { command podman --storage-driver vfs "$@"; }
podman import image.tar localhost/busybox > /dev/null 2>&1
echo "uid 0 of $(podman unshare cat /proc/self/uid_map | head -1 | awk '{print $2}')"
podman network exists red || podman network create --driver ringway --subnet 10.9.0.0/24 red
for name in a b; do
    podman run -d --name $name --cap-add NET_RAW --cgroups=disabled --security-opt seccomp=unconfined \
        --ulimit nofile=1024:1024 --ulimit nproc=1000:1000 --network red localhost/busybox sleep 1000 > /dev/null
done
bin/ringway switch list
podman exec a ping -c 3 -i 0.2 -w 30 "$(podman inspect b --format '{{.NetworkSettings.Networks.red.IPAddress}}')"
podman rm -f -t 0 a b > /dev/null
bin/ringway switch list
"#;

/// A file system with busybox and what it is linked with.
fn image(folder: &Path) -> PathBuf {
    let root = folder.join("image");
    for name in ["bin", "etc", "proc", "dev", "sys", "tmp"] {
        fs::create_dir_all(root.join(name)).unwrap();
    }
    let busybox = "/usr/bin/busybox";
    let libraries = Command::new("ldd").arg(busybox).output().unwrap();
    let libraries = String::from_utf8(libraries.stdout).unwrap();
    let paths = libraries.split_whitespace().filter(|word| word.starts_with('/'));
    for path in paths {
        let to = root.join(path.trim_start_matches('/'));
        fs::create_dir_all(to.parent().unwrap()).unwrap();
        install([path], to);
    }
    install([busybox], root.join("bin"));
    for name in ["sh", "ping", "sleep"] {
        symlink("busybox", root.join("bin").join(name)).unwrap();
    }
    let tar = folder.join("image.tar");
    let done = Command::new("tar").arg("-C").arg(&root).arg("-cf").arg(&tar).arg(".").status();
    assert!(done.unwrap().success());
    tar
}

/// The first part of podman's version.
fn version() -> Option<u32> {
    let output = Command::new("podman").arg("--version").output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.split_whitespace().last()?.split('.').next()?.parse().ok()
}

/// What podman starts containers with, and finds them addresses.
fn can_run(has_cni: bool) -> bool {
    let last = if has_cni { "/usr/lib/cni/host-local" } else { "/usr/lib/podman/netavark" };
    ["/usr/bin/crun", "/usr/bin/conmon", last].into_iter().all(|path| Path::new(path).exists())
}

/// A network as CNI has it: with another plugin behind this one.
fn conflist(leases: &Path) -> String {
    let network = json!({
        "cniVersion": "0.4.0",
        "name": "red",
        "plugins": [
            {
                "type": "ringway", "isDefaultGateway": true, "capabilities": {"mac": true, "ips": true},
                "ipam": {
                    "type": "host-local", "dataDir": leases, "ranges": [[{"subnet": "10.9.0.0/24"}]],
                },
            },
            {"type": "tuning", "sysctl": {"net.ipv4.conf.all.log_martians": "1"}},
        ],
    });
    network.to_string()
}

/// What both tests need.
struct Set {
    home: Home,
    folder: Folder,
    has_cni: bool,
}

impl Set {
    /// `None`: it cannot run here.
    fn new(test: &str) -> Option<Set> {
        let version = version();
        // Version 4 has both backends, and plugins with CNI alone before 4.5.
        let has_cni = version == Some(4);
        if skip_without_root(test)
            || skip_unless(version.is_some(), test, "needs podman")
            || skip_unless(can_run(has_cni), test, "needs crun, conmon, and host-local or netavark")
        {
            return None;
        }
        let home = Home::new();
        home.install(&[("ringway", "ringway-cli"), ("ringway-networks", "ringway-networks")]);
        // A path that is short enough for podman's sockets.
        let folder = Folder::new();
        let path = folder.path();
        symlink(home.bin(), path.join("bin")).unwrap();
        for name in ["plugins", "net.d"] {
            fs::create_dir(path.join(name)).unwrap();
        }
        image(path);
        if has_cni {
            fs::write(path.join("net.d/red.conflist"), conflist(&path.join("leases"))).unwrap();
        }
        let shown = path.display();
        let backend = match has_cni {
            true => format!(
                "network_backend = 'cni'\ncni_plugin_dirs = ['{shown}/plugins', '/usr/lib/cni']\n\
                 default_network = 'red'"
            ),
            false => {
                format!("netavark_plugin_dirs = ['{shown}/plugins']\nfirewall_driver = 'none'")
            }
        };
        let config = format!(
            "[network]\nnetwork_config_dir = '{shown}/net.d'\n{backend}\n\
             [engine]\ncgroup_manager = 'cgroupfs'\nevents_logger = 'none'\nruntime = 'crun'\n\
             lock_type = 'file'\ntmp_dir = '{shown}/tmp'\n"
        );
        fs::write(path.join("containers.conf"), config).unwrap();
        Some(Set { home, folder, has_cni })
    }

    /// Runs a script as the first process of namespaces; what it says.
    fn run(&self, script: &str) -> String {
        let path = self.folder.path();
        let mut command = Command::new("unshare");
        command.args(["--mount", "--net", "--pid", "--fork", "--mount-proc", "--kill-child"]);
        command.args(["--propagation", "private", "timeout", "200", "sh", "-c", script, "test"]);
        command.arg(path).env("CONTAINERS_CONF", path.join("containers.conf"));
        command.env_remove("RINGWAY_SOCKET").env_remove("RINGWAY_DIR");
        let output = command.output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{said}\n{errors}");
        println!("{said}");
        said
    }
}

#[test]
fn podmans_containers_reach_each_other() {
    let Some(set) = Set::new("podmans_containers_reach_each_other") else { return };
    let path = set.folder.path();
    symlink(set.home.bin().join("ringway-networks"), path.join("plugins/ringway")).unwrap();
    fs::write(path.join("ringwayd.toml"), "socket = '/run/ringway/ringwayd.sock'\n").unwrap();
    let said = set.run(SCRIPT);
    assert!(said.contains("driver ringway\n"), "{said}");
    assert_eq!(said.matches(" 0% packet loss").count(), 5, "{said}");
    let attached = said.lines().find(|line| line.starts_with("valered")).unwrap_or_default();
    assert_eq!(attached.matches("(kernel)").count(), 3, "{said}");
    assert!(said.contains("no interface is left\nno switches"), "{said}");
}

/// podman hides `/run` from the plugin then, so the daemon's socket is elsewhere.
#[test]
fn containers_of_a_user_without_root_reach_each_other() {
    const TEST: &str = "containers_of_a_user_without_root_reach_each_other";
    let Some(set) = Set::new(TEST) else { return };
    let helper = if set.has_cni { "/usr/bin/slirp4netns" } else { "/usr/bin/pasta" };
    let is_there = ["/usr/bin/newuidmap", helper, "/dev/net/tun"]
        .into_iter()
        .all(|path| Path::new(path).exists());
    if skip_unless(is_there, TEST, "needs uidmap, slirp4netns or passt, and /dev/net/tun") {
        return;
    }
    let path = set.folder.path();
    let shown = path.display();
    let socket = path.join("sock/ringwayd.sock");
    let wrapper = format!(
        "#!/bin/sh\nexport RINGWAY_SOCKET={}\nexec {shown}/bin/ringway-networks \"$@\"\n",
        socket.display()
    );
    let plugin = path.join("plugins/ringway");
    install_script(&wrapper, plugin);
    let config = format!("socket = {socket:?}\ngroup = 'rwtest'\nnic_users = ['rwtest']\n");
    fs::write(path.join("ringwayd.toml"), config).unwrap();
    let script = ROOTLESS.replace("@USER@", AS_USER);
    let said = set.run(&script);
    assert!(said.contains("uid 0 of 10"), "{said}");
    assert_eq!(said.matches(" 0% packet loss").count(), 1, "{said}");
    let attached = said.lines().find(|line| line.starts_with("valered")).unwrap_or_default();
    assert_eq!(attached.matches("(kernel)").count(), 3, "{said}");
    assert!(said.ends_with("no switches\n"), "{said}");
}
