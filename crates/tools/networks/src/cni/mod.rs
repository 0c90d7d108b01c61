//! The CNI plugin: the commands of the specification 1.1.0, and of those back to 0.3.0.

mod call;
mod config;
mod result;
mod version;

use std::net::IpAddr;

use ipnet::IpNet;
use rustix::fd::{AsFd, OwnedFd};
use serde::Deserialize;
use serde_json::{Value, json};

use self::{
    call::missing,
    config::Config,
    result::{Interface as ResultInterface, Ip, Route},
};
pub use self::{
    call::{Call, Command},
    result::AddResult,
    version::Version,
};
use crate::{
    attachment::{self, Address, Ends, Expected, Interface},
    error::{Error, Kind},
    gateway::{self, Gateway},
    ipam::Ipam,
    link::{Hop, Link},
    names::Attachment,
    netlink::Netlink,
    switch::Daemon,
};

/// Carries a command out. What it says on standard output; nothing, for most.
///
/// `note` gets what people should know of a success.
pub fn run(
    command: Command,
    call: &Call,
    input: &[u8],
    note: &mut dyn FnMut(&str),
) -> Result<Option<Value>, Error> {
    if command == Command::Version {
        return version(input).map(Some);
    }
    let config = match command {
        Command::Del | Command::Gc => Config::read_to_remove(input, note)?,
        _ => Config::read(input)?,
    };
    let since = match command {
        Command::Check => Version::V0_4_0,
        Command::Gc | Command::Status => Version::V1_1_0,
        _ => Version::V0_3_0,
    };
    if config.version < since {
        let problem = format!("{} is not in version {}", command.name(), config.version.name());
        let remedy = format!("set cniVersion to {} or a later one", since.name());
        return Err(Error::new(Kind::Version, problem, remedy));
    }
    let this = Plugin { call, config, input };
    match command {
        Command::Add => {
            let result = this.add()?.in_version(this.config.version);
            let value = serde_json::to_value(result);
            value.map(Some).map_err(|e| Error::new(Kind::Decode, e.to_string(), ""))
        }
        Command::Del => this.del(note).map(|()| None),
        Command::Check => this.check().map(|()| None),
        Command::Gc => this.gc().map(|()| None),
        Command::Status => this.status().map(|()| None),
        Command::Version => version(input).map(Some),
    }
}

/// An error as the specification has it.
pub fn refusal(error: &Error, input: &[u8]) -> Value {
    let asked: Option<Value> = serde_json::from_slice(input).ok();
    let asked = asked.as_ref().and_then(|value| value.get("cniVersion")?.as_str());
    let version = Version::of(asked).unwrap_or(Version::NEWEST);
    let mut value =
        json!({"cniVersion": version.name(), "code": error.code(), "msg": error.problem});
    if !error.remedy.is_empty() {
        value["details"] = error.remedy.clone().into();
    }
    value
}

fn version(input: &[u8]) -> Result<Value, Error> {
    let asked = match input.iter().all(u8::is_ascii_whitespace) {
        true => Value::Null,
        false => serde_json::from_slice(input)
            .map_err(|e| Error::new(Kind::Decode, format!("what is asked for: {e}"), ""))?,
    };
    let answer = asked.get("cniVersion").and_then(Value::as_str);
    let answer = answer.unwrap_or(Version::NEWEST.name());
    let supported = version::ALL.map(Version::name);
    Ok(json!({"cniVersion": answer, "supportedVersions": supported}))
}

struct Plugin<'a> {
    call: &'a Call,
    config: Config,
    /// The configuration as it came, for the IPAM plugin.
    input: &'a [u8],
}

impl Plugin<'_> {
    fn add(&self) -> Result<AddResult, Error> {
        let config = &self.config;
        if config.previous.is_some() {
            let problem = "prevResult: this plugin makes an interface, and has no use for others";
            return Err(Error::new(Kind::Config, problem, "put it first into `plugins`"));
        }
        let attachment = self.attachment()?;
        let (netns, sandbox) = self.call.open_netns()?;
        let interface = self.interface()?;
        let ipam = self.ipam()?;
        let daemon = Daemon::connect()?;
        let netlink = netlink()?;
        let ends = attachment.make(&netlink, &daemon, &interface, netns.as_fd())?;
        // Afterwards, for the plugin `dhcp` asks on the interface itself.
        let complete = || {
            let given = ipam.as_ref().map_or_else(|| Ok(AddResult::default()), Ipam::add)?;
            self.configure(&attachment, &netlink, &daemon, &netns, &sandbox, ends, given)
        };
        complete().inspect_err(|_| {
            let _ = ipam.as_ref().map(Ipam::del);
            let _ = attachment.remove(&netlink, Some(&daemon));
        })
    }

    #[allow(clippy::too_many_arguments)]
    fn configure(
        &self,
        attachment: &Attachment<'_>,
        netlink: &Netlink,
        daemon: &Daemon,
        netns: &OwnedFd,
        sandbox: &str,
        ends: Ends,
        given: AddResult,
    ) -> Result<AddResult, Error> {
        let config = &self.config;
        if config.ipam.is_some() && given.ips.is_empty() {
            let problem = "ipam: the plugin gives no address";
            return Err(Error::new(Kind::Config, problem, "see its section in the configuration"));
        }
        let mut addresses: Vec<Address> = given
            .ips
            .iter()
            .map(|ip| Address { address: ip.address, gateway: ip.gateway })
            .collect();
        let mut own = None;
        if let Some(gateway) = self.gateway() {
            let nets = gateways(&mut addresses)?;
            own = Some(gateway.ensure(netlink, daemon, &config.place, &nets)?);
        }
        let routes = routes(given.routes, &addresses, config.is_default)?;
        let added = attachment.configure(netns.as_fd(), &addresses, &hops(&routes))?;
        let own_routes = routes.into_iter().zip(added).filter(|(_, added)| *added);
        let routes = own_routes.map(|(route, _)| route).collect();
        let mut interfaces = vec![shown(&ends.port, "")];
        interfaces.extend(own.map(|link| shown(&link, "")));
        let inner = interfaces.len();
        interfaces.push(shown(&ends.inner, sandbox));
        let ip = |Address { address, gateway }| Ip {
            version: None,
            address,
            gateway,
            interface: Some(inner),
        };
        Ok(AddResult {
            interfaces,
            ips: addresses.into_iter().map(ip).collect(),
            routes,
            dns: config.dns.clone().unwrap_or(given.dns),
            ..AddResult::default()
        })
    }

    /// It removes what is there. Without the daemon, that is the interfaces: they leave their switch with it.
    fn del(&self, note: &mut dyn FnMut(&str)) -> Result<(), Error> {
        let attachment = self.attachment()?;
        let daemon = match Daemon::connect() {
            Ok(daemon) => Some(daemon),
            Err(e) if e.kind == Kind::TryAgain => {
                note(&left_behind(&attachment, &e));
                None
            }
            Err(e) => return Err(e),
        };
        let given_back = self.ipam().and_then(|ipam| ipam.map_or(Ok(()), |ipam| ipam.del()));
        let removed = attachment.remove(&netlink()?, daemon.as_ref());
        given_back.and(removed)
    }

    fn check(&self) -> Result<(), Error> {
        let config = &self.config;
        let Some(previous) = &config.previous else {
            let problem = "prevResult: CHECK compares with it, and it is missing";
            return Err(Error::new(Kind::Config, problem, "the runtime has to add it"));
        };
        let previous = AddResult::deserialize(previous).map_err(|e| {
            let remedy = "it is what ADD has answered";
            Error::new(Kind::Decode, format!("prevResult: {e}"), remedy)
        })?;
        let attachment = self.attachment()?;
        let (netns, _) = self.call.open_netns()?;
        let interface = self.interface()?;
        let daemon = Daemon::connect()?;
        if let Some(ipam) = self.ipam()? {
            ipam.check()?;
        }
        let is_own = |index: &usize| {
            let interface = previous.interfaces.get(*index);
            interface.is_some_and(|it| it.name == attachment.interface && !it.sandbox.is_empty())
        };
        let own = (0..previous.interfaces.len()).find(is_own);
        let Some(own) = own else {
            let problem = format!("prevResult: it has no interface {}", attachment.interface);
            return Err(Error::new(Kind::Config, problem, "is it of this container?"));
        };
        let ips = previous.ips.iter().filter(|ip| ip.interface.is_none_or(|index| index == own));
        let mut given: Vec<Address> =
            ips.map(|ip| Address { address: ip.address, gateway: ip.gateway }).collect();
        let addresses: Vec<IpNet> = given.iter().map(|ip| ip.address).collect();
        let routes: Vec<(IpNet, Option<IpAddr>)> =
            previous.routes.iter().map(|route| (route.dst, route.gw)).collect();
        let mac = previous.interfaces.get(own).and_then(|it| it.mac);
        let expected = Expected { mac, addresses: &addresses, routes: &routes };
        let netlink = netlink()?;
        attachment.verify(&netlink, &daemon, &interface, netns.as_fd(), &expected)?;
        if let Some(gateway) = self.gateway() {
            let nets = gateways(&mut given)?;
            gateway.verify(&netlink, &daemon, &config.place, &nets)?;
        }
        Ok(())
    }

    fn gc(&self) -> Result<(), Error> {
        let config = &self.config;
        let Some(valid) = &config.valid else {
            let problem =
                "cni.dev/valid-attachments: GC removes all that are not in it, and it is missing";
            let remedy = "the runtime has to add it, as [] if no container has this network";
            return Err(Error::new(Kind::Config, problem, remedy));
        };
        let daemon = Daemon::connect()?;
        let valid = valid.iter().map(|valid| Attachment {
            network: &config.name,
            container: &valid.container,
            interface: &valid.interface,
        });
        let valid: Vec<_> = valid.collect();
        let mut removed = Vec::new();
        let mut result =
            attachment::collect(&netlink()?, &daemon, &config.name, &valid, &mut removed);
        if let Some(ipam) = self.ipam()? {
            // Not all of these plugins know GC.
            for (container, interface) in &removed {
                result = result.and(ipam.del_of(container, interface));
            }
            result = result.and(ipam.call_if_known(Command::Gc.name()));
        }
        result
    }

    fn status(&self) -> Result<(), Error> {
        let reachable = Daemon::connect().and_then(|daemon| daemon.ports());
        reachable.map_err(|e| Error { kind: Kind::NotAvailable, ..e })?;
        self.ipam()?.map_or(Ok(()), |ipam| ipam.call_if_known(Command::Status.name()))
    }

    fn attachment(&self) -> Result<Attachment<'_>, Error> {
        let container = self.call.container.as_deref();
        let interface = self.call.interface.as_deref();
        let attachment = Attachment {
            network: &self.config.name,
            container: container.ok_or_else(|| missing("CNI_CONTAINERID"))?,
            interface: interface.ok_or_else(|| missing("CNI_IFNAME"))?,
        };
        attachment.check()?;
        Ok(attachment)
    }

    fn interface(&self) -> Result<Interface<'_>, Error> {
        let Config { place, mtu, spoofcheck, mac, .. } = &self.config;
        let mac = mac.map_or_else(|| self.call.mac(), |mac| Ok(Some(mac)))?;
        Ok(Interface { place, mtu: *mtu, mac, spoofcheck: *spoofcheck })
    }

    fn gateway(&self) -> Option<Gateway<'_>> {
        let interface = self.config.gateway.clone()?;
        Some(Gateway { network: &self.config.name, interface, mtu: self.config.mtu })
    }

    fn ipam(&self) -> Result<Option<Ipam<'_>>, Error> {
        let find = |name: &String| Ipam::find(name, &self.call.path, self.input);
        self.config.ipam.as_ref().map(find).transpose()
    }
}

fn netlink() -> Result<Netlink, Error> {
    Netlink::here().map_err(Error::link("netlink"))
}

/// What a daemon that is away may do when it is back.
pub fn left_behind(attachment: &Attachment<'_>, error: &Error) -> String {
    format!(
        "{error}. The interfaces are removed without it. A daemon that has had {port} on a switch may \
         wait for it for ten minutes; `ringway switch detach` gives it up",
        port = attachment.port()
    )
}

/// The addresses of the gateway's interface; each of the container's gets its gateway.
fn gateways(addresses: &mut [Address]) -> Result<Vec<IpNet>, Error> {
    let mut nets = Vec::new();
    for given in addresses {
        let net = gateway::address(given.address, given.gateway)?;
        given.gateway = Some(net.addr());
        if !nets.contains(&net) {
            nets.push(net);
        }
    }
    Ok(nets)
}

/// All routes: those of the IPAM plugin, by the gateway of their family unless they say which; and the default
/// ones.
fn routes(given: Vec<Route>, addresses: &[Address], is_default: bool) -> Result<Vec<Route>, Error> {
    let gateway = |is_v4: bool| {
        let mut of_family = addresses.iter().filter(|one| one.address.addr().is_ipv4() == is_v4);
        of_family.find_map(|one| one.gateway)
    };
    let mut routes = given;
    for route in &mut routes {
        route.gw = route.gw.or_else(|| gateway(route.dst.addr().is_ipv4()));
    }
    let any = [IpNet::from(ipnet::Ipv4Net::default()), IpNet::from(ipnet::Ipv6Net::default())];
    for dst in any.into_iter().filter(|_| is_default) {
        let is_there = routes.iter().any(|route| route.dst == dst);
        if let Some(gw) = gateway(dst.addr().is_ipv4()).filter(|_| !is_there) {
            routes.push(Route::new(dst, Some(gw)));
        }
    }
    Ok(routes)
}

fn hops(routes: &[Route]) -> Vec<Hop> {
    let hop = |&Route { dst, gw, mtu, advmss, priority, table, scope }: &Route| Hop {
        destination: Some(dst),
        gateway: gw,
        mtu,
        advmss,
        metric: priority,
        table,
        scope,
    };
    routes.iter().map(hop).collect()
}

fn shown(link: &Link, sandbox: &str) -> ResultInterface {
    ResultInterface {
        name: link.name.clone(),
        mac: link.mac,
        mtu: Some(link.mtu),
        sandbox: sandbox.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(net: &str, gateway: Option<&str>) -> Address {
        let gateway = gateway.map(|ip| ip.parse().unwrap());
        Address { address: net.parse().unwrap(), gateway }
    }

    #[test]
    fn routes_go_by_the_gateway_of_their_family() {
        let addresses =
            [address("10.1.0.2/24", Some("10.1.0.1")), address("fd00::2/64", Some("fd00::1"))];
        let given = vec![
            Route::new("10.9.0.0/16".parse().unwrap(), None),
            Route::new("0.0.0.0/0".parse().unwrap(), Some("10.1.0.9".parse().unwrap())),
        ];
        let all = routes(given, &addresses, true).unwrap();
        let shown: Vec<String> =
            all.iter().map(|route| format!("{} {}", route.dst, route.gw.unwrap())).collect();
        assert_eq!(shown, ["10.9.0.0/16 10.1.0.1", "0.0.0.0/0 10.1.0.9", "::/0 fd00::1"]);
        // Without a gateway, a route is to the link itself.
        let given = vec![Route::new("10.9.0.0/16".parse().unwrap(), None)];
        assert_eq!(routes(given, &[address("10.1.0.2/24", None)], true).unwrap()[0].gw, None);
    }

    #[test]
    fn versions_are_told_whatever_is_asked() {
        let told = version(br#"{"cniVersion": "0.4.0"}"#).unwrap();
        assert_eq!(told["cniVersion"], "0.4.0");
        assert_eq!(told["supportedVersions"], json!(["0.3.0", "0.3.1", "0.4.0", "1.0.0", "1.1.0"]));
        assert_eq!(version(b"").unwrap()["cniVersion"], "1.1.0");
        assert_eq!(version(b"{").unwrap_err().code(), 6);
    }

    #[test]
    fn a_refusal_is_in_the_version_that_was_asked_for() {
        let error = Error::new(Kind::TryAgain, "no daemon", "start it");
        let said = refusal(&error, br#"{"cniVersion": "0.4.0"}"#);
        let expected =
            json!({"cniVersion": "0.4.0", "code": 11, "msg": "no daemon", "details": "start it"});
        assert_eq!(said, expected);
        assert_eq!(refusal(&error, b"{")["cniVersion"], "1.1.0");
    }

    /// CHECK alone compares with it.
    #[test]
    fn a_previous_result_is_read_by_check_alone() {
        let previous = json!({"ips": [{"address": "10.0.0.0/99"}]});
        let input = json!({"cniVersion": "1.0.0", "name": "red", "type": "ringway", "prevResult": previous});
        let of =
            |command| run(command, &Call::default(), input.to_string().as_bytes(), &mut |_| ());
        let error = of(Command::Check).unwrap_err();
        assert!(error.code() == 6 && error.problem.contains("invalid IP"), "{error}");
        let error = of(Command::Del).unwrap_err();
        assert!(error.problem.contains("CNI_CONTAINERID"), "{error}");
    }

    /// A command that the configuration's version has not.
    #[test]
    fn a_command_is_of_a_version() {
        let of = |command, version: &str| {
            let input = json!({"cniVersion": version, "name": "red", "type": "ringway"});
            run(command, &Call::default(), input.to_string().as_bytes(), &mut |_| ())
        };
        assert_eq!(of(Command::Check, "0.3.1").unwrap_err().code(), 1);
        assert_eq!(of(Command::Gc, "1.0.0").unwrap_err().code(), 1);
        assert_eq!(of(Command::Status, "1.0.0").unwrap_err().code(), 1);
        assert_eq!(of(Command::Check, "0.4.0").unwrap_err().code(), 7);
        // It would remove all that there is.
        let error = of(Command::Gc, "1.1.0").unwrap_err();
        assert!(error.code() == 7 && error.problem.contains("valid-attachments"), "{error}");
        for (command, variable) in
            [(Command::Add, "CNI_CONTAINERID"), (Command::Del, "CNI_CONTAINERID")]
        {
            let error = of(command, "1.0.0").unwrap_err();
            assert_eq!(error.code(), 4);
            assert!(error.problem.contains(variable), "{error}");
        }
    }
}
