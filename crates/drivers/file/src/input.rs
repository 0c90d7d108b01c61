//! The bytes of a file, decompressed: of a regular file, a named pipe, or standard input.

use std::{
    fs::File,
    io::{self, BufRead, BufReader, Read},
    path::Path,
    sync::{Arc, Mutex, PoisonError},
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    fd::AsFd,
};

use crate::{
    error::{Error, Result},
    format::{Compression, Kind},
};

/// Called before a read that has to wait: what was read so far is not to wait with it.
pub(crate) type BeforeWait = Box<dyn FnMut() + Send>;

/// Bytes read at once.
const CHUNK: usize = 1 << 16;

/// Opens `file`, `-` being standard input.
pub(crate) fn open(file: &Path) -> Result<File> {
    let opened = if file == Path::new("-") {
        io::stdin().as_fd().try_clone_to_owned().map(File::from)
    } else {
        File::open(file)
    };
    opened.map_err(|error| Error::open(file, error))
}

/// What has happened to the input that the parser does not tell.
#[derive(Clone, Default)]
pub(crate) struct Trouble(Arc<Mutex<Option<io::Error>>>);

impl Trouble {
    fn note(&self, error: io::Error) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
    }

    pub fn take(&self) -> Option<io::Error> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// The bytes of `input`, decompressed. The first are read at once.
pub(crate) fn bytes(
    input: impl Read + AsFd + Send + 'static,
    before_wait: BeforeWait,
    trouble: &Trouble,
) -> io::Result<Box<dyn Read + Send>> {
    let mut raw = BufReader::with_capacity(CHUNK, Patient { input, before_wait });
    let compression = Kind::compression_of(raw.fill_buf()?);
    let trouble = trouble.clone();
    Ok(match compression {
        Compression::None => Box::new(Noting { input: raw, trouble }),
        Compression::Gzip => {
            Box::new(Noting { input: flate2::bufread::MultiGzDecoder::new(raw), trouble })
        }
        Compression::Zstd => {
            Box::new(Noting { input: zstd::stream::read::Decoder::with_buffer(raw)?, trouble })
        }
    })
}

/// Says so before it waits.
struct Patient<R> {
    input: R,
    before_wait: BeforeWait,
}

impl<R: Read + AsFd> Read for Patient<R> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        let mut fds = [PollFd::new(&self.input, PollFlags::IN)];
        if matches!(poll(&mut fds, Some(&now)), Ok(0)) {
            (self.before_wait)();
        }
        self.input.read(to)
    }
}

/// Compressed data that ends too early ends like any other; other errors are put down.
struct Noting<R> {
    input: R,
    trouble: Trouble,
}

impl<R: Read> Read for Noting<R> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        self.input.read(to).or_else(|error| match error.kind() {
            io::ErrorKind::Interrupted => Err(error),
            io::ErrorKind::UnexpectedEof => {
                self.trouble.note(error);
                Ok(0)
            }
            kind => {
                self.trouble.note(error);
                Err(kind.into())
            }
        })
    }
}
