//! A folder of this user's below `/dev/shm`, where every user may make folders.
//!
//! A name that can be guessed could be taken by another user, for good: `/dev/shm` is sticky, so
//! only that user and root could remove it. So the name ends with a number that other users cannot
//! know before the folder is there: the serial number of a key that the kernel keeps for the user
//! (`user-keyring(7)`), and that all of the user's processes find. When the folder has gone, others
//! know its name. If one of them has taken it, the user gets another key.

use std::{
    fs,
    path::{Path, PathBuf},
};

use rustix::process::geteuid;

use crate::{
    Error,
    socket_path::{is_alone, leave_folder, secure, user_folder},
    sys,
};

const PLACE: &str = "/dev/shm";

/// How often another user may take the name of the folder while a program is about to use it. Each
/// time it has to be in the moment between a look at the folder and the making of it.
const TRIES: usize = 16;

/// Does what takes a folder that is [secure]; again where another user has taken its name
/// meanwhile.
pub(crate) fn retried<T>(run: impl Fn() -> Result<T, Error>) -> Result<T, Error> {
    for _ in 1..TRIES {
        match run() {
            Err(Error::Unsafe { .. } | Error::Theirs { .. }) => {}
            result => return result,
        }
    }
    run()
}

/// Where the folder is, or can be made. `None` where there is no such place, or the kernel keeps no
/// key.
pub(crate) fn find() -> Option<PathBuf> {
    let place = Path::new(PLACE);
    if !place.is_dir() {
        return None;
    }
    for _ in 0..TRIES {
        let key = sys::folder_key().ok()?;
        let folder = place.join(format!("ringway-{}-{key:08x}", geteuid().as_raw()));
        match fs::symlink_metadata(&folder) {
            Ok(there) if !is_alone(&there) => sys::remove_folder_key(key),
            _ => return Some(folder),
        }
    }
    None
}

/// The folder for what programs of this user share, whichever daemon and session they have. It is
/// made if it is not there. Where there can be none, it is [`user_folder`].
///
/// # Errors
/// [`Error::Unsafe`]: it cannot be made.
pub fn shared_folder() -> Result<PathBuf, Error> {
    retried(|| match find() {
        Some(folder) => secure(&folder).map(|()| folder),
        None => user_folder(),
    })
}

/// Removes the [folder](shared_folder) if there is nothing in it.
pub fn leave_shared_folder() {
    match find() {
        Some(folder) => leave_folder(&folder),
        None => crate::leave_user_folder(),
    }
}
