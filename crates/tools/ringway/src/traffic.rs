//! Which frames a generator sends: built ones, or those of a capture file.

use crate::capture_file::skipped_text;
use crate::endpoint::{Endpoints, Family, Mac};
use crate::error::Result;
use crate::frame::{Builder, Frame, Sizes, Spec, shortest_marked};
use crate::plain_file;
use crate::units::number;
use ringway_file::Frames;
use std::path::PathBuf;

/// The options that describe frames.
#[derive(clap::Args, Debug)]
#[group(skip)]
pub struct Args {
    /// Frame size in bytes without CRC, or a range that is stepped through (16 to 65536) [default:
    /// 60, or 78 with IPv6]
    #[arg(short, long, value_name = "BYTES[-BYTES]")]
    size: Option<Sizes>,

    /// Source address and UDP port, or a range of them, stepped through packet by packet
    #[arg(long, value_name = "RANGE", default_value = "10.0.0.1:1234")]
    src: Endpoints,

    /// Destination address and UDP port, or a range; steps when the source is through its range
    /// [default: 10.1.0.1:1234, or fd01::1 with IPv6]
    #[arg(long, value_name = "RANGE")]
    dst: Option<Endpoints>,

    /// Source MAC address [default: made from the stream number]
    #[arg(long, value_name = "MAC")]
    src_mac: Option<Mac>,

    /// Destination MAC address
    #[arg(long, value_name = "MAC", default_value_t = Mac::BROADCAST)]
    dst_mac: Mac,

    /// Number that tells this generator from others at the receiver [default: the process id]
    #[arg(long, value_name = "NUMBER", value_parser = number(0..=u32::MAX, 7))]
    stream: Option<u32>,

    /// Send the frames of a pcap or pcapng file, as they are; once, unless --count or --duration says
    /// otherwise
    #[arg(long, value_name = "FILE", value_parser = plain_file::read(), conflicts_with_all =
        ["size", "src", "dst", "src_mac", "dst_mac", "stream"])]
    pcap: Option<PathBuf>,
}

impl Args {
    /// Reads the capture file, or prepares the builder.
    pub fn source(&self) -> Result<Source> {
        Ok(match &self.pcap {
            Some(file) => Source::Captured { frames: Frames::load(file)?, at: 0 },
            None => Source::Built(Box::new(Builder::new(self.spec()?)?)),
        })
    }

    /// What to tell the user beforehand about frames that a receiver cannot verify.
    pub fn note(&self, source: &Source) -> Option<String> {
        if let (Source::Captured { frames, .. }, Some(file)) = (source, &self.pcap) {
            let Frames { cut, ends_in, skipped, .. } = frames;
            let ends_in = ends_in.map(|at| {
                format!(
                    "byte {at}: the file ends in the middle of a block; what is before it is sent"
                )
            });
            let cut = (*cut > 0)
                .then(|| format!("{cut} frames are not whole in it; they go out cut off"));
            let texts: Vec<_> = [ends_in, cut, skipped_text(skipped.frames, skipped.link)]
                .into_iter()
                .flatten()
                .collect();
            return (!texts.is_empty())
                .then(|| format!("{}: {}", file.display(), texts.join("; ")));
        }
        let needed = shortest_marked(self.src.family);
        let shortest = self.size.as_ref()?.shortest();
        (shortest < needed).then(|| {
            format!(
                "frames shorter than {needed} bytes have no room for a sequence number; `ringway \
                 recv --verify` counts them as foreign"
            )
        })
    }

    fn spec(&self) -> Result<Spec> {
        let stream = self.stream.unwrap_or_else(std::process::id);
        let family = self.src.family;
        let (size, dst) = match family {
            Family::V4 => (60, "10.1.0.1"),
            Family::V6 => (shortest_marked(family) as u32, "fd01::1"),
        };
        Ok(Spec {
            src_mac: self.src_mac.unwrap_or(mac_of(stream)),
            dst_mac: self.dst_mac,
            src: self.src.clone(),
            dst: match &self.dst {
                Some(dst) => dst.clone(),
                None => dst.parse()?,
            },
            sizes: match self.size {
                Some(sizes) => sizes,
                None => Sizes::new(size, size)?,
            },
            stream,
        })
    }
}

/// A locally administered address, so that a switch tells generators apart.
pub fn mac_of(stream: u32) -> Mac {
    let [a, b, c, d] = stream.to_be_bytes();
    Mac([0x02, 0x52, a, b, c, d])
}

/// Gives one frame after the other, for ever.
pub enum Source {
    Built(Box<Builder>),
    Captured { frames: Frames, at: usize },
}

impl Source {
    /// The next frame. It stays valid until the next call. A capture starts over at its end.
    pub fn next_frame(&mut self) -> Frame<'_> {
        match self {
            Source::Built(builder) => builder.build(),
            Source::Captured { frames, at } => {
                let now = *at;
                *at = if now + 1 == frames.len() { 0 } else { now + 1 };
                Frame { bytes: frames.get(now), number: None }
            }
        }
    }

    /// How many frames to send when the user names no end.
    pub fn natural_count(&self) -> Option<u64> {
        match self {
            Source::Built(_) => None,
            Source::Captured { frames, .. } => Some(frames.len() as u64),
        }
    }

    /// The length of the longest frame, in bytes.
    pub fn longest(&self) -> usize {
        match self {
            Source::Built(builder) => builder.longest(),
            Source::Captured { frames, .. } => frames.longest(),
        }
    }

    /// The length of the shortest frame, in bytes.
    pub fn shortest(&self) -> usize {
        match self {
            Source::Built(builder) => builder.shortest(),
            Source::Captured { frames, .. } => frames.shortest(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verify::{Verdict, Verifier};
    use clap::Parser;

    #[derive(Parser)]
    struct Cli {
        #[command(flatten)]
        args: Args,
    }

    fn parse(options: &[&str]) -> Args {
        Cli::try_parse_from(std::iter::once(&"test").chain(options)).unwrap().args
    }

    #[test]
    fn defaults_can_be_verified_in_both_families() {
        for options in [&[][..], &["--src", "fd00::1"], &["--src", "[fd00::1]:5-[fd00::9]:9"]] {
            let args = parse(options);
            let mut source = args.source().unwrap();
            assert_eq!(args.note(&source), None);
            let mut verifier = Verifier::new();
            for _ in 0..100 {
                assert_eq!(verifier.frame(&source.next_frame().to_vec()), Verdict::InOrder);
            }
            assert_eq!(source.natural_count(), None);
        }
    }

    #[test]
    fn short_frames_are_announced() {
        let note = |options| parse(options).note(&parse(options).source().unwrap());
        assert!(note(&["--size", "57"]).unwrap().contains("58 bytes"));
        assert_eq!(note(&["--size", "58-1514"]), None);
        assert!(note(&["--size", "60", "--src", "fd00::1"]).is_some());
        assert_eq!(parse(&["--size", "64-1514"]).source().unwrap().longest(), 1514);
    }

    #[test]
    fn generators_differ_in_their_mac() {
        let mac = |stream| parse(&["--stream", stream]).spec().unwrap().src_mac;
        assert_ne!(mac("1"), mac("2"));
        assert_eq!(mac("1").0[0] & 3, 2, "locally administered, unicast");
    }

    #[test]
    fn a_capture_file_excludes_what_it_decides() {
        for other in ["--size=60", "--src=10.0.0.1", "--stream=1"] {
            assert!(Cli::try_parse_from(["test", "--pcap", "x", other]).is_err(), "{other}");
        }
    }

    #[test]
    fn families_do_not_mix() {
        assert!(parse(&["--src", "fd00::1", "--dst", "10.0.0.1"]).source().is_err());
    }
}
