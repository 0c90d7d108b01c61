//! What is recorded, and how a measurement compares with it.

use std::{collections::BTreeMap, fs, process::Command};

use serde::{Deserialize, Serialize};

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/record.toml");

/// How much more a packet may take, in percent.
const TOLERANCE: f64 = 3.0;

/// Instructions a packet of each case, and the compiler whose code that is.
#[derive(Serialize, Deserialize)]
pub struct Record {
    compiler: String,
    instructions: BTreeMap<String, f64>,
}

impl Record {
    pub fn new(mut instructions: BTreeMap<String, f64>) -> Record {
        // Hundredths are enough, and change no line of the file without need.
        instructions.values_mut().for_each(|n| *n = (*n * 100.0).round() / 100.0);
        let version = Command::new("rustc").arg("-vV").output();
        let version = version.map(|o| String::from_utf8_lossy(&o.stdout).into_owned());
        let version = version.unwrap_or_default();
        let part = |key| version.lines().find_map(|line| line.strip_prefix(key)).unwrap_or("?");
        let compiler = format!("rustc {}, {}", part("release: "), part("host: "));
        Record { compiler, instructions }
    }

    pub fn read() -> Result<Record, String> {
        let text = fs::read_to_string(FILE).map_err(|e| format!("{FILE}: {e}"))?;
        toml::from_str(&text).map_err(|e| format!("{FILE}: {e}"))
    }

    pub fn write(&self) -> Result<(), String> {
        let text = toml::to_string(self).map_err(|e| e.to_string())?;
        let text = format!(
            "# Instructions a packet, by callgrind, without those of libc. `make test` fails when one grows\n\
             # by more than {TOLERANCE} %. `make record-instructions` writes this file.\n{text}"
        );
        fs::write(FILE, text).map_err(|e| format!("{FILE}: {e}"))?;
        self.instructions.iter().for_each(|(name, n)| println!("{name:24} {n:9.2}"));
        Ok(())
    }

    /// Prints what has changed. An error if something has grown.
    pub fn compare(&self, now: &Record) -> Result<(), String> {
        println!("{:24} {:>9} {:>9}", "instructions a packet", "recorded", "now");
        let mut wrong = Vec::new();
        for (name, &n) in &now.instructions {
            let Some(&before) = self.instructions.get(name) else {
                wrong.push(format!("{name} is not recorded"));
                continue;
            };
            let change = (n / before - 1.0) * 100.0;
            println!("{name:24} {before:9.2} {n:9.2} {change:+7.1} %");
            if change > TOLERANCE {
                wrong.push(format!("{name} has grown by {change:.1} %, from {before} to {n:.2}"));
            }
        }
        let gone = self.instructions.keys().filter(|name| !now.instructions.contains_key(*name));
        wrong.extend(gone.map(|name| format!("{name} is recorded, and is no case")));
        if wrong.is_empty() {
            return Ok(());
        }
        let wrong = format!(
            "{}\nIf that is wanted: `make record-instructions`, and commit {FILE} with the reason.",
            wrong.join("\n")
        );
        if self.compiler != now.compiler {
            println!(
                "{wrong}\nNot held against it: recorded with {}, this is {}.",
                self.compiler, now.compiler
            );
            return Ok(());
        }
        Err(wrong)
    }
}
