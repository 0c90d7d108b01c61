//! The files of a configuration as text, and where in them something is.

use std::{
    fs::File,
    io::{self, Read},
    os::unix::fs::{FileTypeExt, OpenOptionsExt},
    path::Path,
};

/// The most bytes of a file. Switches of all their ports, each with a filter, have less.
const MOST: u64 = 64 << 20;

/// Whether to wait for what writes a file, where that is a pipe.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Waits {
    Yes,
    No,
}

/// The text of the file at `path`.
pub(super) fn read_text(path: &Path, waits: Waits) -> io::Result<String> {
    text_of(open(path, waits)?)
}

/// Opens the file at `path`. A folder, a device or a pipe is refused, unless it is a pipe and the reader
/// [waits](Waits): a daemon that waits for one reads nothing again.
pub(super) fn open(path: &Path, waits: Waits) -> io::Result<File> {
    // A pipe that is opened so has an end at once; its text is not for those that do not wait.
    let flags = if waits == Waits::Yes { 0 } else { libc::O_NONBLOCK };
    let file = File::options().read(true).custom_flags(flags).open(path)?;
    let kind = file.metadata()?.file_type();
    // /dev/null in place of a file takes that away.
    if !(kind.is_file() || kind.is_char_device() || (kind.is_fifo() && waits == Waits::Yes)) {
        let what = if kind.is_dir() { "is a folder" } else { "is no regular file" };
        let problem = format!("{what}; put a file there");
        return Err(io::Error::new(io::ErrorKind::InvalidInput, problem));
    }
    Ok(file)
}

/// All that is in it.
pub(super) fn text_of(file: File) -> io::Result<String> {
    let mut bytes = Vec::new();
    file.take(MOST + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MOST {
        let problem = format!("has more than {} MiB: this is no configuration", MOST >> 20);
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, problem));
    }
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        let line = 1 + error.as_bytes().iter().take(at).filter(|byte| **byte == b'\n').count();
        let problem = format!("line {line} is not UTF-8; save the file in that encoding");
        io::Error::new(io::ErrorKind::InvalidData, problem)
    })
}

/// The line of the byte at `at`.
pub(super) fn line(text: &str, at: usize) -> usize {
    1 + text.bytes().take(at).filter(|byte| *byte == b'\n').count()
}

/// The file and the line of the byte at `at`.
pub(super) fn of(path: &str, text: &str, at: usize) -> String {
    format!("{path}: line {}", line(text, at))
}

/// The key whose value begins on the line of the byte at `at`.
pub(super) fn key(text: &str, at: usize) -> Option<&str> {
    let before = text.get(..at)?;
    let line = before.rfind('\n').map_or(before, |end| before.get(end + 1..).unwrap_or_default());
    line.split_once('=').map(|(key, _)| key.trim())
}

/// The line that sets a key which is in no table.
pub(super) fn line_of_key(text: &str, key: &str) -> Option<usize> {
    let sets = |line: &str| {
        line.trim_start().strip_prefix(key).is_some_and(|rest| rest.trim_start().starts_with('='))
    };
    let before_tables = text.lines().take_while(|line| !line.trim_start().starts_with('['));
    before_tables.enumerate().find(|(_, line)| sets(line)).map(|(at, _)| at + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_found() {
        let text = "# mode = 1\n\n modes = 2\nmode= 3\n[global_region]\nbuf_size = 4\n";
        assert_eq!(line_of_key(text, "mode"), Some(4));
        assert_eq!(line_of_key(text, "modes"), Some(3));
        assert_eq!(line_of_key(text, "buf_size"), None);
    }

    /// Nothing waits for a pipe without a writer, and nothing reads for ever.
    #[test]
    fn what_is_no_file_is_refused() {
        let folder = std::env::temp_dir().join(format!("ringwayd-place-{}", std::process::id()));
        std::fs::create_dir(&folder).unwrap();
        let pipe = folder.join("pipe");
        rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, 0o600.into()).unwrap();
        let bad = folder.join("bad");
        std::fs::write(&bad, b"a = 1\nb = '\xff'\n").unwrap();
        let said = |path: &Path| read_text(path, Waits::No).unwrap_err().to_string();
        assert!(said(&pipe).contains("no regular file"));
        assert!(said(&folder).contains("is a folder"));
        assert!(said(&bad).contains("line 2 is not UTF-8"));
        assert!(said(Path::new("/dev/zero")).contains("more than 64 MiB"));
        assert_eq!(read_text(Path::new("/dev/null"), Waits::No).unwrap(), "");
        let writer = std::thread::spawn({
            let pipe = pipe.clone();
            move || std::fs::write(pipe, "mode = '0600'").unwrap()
        });
        assert_eq!(read_text(&pipe, Waits::Yes).unwrap(), "mode = '0600'");
        writer.join().unwrap();
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
