//! What the files of a folder beside the system daemon's configuration add to it, in the order of their names:
//! `/etc/ringway/ringwayd.d/*.toml`. So that packages and programs can declare what is theirs without changing
//! the operator's file.

use std::{
    fs,
    path::{Path, PathBuf},
};

use serde::Deserialize;

use super::{
    Config, Error, Grant, Reserve,
    place::{Waits, read_text},
    switches::Switch,
};

const DROP_IN_REMEDY: &str = "correct the file, or remove it to be without what it adds";

/// What such a file may have: what is a list, to which others add.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct DropIn {
    grant: Vec<Grant>,
    reserve: Vec<Reserve>,
    switch: Vec<Switch>,
}

/// The folder beside the file at `path`.
pub(super) fn folder(path: &Path) -> PathBuf {
    path.with_extension("d")
}

/// Whether the file at `path` is read. What editors keep beside a file while it is edited begins with a dot, be it a copy
/// or a lock, which may be a link to no file (Emacs' `.#x.toml`): it declares nothing.
fn is_drop_in(path: &Path) -> bool {
    let is_hidden = path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
    !is_hidden && path.extension().is_some_and(|it| it == "toml")
}

/// The files in a folder that are read, in the order of their names. None if there is no folder.
pub(super) fn paths(folder: &Path) -> Result<Vec<PathBuf>, Error> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) => return Error::unless_missing(folder, error).map(|()| Vec::new()),
    };
    let paths: Result<Vec<_>, _> = entries.map(|entry| Ok(entry?.path())).collect();
    let mut paths = paths.map_err(|source| Error::read(folder, source))?;
    paths.retain(|path| is_drop_in(path));
    paths.sort();
    Ok(paths)
}

/// Adds what is in the folder of the file at `path`.
pub(super) fn read(path: &Path, config: &mut Config) -> Result<(), Error> {
    for path in paths(&folder(path))? {
        let text = read_text(&path, Waits::No).map_err(|source| Error::read(&path, source))?;
        let shown = path.display().to_string();
        let mut more: DropIn = toml::from_str(&text)
            .map_err(|error| Error::parse(&shown, &text, &error, DROP_IN_REMEDY))?;
        more.switch.iter_mut().for_each(|switch| switch.note_place(&shown, &text));
        more.grant.iter_mut().for_each(|grant| grant.note_place(&shown, &text));
        more.reserve.iter_mut().for_each(|reserve| reserve.note_place(&shown, &text));
        config.grant.append(&mut more.grant);
        config.reserve.append(&mut more.reserve);
        config.switch.append(&mut more.switch);
    }
    Ok(())
}
