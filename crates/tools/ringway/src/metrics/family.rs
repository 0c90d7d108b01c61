//! A metric: its name, what it says, and its values by labels.

use crate::printable::printable;
use prometheus_client::encoding::{DescriptorEncoder, MetricEncoder};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Unit;
use ringway::Durations;
use serde::Serialize;
use serde_json::{Map, Value as Json};
use std::fmt;

/// Names and values. A value that is empty stands for no label.
pub type Labels = Vec<(&'static str, String)>;

/// What is measured at one place.
#[derive(Clone, Debug)]
pub enum Value {
    Count(u64),
    Number(f64),
    Durations(Durations),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// It grows, and begins anew at 0 when what it counts for does.
    Counter,
    Gauge,
    /// Of times in seconds.
    Histogram,
}

/// All values of one name.
#[derive(Clone, Debug)]
pub struct Family {
    /// As it is scraped: with the unit and, of a counter, `_total`.
    pub name: &'static str,
    /// Without a full stop at the end.
    pub help: &'static str,
    pub kind: Kind,
    pub samples: Vec<(Labels, Value)>,
}

impl Family {
    fn new(name: &'static str, help: &'static str, kind: Kind) -> Family {
        Family { name, help, kind, samples: Vec::new() }
    }

    pub fn counter(name: &'static str, help: &'static str) -> Family {
        Family::new(name, help, Kind::Counter)
    }

    pub fn gauge(name: &'static str, help: &'static str) -> Family {
        Family::new(name, help, Kind::Gauge)
    }

    pub fn histogram(name: &'static str, help: &'static str) -> Family {
        Family::new(name, help, Kind::Histogram)
    }

    pub fn put(&mut self, of: &Labels, more: &[(&'static str, &str)], value: impl Into<Value>) {
        let more = more.iter().map(|(name, value)| (*name, (*value).to_owned()));
        // What a terminal must not get, no other reader needs either. Quotes and backslashes are escaped by the format.
        let labels = of.iter().cloned().chain(more).filter(|(_, value)| !value.is_empty());
        let labels = labels.map(|(name, value)| (name, printable(&value, &[])));
        self.samples.push((labels.collect(), value.into()));
    }

    /// With its only value.
    pub fn with(mut self, value: impl Into<Value>) -> Family {
        self.put(&Labels::new(), &[], value);
        self
    }

    /// The parts that the format puts together again.
    fn parts(&self) -> (&'static str, Option<Unit>) {
        let name = self.name.strip_suffix("_total").unwrap_or(self.name);
        for (suffix, unit) in [("_bytes", Unit::Bytes), ("_seconds", Unit::Seconds)] {
            if let Some(name) = name.strip_suffix(suffix) {
                return (name, Some(unit));
            }
        }
        (name, None)
    }

    pub fn encode(&self, encoder: &mut DescriptorEncoder) -> fmt::Result {
        let (name, unit) = self.parts();
        let kind = match self.kind {
            Kind::Counter => MetricType::Counter,
            Kind::Gauge => MetricType::Gauge,
            Kind::Histogram => MetricType::Histogram,
        };
        let mut all = encoder.encode_descriptor(name, self.help, unit.as_ref(), kind)?;
        for (labels, value) in &self.samples {
            match &labels[..] {
                [] => self.encode_value(value, &mut all)?,
                _ => self.encode_value(value, &mut all.encode_family(labels)?)?,
            }
        }
        Ok(())
    }

    fn encode_value(&self, value: &Value, to: &mut MetricEncoder) -> fmt::Result {
        match (self.kind, value) {
            (Kind::Counter, Value::Count(n)) => to.encode_counter::<Labels, _, u64>(n, None),
            (_, Value::Count(n)) => to.encode_gauge(n),
            (_, Value::Number(n)) => to.encode_gauge(n),
            (_, Value::Durations(times)) => {
                let count = times.counts.iter().sum();
                let seconds = times.micros as f64 / 1e6;
                to.encode_histogram::<Labels>(seconds, count, &buckets(times), None)
            }
        }
    }

    /// Each value as `--json` has it.
    pub fn lines(&self) -> impl Iterator<Item = Line<'_>> {
        self.samples.iter().map(|(labels, value)| {
            let label = |(name, value): &(&'static str, String)| ((*name).into(), value[..].into());
            let labels = labels.iter().map(label).collect();
            let (value, durations) = match value {
                Value::Count(n) => (Some((*n).into()), None),
                Value::Number(n) => (Some((*n).into()), None),
                Value::Durations(times) => (None, Some(times)),
            };
            Line { name: self.name, labels, value, durations }
        })
    }
}

/// A value of a metric, for machines.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "type", rename = "metric")]
pub struct Line<'a> {
    name: &'static str,
    #[cfg_attr(test, schemars(with = "std::collections::BTreeMap<String, String>"))]
    labels: Map<String, Json>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, schemars(with = "f64"))]
    value: Option<Json>,
    /// Of a histogram: how often up to each bound of the format, and microseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, schemars(with = "Option<crate::schema::described::Durations>"))]
    durations: Option<&'a Durations>,
}

/// The buckets of a histogram, as the format has them: each bound in seconds, and how often so long at most.
fn buckets(times: &Durations) -> Vec<(f64, u64)> {
    let bounds = Durations::BOUNDS.iter().map(|micros| *micros as f64 / 1e6);
    let counts = times.counts.iter().copied().chain(std::iter::repeat(0));
    bounds.chain([f64::INFINITY]).zip(counts).collect()
}

impl From<u64> for Value {
    fn from(count: u64) -> Value {
        Value::Count(count)
    }
}

impl From<u32> for Value {
    fn from(count: u32) -> Value {
        Value::Count(count.into())
    }
}

impl From<usize> for Value {
    fn from(count: usize) -> Value {
        Value::Count(count as u64)
    }
}

impl From<bool> for Value {
    fn from(holds: bool) -> Value {
        Value::Count(holds.into())
    }
}

impl From<f64> for Value {
    fn from(number: f64) -> Value {
        Value::Number(number)
    }
}

impl From<Durations> for Value {
    fn from(times: Durations) -> Value {
        Value::Durations(times)
    }
}
