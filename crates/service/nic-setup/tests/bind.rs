//! Binding: the mode that is got, and a queue that is or was someone else's.

#[path = "../../../drivers/xdp/tests/common/mod.rs"]
mod common;

use std::os::fd::AsFd;

use common::{SIZES, Wire, open};
use ringway_nic_setup::{AttachMode, Error, Mode};
use ringway_testkit::skip_without_root;
use ringway_xdp::{RingSizes, Rings, is_zero_copy};
use rustix::io::Errno;

#[test]
fn a_better_mode_that_is_refused_is_reported() {
    if skip_without_root("a_better_mode_that_is_refused_is_reported") {
        return;
    }
    let wire = Wire::new();
    let (xsk, _umem) = open(&wire.a, "a0", 0, Mode::preference(AttachMode::Native)).unwrap();
    assert_eq!(xsk.mode, Mode::Copy);
    assert_eq!(is_zero_copy(&xsk.socket.fd), Ok(false));
    let [(Mode::ZeroCopy, why)] = &xsk.refused[..] else { panic!("{:?}", xsk.refused) };
    assert_eq!(why, "its driver, veth, has no zero-copy");

    let error = open(&wire.b, "b0", 0, &[Mode::ZeroCopy]).err().unwrap().to_string();
    assert!(error.starts_with("b0: ") && error.contains("zero-copy: "), "{error}");
}

/// The kernel unbinds some 20 ms after the last close; the open that follows must outlast that.
#[test]
fn a_queue_that_was_just_closed_can_be_bound_again() {
    if skip_without_root("a_queue_that_was_just_closed_can_be_bound_again") {
        return;
    }
    let wire = Wire::new();
    for _ in 0..10 {
        let (xsk, _umem) = open(&wire.a, "a0", 0, &[Mode::Copy]).unwrap();
        drop(xsk);
    }
}

/// A mapping of the rings holds the socket as well as its descriptor does.
#[test]
fn a_queue_in_use_is_busy_until_descriptor_and_rings_are_gone() {
    if skip_without_root("a_queue_in_use_is_busy_until_descriptor_and_rings_are_gone") {
        return;
    }
    let wire = Wire::new();
    let (xsk, _umem) = open(&wire.a, "a0", 0, &[Mode::Copy]).unwrap();
    let rings = Rings::map(xsk.socket.fd.as_fd(), &SIZES).unwrap();
    drop(xsk);
    let error = open(&wire.a, "a0", 0, &[Mode::Copy]).err().unwrap();
    assert!(matches!(error, Error::QueueBusy { queue: 0, .. }), "{error}");
    drop(rings);
    open(&wire.a, "a0", 0, &[Mode::Copy]).unwrap();
}

#[test]
fn rings_are_not_mapped_with_sizes_that_cannot_be() {
    if skip_without_root("rings_are_not_mapped_with_sizes_that_cannot_be") {
        return;
    }
    let wire = Wire::new();
    let (xsk, _umem) = open(&wire.a, "a0", 0, &[Mode::Copy]).unwrap();
    for sizes in [RingSizes { rx: SIZES.rx * 4, ..SIZES }, RingSizes { tx: 96, ..SIZES }] {
        assert_eq!(Rings::map(xsk.socket.fd.as_fd(), &sizes).err(), Some(Errno::INVAL));
    }
}
