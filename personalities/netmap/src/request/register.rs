//! NETMAP_REQ_REGISTER with its options, in the order of S-REG-1.

use ringway::Binding;
use ringway_abi::*;
use ringway_registry::Request;

use crate::{
    netmap_fd::NetmapFd,
    request::{body::Asked, options::Options},
};

/// Registers, and stores the outputs in `reg`. When an option fails, the registration is
/// undone (S-CTRL-10).
pub fn register(
    asked: &Asked<'_>,
    reg: &mut nmreq_register,
    options: &mut Options,
) -> Result<(), i32> {
    // These two are for the registry to carry out, before it activates the port. It does not
    // take them yet, so that their status stays EOPNOTSUPP.
    let _extmem = options.get::<nmreq_opt_extmem>();
    let _offsets = options.get::<nmreq_opt_offsets>();

    let request = Request::Register { name: asked.name.clone(), reg: *reg };
    let (reply, fds) = asked.netmap.call(asked.fd, &request)?;
    let binding = NetmapFd::map(reply, fds)?;
    if let Err(errno) = activated(&binding, options) {
        drop(binding);
        asked.netmap.call(asked.fd, &Request::Unregister)?;
        return Err(errno);
    }
    *reg = *asked.netmap.bind(binding)?.reg();
    Ok(())
}

/// The options that come after the activation of the port's driver.
fn activated(_binding: &Binding, options: &mut Options) -> Result<(), i32> {
    options.all_supported()
}
