//! What a run of the benchmark leaves behind: one record per experiment, beside the machine.

use std::path::Path;
use std::{fmt, fs, io};

use serde::{Serialize, Serializer};

use crate::machine::Machine;

/// Whose code moved the packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Contestant {
    Ringway,
    Dpdk,
}

/// The path the packets took.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Road {
    Pipe,
    Vale,
    Null,
    Memif,
    VhostUser,
}

/// What a figure counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Unit {
    /// Millions of packets received in a second; with several receivers, by each of them (mean).
    #[serde(rename = "Mpps")]
    Mpps,
    /// Ticks of the time-stamp counter for each packet.
    #[serde(rename = "cycles/packet")]
    CyclesPerPacket,
}

impl fmt::Display for Unit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Unit::Mpps => "Mpps",
            Unit::CyclesPerPacket => "cycles/packet",
        })
    }
}

/// Whether the sender writes and the receiver reads every byte of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Payload {
    Touched,
    Untouched,
}

/// What an experiment is, in the words of the result file. Fields that do not apply are left out.
#[derive(Clone, Debug, Serialize)]
pub struct Subject {
    pub experiment: Road,
    pub contestant: Contestant,
    pub unit: Unit,
    /// Bytes in a packet, without the frame check sequence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size: Option<usize>,
    /// Packets in a sync, or in a burst.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub batch: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub payload: Option<Payload>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub receivers: Option<usize>,
    /// How a peer was tuned, in its own options.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub settings: Option<String>,
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.experiment {
            Road::Pipe => "pipe",
            Road::Vale => "vale",
            Road::Null => "null",
            Road::Memif => "memif",
            Road::VhostUser => "vhost-user",
        })?;
        if let Some(receivers) = self.receivers {
            write!(f, " 1:{receivers}")?;
        }
        if let Some(size) = self.size {
            write!(f, " {size} B")?;
        }
        match self.payload {
            Some(Payload::Touched) => write!(f, " touched")?,
            Some(Payload::Untouched) => write!(f, " untouched")?,
            None => {}
        }
        if let Some(batch) = self.batch {
            write!(f, " batch {batch}")?;
        }
        Ok(())
    }
}

/// The figures of one experiment's runs, in its unit.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Summary {
    #[serde(serialize_with = "rounded")]
    pub min: f64,
    #[serde(serialize_with = "rounded")]
    pub median: f64,
    #[serde(serialize_with = "rounded")]
    pub max: f64,
    pub runs: usize,
}

impl Summary {
    /// Summarises `figures`; nothing when there are none.
    pub fn of(figures: &[f64]) -> Option<Summary> {
        let mut sorted = figures.to_vec();
        sorted.sort_by(f64::total_cmp);
        let (&min, &max) = (sorted.first()?, sorted.last()?);
        let (low, high) = (sorted[(sorted.len() - 1) / 2], sorted[sorted.len() / 2]);
        Some(Summary { min, median: (low + high) / 2.0, max, runs: sorted.len() })
    }
}

/// Three decimals say all that a run can know.
fn rounded<S: Serializer>(figure: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64((figure * 1000.0).round() / 1000.0)
}

/// One line of the result file.
#[derive(Clone, Debug, Serialize)]
pub struct Record {
    #[serde(flatten)]
    pub subject: Subject,
    #[serde(flatten)]
    pub summary: Summary,
    /// Round trip of a cache line between the two first CPUs, the longest beside any of the runs.
    #[serde(serialize_with = "rounded")]
    pub core_to_core_ns: f64,
}

/// The whole result file.
#[derive(Debug, Serialize)]
pub struct Report {
    pub machine: Machine,
    pub records: Vec<Record>,
}

impl Report {
    /// Writes the report as JSON to `path`, whose folders are made when missing. A reader never
    /// sees half a file: it is written beside its place and moved there.
    pub fn write(&self, path: &Path) -> io::Result<()> {
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        let unfinished = path.with_extension("json.part");
        fs::write(&unfinished, serde_json::to_string_pretty(self)? + "\n")?;
        fs::rename(unfinished, path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn summary_sorts_and_takes_the_middle() {
        let odd = Summary::of(&[3.0, 1.0, 2.0]).unwrap();
        assert_eq!((odd.min, odd.median, odd.max, odd.runs), (1.0, 2.0, 3.0, 3));
        let even = Summary::of(&[4.0, 1.0, 2.0, 3.0]).unwrap();
        assert_eq!((even.min, even.median, even.max, even.runs), (1.0, 2.5, 4.0, 4));
        assert_eq!(Summary::of(&[]), None);
    }

    #[test]
    fn a_record_leaves_out_what_does_not_apply() {
        let record = Record {
            subject: Subject {
                experiment: Road::VhostUser,
                contestant: Contestant::Dpdk,
                unit: Unit::Mpps,
                size: Some(64),
                batch: Some(32),
                payload: None,
                receivers: None,
                settings: None,
            },
            summary: Summary { min: 1.0, median: 2.00049, max: 3.0, runs: 5 },
            core_to_core_ns: 50.0,
        };
        assert_eq!(
            serde_json::to_value(record).unwrap(),
            serde_json::json!({
                "experiment": "vhost-user", "contestant": "dpdk", "unit": "Mpps", "size": 64,
                "batch": 32, "min": 1.0, "median": 2.0, "max": 3.0, "runs": 5,
                "core_to_core_ns": 50.0
            })
        );
    }
}
