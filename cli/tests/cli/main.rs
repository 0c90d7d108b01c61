//! The command line as a user runs it: processes of their own, with a private daemon for each test.

mod all_or_nothing;
mod control;
mod home;
mod tools;
mod traffic;
mod unread;
