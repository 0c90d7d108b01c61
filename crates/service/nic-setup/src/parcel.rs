//! Values on their way to the helper and back: bytes, and the descriptors that are part of them.
//!
//! A descriptor is written as its place in the list beside the bytes. The list of the value that a thread
//! is packing, or unpacking, is kept for the thread: a serializer has no room for it.

use std::{borrow::Cow, cell::RefCell, io};

use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{DeserializeOwned, Error as _},
};

/// A value as a socket carries it.
#[derive(Debug, Default)]
pub struct Parcel {
    pub bytes: Vec<u8>,
    pub fds: Vec<OwnedFd>,
}

thread_local! {
    static FDS: RefCell<Vec<Option<OwnedFd>>> = const { RefCell::new(Vec::new()) };
    /// Why a descriptor could not be copied: a serializer's errors have no room for it either.
    static NO_COPY: RefCell<Option<io::Error>> = const { RefCell::new(None) };
}

/// The value with copies of its descriptors. EMFILE where there are no more to be had.
pub(crate) fn pack<T: Serialize>(value: &T) -> io::Result<Parcel> {
    FDS.take();
    let bytes = postcard::to_allocvec(value);
    let fds = FDS.take().into_iter().flatten().collect();
    let bytes = bytes.map_err(|error| NO_COPY.take().unwrap_or_else(|| io::Error::other(error)))?;
    Ok(Parcel { bytes, fds })
}

/// The value again. EINVAL if that is none; descriptors that are not its own are closed.
pub(crate) fn unpack<T: DeserializeOwned>(parcel: Parcel) -> io::Result<T> {
    FDS.set(parcel.fds.into_iter().map(Some).collect());
    let value = postcard::from_bytes(&parcel.bytes);
    FDS.take();
    value.map_err(|_| io::Error::from_raw_os_error(libc::EINVAL))
}

/// A descriptor that is part of a value.
#[derive(Debug)]
pub(crate) struct Fd(pub OwnedFd);

impl AsFd for Fd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl Serialize for Fd {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        fd::serialize(&self.0, to)
    }
}

impl<'de> Deserialize<'de> for Fd {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Fd, D::Error> {
        fd::deserialize(from).map(Fd)
    }
}

/// For a field that is an [`OwnedFd`].
pub(crate) mod fd {
    use super::*;

    pub fn serialize<S: Serializer>(fd: &OwnedFd, to: S) -> Result<S::Ok, S::Error> {
        let copy = fd.try_clone().map_err(|error| {
            let said = serde::ser::Error::custom(&error);
            NO_COPY.set(Some(error));
            said
        })?;
        let place = FDS.with_borrow_mut(|fds| {
            fds.push(Some(copy));
            fds.len() as u32 - 1
        });
        place.serialize(to)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<OwnedFd, D::Error> {
        let place = u32::deserialize(from)? as usize;
        let fd = FDS.with_borrow_mut(|fds| fds.get_mut(place).and_then(Option::take));
        fd.ok_or_else(|| D::Error::custom("no such descriptor"))
    }
}

/// Why the kernel, or a library, has refused something, as plain data.
#[derive(Serialize, Deserialize)]
enum Told<'a> {
    Errno(i32),
    Text(Cow<'a, str>),
}

/// For a field that is an [`io::Error`].
pub(crate) mod io_error {
    use super::*;

    pub fn serialize<S: Serializer>(error: &io::Error, to: S) -> Result<S::Ok, S::Error> {
        match error.raw_os_error() {
            Some(errno) => Told::Errno(errno).serialize(to),
            None => Told::Text(error.to_string().into()).serialize(to),
        }
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<io::Error, D::Error> {
        Ok(match Told::deserialize(from)? {
            Told::Errno(errno) => io::Error::from_raw_os_error(errno),
            Told::Text(text) => io::Error::other(text.into_owned()),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd;

    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

    use super::*;

    #[derive(Serialize, Deserialize)]
    struct Value {
        name: String,
        first: Fd,
        #[serde(with = "fd")]
        second: OwnedFd,
        none: Option<Fd>,
        #[serde(with = "io_error")]
        error: io::Error,
    }

    fn same_file(a: impl AsFd, b: impl AsFd) -> bool {
        let of = |fd: BorrowedFd<'_>| rustix::fs::fstat(fd).map(|stat| stat.st_ino).unwrap();
        of(a.as_fd()) == of(b.as_fd())
    }

    fn value() -> Value {
        let (first, second) = rustix::pipe::pipe().unwrap();
        let error = io::Error::from_raw_os_error(libc::EBUSY);
        Value { name: "x".into(), first: Fd(first), second, none: None, error }
    }

    #[test]
    fn descriptors_travel_beside_the_bytes() {
        let before = value();
        let parcel = pack(&before).unwrap();
        assert_eq!(parcel.fds.len(), 2);
        let after: Value = unpack(parcel).unwrap();
        assert_eq!((&*after.name, after.error.raw_os_error()), ("x", Some(libc::EBUSY)));
        assert!(after.none.is_none());
        assert!(same_file(&before.first, &after.first));
        assert!(same_file(&before.second, &after.second));
        assert_ne!(before.second.as_raw_fd(), after.second.as_raw_fd());
    }

    #[test]
    fn a_descriptor_is_given_once_and_none_is_made_up() {
        let parcel = pack(&value()).unwrap();
        let too_few =
            Parcel { bytes: parcel.bytes.clone(), fds: parcel.fds.into_iter().take(1).collect() };
        assert!(unpack::<Value>(too_few).is_err());
        // Both fields name the first.
        let bytes = postcard::to_allocvec(&(0u32, 0u32)).unwrap();
        let (fd, _) = rustix::pipe::pipe().unwrap();
        assert!(unpack::<(Fd, Fd)>(Parcel { bytes, fds: vec![fd] }).is_err());
        // Nor is one left for the next value.
        let bytes = postcard::to_allocvec(&0u32).unwrap();
        assert!(unpack::<Fd>(Parcel { bytes, fds: Vec::new() }).is_err());
    }

    /// Run by itself in a process of its own: a limit of descriptors is the process's.
    #[test]
    fn what_a_copy_lacks_is_told() {
        const NAME: &str = "parcel::tests::what_a_copy_lacks_is_told";
        if !std::env::args().any(|argument| argument == "--exact") {
            let mut test = std::process::Command::new(std::env::current_exe().unwrap());
            let status = test.args(["--exact", NAME]).status().unwrap();
            assert!(status.success());
            return;
        }
        let value = value();
        let next = value.first.0.try_clone().unwrap().as_raw_fd() as u64;
        let limit = getrlimit(Resource::Nofile);
        setrlimit(Resource::Nofile, Rlimit { current: Some(next), ..limit }).unwrap();
        assert_eq!(pack(&value).unwrap_err().raw_os_error(), Some(libc::EMFILE));
        setrlimit(Resource::Nofile, limit).unwrap();
        assert_eq!(pack(&value).unwrap().fds.len(), 2);
    }
}
