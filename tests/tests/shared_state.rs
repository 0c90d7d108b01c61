//! What a user's programs share beside regions, and where the user's daemon is: no other user can
//! make, take, read, write, lock or list it (trust rule 9).
#![allow(clippy::disallowed_methods, reason = "tests are told by variables what to do")]

use std::{
    collections::BTreeSet,
    env,
    fs::{self, File, OpenOptions, Permissions},
    mem::MaybeUninit,
    os::unix::fs::{MetadataExt, PermissionsExt},
    path::{Path, PathBuf},
    process::Command,
    sync::atomic::{AtomicBool, Ordering::Relaxed},
    thread,
    time::Duration,
};

use ringway_testkit::{Folder, Proc, skip_without_root};
use ringway_tests::{
    GROUP, Home, NOBODY, OnDrop, as_nobody, become_another,
    c::{Language::*, link},
    until,
};
use rustix::{
    fs::{FlockOperation, flock, inotify},
    io::Errno,
    process::{Signal, geteuid},
};

const LIMIT: Duration = Duration::from_secs(60);
const SHARED: &str = "/dev/shm";
/// Set for a process that has these places to itself.
const APART: &str = "RINGWAY_TEST_APART";

/// The mounts of that process, and its own command. The project stays where it is, also if that is in /tmp.
const MOUNTS: &str = "mount -t tmpfs -o mode=755 none /run && mkdir /run/tmp /run/project && \
    mount --bind \"${TMPDIR:-/tmp}\" /run/tmp && mount --bind \"$0\" /run/project && \
    mount -t tmpfs -o mode=1777 none /tmp && mount -t tmpfs -o mode=1777 none /dev/shm && \
    mkdir -p \"$0\" && mount --move /run/project \"$0\" && exec env TMPDIR=/run/tmp \"$@\"";
const PROJECT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");

/// Runs `body`, the inside of a test, in a process with a `/run`, a `/tmp` and a `/dev/shm` of its
/// own.
fn apart(test: &str, body: impl FnOnce(&Home)) {
    if skip_without_root(test) {
        return;
    }
    if env::var_os(APART).is_some() {
        return body(&Home::new());
    }
    let mut shell = Command::new("unshare");
    let project = fs::canonicalize(PROJECT).expect("the tests are in it");
    shell.args(["--mount", "sh", "-c", MOUNTS]).arg(project);
    shell.arg(env::current_exe().expect("this program has a path"));
    shell.args([test, "--exact", "--nocapture", "--test-threads=1"]);
    shell.env(APART, "1");
    for variable in ["RINGWAY_DIR", "RINGWAY_SOCKET", "XDG_RUNTIME_DIR"] {
        shell.env_remove(variable);
    }
    let (status, output) = Proc::spawn(shell).wait();
    println!("{output}");
    assert!(status.success() && output.contains("1 passed"), "{test}: {status}");
}

/// Does something as another user.
fn as_another<T: Send>(run: impl FnOnce() -> T + Send) -> T {
    thread::scope(|scope| {
        let thread = scope.spawn(|| {
            become_another();
            run()
        });
        thread.join().expect("the attacker goes through")
    })
}

/// What is there, but for folders of tests.
fn names(folder: &str) -> BTreeSet<PathBuf> {
    let entries = fs::read_dir(folder).expect("it is there").flatten().map(|entry| entry.path());
    entries.filter(|path| !Folder::is_one(path)).collect()
}

/// Another user has what a private daemon's folder could be called, and takes the name that it had,
/// over and over: the user's programs start a daemon all the same.
#[test]
fn another_user_does_not_take_the_private_daemon() {
    apart("another_user_does_not_take_the_private_daemon", |home| {
        let program = |words: &[&str]| {
            let mut program = home.traffic(words);
            program.env_remove("RINGWAY_DIR");
            Proc::spawn(as_nobody(program))
        };
        let opens = || {
            let (status, said) = program(&["close", "valea:x"]).wait();
            assert!(status.success(), "{said}");
        };
        let guessed = PathBuf::from(format!("/tmp/ringway-{NOBODY}"));
        fs::create_dir(&guessed).expect("nothing is there");
        let holder = program(&["hold", "valea:x"]);
        holder.wait_for("open", LIMIT);
        let found = names(SHARED);
        let folder = found.iter().next().expect("the folder of the daemon");
        let about = fs::metadata(folder).unwrap();
        assert_eq!((found.len(), about.uid(), about.mode() & 0o777), (1, NOBODY, 0o700));
        holder.kill();
        until("the daemon leaves nothing", || match names(SHARED) {
            left if left.is_empty() => Ok(()),
            left => Err(format!("{left:?}")),
        });

        as_another(|| fs::create_dir(folder)).expect("it has gone");
        opens();
        let stop = AtomicBool::new(false);
        thread::scope(|scope| {
            let _stop = OnDrop(|| stop.store(true, Relaxed));
            scope.spawn(|| {
                become_another();
                let mut known = BTreeSet::new();
                while !stop.load(Relaxed) {
                    known.extend(names(SHARED));
                    for folder in &known {
                        // It is the user's own at times.
                        let _ = fs::create_dir(folder);
                        let _ = fs::remove_dir(folder);
                    }
                }
            });
            (0..20).for_each(|_| opens());
        });
    });
}

/// Files and folders below a folder that another user can read or write.
fn opened_by_another(folder: &Path) -> Vec<PathBuf> {
    let mut opened = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if Folder::is_one(&path) {
            continue;
        }
        let about = entry.metadata().expect("it stays");
        let is_own = about.uid() == geteuid().as_raw();
        if about.is_dir() {
            opened.extend(fs::read_dir(&path).ok().filter(|_| !is_own).map(|_| path.clone()));
            opened.extend(opened_by_another(&path));
        } else if !is_own {
            let read = OpenOptions::new().read(true).open(&path);
            let write = OpenOptions::new().write(true).open(&path);
            opened.extend(read.or(write).ok().map(|_| path));
        }
    }
    opened
}

/// Another user has made all files that clusters of PF_RING and maps of USDPAA could have, has them
/// locked, and made many more: root's programs share what they share all the same. The other user
/// reaches none of it, and has a cluster of the same number apart from root's. What is killed
/// leaves nothing behind the next program.
#[test]
fn another_user_does_not_reach_what_programs_share() {
    apart("another_user_does_not_reach_what_programs_share", |home| {
        home.install(&[("libpfring.so", "ringway-libpfring"), ("libusdpaa.so", "ringway-usdpaa")]);
        let threads = "-lpthread";
        let member = link(home, "tests/c/pfring_cluster.c", C11, &["-lpfring", threads]);
        let mapper = link(home, "tests/c/usdpaa_member.c", C11, &["-lusdpaa", threads]);
        let _daemon = home.system_daemon(GROUP, 0o660);
        let joins = |port: &str| {
            let mut command = home.system_command(&member);
            command.args([port, "7", "4", "64"]);
            command
        };
        let maps = |name: &str, times: &str| {
            let mut command = home.system_command(&mapper);
            command.args([name, "1048576", "1", times]);
            Proc::spawn(command)
        };
        let maps_well = |name: &str| {
            let (status, said) = maps(name, "100").wait();
            assert!(status.success(), "{status}: {said}");
        };

        let own = ringway::shared_folder().expect("it is ours");
        ringway::leave_shared_folder();
        let netns = fs::metadata("/proc/thread-self/ns/net").unwrap().ino();
        let taken = ["7", "flood1", "flood2"].map(|id| format!("pf_ring-cluster-{netns}-{id}"));
        let also = ["map", "flood3", "flood4"].map(|name| format!("ringway-usdpaa-0-{name}"));
        let squatted: Vec<File> = as_another(|| {
            fs::create_dir(&own).expect("it is not there");
            let files = taken.iter().chain(&also).map(|name| {
                let path = Path::new(SHARED).join(name);
                let file = File::create_new(&path).expect("it is not there");
                fs::set_permissions(&path, Permissions::from_mode(0o666)).expect("it is ours");
                flock(&file, FlockOperation::LockExclusive).expect("it is ours");
                file
            });
            files.collect()
        });
        let flags = inotify::CreateFlags::NONBLOCK | inotify::CreateFlags::CLOEXEC;
        let opened = inotify::init(flags).unwrap();
        inotify::add_watch(&opened, SHARED, inotify::WatchFlags::OPEN).unwrap();

        let members = [(); 2].map(|()| {
            let member = Proc::spawn(joins("vale0:c"));
            member.wait_for("ready", LIMIT);
            member
        });
        let map = maps("map", "0");
        map.wait_for("going", LIMIT);
        maps_well("map");
        let others = Proc::spawn(as_nobody(joins("vale0:d")));
        others.wait_for("ready", LIMIT);

        let own = ringway::shared_folder().expect("it is ours");
        // The cluster's, the socket of the member that distributes, the map's, and what rings show.
        assert_eq!(fs::read_dir(&own).unwrap().count(), 4);
        let reached = as_another(|| opened_by_another(Path::new(SHARED)));
        assert_eq!(reached, Vec::<PathBuf>::new());
        // A socket with such a name can be taken, and connected to, by any user.
        let sockets = fs::read_to_string("/proc/net/unix").unwrap();
        assert!(!sockets.contains("@ringway"), "{sockets}");
        let mut space = [MaybeUninit::uninit(); 16384];
        let mut events = inotify::Reader::new(&opened, &mut space);
        let mut seen = BTreeSet::new();
        loop {
            match events.next() {
                Ok(event) => seen.extend(event.file_name().map(|name| name.to_owned())),
                Err(Errno::AGAIN) => break,
                Err(error) => panic!("{error}"),
            }
        }
        let seen: Vec<_> = seen.iter().map(|name| name.to_string_lossy()).collect();
        assert!(seen.iter().any(|name| own.ends_with(&**name)), "{seen:?}");
        assert!(!seen.iter().any(|name| name.contains("flood")), "{seen:?}");

        for killed in members.iter().chain([&map, &others]) {
            killed.signal(Signal::KILL);
        }
        members.into_iter().chain([map, others]).for_each(|killed| drop(killed.wait()));
        maps_well("other");
        let mut last = Proc::spawn(joins("vale0:c"));
        last.wait_for("ready", LIMIT);
        until("the last member leaves", || match last.is_running() {
            true => {
                last.signal(Signal::TERM);
                Err(last.output())
            }
            false => Ok(()),
        });
        let left = names(SHARED).into_iter().filter(|path| fs::metadata(path).unwrap().uid() == 0);
        assert_eq!(left.collect::<Vec<_>>(), Vec::<PathBuf>::new());
        drop(squatted);
    });
}
