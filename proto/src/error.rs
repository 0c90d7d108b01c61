//! Why a request was refused: for a program an errno, for a person a sentence.

use serde::{Deserialize, Serialize};

use crate::options::Statuses;

/// A refused request. The personalities report `errno`; everybody else shows the sentence,
/// which names the port, the cause and the remedy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{text}")]
pub struct Error {
    pub errno: i32,
    pub text: String,
    /// How far the options of a registration came.
    pub options: Statuses,
}

pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    pub fn new(errno: i32, text: impl Into<String>) -> Error {
        Error { errno, text: text.into(), options: Statuses::default() }
    }

    pub fn invalid(text: impl Into<String>) -> Error {
        Error::new(libc::EINVAL, text)
    }

    pub fn busy(text: impl Into<String>) -> Error {
        Error::new(libc::EBUSY, text)
    }

    pub fn no_memory(text: impl Into<String>) -> Error {
        Error::new(libc::ENOMEM, text)
    }

    pub fn absent(text: impl Into<String>) -> Error {
        Error::new(libc::ENXIO, text)
    }

    pub fn io(what: &str, error: std::io::Error) -> Error {
        Error::new(error.raw_os_error().unwrap_or(libc::EIO), format!("{what}: {error}"))
    }
}
