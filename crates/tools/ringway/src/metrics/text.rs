//! Metrics as text: OpenMetrics, and the format that Prometheus had before it.

use super::family::Family;
use crate::error::{Error, Result};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, text::encode as encode_registry};
use prometheus_client::registry::Registry;
use std::fmt;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    OpenMetrics,
    /// Version 0.0.4, which `promtool check metrics` and node_exporter read.
    Prometheus,
}

impl Format {
    pub fn content_type(self) -> &'static str {
        match self {
            Format::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
            Format::Prometheus => "text/plain; version=0.0.4; charset=utf-8",
        }
    }
}

#[derive(Debug)]
struct All(Vec<Family>);

impl Collector for All {
    fn encode(&self, mut encoder: DescriptorEncoder) -> fmt::Result {
        self.0.iter().try_for_each(|family| family.encode(&mut encoder))
    }
}

pub fn encode(families: Vec<Family>, format: Format) -> Result<String> {
    let mut registry = Registry::default();
    registry.register_collector(Box::new(All(families)));
    let mut text = String::new();
    let fail = |_| Error::Value("the metrics have no form as text".into());
    encode_registry(&mut text, &registry).map_err(fail)?;
    match format {
        Format::OpenMetrics => Ok(text),
        Format::Prometheus => Ok(without_openmetrics(&text)),
    }
}

/// What OpenMetrics says of a metric, in the older format: there `_total` is a part of a counter's name, units are not told,
/// and the end neither. Values are the same in both.
fn without_openmetrics(text: &str) -> String {
    let mut older = String::new();
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        if line.starts_with("# UNIT ") || line == "# EOF" {
            continue;
        }
        let is_counter = |line: &str| line.starts_with("# TYPE ") && line.ends_with(" counter");
        let of_counter = is_counter(line)
            || line.starts_with("# HELP ") && lines.peek().is_some_and(|next| is_counter(next));
        match line.splitn(4, ' ').collect::<Vec<_>>()[..] {
            [hash, word, name, rest] if of_counter => {
                older.extend([hash, " ", word, " ", name, "_total ", rest]);
            }
            _ => older.push_str(line),
        }
        older.push('\n');
    }
    older
}

#[cfg(test)]
mod tests {
    use super::*;

    fn both(families: &[Family]) -> [String; 2] {
        [Format::OpenMetrics, Format::Prometheus]
            .map(|format| encode(families.to_vec(), format).unwrap())
    }

    #[test]
    fn the_formats_differ_in_what_they_say_of_counters_and_units() {
        let mut counter = Family::counter("ringway_sent_bytes_total", "Bytes sent");
        counter.put(&vec![("port", "vale0:a".into())], &[("direction", "sent")], 5_u64);
        let [openmetrics, prometheus] = both(&[counter]);
        let sample = "ringway_sent_bytes_total{port=\"vale0:a\",direction=\"sent\"} 5\n";
        let says = "# HELP ringway_sent_bytes Bytes sent\n# TYPE ringway_sent_bytes counter\n";
        let unit = "# UNIT ringway_sent_bytes bytes\n";
        assert_eq!(openmetrics, format!("{says}{unit}{sample}# EOF\n"));
        let says =
            "# HELP ringway_sent_bytes_total Bytes sent\n# TYPE ringway_sent_bytes_total counter\n";
        assert_eq!(prometheus, format!("{says}{sample}"));
    }

    /// Names come from users of the daemon: none of them ends a label, or a line.
    #[test]
    fn names_stay_within_their_labels() {
        let mut gauge = Family::gauge("ringway_x", "X");
        for name in ["a\"} 1\nevil 2", "a\\", "\u{1b}[2J", "# TYPE y counter", "u\u{308}"] {
            gauge.put(&vec![("port", name.into())], &[], 1_u64);
        }
        for text in both(&[gauge]) {
            let samples: Vec<_> = text.lines().filter(|line| !line.starts_with('#')).collect();
            let expected = [
                r#"ringway_x{port="a\"} 1\\nevil 2"} 1"#,
                r#"ringway_x{port="a\\"} 1"#,
                r#"ringway_x{port="\\u{1b}[2J"} 1"#,
                r##"ringway_x{port="# TYPE y counter"} 1"##,
                "ringway_x{port=\"u\u{308}\"} 1",
            ];
            assert_eq!(samples, expected);
        }
    }

    #[test]
    fn a_label_without_a_value_is_none() {
        let mut gauge = Family::gauge("ringway_x", "X");
        gauge.put(&vec![("port", "a".into()), ("id", String::new())], &[], 0.5);
        assert!(both(&[gauge])[1].ends_with("ringway_x{port=\"a\"} 0.5\n"));
    }
}
