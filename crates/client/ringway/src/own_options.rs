//! What a port may be asked for that netmap knows nothing of: `@filter=udp port 53`, `@sample=10`,
//! `@mode=packet`, `@buffers=4096`, `@timestamps=hardware` and `@user=alice`.

use ringway_ipc::{USERS, id_of};
use ringway_portspec::{Body, Opt, option};
use ringway_proto::{NicMode, Options, Timestamps};

use crate::{error::Error, filter::Filter};

/// Ringway's own options, as they stand in the name of a port.
///
/// ```
/// use ringway::{NicMode, OwnOptions};
///
/// let (name, list) = OwnOptions::split("eth0@mode=copy@filter=udp port 53");
/// let own = OwnOptions::parse(list)?;
/// assert_eq!((name, own.mode), ("eth0", Some(NicMode::Copy)));
/// assert_eq!(own.filter.as_deref(), Some("udp port 53"));
/// # Ok::<(), ringway::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OwnOptions {
    /// Which frames are wanted.
    pub filter: Option<String>,
    /// Of what matches, one in so many.
    pub sample: Option<u32>,
    /// The mode that an interface is to be in, and no other.
    pub mode: Option<NicMode>,
    /// Bytes of the buffers that it is to have.
    pub buf_size: Option<u32>,
    /// The timestamps that its frames are to have.
    pub timestamps: Option<Timestamps>,
    /// The other user of the pipe; for root's programs, the user that has the port.
    pub user: Option<u32>,
}

/// Their names.
pub(crate) const NAMES: [&str; 6] = ["filter", "sample", "mode", "buffers", "timestamps", "user"];

impl OwnOptions {
    /// Reads a list of these options and no others. Errors say which part is wrong.
    pub fn parse(list: &str) -> Result<OwnOptions, Error> {
        let wrong = |problem| Error::Name { name: list.into(), problem };
        let mut own = OwnOptions::default();
        let mut rest = list.as_bytes();
        while !rest.is_empty() {
            let (option, others) = option(rest).map_err(|e| wrong(e.to_string()))?;
            rest = others;
            if !own.take(&option).map_err(wrong)? {
                let name = String::from_utf8_lossy(option.name);
                let known = NAMES.join(", ");
                return Err(wrong(format!("option `{name}`: not one of {known}")));
            }
        }
        Ok(own)
    }

    /// Splits a name before the first `@`, if one of these options follows.
    pub fn split(name: &str) -> (&str, &str) {
        let (plain, list) = name.split_at(name.find('@').unwrap_or(name.len()));
        let is_own = |(option, _): (Opt<'_>, _)| {
            NAMES.iter().any(|name| name.as_bytes() == option.name) && option.body != Body::None
        };
        if option(list.as_bytes()).is_ok_and(is_own) { (plain, list) } else { (name, "") }
    }

    /// Takes an option in. False if it is not one of these.
    pub(crate) fn take(&mut self, option: &Opt<'_>) -> Result<bool, String> {
        let is_given = match option.name {
            b"filter" => self.filter.is_some(),
            b"sample" => self.sample.is_some(),
            b"mode" => self.mode.is_some(),
            b"buffers" => self.buf_size.is_some(),
            b"timestamps" => self.timestamps.is_some(),
            b"user" => self.user.is_some(),
            _ => false,
        };
        if is_given {
            return Err(given_twice(&String::from_utf8_lossy(option.name)));
        }
        let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
        match (option.name, &option.body) {
            (b"filter", Body::Default(expression)) => self.filter = Some(text(expression)),
            (b"filter", _) => return Err("write filter as '@filter=udp port 53'".into()),
            (b"sample", Body::Default(count)) => {
                let count = text(count).parse().ok().filter(|count| *count > 0);
                self.sample = Some(count.ok_or("sample needs a number: @sample=10")?);
            }
            (b"sample", _) => return Err("write sample as @sample=10".into()),
            (b"mode", Body::Default(mode)) => self.mode = Some(text(mode).parse()?),
            (b"mode", _) => return Err("write mode as @mode=packet".into()),
            (b"buffers", Body::Default(size)) => {
                let size = text(size).parse();
                self.buf_size = Some(size.map_err(|_| "buffers needs bytes: @buffers=4096")?);
            }
            (b"buffers", _) => return Err("write buffers as @buffers=4096".into()),
            (b"timestamps", Body::Default(kind)) => self.timestamps = Some(text(kind).parse()?),
            (b"timestamps", _) => return Err("write timestamps as @timestamps=hardware".into()),
            (b"user", Body::Default(name)) => {
                let name = text(name);
                let unknown =
                    || format!("user {name:?}: there is none here; write a name or a number");
                self.user = Some(id_of(&name, USERS).ok_or_else(unknown)?);
            }
            (b"user", _) => return Err("write user as @user=alice".into()),
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// The same for the registration of a port, with the filter compiled. Whether the port can have them,
    /// [`check_options`](crate::check_options) knows.
    #[doc(hidden)]
    pub fn options(&self) -> Result<Options, Error> {
        let filter = filter_of(self.filter.as_deref(), self.sample)?;
        let OwnOptions { mode, buf_size, timestamps, user, .. } = *self;
        Ok(Options { filter, mode, buf_size, timestamps, user, ..Options::default() })
    }
}

/// What is wrong with a name that has an option twice: one of them would be ignored.
pub(crate) fn given_twice(option: &str) -> String {
    format!("option {option} is given twice; leave one of them out")
}

/// The filter that an expression and a sample ask for.
fn filter_of(
    expression: Option<&str>,
    one_in: Option<u32>,
) -> Result<Option<ringway_proto::Filter>, Error> {
    if expression.is_none() && one_in.unwrap_or(1) <= 1 {
        return Ok(None);
    }
    let filter = Filter::new(expression.unwrap_or_default())?;
    Ok(Some(filter.one_in(one_in.unwrap_or(1)).into()))
}

#[cfg(test)]
mod tests {
    use ringway_proto::Cause;

    use super::*;

    #[test]
    fn own_options_and_no_others() {
        let own = OwnOptions::parse("@filter=udp port 53@sample=10@mode=copy").unwrap();
        assert_eq!((own.filter.as_deref(), own.sample), (Some("udp port 53"), Some(10)));
        assert_eq!(own.mode, Some(NicMode::Copy));
        assert_eq!(OwnOptions::parse("").unwrap(), OwnOptions::default());
        let own = OwnOptions::parse("@buffers=4096@timestamps=software").unwrap();
        assert_eq!((own.buf_size, own.timestamps), (Some(4096), Some(Timestamps::Software)));
        for bad in [
            "@buffers",
            "@buffers=big",
            "@timestamps=x",
            "@",
            "@share=x",
            "@filter",
            "@mode=x",
            "@sample=0",
            "filter=udp",
            "@x",
            "@user",
            "@user=no such user",
            "@filter=udp@mode=copy@filter=udp",
            "@sample=2@sample=3",
            "@mode=copy@mode=packet",
            "@buffers=2048@buffers=4096",
            "@timestamps=software@timestamps=hardware",
            "@user=1@user=2",
        ] {
            assert_eq!(OwnOptions::parse(bad).unwrap_err().cause(), Cause::Invalid, "{bad}");
        }
    }

    #[test]
    fn users_are_names_or_numbers() {
        for (option, uid) in [("@user=root", 0), ("@user=77", 77)] {
            let own = OwnOptions::parse(option).unwrap();
            assert_eq!(own.options().unwrap().user, Some(uid));
        }
    }

    #[test]
    fn names_are_split_before_own_options_only() {
        assert_eq!(OwnOptions::split("e@mode=copy"), ("e", "@mode=copy"));
        assert_eq!(OwnOptions::split("e@filter=udp@mode=x"), ("e", "@filter=udp@mode=x"));
        for whole in ["e", "e@", "e@3", "e@x=1", "e@filter", "@mode", ""] {
            assert_eq!(OwnOptions::split(whole), (whole, ""));
        }
    }
}
