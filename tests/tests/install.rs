//! `make install` into a folder, and `make uninstall` out of it.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use ringway_testkit::Folder;
use ringway_tests::{Home, c::project};

fn files(folder: &Path) -> BTreeSet<PathBuf> {
    let mut all = BTreeSet::new();
    for entry in fs::read_dir(folder).unwrap().flatten() {
        match entry.file_type().unwrap().is_dir() {
            true => all.extend(files(&entry.path())),
            false => drop(all.insert(entry.path())),
        }
    }
    all
}

/// As a user who has no compiler, root for one.
fn try_make(target: &str, built: &Path, folder: &Folder, tools: &str) -> Output {
    let mut make = Command::new("make");
    make.args(["-s", "-C"]).arg(project()).args([target, tools, "CARGO=/nonexistent/cargo"]);
    make.arg(format!("BUILT={}", built.display()));
    make.arg(format!("DESTDIR={}", folder.path().display()));
    // A make that runs this test has nothing to say to this one.
    make.env_remove("MAKEFLAGS").env_remove("MAKELEVEL").output().unwrap()
}

fn make(target: &str, home: &Home, folder: &Folder, tools: &str) {
    let output = try_make(target, &home.bin(), folder, tools);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn what_is_not_built_is_not_installed() {
    let (built, folder) = (Folder::new(), Folder::new());
    let output = try_make("install", built.path(), &folder, "TOOLS=");
    assert!(!output.status.success());
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("ringway is missing: run `make build` first"), "{said}");
    assert!(files(folder.path()).is_empty());
}

#[test]
fn what_is_installed_can_be_taken_away() {
    let home = Home::new();
    home.install(&[
        ("ringway", "ringway-cli"),
        ("ringway-networks", "ringway-networks"),
        ("libnetmap.so", "ringway-libnetmap"),
        ("libnetmap.a", "ringway-libnetmap"),
        ("libringway_pcap.so", "ringway-pcap"),
        ("libpfring.so", "ringway-libpfring"),
        ("libusdpaa.so", "ringway-usdpaa"),
        ("libusdpaa.a", "ringway-usdpaa"),
    ]);
    for (tools, place) in
        [("TOOLS=", "usr/local/lib/ringway/netmap-tools"), ("TOOLS=1", "usr/local/bin")]
    {
        let folder = Folder::new();
        let include = folder.path().join("usr/local/include/net");
        fs::create_dir_all(&include).unwrap();
        fs::write(include.join("others.h"), "").unwrap();
        let before = files(folder.path());
        make("install", &home, &folder, tools);
        let prefix = folder.path().join("usr/local");
        for file in [
            "bin/ringwayd",
            "lib/cni/ringway",
            "lib/netavark/ringway",
            "lib/systemd/network/10-ringway.network",
            "lib/libnetmap.so",
            "lib/libpfring.so",
            "lib/libusdpaa.so",
            "lib/libusdpaa.a",
            "include/usdpaa/fsl_usd.h",
            "include/usdpaa/internal/conf.h",
            "lib/ringway/usdpaa/usdpaa_policy_hash_ipv4.xml",
            "include/pfring.h",
            "include/linux/pf_ring.h",
            "include/pf_ring/lib/config.h",
            "lib/ringway/libringway_pcap.so",
            "lib/ringway/libpcap.so.0.8",
            "include/net/netmap_user.h",
            "include/linux/if_packet_v4.h",
            "share/man/man1/ringway.1",
            "share/man/man7/ringway.7",
            "share/doc/ringway/LICENSE",
            "share/doc/ringway/README.md",
            "share/doc/ringway/docs/guide/switching.md",
            "lib/ringway/metrics/alerts.yml",
            "lib/ringway/metrics/dashboard.json",
            "share/doc/ringway/examples/c/hello.c",
        ] {
            assert!(prefix.join(file).is_file(), "{file}");
        }
        assert!(folder.path().join("etc/NetworkManager/conf.d/10-ringway.conf").is_file());
        let tool = folder.path().join(place).join("vale-ctl");
        assert_eq!(
            tool.canonicalize().unwrap(),
            prefix.join("bin/ringway").canonicalize().unwrap()
        );
        let unit = fs::read_to_string(prefix.join("lib/systemd/system/ringwayd.service")).unwrap();
        assert!(unit.contains("ExecStart=/usr/local/bin/ringwayd\n"), "{unit}");
        let unit = prefix.join("lib/systemd/system/ringway-metrics.service");
        let unit = fs::read_to_string(unit).unwrap();
        assert!(unit.contains("ExecStart=/usr/local/bin/ringway metrics"), "{unit}");
        assert!(!unit.contains("@PREFIX@"), "{unit}");
        let mut run = home.command(prefix.join("bin/ringway"));
        run.args(["run", "--", "sh", "-c", "echo $LD_PRELOAD"]);
        let preloaded = String::from_utf8(run.output().unwrap().stdout).unwrap();
        let libraries = ["lib/libringway_preload.so", "lib/ringway/libringway_pcap.so"];
        let expected = libraries.map(|library| prefix.join(library).display().to_string());
        assert_eq!(preloaded.trim(), expected.join(":"));
        make("uninstall", &home, &folder, tools);
        assert_eq!(files(folder.path()), before);
        assert!(!prefix.join("lib/ringway").exists());
        assert!(!prefix.join("share/doc/ringway").exists());
        assert!(prefix.join("lib").exists());
    }
}
