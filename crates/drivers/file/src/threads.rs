//! Which process has the thread that works on a file: not a child of `fork`.

use std::{path::Path, sync::Arc};

use ringway_kring::epoch;

use crate::error::{Error, Result};

/// The process that has begun a thread for a file.
#[derive(Clone, Debug)]
pub(crate) struct ThreadOwner {
    epoch: u32,
    file: Arc<Path>,
}

impl ThreadOwner {
    /// This process.
    pub fn here(file: &Path) -> ThreadOwner {
        ThreadOwner { epoch: epoch(), file: file.into() }
    }

    /// Whether this process is a child of that one. The thread is not there then, and what it shares may
    /// be locked for ever.
    #[inline]
    pub fn is_parent(&self) -> bool {
        epoch() != self.epoch
    }

    /// # Errors
    /// In a child of that process.
    pub fn check(&self) -> Result<()> {
        match self.is_parent() {
            true => Err(Error::Forked { file: self.file.to_path_buf() }),
            false => Ok(()),
        }
    }
}
