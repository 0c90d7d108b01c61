//! Programs of USDPAA, built and started as their users would.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use crate::{
    Home,
    c::{loads_from, project},
};

/// Builds a program of USDPAA as its users would: with the flag that helps programs written for big-endian machines, and, where it
/// has a command line, the linker's script.
pub fn build(home: &Home, source: &str, flags: &[&str]) -> PathBuf {
    build_with(home, source, flags, "libusdpaa.so")
}

/// The same with one of the two libraries.
pub fn build_with(home: &Home, source: &str, flags: &[&str], library: &str) -> PathBuf {
    home.install(&[(library, "ringway-usdpaa")]);
    let name = Path::new(source).file_stem().unwrap().to_string_lossy();
    let program = home.path().join(format!("{name}{}-{library}", flags.concat()));
    let (root, bin) = (project(), home.bin());
    let mut cc = Command::new("cc");
    cc.args(["-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror"]);
    for include in ["include", "include/usdpaa"] {
        cc.arg("-I").arg(root.join(include));
    }
    cc.args(["-include", "usdpaa/little_endian.h"]).args(flags).arg(root.join(source));
    cc.arg("-o").arg(&program).arg("-L").arg(&bin).args(loads_from(&bin));
    cc.args([&format!("-l:{library}"), "-lpthread"]);
    if source.contains("reflector") {
        cc.arg(format!("-Wl,-T,{}", root.join("dist/usdpaa/cli_table.lds").display()));
    }
    let output = cc.output().expect("cc starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{cc:?}\n{said}");
    program
}

/// A configuration with these interfaces, of the form `fm0 10G 0 5`: the last is the policy's number.
pub fn config(home: &Home, interfaces: &[&str]) -> String {
    let port = |interface: &&str| {
        let words: Vec<&str> = interface.split(' ').collect();
        let [engine, kind, number, policy] = words[..] else { panic!("{interface}") };
        format!(
            "<engine name='{engine}'><port type='{kind}' number='{number}' \
             policy='hash_ipsec_src_dst_spi_policy{policy}'/></engine>"
        )
    };
    let ports: String = interfaces.iter().map(port).collect();
    let file = home.path().join("config.xml");
    fs::write(&file, format!("<cfgdata><config>{ports}</config></cfgdata>")).unwrap();
    file.display().to_string()
}

pub fn policies() -> String {
    project().join("dist/usdpaa/usdpaa_policy_hash_ipv4.xml").display().to_string()
}

/// The command of a program with its files.
pub fn with_files(mut command: Command, ports: &str, config: &str) -> Command {
    command.env("RINGWAY_USDPAA_PORTS", ports).args(["-p", &policies(), "-c", config]);
    command
}
