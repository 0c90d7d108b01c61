//! `make install` into a folder, and `make uninstall` out of it.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use ringway_testkit::Folder;
use ringway_tests::{
    Home,
    c::{project, succeed},
};

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
fn try_make(target: &str, built: &Path, folder: &Folder, variables: &[&str]) -> Output {
    let mut make = Command::new("make");
    make.args(["-s", "-C"]).arg(project()).args([target, "CARGO=/nonexistent/cargo"]);
    make.args(variables);
    make.arg(format!("BUILT={}", built.display()));
    make.arg(format!("DESTDIR={}", folder.path().display()));
    // A make that runs this test has nothing to say to this one.
    make.env_remove("MAKEFLAGS").env_remove("MAKELEVEL").output().unwrap()
}

/// What it says on standard error.
fn make(target: &str, home: &Home, folder: &Folder, variables: &[&str]) -> String {
    let output = try_make(target, &home.bin(), folder, variables);
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{said}");
    said
}

fn built() -> Home {
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
    home
}

#[test]
fn what_is_not_built_is_not_installed() {
    let (built, folder) = (Folder::new(), Folder::new());
    let output = try_make("install", built.path(), &folder, &[]);
    assert!(!output.status.success());
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("ringway is missing: run `make build` first"), "{said}");
    assert!(files(folder.path()).is_empty());
}

#[test]
fn what_is_installed_can_be_taken_away() {
    let home = built();
    for (variables, prefix, libraries, tools) in [
        (&[][..], "usr/local", "usr/local/lib", "usr/local/lib/ringway/netmap-tools"),
        (&["TOOLS=1"], "usr/local", "usr/local/lib", "usr/local/bin"),
        (&["PREFIX=/usr", "LIBDIR=/usr/lib64"], "usr", "usr/lib64", "usr/lib/ringway/netmap-tools"),
        // What sed would take for something else.
        (&["PREFIX=/opt/r&|x"], "opt/r&|x", "opt/r&|x/lib", "opt/r&|x/lib/ringway/netmap-tools"),
    ] {
        let folder = Folder::new();
        let [prefix, libraries, tools] = [prefix, libraries, tools].map(|p| folder.path().join(p));
        let include = prefix.join("include/net");
        fs::create_dir_all(&include).unwrap();
        fs::write(include.join("others.h"), "").unwrap();
        let before = files(folder.path());
        make("install", &home, &folder, variables);
        for file in [
            "bin/ringwayd",
            "lib/cni/ringway",
            "lib/netavark/ringway",
            "lib/systemd/network/10-ringway.network",
            "lib/systemd/system/ringway-metrics.service",
            "lib/systemd/system/ringway-mirror@.service",
            "lib/systemd/system/ringway-vm@.service",
            "include/usdpaa/fsl_usd.h",
            "include/usdpaa/internal/conf.h",
            "lib/ringway/usdpaa/usdpaa_policy_hash_ipv4.xml",
            "lib/ringway/usdpaa/cli_table.lds",
            "include/pfring.h",
            "include/linux/pf_ring.h",
            "include/pf_ring/lib/config.h",
            "lib/ringway/libringway_pcap.so",
            "lib/ringway/libpcap.so.0.8",
            "include/net/netmap_user.h",
            "include/linux/if_packet_v4.h",
            "lib/systemd/system/ringwayd.socket",
            "lib/sysusers.d/ringway.conf",
            "lib/tmpfiles.d/ringway.conf",
            "share/bash-completion/completions/ringway",
            "share/zsh/site-functions/_ringway",
            "share/fish/vendor_completions.d/ringway.fish",
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
        for file in [
            "libringway_preload.so",
            "libringway_netmap.so",
            "libnetmap.so",
            "libnetmap.a",
            "libpfring.so",
            "libusdpaa.so",
            "libusdpaa.a",
            "pkgconfig/libnetmap.pc",
            "cmake/Ringway/RingwayConfig.cmake",
        ] {
            assert!(libraries.join(file).is_file(), "{file}");
        }
        let config = folder.path().join("etc/ringway/ringwayd.toml");
        assert!(fs::read_to_string(&config).unwrap().contains("\ngroup = \"ringway\"\n"));
        let program = prefix.join("bin/ringway").canonicalize().unwrap();
        assert_eq!(tools.join("vale-ctl").canonicalize().unwrap(), program);
        // What is filled in is where things are without DESTDIR.
        let unit = fs::read_to_string(prefix.join("lib/systemd/system/ringwayd.service")).unwrap();
        let started = Path::new("/").join(prefix.strip_prefix(folder.path()).unwrap());
        let started = format!("ExecStart={}/bin/ringwayd\n", started.display());
        assert!(unit.contains(&started), "{unit}");
        let unit = prefix.join("lib/systemd/system/ringway-metrics.service");
        let unit = fs::read_to_string(unit).unwrap();
        assert!(unit.contains("/bin/ringway metrics") && !unit.contains("@PREFIX@"), "{unit}");
        // NetworkManager reads nothing below /usr/local.
        let settings = if prefix.ends_with("usr") { "usr/lib" } else { "etc" };
        let settings = folder.path().join(settings).join("NetworkManager/conf.d");
        assert!(settings.join("10-ringway.conf").is_file());
        let mut run = home.command(prefix.join("bin/ringway"));
        run.args(["run", "--", "sh", "-c", "echo $LD_PRELOAD"]);
        let preloaded = String::from_utf8(run.output().unwrap().stdout).unwrap();
        let expected = [
            libraries.join("libringway_preload.so"),
            prefix.join("lib/ringway/libringway_pcap.so"),
        ];
        let expected = expected.map(|library| library.display().to_string());
        assert_eq!(preloaded.trim(), expected.join(":"));
        make("uninstall", &home, &folder, variables);
        assert_eq!(files(folder.path()), before);
        for gone in ["lib/ringway", "share/doc/ringway", "include/usdpaa"] {
            assert!(!prefix.join(gone).exists(), "{gone}");
        }
        assert!(!folder.path().join("etc/ringway").exists());
        assert!(prefix.join("lib").exists());
    }
}

#[test]
fn a_configuration_that_was_changed_is_kept() {
    let home = built();
    let folder = Folder::new();
    make("install", &home, &folder, &[]);
    let config = folder.path().join("etc/ringway/ringwayd.toml");
    fs::write(&config, "max_bridges = 3\n").unwrap();
    make("install", &home, &folder, &[]);
    let said = make("uninstall", &home, &folder, &[]);
    assert!(said.contains("ringwayd.toml has been changed, and stays"), "{said}");
    assert_eq!(fs::read_to_string(&config).unwrap(), "max_bridges = 3\n");
    assert_eq!(files(folder.path()), BTreeSet::from([config]));
}

#[test]
fn directories_that_nothing_can_be_installed_in_are_refused() {
    let folder = Folder::new();
    for (variable, words) in [
        ("LIBDIR=lib64", "lib64: give directories from the root on"),
        ("PREFIX=/opt/my programs", "/opt/my programs: give directories without blanks"),
        ("SYSCONFDIR=/etc\t", "give directories without blanks"),
        ("ZSHDIR=/z\u{1}", "give directories without blanks"),
    ] {
        let output = try_make("install", folder.path(), &folder, &[variable]);
        assert!(!output.status.success(), "{variable:?}");
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(said.contains(words), "{said}");
    }
}

/// By pkg-config and by CMake, with no other word of where things are.
#[test]
fn programs_are_built_with_what_is_installed() {
    let home = built();
    let folder = Folder::new();
    let prefix = folder.path().join("opt");
    let at = format!("PREFIX={}", prefix.display());
    // Not in DESTDIR: the files say where they are.
    let (root, etc) =
        (Folder::new(), format!("SYSCONFDIR={}", folder.path().join("etc").display()));
    make("install", &home, &root, &[&at, &etc]);
    fs::rename(root.path().join(prefix.strip_prefix("/").unwrap()), &prefix).unwrap();

    // It finds the library, and that the daemon, with no `ringway run`.
    let run = |program: &Path| {
        let mut run = home.command(program);
        run.env("LD_LIBRARY_PATH", prefix.join("lib"));
        succeed(run)
    };
    let source = project().join("examples/c/hello.c");
    let mut config = Command::new("pkg-config");
    config.args(["--cflags", "--libs", "ringway"]);
    config.env("PKG_CONFIG_PATH", prefix.join("lib/pkgconfig"));
    let flags = succeed(config);
    let mut cc = Command::new("cc");
    let hello = folder.path().join("hello");
    cc.arg(&source).args(flags.split_whitespace()).arg("-o").arg(&hello);
    succeed(cc);
    assert_eq!(run(&hello), "12 bytes: hello, ring\n");

    let lists = folder.path().join("CMakeLists.txt");
    let text = "cmake_minimum_required(VERSION 3.18)\nproject(hello C)\n\
        find_package(Ringway 0.2 REQUIRED CONFIG)\nadd_executable(hello SOURCE)\n\
        foreach(name ringway netmap pfring usdpaa)\n\
        target_link_libraries(hello PRIVATE Ringway::${name})\nendforeach()\n";
    fs::write(&lists, text.replace("SOURCE", &source.display().to_string())).unwrap();
    let by_cmake = folder.path().join("build");
    let mut cmake = Command::new("cmake");
    cmake.args(["-S", &folder.path().display().to_string(), "-B"]).arg(&by_cmake);
    cmake.arg(format!("-DCMAKE_PREFIX_PATH={}", prefix.display()));
    succeed(cmake);
    let mut build = Command::new("cmake");
    build.arg("--build").arg(&by_cmake);
    succeed(build);
    assert_eq!(run(&by_cmake.join("hello")), "12 bytes: hello, ring\n");
}
