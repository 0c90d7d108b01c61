//! What the process has mapped: `/proc/self/maps`.

use std::{
    fs::File,
    io::{self, BufRead, BufReader},
};

use rustix::fs::makedev;

/// One line of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MappedArea {
    /// First address.
    pub start: u64,
    /// Behind the last one.
    pub end: u64,
    /// It may be read and written.
    pub writable: bool,
    /// All processes that have mapped the file see what is written.
    pub shared: bool,
    /// Device and inode; `None` for private memory that is of no file.
    pub file: Option<(u64, u64)>,
    /// What the file is, by its name.
    pub kind: FileKind,
    /// Where it begins in the file.
    pub offset: u64,
}

/// What a file is, by the name that the kernel has given it. On the device that memfds are on no file has another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind {
    /// Of `memfd_create`.
    Memfd,
    /// Memory that was mapped as shared and anonymous.
    Anonymous,
    /// Anything else, or no file.
    Other,
}

impl MappedArea {
    /// All that is mapped, by addresses. A line that cannot be read is an error.
    ///
    /// # Errors
    /// Without `/proc`.
    pub fn all() -> io::Result<impl Iterator<Item = io::Result<MappedArea>>> {
        let lines = BufReader::new(File::open("/proc/self/maps")?).lines();
        Ok(lines.map(|line| parse(&line?).ok_or_else(|| io::ErrorKind::InvalidData.into())))
    }
}

fn parse(line: &str) -> Option<MappedArea> {
    let mut fields = line.split_ascii_whitespace();
    let (start, end) = fields.next()?.split_once('-')?;
    let permissions = fields.next()?.as_bytes();
    let offset = fields.next()?;
    let (major, minor) = fields.next()?.split_once(':')?;
    let inode: u64 = fields.next()?.parse().ok()?;
    let hex = |digits| u64::from_str_radix(digits, 16).ok();
    let device = makedev(hex(major)? as u32, hex(minor)? as u32);
    Some(MappedArea {
        start: hex(start)?,
        end: hex(end)?,
        writable: permissions.starts_with(b"rw"),
        shared: permissions.get(3) == Some(&b's'),
        file: (inode != 0).then_some((device, inode)),
        kind: match fields.next() {
            Some("/dev/zero") => FileKind::Anonymous,
            Some(name) if name.starts_with("/memfd:") => FileKind::Memfd,
            _ => FileKind::Other,
        },
        offset: hex(offset)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines() {
        let area = parse("7f00-8f00 rw-s 00002000 00:01 77 /memfd:x (deleted)").unwrap();
        assert_eq!((area.start, area.end, area.offset), (0x7f00, 0x8f00, 0x2000));
        assert_eq!(area.file, Some((makedev(0, 1), 77)));
        assert!(area.writable && area.shared && area.kind == FileKind::Memfd);
        let area = parse("7f00-8f00 r--p 00000000 00:00 0 ").unwrap();
        assert_eq!(area.file, None);
        assert!(!area.writable && !area.shared && area.kind == FileKind::Other);
        let kind = |line| parse(line).unwrap().kind;
        assert_eq!(kind("7f00-8f00 rw-s 0 fd:01 5 /x/memfd:y"), FileKind::Other);
        assert_eq!(kind("7f00-8f00 rw-s 0 00:01 5 /dev/zero (deleted)"), FileKind::Anonymous);
        assert_eq!(parse("7f00 rw-s 0 00:01 5"), None);
    }

    #[test]
    fn this_process_has_some() {
        let here = 0u8;
        let at = &raw const here as u64;
        let areas: Vec<MappedArea> = MappedArea::all().unwrap().map(Result::unwrap).collect();
        assert!(areas.iter().any(|area| area.start <= at && at < area.end && area.writable));
    }
}
