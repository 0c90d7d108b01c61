//! The command line as a user runs it: processes of their own, with a private daemon for each test.
#![allow(clippy::disallowed_methods, reason = "tests are told by variables what to do")]

mod action;
mod all_or_nothing;
mod capture;
mod control;
mod doctor;
mod files;
mod home;
mod interface_use;
mod json;
mod lb;
mod log;
mod metrics;
mod mirror;
mod named_twice;
mod numbers;
mod packets;
mod ping;
mod replay;
mod shape;
mod tools;
mod top;
mod traffic;
mod unread;
mod vm;
