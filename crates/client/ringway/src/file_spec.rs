//! Names of capture files as ports: `file:in.pcap@speed=1@loop=3`.

use std::{path::PathBuf, time::Duration};

use ringway_proto::parse_mac;

/// A part of a [`FileSpec`](crate::FileSpec).
///
/// ```
/// use ringway::{FileSpec, Replay};
///
/// let spec = FileSpec::parse("file:in.pcap@speed=1@max-gap=2s")?;
/// let Replay { speed, max_gap, .. } = spec.map_or_else(Replay::default, |spec| spec.replay);
/// assert_eq!((speed, max_gap), (1.0, Some(std::time::Duration::from_secs(2))));
/// # Ok::<(), ringway::Error>(())
/// ```
#[doc(inline)]
pub use ringway_file::Replay;

/// A part of a [`FileSpec`](crate::FileSpec).
///
/// ```
/// use ringway::FileSpec;
///
/// let spec = FileSpec::parse("file:out.pcap@rotate=100M@files=5")?;
/// let rotation = spec.map(|spec| spec.rotation).unwrap_or_default();
/// assert!(rotation.is_on() && rotation.files == Some(5));
/// # Ok::<(), ringway::Error>(())
/// ```
#[doc(inline)]
pub use ringway_file::Rotation;

use crate::{
    error::Error,
    own_options::{NAMES, given_twice},
};

/// A capture file as a port, taken apart.
///
/// ```text
/// spec   := "file:" path option*          path "-": standard input or output
/// option := "@read" | "@write"
///         | "@speed=" number | "@loop=" number | "@max-gap=" time
///         | "@dst-mac=" mac | "@src-mac=" mac | "@filter=" expression | "@sample=" number  to read
///         | "@rotate=" ( bytes | time ) | "@files=" number | "@snaplen=" bytes            to write
/// ```
///
/// A part behind an `@` that is no option belongs to the path, unless it looks like an option: a word
/// of small letters and `-`, and a value. That is an error.
/// Files that rotate have numbers, or the time of their beginning if the path has conversions of
/// strftime(3); none replaces a file that is there.
///
/// ```
/// use ringway::{FileSpec, Replay, Rotation};
///
/// assert!(FileSpec::is_file("file:in.pcap") && !FileSpec::is_file("vale0:a"));
/// let Some(spec) = FileSpec::parse("file:in.pcapng.zst@speed=2@loop=3")? else { unreachable!() };
/// assert_eq!(spec.file.as_os_str(), "in.pcapng.zst");
/// assert_eq!(spec.replay, Replay { speed: 2.0, loops: 3, ..Replay::default() });
/// assert_eq!(spec.rotation, Rotation::default());
/// # Ok::<(), ringway::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct FileSpec {
    /// The file, `-` being standard input or output.
    pub file: PathBuf,
    /// Whether it is to be written to; `None`: as the port is opened.
    pub write: Option<bool>,
    /// How it is played.
    pub replay: Replay,
    /// When another file is begun.
    pub rotation: Rotation,
    /// Bytes that are kept of a frame; 0: all.
    pub snaplen: u32,
    /// Which of its frames are wanted.
    pub filter: Option<String>,
    /// Of what matches, one in so many.
    pub sample: Option<u32>,
}

const PREFIX: &str = "file:";

impl FileSpec {
    /// Whether a name is that of a file.
    pub fn is_file(spec: &str) -> bool {
        spec.starts_with(PREFIX)
    }

    /// Takes a name apart; `None` if it is not that of a file.
    ///
    /// # Errors
    /// For an option without a good value, and for a name without a path.
    pub fn parse(spec: &str) -> Result<Option<FileSpec>, Error> {
        let Some(mut path) = spec.strip_prefix(PREFIX) else { return Ok(None) };
        let wrong = |problem| Error::Name { name: spec.into(), problem };
        let mut file = FileSpec {
            file: PathBuf::new(),
            write: None,
            replay: Replay::default(),
            rotation: Rotation::default(),
            snaplen: 0,
            filter: None,
            sample: None,
        };
        let mut given = Vec::new();
        while let Some((front, option)) = path.rsplit_once('@') {
            if !file.take(option).map_err(wrong)? {
                break;
            }
            let told = what_of(option);
            if given.contains(&told) {
                return Err(wrong(given_twice(told.0)));
            }
            given.push(told);
            path = front;
        }
        if path.is_empty() {
            return Err(wrong("no file is named; write file:x.pcap, or file:- for a pipe".into()));
        }
        if path == "-" && file.rotation.is_on() {
            return Err(wrong("option rotate: standard output is one file; name another".into()));
        }
        if file.rotation.files.is_some() && !file.rotation.is_on() {
            let problem =
                "option files: so many are kept of those that rotate begins; add @rotate=100M";
            return Err(wrong(problem.into()));
        }
        if file.replay.max_gap.is_some() && file.replay.speed == 0.0 {
            let problem =
                "option max-gap: it cuts pauses, and without speed there are none; add @speed=1";
            return Err(wrong(problem.into()));
        }
        file.file = path.into();
        Ok(Some(file))
    }

    /// Takes an option in. False if it is none.
    fn take(&mut self, option: &str) -> Result<bool, String> {
        let (name, value) = match option.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (option, None),
        };
        let needs = |example: &str| format!("option {name}: write @{example}");
        match (name, value) {
            ("read", None) => self.write = Some(false),
            ("write", None) => self.write = Some(true),
            ("loop", None) => self.replay.loops = 0,
            ("loop", Some(value)) => {
                self.replay.loops =
                    value.parse().map_err(|_| needs("loop=3, or @loop for ever"))?;
            }
            ("speed", value) => {
                let speed = value.and_then(|value| value.parse::<f64>().ok());
                let speed = speed.filter(|speed| speed.is_finite() && *speed >= 0.0);
                self.replay.speed =
                    speed.ok_or_else(|| needs("speed=1, or 0 for as fast as it goes"))?;
            }
            ("dst-mac", value) => {
                let mac =
                    value.and_then(parse_mac).ok_or_else(|| needs("dst-mac=02:00:00:00:00:01"))?;
                self.replay.dst_mac = Some(mac);
            }
            ("src-mac", value) => {
                let mac =
                    value.and_then(parse_mac).ok_or_else(|| needs("src-mac=02:00:00:00:00:01"))?;
                self.replay.src_mac = Some(mac);
            }
            ("rotate", value) => {
                let example = || needs("rotate=100M or @rotate=60s");
                match value.and_then(limit).ok_or_else(example)? {
                    Limit::Bytes(bytes) => self.rotation.size = Some(bytes),
                    Limit::Time(time) => self.rotation.time = Some(time),
                }
            }
            ("files", value) => {
                let files = value.and_then(|value| value.parse().ok()).filter(|&files| files > 0);
                self.rotation.files = Some(files.ok_or_else(|| needs("files=10"))?);
            }
            ("snaplen", value) => {
                let snaplen = value.and_then(|value| value.parse().ok());
                self.snaplen = snaplen.ok_or_else(|| needs("snaplen=128"))?;
            }
            ("max-gap", value) => {
                let gap = value.and_then(duration);
                self.replay.max_gap = Some(gap.ok_or_else(|| needs("max-gap=1s"))?);
            }
            ("filter", value) => {
                let example = || needs("filter=udp port 53");
                self.filter = Some(value.ok_or_else(example)?.into());
            }
            ("sample", value) => {
                let count = value.and_then(|value| value.parse().ok()).filter(|&count| count > 0);
                self.sample = Some(count.ok_or_else(|| needs("sample=10"))?);
            }
            // What other ports have is no part of a path, and neither is a misspelt option.
            (name, value)
                if NAMES.contains(&name)
                    || name == "share"
                    || name.starts_with("conf:")
                    || value.is_some() && is_word(name) =>
            {
                let name = name.split(':').next().unwrap_or(name);
                return Err(format!(
                    "option {name}: a capture file has none; it has read, speed, loop, max-gap, dst-mac, \
                     src-mac, filter and sample, or write, rotate, files and snaplen"
                ));
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// The first option that is for files which are used the other way, and what is done to those.
    pub(crate) fn misplaced(
        &self,
        writes: bool,
        filters: bool,
    ) -> Option<(&'static str, &'static str)> {
        let Replay { speed, loops, dst_mac, src_mac, max_gap } = self.replay;
        let to_read = [
            ("@speed", speed != Replay::default().speed),
            ("@loop", loops != Replay::default().loops),
            ("@max-gap", max_gap.is_some()),
            ("@dst-mac", dst_mac.is_some()),
            ("@src-mac", src_mac.is_some()),
            ("a filter", filters),
        ];
        let to_write = [
            ("@rotate", self.rotation.is_on()),
            ("@files", self.rotation.files.is_some()),
            ("@snaplen", self.snaplen != 0),
        ];
        let (asked, does) =
            if writes { (&to_read[..], "read") } else { (&to_write[..], "written to") };
        asked.iter().find(|(_, asked)| *asked).map(|(option, _)| (*option, does))
    }
}

/// Whether that looks like an option's name.
fn is_word(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-')
}

/// What an option is about, by its name; `@rotate` has two meanings, and two names have one.
fn what_of(option: &str) -> (&str, bool) {
    let (name, value) = option.split_once('=').unwrap_or((option, ""));
    match name {
        "rotate" => (name, matches!(limit(value), Some(Limit::Time(_)))),
        "read" | "write" => ("read or write", false),
        _ => (name, false),
    }
}

/// A time with its unit: `1s`, `500ms`, `2m`.
fn duration(text: &str) -> Option<Duration> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let number: u64 = number.parse().ok()?;
    Some(match unit {
        "us" => Duration::from_micros(number),
        "ms" => Duration::from_millis(number),
        "s" => Duration::from_secs(number),
        "m" => Duration::from_secs(number.checked_mul(60)?),
        "h" => Duration::from_secs(number.checked_mul(3600)?),
        _ => return None,
    })
}

#[derive(Debug, PartialEq)]
enum Limit {
    Bytes(u64),
    Time(Duration),
}

fn limit(text: &str) -> Option<Limit> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let number: u64 = number.parse().ok().filter(|&number| number > 0)?;
    let times = |factor| number.checked_mul(factor);
    Some(match unit {
        "" => Limit::Bytes(number),
        "k" => Limit::Bytes(times(1000)?),
        "M" => Limit::Bytes(times(1_000_000)?),
        "G" => Limit::Bytes(times(1_000_000_000)?),
        "s" => Limit::Time(Duration::from_secs(number)),
        "m" => Limit::Time(Duration::from_secs(times(60)?)),
        "h" => Limit::Time(Duration::from_secs(times(3600)?)),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use ringway_proto::Cause;

    use super::*;

    fn parse(spec: &str) -> FileSpec {
        FileSpec::parse(spec).unwrap().expect("a file's name")
    }

    #[test]
    fn paths_may_have_anything_in_them() {
        for path in
            ["a.pcap", "/x y/a@b.pcap", "a@b", "-", "a:b{c}", "x@y", "x@Y=z", "x@=z", "x@y z=1"]
        {
            assert_eq!(parse(&format!("file:{path}")).file, PathBuf::from(path));
        }
        assert_eq!(parse("file:a@b@loop=2@read").file, PathBuf::from("a@b"));
        assert!(FileSpec::parse("vale0:a").unwrap().is_none());
    }

    #[test]
    fn options() {
        let file = parse("file:a@speed=2.5@loop=3@dst-mac=2:0:0:0:0:1");
        let mac = Some([2, 0, 0, 0, 0, 1]);
        assert_eq!(file.replay, Replay { speed: 2.5, loops: 3, dst_mac: mac, ..Replay::default() });
        let file = parse("file:a@rotate=10k@rotate=2m@files=5@snaplen=64@write");
        let (size, time) = (Some(10_000), Some(Duration::from_secs(120)));
        assert_eq!(file.rotation, Rotation { size, time, files: Some(5) });
        assert_eq!((file.snaplen, file.write), (64, Some(true)));
        assert_eq!(parse("file:a@loop").replay.loops, 0);
        let file = parse("file:a@b@filter=tcp[13] = 2@sample=10@max-gap=500ms@speed=1");
        assert_eq!((file.filter.as_deref(), file.sample), (Some("tcp[13] = 2"), Some(10)));
        assert_eq!(file.replay.max_gap, Some(Duration::from_millis(500)));
        assert_eq!(file.file, PathBuf::from("a@b"));
        for bad in [
            "file:",
            "file:@read",
            "file:a@speed",
            "file:a@speed=-1",
            "file:a@speed=NaN",
            "file:a@loop=x",
            "file:a@rotate=0",
            "file:-@rotate=1M",
            "file:a@files=10",
            "file:a@max-gap=1s",
            "file:a@max-gap=1s@speed=0",
            "file:a@rotate=5x",
            "file:a@files=0",
            "file:a@snaplen=",
            "file:a@mode=copy",
            "file:a@buffers=4096",
            "file:a@timestamps=hardware",
            "file:a@user=root",
            "file:a@share=vale0:a",
            "file:a@conf:slots=64",
            "file:a@filter",
            "file:a@sample=0",
            "file:a@max-gap=5",
            "file:a@dst-mac=1:2",
            "file:a@src-mac=1:2:3:4:5:+6",
            "file:a@read@write",
            "file:a@loop@loop=2",
            "file:a@rotate=1M@rotate=2M",
            "file:a@rotate=1s@files=2@rotate=2s",
            "file:a@filter=udp@filter=udp",
            "file:a@snaplne=64",
            "file:a@foo=1",
            "file:a@foo=1@loop=2",
        ] {
            assert_eq!(FileSpec::parse(bad).unwrap_err().cause(), Cause::Invalid, "{bad}");
        }
    }
}
