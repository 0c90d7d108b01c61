//! What Ringway's tests stand on: network namespaces, processes, folders, frames on rings, and proof
//! of a clean machine afterwards.
//!
//! Everything made here is undone by `Drop`, so a test that panics leaves nothing behind. Nothing
//! here touches an interface that it did not make. A failure panics with the command and its output:
//! a test has no better use for the error.
#![deny(unsafe_code)]
#![allow(clippy::disallowed_methods, reason = "tests are told by variables what to do")]

mod bpf;
mod datagram;
mod folder;
mod forbid;
mod frames;
mod json_lines;
mod json_schema;
mod lingering;
mod netns;
mod nic_state;
mod packet;
mod proc;
mod program;
mod skip;
mod snapshot;
mod socket;
mod sys;
mod tagging;
mod tmux;

pub use bpf::bpf_object;
pub use datagram::datagram;
pub use folder::Folder;
pub use forbid::{forbid_ioctls, forbid_tcx, forbid_tcx_here};
use frames::FROM;
pub use frames::{dropped, frame, tagged, take_frames};
pub use json_lines::{check_json_line, json_lines};
pub use json_schema::{check_json, closed_schema};
pub use lingering::lingering;
pub use netns::{Netns, VethPair, isolate_thread, unique_name};
pub use nic_state::NicState;
pub use packet::{Heard, PacketSocket};
pub use proc::Proc;
pub use program::{install, install_script};
pub use skip::{is_root, skip, skip_unless, skip_without_root};
pub use snapshot::Snapshot;
pub use socket::datagram_sockets;
pub use sys::StuckWrite;
pub use tagging::Tagging;
pub use tmux::Tmux;
