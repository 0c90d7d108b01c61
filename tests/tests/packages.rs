//! `debian/`: the packages have what `make install` installs, and each file is in one of them. (`make packages-test`
//! installs them.)

use std::{
    collections::BTreeMap,
    fs,
    path::Path,
    process::{Command, Output},
};

use ringway_testkit::Folder;
use ringway_tests::{
    Home,
    c::{project, succeed},
};

/// The paragraphs of `debian/control` that are packages.
fn packages() -> Vec<String> {
    let control = fs::read_to_string(project().join("debian/control")).unwrap();
    control.lines().filter_map(|l| l.strip_prefix("Package: ")).map(str::to_string).collect()
}

/// Files and links below a folder, with what they hold, or where they lead.
fn contents(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut find = Command::new("find");
    find.arg(folder).args(["-not", "-type", "d", "-printf", "%P\n"]);
    let list = succeed(find);
    let hold = |file: &str| {
        let path = folder.join(file);
        match fs::read_link(&path) {
            Ok(to) => to.display().to_string().into_bytes(),
            Err(_) => fs::read(&path).unwrap(),
        }
    };
    list.lines().map(|file| (file.to_string(), hold(file))).collect()
}

fn install(built: &Path, folder: &Path, parts: &[&str]) -> Output {
    let mut install = Command::new(project().join("scripts/install"));
    install.arg("add").args(parts).env("BUILT", built).env("DESTDIR", folder);
    install.env("PREFIX", "/usr").env("LIBDIR", "/usr/lib/x86_64-linux-gnu");
    install.env("ZSHDIR", "/usr/share/zsh/vendor-completions").output().unwrap()
}

/// By the rules' own words, without compressing and stripping.
#[test]
fn the_packages_are_what_is_installed() {
    let (built, folder) = (Folder::new(), Folder::new());
    // What is compiled is looked at by the tests of `make install`.
    for name in [
        "ringway",
        "ringwayd",
        "ringway-networks",
        "libringway_preload.so",
        "libnetmap.so",
        "libnetmap.a",
        "libpfring.so",
        "libusdpaa.so",
        "libusdpaa.a",
        "libringway_pcap.so",
    ] {
        fs::write(built.path().join(name), name).unwrap();
    }
    let whole = folder.path().join("whole");
    assert!(install(built.path(), &whole, &[]).status.success());
    let rules = fs::read_to_string(project().join("debian/rules")).unwrap();
    let mut packaged = BTreeMap::new();
    let mut names = Vec::new();
    for line in rules.lines().filter_map(|line| line.strip_prefix("\t$(call install,")) {
        let (name, part) = line.trim_end_matches(')').split_once(',').expect("package and part");
        let to = folder.path().join(name);
        assert!(install(built.path(), &to, &[part]).status.success(), "{line}");
        for (file, content) in contents(&to) {
            assert!(packaged.insert(file.clone(), content).is_none(), "{file} is in two packages");
        }
        names.push(name.to_string());
    }
    assert_eq!(names, packages());
    let whole = contents(&whole);
    assert!(whole.len() > 100);
    let lists = [&whole, &packaged].map(|list| list.keys().collect::<Vec<_>>());
    assert_eq!(lists[0], lists[1]);
    assert_eq!(whole, packaged);
}

/// What the libraries export: `dpkg-gensymbols` holds a library against it when packages are made.
#[test]
fn the_symbols_are_those_of_the_libraries() {
    let home = Home::new();
    home.install(&[
        ("libnetmap.so", "ringway-libnetmap"),
        ("libpfring.so", "ringway-libpfring"),
        ("libusdpaa.so", "ringway-usdpaa"),
    ]);
    let text = fs::read_to_string(project().join("debian/libringway.symbols")).unwrap();
    let mut written: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    let mut library = "";
    for line in text.lines() {
        match line.strip_prefix(' ') {
            Some(symbol) => {
                let name = symbol.split_once('@').expect("a version").0;
                written.entry(library).or_default().push(name);
            }
            None => library = line.split(' ').next().unwrap(),
        }
    }
    let libraries = ["libnetmap.so", "libpfring.so", "libringway_preload.so", "libusdpaa.so"];
    assert_eq!(written.keys().copied().collect::<Vec<_>>(), libraries);
    for (library, mut written) in written {
        let mut nm = Command::new("nm");
        nm.args(["--dynamic", "--defined-only", "--format=posix"]).arg(home.bin().join(library));
        let listed = succeed(nm);
        let mut exported: Vec<_> =
            listed.lines().filter_map(|line| line.split(' ').next()).collect();
        exported.sort_unstable();
        written.sort_unstable();
        assert_eq!(exported, written, "{library}: debian/libringway.symbols");
        let mut headers = Command::new("readelf");
        headers.arg("--dynamic").arg(home.bin().join(library));
        let headers = succeed(headers);
        assert!(headers.contains(&format!("soname: [{library}]")), "{headers}");
    }
}

#[test]
fn the_maintainers_scripts_are_shell() {
    for script in ["ringway.postinst", "ringway.prerm", "ringway.postrm"] {
        let mut sh = Command::new("sh");
        sh.arg("-n").arg(project().join("debian").join(script));
        succeed(sh);
    }
}
