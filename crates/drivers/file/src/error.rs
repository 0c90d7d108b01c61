//! What can go wrong with a capture file.

use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

/// An error of a capture file. The texts name the file, the cause and the remedy.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Error {
    /// It cannot be opened.
    #[error("{}: {source}; check the path and its permissions", file.display())]
    Open {
        /// The file.
        file: PathBuf,
        /// What the system says.
        source: Arc<io::Error>,
    },
    /// There is one already, with something in it.
    #[error("{}: there is such a file already; write to another one, or let it be replaced with --overwrite", file.display())]
    Exists {
        /// The file.
        file: PathBuf,
    },
    /// This process reads it, or writes it already.
    #[error("{}: this command has the file open already; write to another one", file.display())]
    InUse {
        /// The file.
        file: PathBuf,
    },
    /// It is damaged, or of a kind that cannot be sent.
    #[error("{}: byte {offset}: {cause}; {remedy}", file.display())]
    Damaged {
        /// The file.
        file: PathBuf,
        /// Where the block begins, in bytes of what is left when it is decompressed.
        offset: u64,
        /// What is wrong.
        cause: String,
        /// What to do.
        remedy: &'static str,
    },
    /// Its name asks for a compression that is not written here.
    #[error("{}: files are not compressed as {ending}; a name that ends in .gz or .zst compresses the file", file.display())]
    Compression {
        /// The file.
        file: PathBuf,
        /// The end of its name.
        ending: &'static str,
    },
    /// Somebody has deleted it.
    #[error("{}: the file was deleted while it was written, and what was in it is lost; let it be until the capture has ended, or rotate", file.display())]
    Deleted {
        /// The file.
        file: PathBuf,
    },
    /// It is a parent of this process that has opened it.
    #[error("{}: the file is that of the process that opened it, of which this is a child; open one in the child", file.display())]
    Forked {
        /// The file.
        file: PathBuf,
    },
    /// It cannot be written to any more.
    #[error("{}: {source}; {remedy}", file.display())]
    Write {
        /// The file.
        file: PathBuf,
        /// What the system says.
        source: Arc<io::Error>,
        /// What to do.
        remedy: String,
    },
}

/// The result of what is done with a capture file.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    pub(crate) fn open(file: &std::path::Path, source: io::Error) -> Error {
        Error::Open { file: file.into(), source: Arc::new(source) }
    }

    /// `frames`: how many the file has, if that is known.
    pub(crate) fn write(file: &Path, source: io::Error, frames: Option<u64>) -> Error {
        let kept = match frames {
            Some(frames) => format!("the file has {frames} packets"),
            None => "the file is readable up to here".into(),
        };
        let remedy = match source.kind() {
            io::ErrorKind::StorageFull
            | io::ErrorKind::QuotaExceeded
            | io::ErrorKind::FileTooLarge
                if is_stdout(file) =>
            {
                "make room, or write to a file of its own (-w FILE), which can be rotated; what was written may end \
                 in the middle of a block".into()
            }
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                format!("make room, or limit the capture by rotation and a number of files; {kept}")
            }
            io::ErrorKind::FileTooLarge => format!("rotate the capture by size; {kept}"),
            io::ErrorKind::BrokenPipe => {
                "the program at the other end of the pipe has gone; start both again".into()
            }
            io::ErrorKind::TimedOut => {
                "nothing is read from the pipe; start the program at its other end first".into()
            }
            _ => format!("write to another disk; {kept}"),
        };
        Error::Write { file: file.into(), source: Arc::new(source), remedy }
    }

    /// The system's error, where it is one.
    pub fn io(&self) -> Option<&io::Error> {
        match self {
            Error::Open { source, .. } | Error::Write { source, .. } => Some(source),
            Error::Damaged { .. }
            | Error::Exists { .. }
            | Error::InUse { .. }
            | Error::Compression { .. }
            | Error::Deleted { .. }
            | Error::Forked { .. } => None,
        }
    }
}

/// Whether a file is standard output.
pub(crate) fn is_stdout(file: &Path) -> bool {
    file == Path::new("-")
}
