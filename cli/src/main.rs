#![allow(dead_code)]
mod checksum;
mod endpoint;
mod error;
mod frame;
mod payload;
mod units;
mod verify;
fn main() {}
