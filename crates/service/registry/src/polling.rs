//! Polling mode: the bridge of an attached NIC looks for packets all the time, on processors of
//! the user's choice, instead of sleeping until there are some (S-VALE-19). It ends with the last
//! NIC of the bridge that is polled, and rests while all of them are down.

use ringway_proto::{Cause, Error, Polling, Result};

use ringway_nic_setup::LinkState;

use crate::{
    bridges::Bridges, caller::Caller, kinds::attached::Attached, name::PortName, ports::Ports,
};

/// Turns polling of an attached interface on or off.
pub(crate) fn choose(
    ports: &mut Ports,
    bridges: &mut Bridges,
    caller: &Caller,
    name: &str,
    enable: bool,
    polling: Polling,
) -> Result<()> {
    if !name.starts_with("val") {
        return Err(Error::invalid("polling takes a name vale<switch>:<NIC>").at(name));
    }
    PortName::parse(name, Cause::NoPort)?;
    let Some(id) = ports.named(name) else {
        return Err(Error::absent("there is no such port").at(name));
    };
    ports.managed(id, caller)?;
    let Some(nic) = ports.port_mut(id).get_mut::<Attached>() else {
        return Err(Error::new(
            Cause::Unsupported,
            "only attached network interfaces can be polled",
        )
        .at(name));
    };
    if enable == nic.polling.is_some() {
        let state = if enable { "polled already" } else { "not polled" };
        return Err(Error::new(Cause::AlreadySo, format!("{name}: {state}")));
    }
    // The bridge has as many rings of it as the interface has receive queues.
    let [_, rings] = nic.rings;
    let cpus = enable.then(|| cpus(name, polling, rings as usize)).transpose()?;
    nic.set_polling(cpus, bridges);
    Ok(())
}

impl Attached {
    /// From now on its bridge is to poll on these processors; `None`: not for it.
    pub fn set_polling(&mut self, cpus: Option<Vec<usize>>, bridges: &mut Bridges) {
        self.polling = cpus;
        self.apply_polling(bridges);
    }

    /// Has its bridge poll, if a user wants it to and packets can come.
    pub fn apply_polling(&self, bridges: &mut Bridges) {
        let up = self.link.state == LinkState::Up;
        bridges.poll(&self.bridge_port, self.polling.clone().filter(|_| up));
    }
}

/// The processors that `polling` names, for a NIC with `rings` receive rings.
fn cpus(name: &str, polling: Polling, rings: usize) -> Result<Vec<usize>> {
    let wrong =
        |problem: String, remedy: String| Err(Error::invalid(problem).at(name).remedy(remedy));
    let all = std::thread::available_parallelism().map_or(1, usize::from);
    let (Polling::OneCpu { cpu: first, count }
    | Polling::Cpus { first, count }
    | Polling::Other { first, count, .. }) = polling;
    let (first, count) = (first as usize, count as usize);
    if count == 0 || count >= all {
        return wrong(
            format!("polling on {count} of {all} processors"),
            format!("ask for 1 to {}", all - 1),
        );
    }
    let most = match polling {
        Polling::OneCpu { .. } if count == 1 => all,
        Polling::OneCpu { .. } => {
            return wrong("single mode polls on one processor".into(), String::new());
        }
        // Each processor is for the ring of its number.
        Polling::Cpus { .. } => all.min(rings),
        Polling::Other { mode, .. } => {
            return wrong(format!("{mode} is no polling mode: 1 single, 2 multi"), String::new());
        }
    };
    match first.checked_add(count) {
        Some(end) if end <= most => Ok((first..end).collect()),
        _ => wrong(
            format!("no processors {first} to {} to poll on", first.saturating_add(count)),
            String::new(),
        ),
    }
}
