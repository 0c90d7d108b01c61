//! What a user is told of set-up that the kernel has refused.

use ringway_proto::{Cause, Error};

pub(crate) fn nic_error(error: ringway_nic_setup::Error) -> Error {
    use ringway_nic_setup::Error as Setup;
    let cause = match &error {
        Setup::NoInterface { .. } => Cause::NoPort,
        Setup::NoQueue { .. } => Cause::Invalid,
        Setup::QueueBusy { .. } | Setup::Occupied { .. } => Cause::Busy,
        Setup::Privileges { .. } => Cause::Denied,
        Setup::Attach { .. } => Cause::Unsupported,
        Setup::Netns { cause, .. } if cause.raw_os_error() != Some(libc::EAGAIN) => Cause::Denied,
        Setup::Netns { cause, .. } => Cause::of(cause),
        Setup::Helper { .. } => Cause::System(libc::EIO),
        Setup::Refused { cause, .. } => Cause::of(cause),
    };
    Error::new(cause, error.problem()).at(error.interface()).remedy(error.remedy())
}
