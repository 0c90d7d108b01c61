//! What is recorded, and how a measurement compares with it.

use std::{collections::BTreeMap, fs, process::Command};

use serde::{Deserialize, Serialize};

use crate::{callgrind::Counts, cases::PACKETS};

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/record.toml");

/// How much more a packet may take, in percent: of the same compiler's code, and of another's.
const TOLERANCE: f64 = 3.0;
const OTHERS_TOLERANCE: f64 = 20.0;

/// A call in so many packets is none: a program that is started makes some.
const RARE: f64 = 0.0005;

/// Of each case, for a packet.
type PerPacket = BTreeMap<String, f64>;

#[derive(Serialize, Deserialize)]
pub struct Record {
    compiler: String,
    libc: String,
    /// Instructions of Ringway's own code.
    instructions: PerPacket,
    /// Instructions of the whole process.
    whole: PerPacket,
    /// System calls.
    calls: PerPacket,
    /// Looks at the clock.
    clock: PerPacket,
}

impl Record {
    pub fn new(counts: &[(&str, Counts)]) -> Record {
        let of = |which: fn(&Counts) -> u64, places: f64| -> PerPacket {
            let each = |(name, counts): &(&str, Counts)| {
                // Digits that say nothing change no line of the file.
                let per_packet = which(counts) as f64 / f64::from(PACKETS);
                ((*name).to_owned(), (per_packet * places).round() / places)
            };
            counts.iter().map(each).collect()
        };
        Record {
            compiler: compiler(),
            libc: libc(),
            instructions: of(|counts| counts.own, 100.0),
            whole: of(|counts| counts.whole, 100.0),
            calls: of(|counts| counts.calls, 10000.0),
            clock: of(|counts| counts.clock, 10000.0),
        }
    }

    pub fn read() -> Result<Record, String> {
        let text = fs::read_to_string(FILE).map_err(|e| format!("{FILE}: {e}"))?;
        toml::from_str(&text).map_err(|e| format!("{FILE}: {e}"))
    }

    pub fn write(&self) -> Result<(), String> {
        let text = toml::to_string(self).map_err(|e| e.to_string())?;
        let text = format!(
            "# For a packet, by callgrind: instructions of Ringway's own code; of the whole process, with libc's; system\n\
             # calls; looks at the clock. `make test` fails when one grows by more than {TOLERANCE} %. `make record-instructions` writes this file.\n\
             {text}"
        );
        fs::write(FILE, text).map_err(|e| format!("{FILE}: {e}"))?;
        for (name, own) in &self.instructions {
            let (whole, calls) = (self.whole[name], self.calls[name]);
            println!("{name:24} {own:9.2} {whole:9.2} {calls:9.4} {:9.4}", self.clock[name]);
        }
        Ok(())
    }

    /// Prints what has changed. An error if something has grown.
    pub fn compare(&self, now: &Record) -> Result<(), String> {
        let (mut own, mut whole) = (TOLERANCE, TOLERANCE);
        if self.compiler != now.compiler {
            own = OTHERS_TOLERANCE;
            whole = OTHERS_TOLERANCE;
            println!(
                "Recorded with {}, this is {}: up to {own} % more is allowed.",
                self.compiler, now.compiler
            );
        }
        if self.libc != now.libc {
            whole = OTHERS_TOLERANCE;
            println!(
                "Recorded with {}, this is {}: for the whole process up to {whole} % more is allowed.",
                self.libc, now.libc
            );
        }
        let mut wrong = Vec::new();
        for (what, recorded, now, tolerance) in [
            ("instructions a packet", &self.instructions, &now.instructions, own),
            ("of the whole process", &self.whole, &now.whole, whole),
            ("system calls a packet", &self.calls, &now.calls, TOLERANCE),
            ("looks at the clock", &self.clock, &now.clock, TOLERANCE),
        ] {
            println!("{what:24} {:>9} {:>9}", "recorded", "now");
            compare(what, recorded, now, tolerance, &mut wrong);
        }
        match wrong.is_empty() {
            true => Ok(()),
            false => Err(format!(
                "{}\nIf that is wanted: `make record-instructions`, and commit {FILE} with the reason.",
                wrong.join("\n")
            )),
        }
    }
}

fn compare(
    what: &str,
    recorded: &PerPacket,
    now: &PerPacket,
    tolerance: f64,
    wrong: &mut Vec<String>,
) {
    for (name, &n) in now {
        let Some(&before) = recorded.get(name) else {
            wrong.push(format!("{name} is not recorded"));
            continue;
        };
        if n.max(before) < RARE {
            continue;
        }
        let change = (n / before - 1.0) * 100.0;
        println!("{name:24} {before:9.2} {n:9.2} {change:+7.1} %");
        if change > tolerance {
            wrong.push(format!("{name}, {what}: grown by {change:.1} %, from {before} to {n}"));
        }
    }
    let gone = recorded.keys().filter(|name| !now.contains_key(*name));
    wrong.extend(gone.map(|name| format!("{name} is recorded, and is no case")));
}

fn compiler() -> String {
    let version = Command::new("rustc").arg("-vV").output();
    let version = version.map(|o| String::from_utf8_lossy(&o.stdout).into_owned());
    let version = version.unwrap_or_default();
    let part = |key| version.lines().find_map(|line| line.strip_prefix(key)).unwrap_or("?");
    format!("rustc {}, {}", part("release: "), part("host: "))
}

fn libc() -> String {
    let version = Command::new("getconf").arg("GNU_LIBC_VERSION").output();
    version.map_or("?".to_owned(), |o| String::from_utf8_lossy(&o.stdout).trim().to_owned())
}
