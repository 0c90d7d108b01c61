//! Users and groups by name.

use std::fs;

/// The file of users, for [`id_of`].
pub const USERS: &str = "/etc/passwd";

/// The id of a name in a file of the shape of passwd(5), or of a number as it stands.
pub fn id_of(name: &str, file: &str) -> Option<u32> {
    if let Ok(id) = name.parse() {
        return Some(id);
    }
    let text = fs::read(file).ok()?;
    let id = text.split(|byte| *byte == b'\n').find_map(|line| {
        let mut fields = line.split(|byte| *byte == b':');
        (fields.next()? == name.as_bytes()).then(|| fields.nth(1))?
    })?;
    str::from_utf8(id).ok()?.parse().ok()
}
