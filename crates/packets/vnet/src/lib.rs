//! Offloads in software: what a virtio-net header asks for, done to the frame behind it.
//!
//! A machine that has virtio-net headers leaves checksums partial and sends TCP and UDP
//! data in frames of up to 64 KiB. Whoever has no such headers needs frames that can go on a
//! wire. [`consume`] makes them, from a private copy of the frame into memory of the caller.
//!
//! ```
//! use ringway_vnet::{Header, Output, consume};
//!
//! // "Sum up from byte 14 on, and put the result 16 bytes further."
//! let header = Header::parse(&[1, 0, 0, 0, 0, 0, 14, 0, 16, 0]).unwrap();
//! let mut frame = [0; 60];
//! assert_eq!(consume(&header, &mut frame, 1514, &mut []), Ok(Output::InPlace));
//! assert_eq!(frame[30..32], [0xff, 0xff]);
//! ```
//!
//! Whatever header and frame hold, the result is bounded, and nothing panics: both come from
//! whoever controls the machine.
//!
//! | file | idea |
//! | --- | --- |
//! | `header.rs` | the header: layout, meaning, what is refused |
//! | `checksum.rs` | the internet checksum |
//! | `layers.rs` | where the headers of a frame begin |
//! | `segment.rs` | a large frame into many |
//! | `consume.rs` | what the header asks for, done |
//! | `tunnel.rs` | the headers around those that a frame inside of a tunnel has |
//! | `whole.rs` | what stays whole, for receivers that do the rest |
//! | `partial_csum.rs` | what a frame without a header needs all the same |

#![forbid(unsafe_code)]

pub mod checksum;
mod consume;
mod error;
mod header;
mod layers;
mod partial_csum;
mod segment;
mod tunnel;
mod whole;

pub use consume::{Output, consume, consume_as_sent, consume_pieces, least_frames, most_frames};
pub use error::{Error, MAX_FRAME};
pub use header::{Gso, Header};
pub use partial_csum::{BEGINNING, PartialCsum};
pub use segment::{MAX_DATAGRAMS, Segments};
pub use whole::{for_kernel, is_expressible};
