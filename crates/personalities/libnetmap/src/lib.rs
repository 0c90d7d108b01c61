//! `libnetmap.so` and `libnetmap.a`: ports by name, for C programs. The interface is described
//! in `include/libnetmap.h`; the names are read by `ringway-portspec`.
//!
//! ```text
//!  nmport_open = prepare (new + parse) + open_desc (register + mmap)
//!                            |                     |         |
//!    nmreq_header_decode     |      open, ioctl    |         | mmap
//!    nmreq_register_decode <-+                     v         v
//!    nmreq_options_decode ----> named options    libringway_preload.so
//! ```
//!
//! This is C's side of the fence: it calls `open`, `ioctl`, `mmap` and `close` by their plain
//! names, and whoever comes first in the loader's order serves them. All memory that the
//! interface shows comes from the context's allocator.

// The names are C's.
#![allow(non_camel_case_types)]

mod cleanup;
mod ctx;
mod device;
mod errno;
mod extmem;
mod inject;
mod mapping;
mod named_options;
mod offset;
mod option_list;
mod options_decode;
mod own_option;
mod port;
mod registration;
mod request;
mod types;
