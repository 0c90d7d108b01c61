//! Users and groups by name.

use std::fs;

/// The file of users, for [`id_of`].
pub const USERS: &str = "/etc/passwd";

/// The file of groups, for [`id_of`].
pub const GROUPS: &str = "/etc/group";

/// The users of a group that the machine's files tell of: those it is the first group of, and those
/// it lists.
pub fn members_of(gid: u32) -> Vec<u32> {
    let lines = |file| -> Vec<Vec<String>> {
        let text = fs::read(file).map(|text| String::from_utf8_lossy(&text).into_owned());
        let text = text.unwrap_or_default();
        text.lines().map(|line| line.split(':').map(Into::into).collect()).collect()
    };
    let is_it = |field: Option<&String>| field.is_some_and(|text| text.parse() == Ok(gid));
    let number = |field: Option<&String>| field.and_then(|text| text.parse().ok());
    let first = lines(USERS);
    let first =
        first.iter().filter(|user| is_it(user.get(3))).filter_map(|user| number(user.get(2)));
    let groups = lines(GROUPS);
    let listed = groups.iter().filter(|group| is_it(group.get(2))).filter_map(|group| group.get(3));
    let listed = listed.flat_map(|names| names.split(',')).filter(|name| !name.is_empty());
    first.chain(listed.filter_map(|name| id_of(name, USERS))).collect()
}

/// The id of a name in a file of the shape of passwd(5), or of a number as it stands. The greatest number is no id: to
/// the kernel it says that an owner or a group is to stay as it is (chown(2)).
pub fn id_of(name: &str, file: &str) -> Option<u32> {
    let id = |text: &str| text.parse().ok().filter(|id| *id != u32::MAX);
    if name.parse::<u32>().is_ok() {
        return id(name);
    }
    let text = fs::read(file).ok()?;
    let field = text.split(|byte| *byte == b'\n').find_map(|line| {
        let mut fields = line.split(|byte| *byte == b':');
        (fields.next()? == name.as_bytes()).then(|| fields.nth(1))?
    })?;
    id(str::from_utf8(field).ok()?)
}

/// The home directory of a user in such a file of users.
pub fn home_of(user: u32, file: &str) -> Option<String> {
    let text = fs::read_to_string(file).ok()?;
    let home = text.lines().find_map(|line| {
        let mut fields = line.split(':').skip(2);
        (fields.next()?.parse() == Ok(user)).then(|| fields.nth(2))?
    })?;
    Some(home.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_greatest_number_is_no_id() {
        assert_eq!(id_of("4294967294", GROUPS), Some(u32::MAX - 1));
        for file in [USERS, GROUPS] {
            assert_eq!(id_of("4294967295", file), None);
            assert_eq!(id_of("root", file), Some(0));
        }
    }
}
