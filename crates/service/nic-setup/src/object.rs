//! Loading the objects that `build.rs` compiled.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{LazyLock, Mutex, PoisonError};

use aya::programs::SchedClassifier;
use aya::{Ebpf, EbpfLoader};

/// A new loader reads the types of the whole kernel: megabytes, and tens of milliseconds. Our programs
/// need none of them, so there is one loader, which has forgotten them.
static LOADER: LazyLock<Mutex<EbpfLoader<'static>>> = LazyLock::new(|| {
    let mut loader = EbpfLoader::new();
    loader.btf(None);
    loader.into()
});

/// Makes the loader, unless it is there.
pub(crate) fn prepare() {
    LazyLock::force(&LOADER);
}

/// The programs and maps of an object, each time anew.
pub(crate) fn load(object: &[u8]) -> io::Result<Ebpf> {
    // It has nothing that a panic could have left half done.
    let mut loader = LOADER.lock().unwrap_or_else(PoisonError::into_inner);
    loader.load(object).map_err(io::Error::other)
}

/// The same, with as many `entries` of a map as this machine needs: from then on of each that is called so.
pub(crate) fn load_with(object: &[u8], map: &'static str, entries: u32) -> io::Result<Ebpf> {
    let mut loader = LOADER.lock().unwrap_or_else(PoisonError::into_inner);
    loader.map_max_entries(map, entries).load(object).map_err(io::Error::other)
}

/// The program `name` of traffic control, loaded into the kernel.
pub(crate) fn classifier(object: &mut Ebpf, name: &str) -> io::Result<OwnedFd> {
    let program: &mut SchedClassifier = object
        .program_mut(name)
        .ok_or_else(|| io::Error::other("no such program in the object"))?
        .try_into()
        .map_err(io::Error::other)?;
    program.load().map_err(io::Error::other)?;
    program.fd().map_err(io::Error::other)?.as_fd().try_clone_to_owned()
}
