//! A file to replay, as the user names it: `session.pcap@offset=2s@dst-mac=02:00:00:00:00:01`.

use crate::error::Error;
use crate::units::parse_duration;
use ringway::FileSpec;
use ringway_file::{Replay, Rotation};
use std::path::PathBuf;
use std::str::FromStr;

#[derive(Clone, Debug, PartialEq)]
pub struct FileArg {
    pub path: PathBuf,
    /// Nanoseconds that it begins later.
    pub offset: u64,
    /// The addresses that its frames are to have, and nothing else.
    pub addresses: Replay,
}

impl FromStr for FileArg {
    type Err = Error;

    fn from_str(text: &str) -> Result<FileArg, Error> {
        let (mut plain, mut offset) = (String::new(), 0);
        for (at, part) in text.split('@').enumerate() {
            match part.strip_prefix("offset=") {
                Some(time) if at > 0 => offset = parse_duration(time)?.as_nanos() as u64,
                _ => plain.extend([if at > 0 { "@" } else { "" }, part]),
            }
        }
        if !FileSpec::is_file(&plain) {
            plain.insert_str(0, "file:");
        }
        let other = || {
            Error::Value(format!(
                "{text}: a file to replay has the options @offset=, @dst-mac= and @src-mac=; for timing and \
                 loops use --speed, --rate, --max-gap and --loop"
            ))
        };
        let spec = FileSpec::parse(&plain)?.ok_or_else(other)?;
        let addresses = Replay {
            dst_mac: spec.replay.dst_mac,
            src_mac: spec.replay.src_mac,
            ..Replay::default()
        };
        let is_plain = spec.replay == addresses
            && spec.write != Some(true)
            && spec.rotation == Rotation::default()
            && spec.snaplen == 0
            && spec.filter.is_none()
            && spec.sample.is_none();
        if !is_plain {
            return Err(other());
        }
        Ok(FileArg { path: spec.file, offset, addresses })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_taken_off_the_name() {
        let plain: FileArg = "a@b.pcap".parse().unwrap();
        assert_eq!((plain.path, plain.offset), ("a@b.pcap".into(), 0));
        let file: FileArg =
            "file:x.pcap.gz@src-mac=2:0:0:0:0:1@offset=1.5s@dst-mac=2:0:0:0:0:2".parse().unwrap();
        assert_eq!((file.path, file.offset), ("x.pcap.gz".into(), 1_500_000_000));
        assert_eq!(file.addresses.dst_mac, Some([2, 0, 0, 0, 0, 2]));
        assert_eq!(file.addresses.src_mac, Some([2, 0, 0, 0, 0, 1]));
        assert_eq!("-".parse::<FileArg>().unwrap().path, PathBuf::from("-"));
    }

    #[test]
    fn other_options_are_refused_with_those_that_there_are() {
        for bad in
            ["x@loop=3", "x@speed=2", "x@write", "x@snaplen=60", "x@rotate=1M", "x@filter=udp"]
        {
            let message = bad.parse::<FileArg>().unwrap_err().to_string();
            assert!(message.contains("@offset=") && message.contains("--speed"), "{message}");
        }
        for bad in ["", "x@offset=fast", "x@dst-mac=nine"] {
            assert!(bad.parse::<FileArg>().is_err(), "{bad}");
        }
    }
}
