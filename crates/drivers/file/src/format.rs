//! The formats of capture files.

use std::path::Path;

use crate::error::{Error, Result};

/// Ends of names by which other programs tell compressions that are not written here.
const OTHER_COMPRESSIONS: [&str; 9] =
    [".bz2", ".xz", ".lzma", ".lz", ".lz4", ".lzo", ".br", ".Z", ".zip"];

/// How frames are written down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// pcap, with nanoseconds.
    Pcap,
    /// pcapng: with names of interfaces, directions and drops.
    PcapNg,
}

/// How the whole of it is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    /// Not.
    None,
    /// gzip.
    Gzip,
    /// Zstandard.
    Zstd,
}

/// What a file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kind {
    /// Of what is in it.
    pub format: Format,
    /// What was done to that.
    pub compression: Compression,
}

impl Kind {
    /// What a file of this name is to be: `.pcap` is pcap and everything else pcapng, with `.gz` or `.zst`
    /// behind it compressed.
    pub fn of_name(file: &Path) -> Kind {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        let (plain, compression) = match (name.strip_suffix(".gz"), name.strip_suffix(".zst")) {
            (Some(plain), _) => (plain, Compression::Gzip),
            (_, Some(plain)) => (plain, Compression::Zstd),
            _ => (&*name, Compression::None),
        };
        let format = if plain.ends_with(".pcap") { Format::Pcap } else { Format::PcapNg };
        Kind { format, compression }
    }

    /// Refuses a name that asks for a compression which no file has here.
    ///
    /// # Errors
    /// [`Error::Compression`].
    pub(crate) fn check_name(file: &Path) -> Result<()> {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        match OTHER_COMPRESSIONS.into_iter().find(|ending| name.ends_with(ending)) {
            Some(ending) => Err(Error::Compression { file: file.into(), ending }),
            None => Ok(()),
        }
    }

    /// How a file is compressed that begins with these bytes.
    pub(crate) fn compression_of(start: &[u8]) -> Compression {
        match start {
            [0x1f, 0x8b, ..] => Compression::Gzip,
            [0x28, 0xb5, 0x2f, 0xfd, ..] => Compression::Zstd,
            _ => Compression::None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_say_the_format() {
        for (name, format, compression) in [
            ("a.pcap", Format::Pcap, Compression::None),
            ("x/a.pcapng", Format::PcapNg, Compression::None),
            ("a.pcap.gz", Format::Pcap, Compression::Gzip),
            ("a.pcapng.zst", Format::PcapNg, Compression::Zstd),
            ("a.zst", Format::PcapNg, Compression::Zstd),
            ("-", Format::PcapNg, Compression::None),
            ("", Format::PcapNg, Compression::None),
        ] {
            let name = Path::new(name);
            assert_eq!(Kind::of_name(name), Kind { format, compression }, "{}", name.display());
            Kind::check_name(name).unwrap();
        }
        for name in ["a.pcap.bz2", "x/a.xz", "a.pcapng.lz4"] {
            let refused = Kind::check_name(Path::new(name)).unwrap_err();
            assert!(matches!(refused, Error::Compression { .. }), "{name}: {refused}");
        }
    }
}
