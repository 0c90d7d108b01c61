//! Attacks by network interfaces, of a user who may open them.

use ringway::{Control, Error, Filter, Port};

use super::{Attacker, memory::keep_descriptors};

/// Names that are made up in a round.
const NAMES: u64 = 200;
/// Comparisons of a filter: few enough for its jumps.
const BRANCHES: u16 = 200;
/// Steps of a round of churn, and ports that are kept at once.
const STEPS: usize = 30;
const OPEN: usize = 4;

/// Names that the kernel would look for modules by.
pub(super) fn made_up(attacker: &Attacker) -> Result<String, Error> {
    let mut refused = 0;
    for _ in 0..NAMES {
        let name = format!("netmap:rwnosuch{}", attacker.below(100_000));
        let suffix = ["", "^", "@mode=packet", "@mode=generic"][attacker.below(4) as usize];
        refused += u64::from(Port::open(&format!("{name}{suffix}")).is_err());
    }
    Ok(format!("{refused} of {NAMES} refused"))
}

fn branches(first: u16) -> Result<Filter, Error> {
    let ports = (first..first + BRANCHES).map(|port| format!("udp port {port}"));
    Filter::new(&ports.collect::<Vec<_>>().join(" or "))
}

/// Filters that cost the verifier time, on several ports of one interface.
pub(super) fn filters(attacker: &Attacker) -> Result<String, Error> {
    let name = format!("netmap:{}", attacker.interface);
    let options = Port::options().rx_only();
    let mut got = String::new();
    let mut ports = Vec::new();
    for n in 0..4 {
        match options.clone().filter(branches(1 + n * BRANCHES)?).open(&name) {
            Ok(port) => ports.push(port),
            Err(error) => got = error.to_string(),
        }
    }
    for (n, port) in (10..).zip(&ports) {
        if let Err(error) = port.set_filter(branches(n * BRANCHES)?) {
            got = error.to_string();
        }
    }
    Ok(format!("{} ports with filters {got}", ports.len()))
}

/// Opens and closes an interface, and keeps its sockets.
pub(super) fn queues(attacker: &Attacker) -> Result<String, Error> {
    Ok(keep_descriptors(|_| format!("netmap:{}", attacker.interface)))
}

/// Ports, host rings and filters of an interface, by each of its names, opened and closed in any order,
/// whatever becomes of the interface meanwhile.
pub(super) fn churn(attacker: &Attacker) -> Result<String, Error> {
    let control = Control::connect()?;
    let mut open: Vec<Port> = Vec::new();
    let (mut opened, mut refused, mut why) = (0, 0, String::new());
    for _ in 0..STEPS {
        let name = match attacker.below(2) {
            0 => attacker.interface.clone(),
            _ => format!("{}alt", attacker.interface),
        };
        let suffix =
            ["", "^", "*", "/R", "@filter=udp", "@mode=generic"][attacker.below(6) as usize];
        let spec = format!("netmap:{name}{suffix}");
        match attacker.below(8) {
            0..4 => match Port::open(&spec) {
                Ok(port) => {
                    open.push(port);
                    opened += 1;
                }
                Err(error) => {
                    refused += 1;
                    why = error.to_string();
                }
            },
            4 if !open.is_empty() => {
                let port = &open[attacker.below(open.len() as u64) as usize];
                refused += u32::from(port.set_filter(Filter::new("tcp or arp")?).is_err());
            }
            5 => {
                let filter = Some(Filter::new("icmp")?);
                refused += u32::from(control.set_filter(&spec, filter).is_err());
            }
            _ if !open.is_empty() => {
                drop(open.swap_remove(attacker.below(open.len() as u64) as usize));
            }
            _ => {}
        }
        if open.len() > OPEN {
            drop(open.swap_remove(attacker.below(open.len() as u64) as usize));
        }
    }
    Ok(format!("{opened} opened, {refused} refused: {why}"))
}
