//! The helper's own life.

use std::{io, os::fd::AsFd, os::fd::OwnedFd, thread};

use ringway_ipc::receive;
use ringway_nic_setup::{Parcel, carry_out, prepare};
use rustix::net::RecvFlags;

use super::{
    broker_end::BrokerEnd,
    messages::{OF_REQUEST, receive_parcel, send_parcel},
};
use crate::{confine, guard::guarded};

/// Serves the broker until that has gone: each message brings a request's own connection.
pub fn run(broker: OwnedFd, end: BrokerEnd) -> io::Result<()> {
    confine::helper()?;
    end.hang_up(&broker)?;
    // The first request does it where there is no thread for it.
    let _ = thread::Builder::new().name("prepare".into()).spawn(prepare);
    while let Some(request) = next(&broker)? {
        // Without a thread the request goes unanswered, and the broker says so.
        let _ = thread::Builder::new().name("set-up".into()).spawn(move || serve(request));
    }
    Ok(())
}

/// The same for what is quick, one after the other. It is a process of its own: the kernel holds the memory map
/// of the other one while it pins pages for a request, and whatever else wants memory there waits for that.
pub fn run_quick(broker: OwnedFd, end: BrokerEnd) -> io::Result<()> {
    confine::helper()?;
    end.hang_up(&broker)?;
    while let Some(request) = next(&broker)? {
        serve(request);
    }
    Ok(())
}

/// A request's connection; `None`: there are no more to come.
fn next(broker: &OwnedFd) -> io::Result<Option<OwnedFd>> {
    loop {
        match receive(broker.as_fd(), RecvFlags::empty()) {
            // There were no descriptors left for it; its other end tells the broker.
            Ok(Some((_, mut fds))) if fds.is_empty() => drop(fds.pop()),
            Ok(Some((_, mut fds))) => return Ok(fds.pop()),
            Ok(None) => return Ok(None),
            Err(ringway_ipc::Error::NoDescriptors { .. }) => {}
            Err(error) => return Err(io::Error::other(error)),
        }
    }
}

fn serve(connection: OwnedFd) {
    let answer = || -> io::Result<Parcel> { carry_out(receive_parcel(&connection, OF_REQUEST)?) };
    // What cannot be answered is undone: the descriptors of what was made go with the answer.
    if let Ok(Ok(answer)) = guarded("the set-up of an interface", answer) {
        let _ = send_parcel(&connection, &answer);
        // Before the connection, whose end tells the broker that all is its own by now.
        drop(answer);
    }
    drop(connection);
}
