//! A child of `fork` has no thread that reads or writes its parent's files.
#![allow(clippy::disallowed_methods, reason = "tests write to the temporary folder")]

use std::{
    env, fs,
    path::{Path, PathBuf},
    process,
    sync::Arc,
};

use ringway_abi::Dir;
use ringway_file::{
    Error, FileRx, FileTx, Next, Playback, Record, Recorder, Recording, Replay, Totals,
};
use ringway_kring::{Kring, Outcome};
use ringway_region::{Layout, Region, RingInit, Sizes};

const SLOTS: u32 = 8;

/// Of a test's own.
fn path(name: &str) -> PathBuf {
    env::temp_dir().join(format!("ringway-fork-{name}-{}.pcap", process::id()))
}

fn ring(dir: Dir) -> (Kring, Layout) {
    let layout = Layout::new(&Sizes::private([1, 1], [SLOTS; 2], 0, 0), 0).unwrap();
    let region = Arc::new(Region::create(9, layout).unwrap());
    let init = RingInit { dir, ringid: 0, num_slots: SLOTS };
    let bufs: Vec<u32> = (2..2 + SLOTS).collect();
    (Kring::create(&region, 0, &init, &bufs).unwrap(), layout)
}

/// Whether `work` says so in a child.
fn in_child(work: impl FnOnce() -> bool) -> bool {
    // SAFETY: the child runs no code of the test harness's, and leaves by `_exit`.
    match unsafe { libc::fork() } {
        0 => {
            // SAFETY: a child that waits for ever is killed; the other ends it without destructors.
            unsafe { libc::alarm(20) };
            let good = work();
            // SAFETY: as above.
            unsafe { libc::_exit(i32::from(!good)) }
        }
        child => {
            let mut status = -1;
            // SAFETY: the kernel writes the status.
            assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
            status == 0
        }
    }
}

fn frames(file: &Path) -> usize {
    let (mut count, mut reader) = (0, ringway_file::Reader::open(file).unwrap());
    while reader.next(|_| count += 1).unwrap() {}
    count
}

#[test]
fn a_child_records_nothing_and_waits_for_nothing() {
    let file = path("recorder");
    let mut recorder = Recorder::new(&Recording::to(&file, "a")).unwrap();
    let record = Record { length: 60, ..Record::default() };
    assert!(recorder.burst().record(&record, |_| {}));
    // Taken out of here for the child alone: the parent's stays.
    let mut shared = Some(recorder);
    let good = in_child(|| {
        let mut recorder = shared.take().unwrap();
        let refused = !recorder.burst().record(&record, |_| {});
        let told = matches!(recorder.error(), Some(Error::Forked { .. }));
        let Totals { dropped, .. } = recorder.finish();
        drop(recorder);
        refused && told && dropped == 1
    });
    let mut recorder = shared.take().unwrap();
    assert!(recorder.burst().record(&record, |_| {}));
    let totals = recorder.finish();
    let count = frames(&file);
    fs::remove_file(&file).unwrap();
    assert!(good);
    assert_eq!((totals.frames, totals.dropped, count), (2, 0, 2));
}

/// What a child has put into the ring, the parent writes.
#[test]
fn a_childs_sync_of_a_file_fails_and_loses_nothing() {
    let file = path("tx");
    let (kring, layout) = ring(Dir::Tx);
    let driver = FileTx::new(Recorder::new(&Recording::to(&file, "a")).unwrap(), &layout);
    let good = in_child(|| {
        kring.ring().set_slot(0, 2, 60, 0);
        kring.ring().set_cur(1);
        kring.ring().set_head(1);
        let failed = kring.sync(&driver) == Outcome::Failed;
        driver.finish(&kring);
        failed && matches!(driver.error(), Some(Error::Forked { .. }))
    });
    assert_eq!(kring.sync(&driver), Outcome::Done);
    driver.finish(&kring);
    let count = frames(&file);
    fs::remove_file(&file).unwrap();
    assert!(good && driver.error().is_none());
    assert_eq!(count, 1);
}

#[test]
fn a_child_is_told_that_its_parent_reads_the_file() {
    let file = path("rx");
    let mut recorder = Recorder::new(&Recording::to(&file, "a")).unwrap();
    recorder.burst().record(&Record { length: 60, ..Record::default() }, |_| {});
    recorder.finish();
    let open = || Playback::open(&file, Replay::default(), None).unwrap();
    let mut playback = open();
    let (kring, layout) = ring(Dir::Rx);
    let driver = FileRx::new(open(), &layout);
    let good = in_child(|| {
        let ended = playback.peek() == Next::End;
        let told = matches!(playback.error(), Some(Error::Forked { .. }));
        let failed = kring.sync(&driver) == Outcome::Failed;
        ended && told && failed && driver.check_process().is_err()
    });
    fs::remove_file(&file).unwrap();
    assert!(good && driver.check_process().is_ok());
}
