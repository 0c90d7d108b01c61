//! The house stands as it is drawn: which crate may use which, what a preloaded process gets, and
//! where unsafe code may be.
#![allow(clippy::disallowed_methods, reason = "tests are told by variables what to do")]

use std::{
    collections::{BTreeMap, BTreeSet},
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

use ringway_testkit::skip_unless;
use serde_json::Value;

/// Each crate, and those of this workspace that its code may use. A crate stands behind all that it
/// uses, so dependencies run one way.
const MAY_USE: &[(&str, &[&str])] = &[
    ("ringway-abi", &[]),
    ("ringway-environment", &[]),
    ("ringway-portspec", &[]),
    ("ringway-vnet", &[]),
    ("ringway-filter", &[]),
    ("ringway-action", &["filter"]),
    ("ringway-flow", &[]),
    ("ringway-region", &["abi"]),
    ("ringway-kring", &["abi", "region"]),
    ("ringway-mirror", &["abi", "kring", "region"]),
    ("ringway-switch-port", &["abi", "kring", "mirror", "region"]),
    ("ringway-fastpath", &["filter"]),
    (
        "ringway-vale",
        &["abi", "fastpath", "switch-port", "filter", "flow", "kring", "mirror", "region", "vnet"],
    ),
    ("ringway-ring", &["abi", "kring", "region"]),
    ("ringway-xdp", &["abi", "switch-port", "kring", "region", "vnet"]),
    ("ringway-packet", &["abi", "switch-port", "kring", "region", "vnet"]),
    ("ringway-vhost", &["abi", "flow", "region", "vnet"]),
    ("ringway-file", &["abi", "kring", "region"]),
    ("ringway-nic-setup", &["action", "fastpath", "filter", "flow", "packet", "region", "xdp"]),
    ("ringway-proto", &["abi", "filter", "flow", "kring", "mirror", "region"]),
    ("ringway-errno", &["proto"]),
    ("ringway-ipc", &["environment", "proto"]),
    (
        "ringway-registry",
        &[
            "abi",
            "action",
            "switch-port",
            "ring",
            "fastpath",
            "filter",
            "kring",
            "mirror",
            "nic-setup",
            "packet",
            "proto",
            "region",
            "vale",
            "xdp",
        ],
    ),
    ("ringwayd", &["environment", "ipc", "nic-setup", "proto", "region", "registry"]),
    (
        "ringway",
        &[
            "abi",
            "action",
            "ring",
            "environment",
            "file",
            "filter",
            "flow",
            "ipc",
            "kring",
            "mirror",
            "packet",
            "portspec",
            "proto",
            "region",
            "xdp",
        ],
    ),
    ("ringway-live-capture", &["abi", "filter", "packet", "region", ""]),
    ("ringway-balance", &[""]),
    ("ringway-helper-thread", &[]),
    ("ringway-qbman", &[]),
    ("ringway-interpose", &["kring"]),
    ("ringway-netmap", &["abi", "environment", "errno", "interpose", "ipc", "kring", "proto", ""]),
    (
        "ringway-tpacket4",
        &["abi", "environment", "errno", "interpose", "kring", "packet", "region", ""],
    ),
    ("ringway-preload", &["interpose", "netmap", "tpacket4"]),
    ("ringway-libnetmap", &["abi", "portspec"]),
    ("ringway-pcap", &["live-capture", "environment", "filter", ""]),
    (
        "ringway-pfring",
        &[
            "balance",
            "live-capture",
            "environment",
            "filter",
            "flow",
            "helper-thread",
            "packet",
            "",
        ],
    ),
    ("ringway-libpfring", &["pfring"]),
    ("ringway-usdpaa", &["abi", "environment", "helper-thread", "qbman", "region", ""]),
    (
        "ringway-cli",
        &["abi", "balance", "live-capture", "errno", "file", "filter", "ipc", "vhost", ""],
    ),
    ("ringway-networks", &[""]),
    ("ringway-doc", &["registry", ""]),
    ("ringway-demo", &[]),
    ("ringway-testkit", &["abi", "kring"]),
    ("ringway-public-api", &[]),
    ("ringway-bench", &["nic-setup", "testkit", "xdp", ""]),
    ("ringway-instructions", &[]),
    ("ringway-tests", &["abi", "errno", "proto", "registry", "testkit", "vhost", ""]),
    ("ringway-conformance", &["testkit", "tests"]),
    ("ringway-lab", &["testkit", ""]),
];

/// Crates that are the C edge itself: their code is called by, and calls, programs in C.
const C_EDGES: [&str; 6] = [
    "ringway-interpose",
    "ringway-preload",
    "ringway-libnetmap",
    "ringway-pcap",
    "ringway-pfring",
    "ringway-usdpaa",
];

/// Bytes of the preload library without its symbols, at most: 713 208, what it had when it carried the registry
/// and the switch as well; what AF_PACKET V4 takes, which opens ports by name, and interfaces beside
/// the stack, with filters and groups, and has fast loops of its own; and what answers the questions of
/// programs about a port, by ioctl and by netlink, filters of ports that are no interfaces, calls that
/// handlers of signals make, with sets of epoll that take no memory then and whose waits end when a set is
/// changed, waits that end with a cancelled thread, whose stack is unwound, and forks at any time. A fifth of it prints
/// backtraces, and comes with the standard library.
const PRELOAD_SIZE: u64 = (1 << 20) + (1 << 16);

/// As in the table: the client is the crate without a name behind `ringway`.
fn full(name: &str) -> String {
    if name.is_empty() { "ringway".into() } else { format!("ringway-{name}") }
}

fn metadata() -> Value {
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["metadata", "--format-version", "1", "--offline", "--locked"])
        // What other systems need may never have been downloaded.
        .args(["--filter-platform", "x86_64-unknown-linux-gnu"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("cargo writes JSON")
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// The workspace's packages by name.
fn members(metadata: &Value) -> BTreeMap<&str, &Value> {
    let members: BTreeSet<&str> = list(&metadata["workspace_members"]).iter().map(text).collect();
    let packages = list(&metadata["packages"]).iter();
    let own = packages.filter(|package| members.contains(text(&package["id"])));
    own.map(|package| (text(&package["name"]), package)).collect()
}

#[test]
fn dependencies_run_one_way() {
    let metadata = metadata();
    let members = members(&metadata);
    let mut earlier = BTreeSet::new();
    for (name, may_use) in MAY_USE {
        let package = members.get(name).unwrap_or_else(|| panic!("there is no crate {name}"));
        let may_use: BTreeSet<String> = may_use.iter().map(|name| full(name)).collect();
        assert!(may_use.is_subset(&earlier), "{name} stands in front of what it may use");
        let normal = list(&package["dependencies"]).iter().filter(|other| other["kind"].is_null());
        let uses: BTreeSet<String> = normal.map(|other| text(&other["name"]).to_owned()).collect();
        for other in uses.iter().filter(|other| members.contains_key(other.as_str())) {
            assert!(may_use.contains(other), "{name} may not use {other}: see the table");
        }
        earlier.insert((*name).to_owned());
    }
    for name in members.keys() {
        assert!(earlier.contains(*name), "{name} is not in the table");
    }
}

/// The root shows the architecture: few folders, and each group of crates says what it is.
#[test]
fn the_root_has_few_folders_and_each_group_a_readme() {
    let project = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("it is in the project");
    let folders = |path: &Path| -> Vec<PathBuf> {
        let entries = fs::read_dir(path).expect("a folder");
        let paths = entries.map(|entry| entry.expect("an entry").path());
        paths.filter(|path| path.is_dir()).collect()
    };
    let name = |path: &PathBuf| path.file_name().expect("a name").to_string_lossy().into_owned();
    let mut names: Vec<String> = folders(project).iter().map(name).collect();
    names.retain(|name| !name.starts_with('.') && name != "target");
    assert!(names.len() <= 16, "{names:?}");
    for group in folders(&project.join("crates")) {
        let readme = fs::read_to_string(group.join("README.md")).unwrap_or_default();
        assert!(readme.lines().count() >= 10, "{}", group.display());
    }
}

/// What every preloaded process carries is neither the registry, nor the switch, nor a BPF loader.
#[test]
fn the_preload_library_carries_no_registry_no_switch_and_no_bpf_loader() {
    let metadata = metadata();
    let nodes = list(&metadata["resolve"]["nodes"]).iter();
    let nodes: BTreeMap<&str, &Value> = nodes.map(|node| (text(&node["id"]), node)).collect();
    let packages = list(&metadata["packages"]).iter();
    let names: BTreeMap<&str, &str> =
        packages.map(|package| (text(&package["id"]), text(&package["name"]))).collect();
    let mut left = vec![text(&members(&metadata)["ringway-preload"]["id"])];
    let mut seen = BTreeSet::new();
    while let Some(id) = left.pop() {
        if !seen.insert(names[id]) {
            continue;
        }
        let normal = list(&nodes[id]["deps"]).iter().filter(|dependency| {
            list(&dependency["dep_kinds"]).iter().any(|kind| kind["kind"].is_null())
        });
        left.extend(normal.map(|dependency| text(&dependency["pkg"])));
    }
    assert!(seen.contains("ringway") && seen.contains("rustix"), "{seen:?}");
    for unwanted in ["aya", "aya-obj", "ringway-registry", "ringway-vale", "ringway-nic-setup"] {
        assert!(!seen.contains(unwanted), "the preload library carries {unwanted}");
    }
}

/// Held against the library that `make build` makes, where there is one: others are larger.
#[test]
fn the_preload_library_is_small() {
    let own = env::current_exe().expect("this program has a path");
    let target = own.ancestors().nth(3).expect("tests lie three levels below target");
    let library = target.join("release/libringway_preload.so");
    let test = "the_preload_library_is_small";
    if skip_unless(library.is_file(), test, "make build has not made the library") {
        return;
    }
    let stripped = env::temp_dir().join(format!("ringway-preload.{}", std::process::id()));
    let done = Command::new("strip").arg("-o").arg(&stripped).arg(&library).status();
    let size = fs::metadata(&stripped).map(|file| file.len());
    let _ = fs::remove_file(&stripped);
    assert!(done.expect("strip runs").success());
    let size = size.expect("strip has written it");
    assert!(size <= PRELOAD_SIZE, "{} has {size} bytes", library.display());
}

/// Files that have unsafe code and lie outside `sys`: those of the crate that is about shared memory itself.
/// Its `lib.rs` has the rules that they keep.
const OF_SHARED_MEMORY: [&str; 7] = [
    "crates/memory/region/src/buf.rs",
    "crates/memory/region/src/holders.rs",
    "crates/memory/region/src/huge_pages.rs",
    "crates/memory/region/src/lost_pages.rs",
    "crates/memory/region/src/mapping.rs",
    "crates/memory/region/src/region.rs",
    "crates/memory/region/src/shared.rs",
];

/// All files of Rust below a folder.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry"));
    let (mut found, mut folders) = (Vec::new(), Vec::new());
    for entry in entries {
        match entry.path() {
            path if path.is_dir() => folders.push(path),
            path if path.extension().is_some_and(|kind| kind == "rs") => found.push(path),
            _ => {}
        }
    }
    found.extend(folders.iter().flat_map(|folder| sources(folder)));
    found
}

/// Whether a file has an attribute that lets it have unsafe code.
fn lifts_the_fence(source: &str) -> bool {
    let attributes = source.lines().map(str::trim_start).filter(|line| line.starts_with('#'));
    attributes.into_iter().any(|line| {
        ["allow(", "expect(", "warn("].iter().any(|level| line.contains(level))
            && line.contains("unsafe_code")
    })
}

/// Unsafe code is forbidden in a crate, or denied but for one module, `sys`, and for what is listed above.
/// The C edges are all of it: their every function is called from outside.
#[test]
fn unsafe_code_is_fenced() {
    let metadata = metadata();
    let project = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("it is in the project");
    let mut lifted = BTreeSet::new();
    for (name, package) in members(&metadata) {
        let manifest = Path::new(text(&package["manifest_path"]));
        let folder = manifest.parent().expect("a folder").join("src");
        let sources = if folder.is_dir() { sources(&folder) } else { Vec::new() };
        let has = |file: &PathBuf, what: &str| {
            fs::read_to_string(file).expect("cargo names it").lines().any(|line| line == what)
        };
        let mut needs_it = false;
        for file in &sources {
            let inside = file.strip_prefix(project).expect("it is in the project");
            let is_sys = inside
                .components()
                .any(|part| ["sys", "sys.rs"].iter().any(|name| part.as_os_str() == *name));
            let lifts = lifts_the_fence(&fs::read_to_string(file).expect("it can be read"));
            needs_it |= lifts;
            if lifts && !is_sys {
                lifted.insert(inside.display().to_string());
            }
        }
        let roots = sources.iter().filter(|file| {
            let above = file.strip_prefix(&folder).expect("it is in there");
            ["lib.rs", "main.rs"].iter().any(|root| above == Path::new(root))
        });
        for root in roots {
            let fences = ["#![forbid(unsafe_code)]", "#![deny(unsafe_code)]"];
            let [forbidden, denied] = fences.map(|fence| has(root, fence));
            let shown = root.display();
            match C_EDGES.contains(&name) {
                true => assert!(!forbidden && !denied, "{shown}"),
                // A program beside its library may do without.
                false => assert!(forbidden || denied && needs_it, "{shown}"),
            }
        }
    }
    let argued = OF_SHARED_MEMORY.map(String::from).into();
    assert_eq!(lifted, argued, "unsafe code belongs into the crate's `sys`");
}

/// What copies a file, and what makes one of ours executable, in a process of many threads: see `testkit`'s
/// `program.rs`.
#[test]
fn programs_that_are_run_are_installed_by_another_process() {
    let project = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("it is in the project");
    // Written so that this file has none.
    let (copy, script) = (["fs", "copy("].join("::"), ["#!", "bin/sh"].join("/"));
    let folders = ["bench", "conformance", "crates", "lab", "tests"];
    let files = folders.into_iter().flat_map(|folder| sources(&project.join(folder)));
    let found: Vec<_> = files
        .filter(|file| {
            let text = fs::read_to_string(file).expect("it can be read");
            text.contains(&copy) || text.contains(&script) && !text.contains("install_script(")
        })
        .filter(|file| !file.ends_with("ringway/src/elf.rs"))
        .collect();
    assert!(found.is_empty(), "`ringway_testkit::install` and `install_script`: {found:?}");
}
