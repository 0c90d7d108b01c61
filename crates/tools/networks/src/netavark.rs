//! The netavark plugin: the subcommands of its API 1.0.0. podman chooses the addresses.

use std::{
    collections::BTreeMap,
    fs::File,
    net::{IpAddr, Ipv4Addr},
};

use ipnet::{IpNet, Ipv4Net};
use rustix::fd::AsFd;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::{
    attachment::{Address, Interface},
    cni,
    error::{Error, Kind},
    gateway::{self, Gateway},
    link::{self, Hop},
    mac::Mac,
    names::{self, Attachment},
    netlink::Netlink,
    switch::{Daemon, Place},
};

const API_VERSION: &str = "1.0.0";
/// Of default routes, as netavark's own drivers have it.
const METRIC: u32 = 100;

/// What this plugin reads of a network. The rest stays as podman has it.
#[derive(Debug, Deserialize)]
struct Network {
    name: String,
    #[serde(default)]
    internal: bool,
    #[serde(default)]
    ipv6_enabled: bool,
    network_interface: Option<String>,
    options: Option<BTreeMap<String, String>>,
    ipam_options: Option<BTreeMap<String, String>>,
    subnets: Option<Vec<Subnet>>,
    routes: Option<Vec<Route>>,
    network_dns_servers: Option<Vec<IpAddr>>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Subnet {
    subnet: IpNet,
    gateway: Option<IpAddr>,
    #[serde(flatten)]
    others: Map<String, Value>,
}

#[derive(Debug, Deserialize)]
struct Route {
    destination: IpNet,
    gateway: IpAddr,
    metric: Option<u32>,
}

#[derive(Debug, Deserialize)]
struct Exec {
    container_id: String,
    port_mappings: Option<Vec<Value>>,
    network: Network,
    network_options: OfContainer,
}

#[derive(Debug, Deserialize)]
struct OfContainer {
    interface_name: String,
    static_ips: Option<Vec<IpAddr>>,
    static_mac: Option<String>,
    options: Option<BTreeMap<String, String>>,
}

/// A network's `--opt`.
struct Options {
    place: Place,
    mtu: Option<u32>,
    spoofcheck: bool,
    default_route: bool,
    metric: u32,
}

/// Carries a subcommand out, whose input `read` gives.
pub fn run(
    arguments: &[String],
    read: impl FnOnce() -> Result<Vec<u8>, Error>,
    note: &mut dyn FnMut(&str),
) -> Result<Option<Value>, Error> {
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words[..] {
        ["info" | "version"] => {
            Ok(Some(json!({"version": env!("CARGO_PKG_VERSION"), "api_version": API_VERSION})))
        }
        ["create"] => create(&read()?).map(Some),
        ["setup", netns] => setup(netns, &read()?).map(Some),
        ["teardown", _] => teardown(&read()?, note).map(|()| None),
        _ => {
            let problem = format!("{arguments:?} is no subcommand of a netavark plugin");
            Err(Error::new(
                Kind::Environment,
                problem,
                "they are create, setup NETNS, teardown NETNS, info",
            ))
        }
    }
}

/// An error as netavark reads it.
pub fn refusal(error: &Error) -> Value {
    json!({"error": error.to_string()})
}

fn create(input: &[u8]) -> Result<Value, Error> {
    let mut all: Map<String, Value> = parse(input)?;
    let network: Network = parse(input)?;
    let Options { mtu, .. } = network.options()?;
    if !names::is_identifier(&network.name) {
        let problem = format!("{:?} is no name of a network", network.name);
        return Err(Error::new(Kind::Config, problem, "it is letters, digits, _, . and -"));
    }
    let interface = network.interface();
    if !names::is_interface(&interface) {
        let problem = format!("{interface:?} is no name of an interface");
        return Err(Error::new(Kind::Config, problem, "choose another one (--interface-name)"));
    }
    let mut ipam = network.ipam_options.clone().unwrap_or_default();
    let driver = ipam.entry("driver".into()).or_default();
    if driver.is_empty() {
        *driver = "host-local".into();
    }
    let mut subnets = network.subnets.clone().unwrap_or_default();
    match &**driver {
        "host-local" if subnets.is_empty() => {
            let subnet = free_subnet(&network.name)?.into();
            subnets.push(Subnet { subnet, gateway: None, others: Map::new() });
        }
        "host-local" => {}
        "none" if subnets.is_empty() => {}
        "none" => {
            let problem = "a network without addresses has no subnets";
            return Err(Error::new(Kind::Config, problem, "leave --subnet out, or --ipam-driver"));
        }
        other => {
            let problem = format!("the IPAM driver {other} is not supported");
            return Err(Error::new(Kind::Unsupported, problem, "use host-local or none"));
        }
    }
    for Subnet { subnet, gateway, .. } in &mut subnets {
        if subnet.trunc() != *subnet {
            let problem = format!("{subnet} has bits behind its prefix");
            return Err(Error::new(Kind::Config, problem, format!("write {}", subnet.trunc())));
        }
        // The first address is podman's choice of a gateway as well.
        let own = gateway::in_subnet(*subnet, *gateway)?;
        *gateway = Some(own.addr());
    }
    let has_v6 = subnets.iter().any(|subnet| subnet.subnet.addr().is_ipv6());
    if network.ipv6_enabled && !has_v6 && driver != "none" {
        let problem = "a network with IPv6 needs a subnet of it";
        return Err(Error::new(Kind::Config, problem, "give one, as --subnet fd00:1:2:3::/64"));
    }
    if let Some(mtu) = mtu.filter(|mtu| has_v6 && *mtu < link::LEAST_MTU_OF_IPV6) {
        let problem = format!("mtu={mtu} is not possible with IPv6");
        return Err(Error::new(Kind::Config, problem, link::WHICH_MTUS));
    }
    if !subnets.is_empty() {
        all.insert("subnets".into(), json!(subnets));
    }
    all.insert("ipv6_enabled".into(), has_v6.into());
    all.insert("ipam_options".into(), json!(ipam));
    all.insert("network_interface".into(), interface.into());
    // Nothing answers to names on such a network.
    all.insert("dns_enabled".into(), false.into());
    Ok(all.into())
}

fn setup(netns: &str, input: &[u8]) -> Result<Value, Error> {
    let exec: Exec = parse(input)?;
    if exec.port_mappings.is_some_and(|ports| !ports.is_empty()) {
        let problem = "published ports are not supported on networks of this driver";
        let remedy =
            "leave -p out and use the container's address, or a network of the driver bridge";
        return Err(Error::new(Kind::Unsupported, problem, remedy));
    }
    if let Some((key, _)) = exec.network_options.options.iter().flatten().next() {
        let problem = format!("the option {key} of a container's network is not supported");
        return Err(Error::new(Kind::Unsupported, problem, "leave it out"));
    }
    let network = &exec.network;
    let Options { place, mtu, spoofcheck, default_route, metric } = network.options()?;
    let name = &*exec.network_options.interface_name;
    let attachment =
        Attachment { network: &network.name, container: &exec.container_id, interface: name };
    attachment.check()?;
    let mac: Option<Mac> = match exec.network_options.static_mac.as_deref() {
        None | Some("") => None,
        Some(mac) => Some(mac.parse().map_err(|e| Error::new(Kind::Config, e, ""))?),
    };
    let addresses =
        network.addresses(exec.network_options.static_ips.as_deref().unwrap_or_default())?;
    let netns: File = File::open(netns)
        .map_err(|e| Error::new(Kind::Io, format!("{netns}: {e}"), "does the container run?"))?;
    let daemon = Daemon::connect()?;
    let netlink = Netlink::here().map_err(Error::link("netlink"))?;
    let interface = Interface { place: &place, mtu, mac, spoofcheck };
    let ends = attachment.make(&netlink, &daemon, &interface, netns.as_fd())?;
    let complete = || -> Result<(), Error> {
        let own: Vec<IpNet> = addresses
            .iter()
            .filter_map(|one| IpNet::new(one.gateway?, one.address.prefix_len()).ok())
            .collect();
        if !own.is_empty() {
            let gateway = Gateway { network: &network.name, interface: network.interface(), mtu };
            gateway.ensure(&netlink, &daemon, &place, &own)?;
        }
        let hops = network.hops(&addresses, default_route.then_some(metric));
        attachment.configure(netns.as_fd(), &addresses, &hops).map(drop)
    };
    complete().inspect_err(|_| {
        let _ = attachment.remove(&netlink, Some(&daemon));
    })?;
    let subnet = |one: &Address| json!({"ipnet": one.address, "gateway": one.gateway});
    let subnets: Vec<Value> = addresses.iter().map(subnet).collect();
    let mac = ends.inner.mac.map(|mac| mac.to_string()).unwrap_or_default();
    Ok(json!({
        "dns_search_domains": [],
        "dns_server_ips": network.network_dns_servers.clone().unwrap_or_default(),
        "interfaces": {name: {"mac_address": mac, "subnets": subnets}},
    }))
}

/// What a teardown needs: the rest of the network may have become wrong since.
#[derive(Debug, Deserialize)]
struct Removed {
    container_id: String,
    network: Named,
    network_options: OfInterface,
}

#[derive(Debug, Deserialize)]
struct Named {
    name: String,
}

#[derive(Debug, Deserialize)]
struct OfInterface {
    interface_name: String,
}

fn teardown(input: &[u8], note: &mut dyn FnMut(&str)) -> Result<(), Error> {
    let removed: Removed = parse(input)?;
    let attachment = Attachment {
        network: &removed.network.name,
        container: &removed.container_id,
        interface: &removed.network_options.interface_name,
    };
    attachment.check()?;
    let daemon = match Daemon::connect() {
        Ok(daemon) => Some(daemon),
        Err(e) if e.kind == Kind::TryAgain => {
            note(&cni::left_behind(&attachment, &e));
            None
        }
        Err(e) => return Err(e),
    };
    attachment.remove(&Netlink::here().map_err(Error::link("netlink"))?, daemon.as_ref())
}

/// Reads an object: a list, too, would be taken for a structure's fields.
fn parse<T: serde::de::DeserializeOwned>(input: &[u8]) -> Result<T, Error> {
    let remedy = "this plugin knows netavark's plugin API 1.0.0";
    let object = serde_json::from_slice::<Map<String, Value>>(input);
    object
        .and_then(|object| serde_json::from_value(object.into()))
        .map_err(|e| Error::new(Kind::Decode, e.to_string(), remedy))
}

impl Network {
    /// The gateway's interface in the host's stack.
    fn interface(&self) -> String {
        let named = self.network_interface.clone().filter(|name| !name.is_empty());
        named.unwrap_or_else(|| names::gateway_interface(&self.name))
    }

    fn options(&self) -> Result<Options, Error> {
        let (mut switch, mut vlan, mut mtu) = (None, None, None);
        let (mut spoofcheck, mut default_route, mut metric) = (false, !self.internal, METRIC);
        for (key, value) in self.options.iter().flatten() {
            let wrong = |remedy: &str| {
                let problem = format!("{key}={value} is not possible");
                Error::new(Kind::Config, problem, remedy)
            };
            let number = || value.parse::<u32>().map_err(|_| wrong("it is a number"));
            let is_so = || value.parse::<bool>().map_err(|_| wrong("it is true or false"));
            match &**key {
                "switch" => switch = Some(&**value),
                "vlan" => {
                    vlan = Some(value.parse().map_err(|_| wrong("VLANs are 1 to 4094"))?);
                }
                "mtu" => {
                    mtu = Some(number()?).filter(|mtu| *mtu != 0);
                    if mtu.is_some_and(|mtu| !link::MTUS.contains(&mtu)) {
                        return Err(wrong(link::WHICH_MTUS));
                    }
                }
                "metric" => metric = number()?,
                "spoofcheck" => spoofcheck = is_so()?,
                "no_default_route" => default_route &= !is_so()?,
                _ => {
                    let known = "switch, vlan, mtu, metric, spoofcheck, no_default_route";
                    let problem = format!("the option {key}={value} is not supported");
                    return Err(Error::new(
                        Kind::Unsupported,
                        problem,
                        format!("choose of {known}"),
                    ));
                }
            }
        }
        let place = Place::new(&self.name, switch, vlan)?;
        Ok(Options { place, mtu, spoofcheck, default_route, metric })
    }

    /// The addresses that podman has chosen, with their subnets' prefixes and gateways.
    fn addresses(&self, chosen: &[IpAddr]) -> Result<Vec<Address>, Error> {
        let subnets = self.subnets.as_deref().unwrap_or_default();
        let address = |ip: &IpAddr| {
            let subnet =
                subnets.iter().find(|subnet| subnet.subnet.contains(ip)).ok_or_else(|| {
                    let problem = format!("{ip} is in no subnet of {}", self.name);
                    Error::new(Kind::Config, problem, "choose another one (--ip)")
                })?;
            let address = IpNet::new(*ip, subnet.subnet.prefix_len());
            let address =
                address.map_err(|e| Error::new(Kind::Config, format!("{ip}: {e}"), ""))?;
            Ok(Address { address, gateway: subnet.gateway })
        };
        chosen.iter().map(address).collect()
    }

    /// The network's routes, and a default one of that metric for each family that has a gateway.
    fn hops(&self, addresses: &[Address], default_metric: Option<u32>) -> Vec<Hop> {
        let own = self.routes.iter().flatten().map(|route| Hop {
            destination: Some(route.destination),
            gateway: Some(route.gateway),
            metric: Some(route.metric.unwrap_or(METRIC)),
            ..Hop::default()
        });
        let gateway = |is_v4: bool| {
            let mut gateways = addresses.iter().filter_map(|one| one.gateway);
            gateways.find(|gateway| gateway.is_ipv4() == is_v4)
        };
        let by = [gateway(true), gateway(false)].into_iter().flatten();
        let default = by.filter(|_| default_metric.is_some()).map(|gateway| Hop {
            gateway: Some(gateway),
            metric: default_metric,
            ..Hop::default()
        });
        own.chain(default).collect()
    }
}

/// A subnet that no route of this host leads to, of those from 10.90.0.0/24 to 10.127.255.0/24: the search
/// begins where the network's name says, for other networks of this driver have no interface while none of
/// their containers runs.
fn free_subnet(network: &str) -> Result<Ipv4Net, Error> {
    const FIRST: u32 = u32::from_be_bytes([10, 90, 0, 0]) >> 8;
    const COUNT: u32 = (128 - 90) << 8;
    let netlink = Netlink::here().map_err(Error::link("netlink"))?;
    let mut used = Vec::new();
    for link in link::links(&netlink).map_err(Error::link("interfaces"))? {
        let routes = link::routes(&netlink, link.index).map_err(Error::link(&link.name))?;
        used.extend(routes.into_iter().map(|(net, _)| net).filter(|net| net.prefix_len() > 0));
    }
    let start = names::number(network) % COUNT;
    let subnets = (0..COUNT).map(|step| {
        let address = Ipv4Addr::from((FIRST + (start + step) % COUNT) << 8);
        Ipv4Net::new_assert(address, 24)
    });
    let is_free = |subnet: &Ipv4Net| {
        let subnet = IpNet::from(*subnet);
        !used.iter().any(|net| net.contains(&subnet) || subnet.contains(net))
    };
    let mut free = subnets.filter(is_free);
    free.next().ok_or_else(|| {
        let problem = "no subnet of 10.90.0.0 to 10.127.255.255 is free";
        Error::new(Kind::Config, problem, "choose one (--subnet)")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn network(more: Value) -> Value {
        let mut all = json!({
            "name": "blue", "id": "2f25", "driver": "ringway", "dns_enabled": true, "internal": false,
            "ipv6_enabled": false, "created": "2024-01-01T00:00:00Z",
            "subnets": [{"subnet": "10.8.0.0/24"}]
        });
        all.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        all
    }

    fn create(more: Value) -> Result<Value, Error> {
        super::create(network(more).to_string().as_bytes())
    }

    #[test]
    fn a_network_is_completed() {
        let made = create(json!({"options": {"vlan": "10", "mtu": "9000"}})).unwrap();
        assert_eq!(made["subnets"], json!([{"subnet": "10.8.0.0/24", "gateway": "10.8.0.1"}]));
        assert_eq!(made["ipam_options"], json!({"driver": "host-local"}));
        assert_eq!(made["network_interface"], "rwg-blue");
        assert_eq!(made["dns_enabled"], false);
        // What is podman's stays.
        for (key, value) in
            [("id", "2f25"), ("driver", "ringway"), ("created", "2024-01-01T00:00:00Z")]
        {
            assert_eq!(made[key], value);
        }
        let made = create(json!({"subnets": [{"subnet": "fd00::/64"}]})).unwrap();
        assert_eq!(made["ipv6_enabled"], true);
        assert_eq!(made["subnets"][0]["gateway"], "fd00::1");
        let lease = json!({"start_ip": "10.8.0.9"});
        let subnets = json!([{"subnet": "10.8.0.0/24", "lease_range": lease}]);
        let made = create(json!({"subnets": subnets})).unwrap();
        assert_eq!(made["subnets"][0]["lease_range"], lease);
        let made = create(json!({"subnets": null})).unwrap();
        let subnet: IpNet = made["subnets"][0]["subnet"].as_str().unwrap().parse().unwrap();
        assert!("10.64.0.0/10".parse::<IpNet>().unwrap().contains(&subnet), "{subnet}");
        assert_eq!(create(json!({"subnets": null})).unwrap(), made);
        let made = create(json!({"subnets": [], "ipam_options": {"driver": "none"}})).unwrap();
        assert_eq!(made["subnets"], json!([]));
    }

    #[test]
    fn what_cannot_be_is_refused() {
        for (more, said) in [
            (json!({"options": {"isolate": "true"}}), "isolate=true"),
            (json!({"options": {"vlan": "0"}}), "vlan: 0"),
            (json!({"options": {"mtu": "big"}}), "mtu=big"),
            (json!({"options": {"mtu": "9"}}), "at least 68"),
            (
                json!({"options": {"mtu": "1000"}, "subnets": [{"subnet": "fd00::/64"}]}),
                "with IPv6",
            ),
            (json!({"options": {"switch": "br0"}}), "\"br0\""),
            (json!({"ipam_options": {"driver": "dhcp"}}), "dhcp"),
            (json!({"ipam_options": {"driver": "none"}}), "--subnet"),
            (json!({"subnets": [{"subnet": "10.8.0.1/24"}]}), "write 10.8.0.0/24"),
            (json!({"subnets": [{"subnet": "10.8.0.0/24", "gateway": "10.9.0.1"}]}), "10.9.0.1"),
            (json!({"ipv6_enabled": true}), "--subnet fd00"),
            (json!({"network_interface": "a/b"}), "\"a/b\""),
            (json!({"name": "a b"}), "\"a b\""),
        ] {
            let error = create(more.clone()).unwrap_err();
            assert!(error.to_string().contains(said), "{more}: {error}");
        }
        assert_eq!(super::create(b"{}").unwrap_err().kind, Kind::Decode);
    }

    #[test]
    fn a_teardown_reads_names_alone() {
        let exec = json!({
            "container_id": "c", "port_mappings": 7, "network_options": {"interface_name": "eth0", "static_ips": 7},
            "network": {"name": "blue", "subnets": "none", "options": {"mtu": 9}, "routes": 7}
        })
        .to_string();
        assert!(parse::<Exec>(exec.as_bytes()).is_err());
        let removed: Removed = parse(exec.as_bytes()).unwrap();
        let names = (&*removed.network.name, &*removed.container_id);
        assert_eq!(names, ("blue", "c"));
        assert_eq!(removed.network_options.interface_name, "eth0");
    }

    #[test]
    fn a_list_is_no_object() {
        let network = json!(["n", false, false, null, null, null, null, null, null]).to_string();
        let subnets = json!({"name": "n", "subnets": [["10.1.2.0/24", null]]}).to_string();
        for input in [network, subnets] {
            let error = super::create(input.as_bytes()).unwrap_err();
            assert_eq!(error.kind, Kind::Decode, "{error}");
            assert!(error.problem.contains("invalid type: sequence"), "{error}");
        }
    }

    #[test]
    fn info_says_both_versions() {
        let run = |words: &[&str]| {
            let words: Vec<String> = words.iter().map(|&word| word.into()).collect();
            super::run(&words, || Ok(Vec::new()), &mut |_| ())
        };
        assert_eq!(run(&["info"]).unwrap().unwrap()["api_version"], "1.0.0");
        assert_eq!(run(&["info"]), run(&["version"]));
        assert!(
            refusal(&run(&["up"]).unwrap_err())["error"].as_str().unwrap().contains("setup NETNS")
        );
    }
}
