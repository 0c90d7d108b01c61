//! What every decoder of the control protocol has to keep, whatever comes.

use std::fmt::Debug;

use serde::{Serialize, de::DeserializeOwned};

/// Any bytes are a `T`, or are refused. A `T` can be sent on: its own form is read back as the same,
/// to the last byte. And it can be shown.
pub fn check<T: Serialize + DeserializeOwned + Debug>(bytes: &[u8]) {
    let Ok((value, rest)) = postcard::take_from_bytes::<T>(bytes) else { return };
    assert!(bytes.ends_with(rest));
    let form = postcard::to_allocvec(&value).expect("what was read has a form");
    let again: T = postcard::from_bytes(&form).expect("its form is read");
    assert_eq!(postcard::to_allocvec(&again).as_deref(), Ok(&form[..]));
    assert_eq!(format!("{again:?}"), format!("{value:?}"));
}
