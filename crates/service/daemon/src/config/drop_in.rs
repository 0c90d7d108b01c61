//! What the files of a folder beside the system daemon's configuration add to it, in the order of their names:
//! `/etc/ringway/ringwayd.d/*.toml`. So that packages and programs can declare what is theirs without changing
//! the operator's file.

use std::{
    fs,
    io::ErrorKind,
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
fn folder(path: &Path) -> PathBuf {
    path.with_extension("d")
}

/// Whether the file at `path` is read. What editors keep beside a file while it is edited begins with a dot, be it a copy
/// or a lock, which may be a link to no file (Emacs' `.#x.toml`): it declares nothing.
fn is_drop_in(path: &Path) -> bool {
    let is_hidden = path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
    !is_hidden && path.extension().is_some_and(|it| it == "toml")
}

/// Where the link at `path` leads, if nothing is there.
fn leads_nowhere(path: &Path) -> Option<String> {
    let target = fs::read_link(path).ok()?;
    matches!(path.try_exists(), Ok(false)).then(|| target.display().to_string())
}

/// Adds what is in the folder of the file at `path`.
pub(super) fn read(path: &Path, config: &mut Config) -> Result<(), Error> {
    let folder = folder(path);
    let failed = |path: &Path| {
        let path = path.display().to_string();
        move |source| Error::Read { path, source }
    };
    let entries = match fs::read_dir(&folder) {
        Ok(entries) => entries,
        Err(error) => {
            return match leads_nowhere(&folder) {
                Some(target) => Err(Error::Dangling { path: folder.display().to_string(), target }),
                None if error.kind() == ErrorKind::NotFound => Ok(()),
                None => Err(failed(&folder)(error)),
            };
        }
    };
    let paths: Result<Vec<_>, _> = entries.map(|entry| Ok(entry?.path())).collect();
    let mut paths = paths.map_err(failed(&folder))?;
    paths.retain(|path| is_drop_in(path));
    paths.sort();
    for path in paths {
        let text = read_text(&path, Waits::No).map_err(|source| match leads_nowhere(&path) {
            Some(target) => Error::Dangling { path: path.display().to_string(), target },
            None => failed(&path)(source),
        })?;
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
