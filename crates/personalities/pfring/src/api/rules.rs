//! Rules of a ring.

use std::{ffi::c_int, sync::Arc, time::Duration};

use super::of_ring;
use crate::{
    abi::*,
    argument::Out,
    errno::fails,
    ring::{Ring, lock},
    rules::{Action, Key, Outlet, filtering_rule, hash_filtering_rule, hash_filtering_rule_stats},
};

/// The device that a rule sends to, if it names one; an error number if that cannot be.
fn outlet(ring: &Ring, name: [u8; 8], action: Action) -> Result<Option<Arc<Outlet>>, c_int> {
    let name = name.split(|byte| *byte == 0).next().unwrap_or_default();
    if name.is_empty() {
        return Ok(None);
    }
    let name = std::str::from_utf8(name).map_err(|_| libc::EFAULT)?;
    let is_own = ring.sources.iter().any(|source| source.name == name);
    let bounces = matches!(action, Action::Transmit { bounce: true, .. });
    if ring.sources.is_empty() || is_own && !bounces {
        return Err(libc::EFAULT);
    }
    Outlet::open(name).map(|outlet| Some(Arc::new(outlet))).ok_or(libc::EFAULT)
}

fn result(result: Result<(), c_int>) -> c_int {
    result.map_or_else(|errno| fails(ERROR_GENERIC, errno), |()| 0)
}

fn add(ring: &Ring, rule: Out<filtering_rule>) -> Result<(), c_int> {
    let mut rule = rule.get().ok_or(libc::EINVAL)?;
    let action = Action::of(rule.rule_action).ok_or(libc::EINVAL)?;
    let outlet = outlet(ring, rule.reflector_device_name, action)?;
    // As the library does: what a mask leaves out is no part of a host.
    let (mut core, and) = (rule.core, |host: ip_addr, mask: ip_addr| {
        std::array::from_fn(|at| if at < 4 { host[at] & mask[at] } else { host[at] })
    });
    core.shost = and(core.shost, core.shost_mask);
    core.dhost = and(core.dhost, core.dhost_mask);
    rule.core = core;
    let sends = outlet.is_some();
    added(ring, sends, ring.admission.change(|rules| rules.list.add(rule, action, outlet)))
}

/// A rule was added, or was one before.
fn added(ring: &Ring, sends: bool, is_new: bool) -> Result<(), c_int> {
    if !is_new {
        return Err(libc::EEXIST);
    }
    if sends {
        ring.add_forwarding_rule();
    }
    Ok(())
}

fn key(rule: &hash_filtering_rule) -> Result<Key, c_int> {
    match rule.ip_version {
        4 | 6 => {}
        _ => return Err(libc::EINVAL),
    }
    Ok(Key::new(rule.vlan_id, rule.ip_version, rule.proto, rule.hosts, rule.ports))
}

fn handle(ring: &Ring, rule: Out<hash_filtering_rule>, is_added: bool) -> Result<(), c_int> {
    let rule = rule.get().ok_or(libc::EINVAL)?;
    let key = key(&rule)?;
    if !is_added {
        return ring.admission.change(|rules| {
            let missing = if rules.table.exists { libc::ENOENT } else { libc::EFAULT };
            if rules.table.remove(&key) { Ok(()) } else { Err(missing) }
        });
    }
    let action = Action::of(rule.rule_action).ok_or(libc::EINVAL)?;
    let outlet = outlet(ring, rule.reflector_device_name, action)?;
    let sends = outlet.is_some();
    added(ring, sends, ring.admission.change(|rules| rules.table.add(key, action, outlet)))
}

fn stats(
    ring: &Ring,
    rule: Out<hash_filtering_rule>,
    to: Out<hash_filtering_rule_stats>,
    length: Out<u32>,
) -> c_int {
    const LENGTH: u32 = size_of::<hash_filtering_rule_stats>() as u32;
    let Some(Ok(key)) = rule.get().map(|rule| key(&rule)) else {
        return fails(ERROR_GENERIC, libc::EINVAL);
    };
    if length.get().is_none_or(|length| length < LENGTH) {
        return fails(ERROR_GENERIC, libc::EINVAL);
    }
    let found = lock(&ring.admission.rules).table.stats(&key);
    length.put(LENGTH);
    to.put_some(found)
}

fn seconds(seconds: u16) -> Duration {
    Duration::from_secs(seconds.into())
}

of_ring! {
    fn pfring_add_filtering_rule(rule: Out<filtering_rule>) -> c_int, else ERROR_GENERIC,
        |ring| result(add(ring, rule));
    fn pfring_remove_filtering_rule(id: u16) -> c_int, else ERROR_GENERIC, |ring| {
        let is_removed = ring.admission.change(|rules| rules.list.remove(id));
        if is_removed { 0 } else { fails(ERROR_GENERIC, libc::EFAULT) }
    };
    fn pfring_handle_hash_filtering_rule(rule: Out<hash_filtering_rule>, add: u8) -> c_int, else ERROR_GENERIC,
        |ring| result(handle(ring, rule, add != 0));
    fn pfring_get_hash_filtering_rule_stats(
        rule: Out<hash_filtering_rule>, to: Out<hash_filtering_rule_stats>, length: Out<u32>
    ) -> c_int, else ERROR_GENERIC, |ring| stats(ring, rule, to, length);
    // The reference has none to give.
    fn pfring_get_filtering_rule_stats(_id: u16, _to: Out<u8>, _length: Out<u32>) -> c_int, else ERROR_GENERIC,
        |_ring| fails(ERROR_GENERIC, libc::EFAULT);
    fn pfring_purge_idle_hash_rules(idle: u16) -> c_int, else ERROR_GENERIC, |ring| {
        ring.admission.change(|rules| rules.table.purge(seconds(idle)));
        0
    };
    fn pfring_purge_idle_rules(idle: u16) -> c_int, else ERROR_GENERIC, |ring| {
        ring.admission.change(|rules| rules.list.purge(seconds(idle)));
        0
    };
    fn pfring_toggle_filtering_policy(accepts: u8) -> c_int, else ERROR_GENERIC, |ring| {
        ring.admission.change(|rules| rules.accepts = accepts != 0);
        0
    };
    fn pfring_set_filtering_sampling_rate(rate: u32) -> c_int, else ERROR_GENERIC, |ring| {
        ring.admission.change(|rules| rules.sampling = rate);
        0
    };
}
