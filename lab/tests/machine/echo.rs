//! A TCP connection to what sends back each byte: random ones go and come at once, and are compared.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use ringway_testkit::Netns;

use crate::LIMIT;

/// How much has to come back, before a connection has lived through a state.
const ENOUGH: u64 = 4 << 20;
/// Bytes at once.
const CHUNK: usize = 32 << 10;

#[derive(Default)]
struct Progress {
    back: Mutex<u64>,
    moved: Condvar,
    ends: AtomicBool,
    /// The longest time without a byte, in milliseconds.
    gap: AtomicU64,
}

pub struct Echo {
    progress: Arc<Progress>,
    threads: [JoinHandle<()>; 2],
}

/// Bytes that do not repeat (xorshift64).
struct Noise(u64);

impl Noise {
    fn fill(&mut self, bytes: &mut [u8]) {
        for word in bytes.chunks_exact_mut(8) {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            word.copy_from_slice(&self.0.to_le_bytes());
        }
    }
}

impl Echo {
    /// Connects from `netns` to port 7 of the address, also if nothing listens there yet.
    pub fn start(netns: &Netns, address: &str) -> Echo {
        let target = format!("{address}:7");
        let stream = netns.enter(|| {
            let begun = Instant::now();
            loop {
                match TcpStream::connect(&target) {
                    Ok(stream) => return stream,
                    // The kernel's own answer comes at once where nothing listens, or no neighbour is there.
                    Err(e) => assert!(begun.elapsed() < LIMIT, "{target}: {e}"),
                }
            }
        });
        let progress = Arc::new(Progress::default());
        let (reader, writer) = (stream.try_clone().expect("a descriptor"), stream);
        let threads = [
            thread::spawn({
                let progress = progress.clone();
                move || send(writer, &progress)
            }),
            thread::spawn({
                let progress = progress.clone();
                move || compare(reader, &progress)
            }),
        ];
        Echo { progress, threads }
    }

    /// Waits until much of what was sent from now on has come back.
    pub fn until_passed(&self, after: &str) {
        let deadline = Instant::now() + LIMIT;
        self.progress.gap.store(0, Ordering::Relaxed);
        let mut back = self.progress.back.lock().unwrap();
        let enough = *back + ENOUGH;
        while *back < enough {
            let left = deadline.saturating_duration_since(Instant::now());
            let is_alive = self.threads.iter().all(|thread| !thread.is_finished());
            assert!(is_alive && !left.is_zero(), "{after}: {back} of {enough} bytes came back");
            back =
                self.progress.moved.wait_timeout(back, left.min(Duration::from_secs(1))).unwrap().0;
        }
        drop(back);
        println!(
            "{after}: at most {} ms without a byte",
            self.progress.gap.load(Ordering::Relaxed)
        );
    }

    /// What is under way comes back, and the connection ends as it should.
    pub fn end(self) {
        self.progress.ends.store(true, Ordering::Relaxed);
        for thread in self.threads {
            thread.join().expect("all bytes came back");
        }
    }
}

fn send(mut stream: TcpStream, progress: &Progress) {
    let (mut noise, mut chunk) = (Noise(1), vec![0; CHUNK]);
    while !progress.ends.load(Ordering::Relaxed) {
        noise.fill(&mut chunk);
        stream.write_all(&chunk).expect("the connection lives");
    }
    stream.shutdown(std::net::Shutdown::Write).expect("the connection lives");
}

fn compare(mut stream: TcpStream, progress: &Progress) {
    let (mut noise, mut expected, mut chunk) = (Noise(1), vec![0; CHUNK], vec![0; CHUNK]);
    // How much of the expected chunk has come.
    let mut at = CHUNK;
    let mut last = Instant::now();
    loop {
        if at == CHUNK {
            noise.fill(&mut expected);
            at = 0;
        }
        let len = stream.read(&mut chunk[at..]).expect("the connection lives");
        if len == 0 {
            assert!(progress.ends.load(Ordering::Relaxed), "the machine ended the connection");
            return;
        }
        assert!(chunk[at..at + len] == expected[at..at + len], "other bytes came back");
        at += len;
        let gap = last.elapsed().as_millis() as u64;
        progress.gap.fetch_max(gap, Ordering::Relaxed);
        last = Instant::now();
        *progress.back.lock().unwrap() += len as u64;
        progress.moved.notify_all();
    }
}
