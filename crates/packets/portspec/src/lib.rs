//! The names of ports as users write them: one grammar, for every interface that takes them.
//!
//! ```text
//!   netmap:eth0-2/Rx@3@conf:rings=4,slots=512@share=vale0:a
//!   |------+---||----+||-------------+------||------+-----|
//!        header  register                options
//! ```
//!
//! Three functions read one part each, from the front of what is left, and return what they
//! read and the rest: [`header`] the name, [`register`] which rings of it and how,
//! [`option()`] one option. They take bytes, since a C string need not be UTF-8; the characters
//! that separate are all ASCII.
//!
//! ```
//! let (name, rest) = ringway_portspec::header(b"netmap:eth0-2/R@share=vale0:a")?;
//! let (how, rest) = ringway_portspec::register(rest, 0)?;
//! let (option, rest) = ringway_portspec::option(rest)?;
//! assert_eq!((name, option.name), (&b"eth0"[..], &b"share"[..]));
//! assert!(how.rings == ringway_portspec::Rings::One(2) && how.flags.rx_only);
//! assert!(rest.is_empty());
//! # Ok::<(), ringway_portspec::Error>(())
//! ```
#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod error;
mod header;
mod option;
mod register;

pub use error::Error;
pub use header::{NAME_MAX, header, name};
pub use option::{Body, Key, Keys, Opt, option};
pub use register::{Flags, RINGS_MAX, Register, Rings, register};
