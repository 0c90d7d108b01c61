//! What is recorded is read back: bytes, lengths, times, in order; and files of others are read.
#![allow(clippy::disallowed_methods, reason = "tests write to the temporary folder")]

use std::{
    env, fs,
    path::{Path, PathBuf},
    process,
    sync::atomic::{AtomicU32, Ordering::Relaxed},
};

use proptest::prelude::*;
use ringway_file::{Error, Playback, Reader, Record, Recorder, Recording, Replay};

/// Of a test's own, with such an ending.
fn path(ending: &str) -> PathBuf {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let name = format!("ringway-file-{}-{}{ending}", process::id(), NEXT.fetch_add(1, Relaxed));
    env::temp_dir().join(name)
}

type Frame = (u64, Vec<u8>, u32);

fn read(file: &Path) -> Vec<Frame> {
    let (mut frames, mut reader) = (Vec::new(), Reader::open(file).unwrap());
    while reader.next(|f| frames.push((f.time, f.bytes.to_vec(), f.length))).unwrap() {}
    assert_eq!(reader.cut(), None);
    frames
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]
    #[test]
    fn every_format_keeps_every_frame(
        frames in prop::collection::vec(
            (0u64..u64::from(u32::MAX) * 1_000_000_000, prop::collection::vec(any::<u8>(), 1..3000)),
            0..60,
        ),
        snaplen in prop_oneof![Just(0u32), 1u32..2000],
    ) {
        for ending in [".pcap", ".pcapng", ".pcap.gz", ".pcapng.gz", ".pcap.zst", ".pcapng.zst"] {
            let file = path(ending);
            let mut recorder =
                Recorder::new(&Recording { snaplen, ..Recording::to(&file, "a") }).unwrap();
            for (time, bytes) in &frames {
                let length = bytes.len() as u32;
                let record = Record { time: *time, length, ..Record::default() };
                let fill = |room: &mut [u8]| room.copy_from_slice(&bytes[..room.len()]);
                prop_assert!(recorder.burst().record(&record, fill));
            }
            let totals = recorder.finish();
            prop_assert_eq!((totals.frames, totals.dropped), (frames.len() as u64, 0));
            let kept = |bytes: &[u8]| match snaplen {
                0 => bytes.to_vec(),
                most => bytes[..bytes.len().min(most as usize)].to_vec(),
            };
            let expected: Vec<Frame> =
                frames.iter().map(|(t, b)| (*t, kept(b), b.len() as u32)).collect();
            let found = read(&file);
            fs::remove_file(&file).unwrap();
            prop_assert_eq!(found, expected, "{}", ending);
        }
    }
}

/// pcap has a magic number for either byte order, with micro- and with nanoseconds.
#[test]
fn pcap_of_either_byte_order_and_resolution() {
    for (magic, unit) in [(0xa1b2_c3d4_u32, 1000), (0xa1b2_3c4d, 1)] {
        for little in [true, false] {
            let word = |n: u32| if little { n.to_le_bytes() } else { n.to_be_bytes() };
            let half = |n: u16| if little { n.to_le_bytes() } else { n.to_be_bytes() };
            let mut bytes = [word(magic).to_vec(), half(2).to_vec(), half(4).to_vec()].concat();
            for n in [0, 0, 65_535, 1, 7, 8, 3, 60] {
                bytes.extend(word(n));
            }
            bytes.extend([1, 2, 3]);
            let file = path(".pcap");
            fs::write(&file, bytes).unwrap();
            let found = read(&file);
            fs::remove_file(&file).unwrap();
            assert_eq!(found, [(7_000_000_000 + 8 * unit, vec![1, 2, 3], 60)]);
        }
    }
}

/// Timestamps of pcapng: in decimal and binary fractions of a second, from a time on that the file says.
#[test]
fn pcapng_of_either_byte_order_and_any_resolution() {
    const SECOND: u64 = 1_000_000_000;
    let read_with = |little: bool, resolution: u8, units: u64| {
        let word = |n: u32| if little { n.to_le_bytes() } else { n.to_be_bytes() };
        let half = |n: u16| if little { n.to_le_bytes() } else { n.to_be_bytes() };
        let block = |kind: u32, body: &[&[u8]]| {
            let (body, length) = (body.concat(), body.concat().len() as u32 + 12);
            [&word(kind)[..], &word(length), &body, &word(length)].concat()
        };
        let offset = if little { 100u64.to_le_bytes() } else { 100u64.to_be_bytes() };
        let [high, low] = [word((units >> 32) as u32), word(units as u32)];
        let bytes = [
            block(0x0a0d_0d0a, &[&word(0x1a2b_3c4d), &half(1), &half(0), &[0xff; 8]]),
            block(
                1,
                &[
                    &[&half(1)[..], &half(0), &word(65_535)].concat(),
                    &[&half(9)[..], &half(1), &[resolution, 0, 0, 0]].concat(),
                    &[&half(14)[..], &half(8), &offset, &[0; 4]].concat(),
                ],
            ),
            block(6, &[&word(0), &high, &low, &word(4), &word(60), &[1, 2, 3, 4]]),
        ];
        let file = path(".pcapng");
        fs::write(&file, bytes.concat()).unwrap();
        let mut times = Vec::new();
        let outcome = Reader::open(&file).unwrap().next(|frame| times.push(frame.time));
        fs::remove_file(&file).unwrap();
        outcome.map(|_| times)
    };
    for little in [true, false] {
        for (resolution, units) in
            [(0, 1), (6, 1_000_000), (19, 10u64.pow(19)), (0x80 | 20, 1 << 20)]
        {
            let times = read_with(little, resolution, units).unwrap();
            assert_eq!(times, [101 * SECOND], "{resolution:#x}");
        }
        for resolution in [20, 0x80 | 64] {
            let refused = read_with(little, resolution, 1).unwrap_err().to_string();
            assert!(refused.contains("finer than can be counted"), "{refused}");
        }
    }
}

/// Also under another name, and where the user has it replaced.
#[test]
fn a_file_that_is_open_is_not_replaced() {
    let (file, link) = (path(".pcap"), path(".pcap"));
    let replace = |path: &Path| Recording { overwrite: true, ..Recording::to(path, "a") };
    let is_refused = |path: &Path| {
        let refused = Recorder::new(&replace(path)).unwrap_err();
        assert!(matches!(refused, Error::InUse { .. }), "{refused}");
    };
    let mut recorder = Recorder::new(&replace(&file)).unwrap();
    let record = Record { length: 60, ..Record::default() };
    assert!(recorder.burst().record(&record, |room| room.fill(1)));
    is_refused(&file);
    recorder.finish();
    drop(recorder);
    std::os::unix::fs::symlink(&file, &link).unwrap();
    let playback = Playback::open(&file, Replay::default(), None).unwrap();
    is_refused(&link);
    drop(playback);
    assert_eq!(read(&file).len(), 1, "what was there is still there");
    drop(Recorder::new(&replace(&link)).unwrap());
    assert_eq!(read(&file).len(), 0);
    [file, link].iter().for_each(|path| fs::remove_file(path).unwrap());
}

/// What was in it is lost with it, in each format; nobody is to believe that it is kept.
#[test]
fn a_file_that_is_deleted_meanwhile_is_told() {
    for ending in [".pcap", ".pcapng.gz", ".pcap.zst"] {
        let file = path(ending);
        let mut recorder = Recorder::new(&Recording::to(&file, "a")).unwrap();
        assert!(recorder.burst().record(&Record { length: 60, ..Record::default() }, |_| {}));
        fs::remove_file(&file).unwrap();
        recorder.finish();
        let error = recorder.error().unwrap();
        assert!(matches!(error, Error::Deleted { .. }), "{ending}: {error}");
    }
}

#[test]
fn a_compression_that_there_is_not_is_refused() {
    let file = path(".pcap.bz2");
    let error = Recorder::new(&Recording::to(&file, "a")).unwrap_err();
    assert!(error.to_string().contains("not compressed as .bz2"), "{error}");
    assert!(!file.exists());
}

/// Anybody may put a link where a file is going to be: what it leads to is neither made nor written.
#[test]
fn no_file_is_made_through_a_link() {
    let (link, target) = (path(".pcap"), path(".target"));
    std::os::unix::fs::symlink(&target, &link).unwrap();
    for overwrite in [false, true] {
        let refused = Recorder::new(&Recording { overwrite, ..Recording::to(&link, "a") });
        let said = refused.map(drop).unwrap_err().to_string();
        assert!(said.contains("a link to a file that is not there"), "{said}");
        assert!(!target.exists());
    }
    fs::remove_file(&link).unwrap();
}
