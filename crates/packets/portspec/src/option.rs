//! The list of options: `@NAME`, `@NAME=VALUE`, `@NAME:KEY=VALUE,KEY=VALUE`.
//!
//! Which options and keys there are is the reader's business.

use crate::Error;

/// One option, taken apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Opt<'a> {
    /// What stands before `=` or `:`.
    pub name: &'a [u8],
    /// What follows.
    pub body: Body<'a>,
}

/// What follows the name of an option.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Body<'a> {
    /// Nothing.
    None,
    /// `=VALUE`, for the option's default key: all of it, commas too.
    Default(&'a [u8]),
    /// `:KEY=VALUE,...`
    Keys(Keys<'a>),
}

/// The keys of an option, one after the other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Keys<'a> {
    /// `None` after the last.
    rest: Option<&'a [u8]>,
}

/// `NAME=VALUE`, or `NAME` alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key<'a> {
    /// What stands before `=`.
    pub name: &'a [u8],
    /// What stands behind `=`, if there is one.
    pub value: Option<&'a [u8]>,
}

impl Key<'_> {
    /// Whether this is the key that is called `name`, which a user may write with `-` for `_`.
    pub fn is(&self, name: &[u8]) -> bool {
        self.name.len() == name.len()
            && self.name.iter().zip(name).all(|(a, b)| a == b || (*a == b'-' && *b == b'_'))
    }
}

/// Reads the first option of a list; returns it, and the list of the others.
pub fn option(list: &[u8]) -> Result<(Opt<'_>, &[u8]), Error> {
    let list = list.strip_prefix(b"@").ok_or(Error::List)?;
    let (option, rest) = split(list, |byte| byte == b'@');
    let (name, body) = split(option, |byte| matches!(byte, b':' | b'='));
    if name.is_empty() {
        return Err(Error::Option);
    }
    let body = match body {
        [b'=', value @ ..] => Body::Default(value),
        [b':', keys @ ..] => Body::Keys(Keys { rest: Some(keys) }),
        _ => Body::None,
    };
    Ok((Opt { name, body }, rest))
}

impl<'a> Iterator for Keys<'a> {
    type Item = Result<Key<'a>, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        let (key, rest) = split(self.rest?, |byte| byte == b',');
        self.rest = rest.split_first().map(|(_, rest)| rest);
        let (name, value) = split(key, |byte| byte == b'=');
        if name.is_empty() {
            self.rest = None;
            return Some(Err(Error::Key));
        }
        Some(Ok(Key { name, value: value.split_first().map(|(_, value)| value) }))
    }
}

/// What is before the first separator, and the rest, which begins with it.
fn split(text: &[u8], separates: impl Fn(u8) -> bool) -> (&[u8], &[u8]) {
    text.split_at(text.iter().position(|byte| separates(*byte)).unwrap_or(text.len()))
}
