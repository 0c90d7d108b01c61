//! NETMAP_REQ_REGISTER with its options, in the order of S-REG-1.

use ringway::{Binding, Error, OwnOptions, add_environment, check_options, tell_switch_owner};
use ringway_abi::*;
use ringway_errno::errno;
use ringway_proto::{Cause, Error as Refused, Grant, Offsets, Registration, Request};

use crate::{
    csb,
    netmap_fd::{NetmapFd, explain, explain_as},
    request::{
        body::Asked,
        extmem::UserMemory,
        neutral::{registration, store_granted},
        options::{Known, Options},
    },
};

/// Registers, and stores the outputs in `reg`. When an option fails, the registration is
/// undone (S-CTRL-10).
pub fn register(
    asked: &Asked<'_>,
    reg: &mut nmreq_register,
    options: &mut Options,
) -> Result<(), i32> {
    let extmem = options.get::<nmreq_opt_extmem>();
    let mut brought = None;
    if let Some(option) = &extmem
        && asked.netmap.binding(asked.fd).is_none()
    {
        brought = Some(options.settle(nmreq_opt_extmem::KIND, UserMemory::look(option))?);
    }
    let offsets = options.get::<nmreq_opt_offsets>().map(|option| Offsets {
        max: option.nro_max_offset,
        initial: option.nro_initial_offset,
        bits: option.nro_offset_bits,
        min_gap: option.nro_min_gap,
    });
    let wanted = ringway_proto::Options {
        extmem: brought.as_ref().map(|brought| brought.asked.clone()),
        offsets,
        ..Default::default()
    };
    let registration = registration(reg);
    let (name, wanted) = own_options(asked.name, &registration, options, wanted)?;
    let request = Request::Register { name: name.into(), registration, options: Box::new(wanted) };
    let (grant, fds) = asked.netmap.ask::<Box<Grant>>(asked.fd, &request).map_err(|error| {
        let statuses = error.refusal().map(|refusal| refusal.options).unwrap_or_default();
        for (kind, status) in
            [(nmreq_opt_extmem::KIND, statuses.extmem), (nmreq_opt_offsets::KIND, statuses.offsets)]
        {
            if let Some(status) = ringway_errno::status(status) {
                let settled = if status == 0 { Ok(()) } else { Err(status) };
                let _ = options.settle(kind, settled);
            }
        }
        if let ringway_ipc::Error::NoDescriptors { is_done: true, .. } = error {
            undo(asked);
        }
        explain(&error)
    })?;
    let connected = NetmapFd::map(asked.fd, &grant, fds).inspect_err(|_| undo(asked))?;
    if let Err(errno) = granted(asked, &connected.binding, brought, options) {
        drop(connected);
        asked.netmap.call::<()>(asked.fd, &Request::Unregister)?;
        return Err(errno);
    }
    tell_switch_owner(&connected.binding);
    store_granted(reg, asked.netmap.bind(connected)?);
    Ok(())
}

/// Leaves the descriptor unbound (S-LIFE-2), though the daemon has registered it: this process lacks what it takes
/// to use the port, and has a reason to tell already.
fn undo(asked: &Asked<'_>) {
    let _ = asked.netmap.ask::<()>(asked.fd, &Request::Unregister);
}

/// The port's name proper; and `wanted` with what Ringway alone understands: behind the name, in an
/// option, and in the environment.
fn own_options<'a>(
    name: &'a str,
    registration: &Registration,
    options: &mut Options,
    wanted: ringway_proto::Options,
) -> Result<(&'a str, ringway_proto::Options), i32> {
    let (name, list) = OwnOptions::split(name);
    let mut list = list.to_owned();
    let option = options.raw(NETMAP_REQ_OPT_RINGWAY);
    if let Some((_, text)) = &option {
        let Ok(text) = str::from_utf8(text) else {
            ringway::explain(&format_args!("{name}: its options are not UTF-8; write them so"));
            return options.settle(NETMAP_REQ_OPT_RINGWAY, Err(libc::EINVAL));
        };
        list.push_str(text);
    }
    let parsed = OwnOptions::parse(&list)
        .and_then(|own| own.options())
        .and_then(|own| {
            let ringway_proto::Options { extmem, offsets, .. } = wanted;
            let mut all = ringway_proto::Options { extmem, offsets, ..own };
            check_options(name, registration, &all)?;
            check_filter(name, registration, &all)?;
            add_environment(name, registration, &mut all).map(|()| all)
        })
        .map_err(|e| explain_as(&e, errno(e.cause())));
    if option.is_some() {
        return Ok((name, options.settle(NETMAP_REQ_OPT_RINGWAY, parsed)?));
    }
    Ok((name, parsed?))
}

/// Refuses a filter where the kernel has none. Another one would have to run in this process, at each sync,
/// and release what it takes out: then `head` and `cur` move, which are the program's alone in netmap. A
/// program that kept them over the sync would write old ones back.
fn check_filter(
    name: &str,
    registration: &Registration,
    options: &ringway_proto::Options,
) -> Result<(), Error> {
    let is_interface = !name.contains([':', '{', '}']) && !registration.monitor.is_asked();
    if options.filter.is_none() || is_interface {
        return Ok(());
    }
    let problem = "through netmap's API, interfaces and host rings alone have filters and samples";
    let refused = Refused::new(Cause::Unsupported, problem).at(name);
    Err(refused.remedy("leave it out, or open the port by Ringway's API or libpcap's").into())
}

/// Settles the options that the daemon has granted, and carries out those that come after the
/// activation of the port's driver.
fn granted(
    asked: &Asked<'_>,
    binding: &Binding,
    brought: Option<UserMemory>,
    options: &mut Options,
) -> Result<(), i32> {
    if let (Some(brought), Some(mut option)) = (brought, options.get::<nmreq_opt_extmem>()) {
        // S-EXT-4.
        let settled = brought.settle(binding, &mut option);
        options.put(&option);
        options.settle(nmreq_opt_extmem::KIND, settled)?;
    }
    if let (Some(granted), Some(mut option)) =
        (&binding.options().offsets, options.get::<nmreq_opt_offsets>())
    {
        option.nro_max_offset = granted.max;
        options.put(&option);
        options.settle(nmreq_opt_offsets::KIND, Ok(()))?;
    }
    if let Some(csb) = options.get() {
        let result = csb::enable(asked.netmap, binding, &csb);
        options.settle(NETMAP_REQ_OPT_CSB, result)?;
    }
    options.all_supported()
}
