//! Versions of the messages. Each message begins with the number of its own.
//!
//! A client asks in the newest version that it and the daemon have in common, and is answered in that version. So
//! programs go on with a daemon that was upgraded under them, and newer programs with a daemon that was not yet.
//! A structure grows by fields that say [since which version](Shown) they are there; `docs/control-protocol.md` has
//! the rules.

use std::{cell::Cell, fmt};

use serde::{Deserialize, Deserializer, Serialize, Serializer, ser::Error as _};

/// The newest version, and what a client asks in first.
pub const VERSION: u8 = if cfg!(feature = "next") { 8 } else { 7 };

/// The oldest version that is spoken.
pub const OLDEST: u8 = 6;

/// The first byte of a message that says which versions the daemon speaks: no version has this number.
pub const NO_VERSION: u8 = 0;

/// The versions that one side speaks: all from the oldest to the newest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Versions {
    /// The oldest.
    pub oldest: u8,
    /// The newest.
    pub newest: u8,
}

impl Versions {
    /// Those that this code speaks.
    pub const SPOKEN: Versions = Versions { oldest: OLDEST, newest: VERSION };

    /// Whether this is one of them.
    pub fn contains(self, version: u8) -> bool {
        (self.oldest..=self.newest).contains(&version)
    }

    /// The newest version that both sides speak.
    pub fn common(self, other: Versions) -> Option<u8> {
        let newest = self.newest.min(other.newest);
        (self.contains(newest) && other.contains(newest)).then_some(newest)
    }
}

impl fmt::Display for Versions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Versions { oldest, newest } if oldest == newest => write!(f, "version {newest}"),
            Versions { oldest, newest } => write!(f, "versions {oldest} to {newest}"),
        }
    }
}

thread_local! {
    /// The version of the message that this thread is writing or reading.
    static SPOKEN: Cell<u8> = const { Cell::new(VERSION) };
}

/// The version of the message that this thread is writing or reading.
pub(crate) fn spoken() -> u8 {
    SPOKEN.get()
}

/// Writes or reads a message of this version: it has the fields of that version then, and no others.
pub fn in_version<T>(version: u8, message: impl FnOnce() -> T) -> T {
    struct Back(u8);
    impl Drop for Back {
        fn drop(&mut self) {
            SPOKEN.set(self.0);
        }
    }
    let _back = Back(SPOKEN.replace(version));
    message()
}

/// A field that there is from version `SINCE` on, and that only informs: an older version is told without it.
///
/// For `#[serde(with = "Shown::<7>")]`. Where the message has no such field, its value is the default.
pub struct Shown<const SINCE: u8>;

/// As [`Shown`], but a field that matters: what it says cannot be said in an older version, unless it is the default.
/// Then the message is not written.
pub struct Needed<const SINCE: u8>;

impl<const SINCE: u8> Shown<SINCE> {
    /// Writes the field, if the message has it.
    ///
    /// # Errors
    /// Those of the serializer.
    pub fn serialize<S: Serializer>(field: &impl Serialize, to: S) -> Result<S::Ok, S::Error> {
        // A unit takes no bytes.
        if spoken() < SINCE { to.serialize_unit() } else { field.serialize(to) }
    }

    /// Reads the field, if the message has it.
    ///
    /// # Errors
    /// Those of the deserializer.
    pub fn deserialize<'de, T: Deserialize<'de> + Default, D: Deserializer<'de>>(
        from: D,
    ) -> Result<T, D::Error> {
        if spoken() < SINCE { Ok(T::default()) } else { T::deserialize(from) }
    }
}

impl<const SINCE: u8> Needed<SINCE> {
    /// Writes the field, if the message has it.
    ///
    /// # Errors
    /// Those of the serializer; and the message has no such field, but it is not the default.
    pub fn serialize<T: Serialize + Default + PartialEq, S: Serializer>(
        field: &T,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        if spoken() < SINCE && *field != T::default() {
            return Err(S::Error::custom("it takes a newer version"));
        }
        Shown::<SINCE>::serialize(field, to)
    }

    /// Reads the field, if the message has it.
    ///
    /// # Errors
    /// Those of the deserializer.
    pub fn deserialize<'de, T: Deserialize<'de> + Default, D: Deserializer<'de>>(
        from: D,
    ) -> Result<T, D::Error> {
        Shown::<SINCE>::deserialize(from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    struct Item {
        old: u8,
        #[serde(with = "Shown::<8>")]
        shown: Option<u8>,
        #[serde(with = "Needed::<9>")]
        needed: u32,
        last: u8,
    }

    /// Two of them: what is left out is so wherever it stands.
    fn written(version: u8, needed: u32) -> Option<Vec<u8>> {
        let item = Item { old: 1, shown: Some(2), needed, last: 4 };
        in_version(version, || postcard::to_allocvec(&vec![item.clone(), item]).ok())
    }

    #[test]
    fn a_message_has_the_fields_of_its_version() {
        for (version, item, shown, needed) in [
            (7, &[1, 4][..], None, 0),
            (8, &[1, 1, 2, 4], Some(2), 0),
            (9, &[1, 1, 2, 0, 4], Some(2), 0),
            (9, &[1, 1, 2, 3, 4], Some(2), 3),
        ] {
            let bytes = [&[2], item, item].concat();
            assert_eq!(written(version, needed), Some(bytes.clone()), "{version}");
            let read: Vec<Item> = in_version(version, || postcard::from_bytes(&bytes).unwrap());
            assert_eq!(read, vec![Item { old: 1, shown, needed, last: 4 }; 2], "{version}");
        }
        assert_eq!(written(8, 3), None);
        assert_eq!(SPOKEN.get(), VERSION);
    }

    #[test]
    fn the_newest_that_both_speak_is_chosen() {
        let versions = |oldest, newest| Versions { oldest, newest };
        for (one, other, common) in [
            ((6, 6), (6, 6), Some(6)),
            ((6, 9), (6, 7), Some(7)),
            ((6, 9), (8, 12), Some(9)),
            ((6, 6), (7, 9), None),
            // Another process may say anything.
            ((6, 9), (9, 6), None),
            ((6, 9), (0, 255), Some(9)),
            ((6, 9), (0, 0), None),
        ] {
            let (one, other) = (versions(one.0, one.1), versions(other.0, other.1));
            assert_eq!((one.common(other), other.common(one)), (common, common), "{one} {other}");
        }
    }
}
