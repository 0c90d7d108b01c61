//! What a test could leave behind on the machine, listed before and after.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::folder::Folder;
use crate::sys::{Kind, next_id};

/// The links, namespaces, BPF programs and links, and shared-memory files that exist at a moment.
///
/// The list is of the whole machine. What others make meanwhile is in it, too, and tests that compare
/// snapshots are the longer for it; beside each other in one process they must not run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    things: BTreeSet<String>,
}

impl Snapshot {
    /// Lists what there is now. BPF objects are seen by root alone.
    pub fn take() -> Snapshot {
        let mut things = BTreeSet::new();
        // The first word is `name` or `name@peer`; the state that follows may change by itself.
        things.extend(first_words("link", &["-br", "link"]));
        things.extend(first_words("netns", &["netns", "list"]));
        things.extend(bpf_ids(Kind::Program).map(|id| format!("bpf program {id}")));
        things.extend(bpf_ids(Kind::Link).map(|id| format!("bpf link {id}")));
        // Folders of tests, which may be there as long as this.
        let in_memory = entries("/dev/shm").filter(|path| !Folder::is_one(Path::new(path)));
        things.extend(in_memory);
        for run in entries("/run").filter(|path| path.starts_with("/run/ringway")) {
            things.extend(entries(&run));
            things.insert(run);
        }
        Snapshot { things }
    }

    /// What is in `later` and not in `self`: what has been left behind.
    pub fn diff(&self, later: &Snapshot) -> Vec<String> {
        later.things.difference(&self.things).cloned().collect()
    }

    /// Panics, naming them, when things are left that were not there at `self`.
    ///
    /// What this test leaves is there when it ends, and stays; what others have made meanwhile goes
    /// with their tests, and what they make later is not looked at. The kernel, too, frees
    /// namespaces and BPF programs some time after their last holder has gone, and tells nobody
    /// when: so this looks again for up to two minutes.
    pub fn assert_clean(&self) {
        let deadline = Instant::now() + Duration::from_secs(120);
        let mut now = Snapshot::take();
        now.things.retain(|thing| !self.things.contains(thing));
        while !now.things.is_empty() {
            let left = || now.things.iter().cloned().collect::<Vec<_>>().join(", ");
            assert!(Instant::now() < deadline, "left behind: {}", left());
            std::thread::sleep(Duration::from_millis(20));
            let later = Snapshot::take();
            now.things.retain(|thing| later.things.contains(thing));
        }
    }
}

fn first_words(kind: &str, ip_args: &[&str]) -> Vec<String> {
    let output = Command::new("ip").args(ip_args).output().expect("cannot start ip");
    String::from_utf8_lossy(&output.stdout)
        .lines()
        .filter_map(|line| line.split_whitespace().next())
        .map(|word| format!("{kind} {word}"))
        .collect()
}

fn entries(folder: &str) -> impl Iterator<Item = String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.path().display().to_string())
}

/// The ids of all BPF objects of one kind, in the order of the kernel.
fn bpf_ids(kind: Kind) -> impl Iterator<Item = u32> {
    std::iter::successors(next_id(kind, 0), move |last| next_id(kind, *last))
}
