//! A container's interface in a network: one end of a veth pair, whose other end is on the switch.
//!
//! The names of both ends follow from the network and the container ([`Attachment`]), and an alias says whose
//! they are, so nothing is kept beside the interfaces themselves.

use std::net::IpAddr;

use ipnet::IpNet;
use rustix::{fd::BorrowedFd, io::Errno};

use crate::{
    error::{Error, Kind},
    gateway::{self, Gateway},
    link::{self, Hop, Link, Pair, WHICH_MTUS},
    mac::Mac,
    names::{self, Attachment},
    netlink::Netlink,
    switch::{self, Daemon, Place},
};

/// What an interface of a container is to be like.
pub struct Interface<'a> {
    pub place: &'a Place,
    pub mtu: Option<u32>,
    pub mac: Option<Mac>,
    /// The container may send from this interface's address alone.
    pub spoofcheck: bool,
}

/// Both ends, as they are.
#[derive(Debug)]
pub struct Ends {
    pub port: Link,
    pub inner: Link,
}

/// An address of a container's, and the gateway of its subnet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Address {
    pub address: IpNet,
    pub gateway: Option<IpAddr>,
}

/// A socket in the container's network namespace.
fn enter(netns: BorrowedFd<'_>) -> Result<Netlink, Error> {
    Netlink::inside(netns).map_err(|cause| match link::is(&cause, Errno::INVAL) {
        true => {
            let problem = "the file that was named is no network namespace";
            let remedy = "name one: CNI_NETNS, as /run/netns/NAME or /proc/PID/ns/net";
            Error::new(Kind::Environment, problem, remedy)
        }
        false => Error::link("the container's namespace")(cause),
    })
}

/// Whether a network namespace is that of this process.
fn is_own(netns: BorrowedFd<'_>) -> Result<bool, Error> {
    let wrong = |error: rustix::io::Errno| Error::link("the network namespace")(error.into());
    let of_fd = rustix::fs::fstat(netns).map_err(wrong)?;
    let of_own = rustix::fs::stat("/proc/self/ns/net").map_err(wrong)?;
    Ok((of_fd.st_dev, of_fd.st_ino) == (of_own.st_dev, of_own.st_ino))
}

impl Attachment<'_> {
    /// Checks the names.
    pub fn check(&self) -> Result<(), Error> {
        let wrong = |what: &str, name: &str, remedy: &str| {
            Err(Error::new(
                Kind::Environment,
                format!("{what}: {name:?} is no name of one"),
                remedy,
            ))
        };
        let identifier = "it is a letter or digit, and then also _, . and -";
        if !names::is_identifier(self.network) {
            let problem = format!("name: {:?} is no name of a network", self.network);
            return Err(Error::new(Kind::Config, problem, identifier));
        }
        if !names::is_identifier(self.container) {
            return wrong("CNI_CONTAINERID", self.container, identifier);
        }
        if !names::is_interface(self.interface) {
            let remedy = "it has 1 to 15 printable characters, and no space, / or :";
            return wrong("CNI_IFNAME", self.interface, remedy);
        }
        if !names::alias_fits(&self.alias()) {
            let problem = "the names of the network and the container are too long";
            return Err(Error::new(
                Kind::Config,
                problem,
                "together they have at most 220 characters",
            ));
        }
        Ok(())
    }

    /// Makes the pair, attaches one end and sets both up. Nothing is left of it after an error.
    pub fn make(
        &self,
        netlink: &Netlink,
        daemon: &Daemon,
        interface: &Interface<'_>,
        netns: BorrowedFd<'_>,
    ) -> Result<Ends, Error> {
        if is_own(netns)? {
            let problem = "the container's network namespace is the host's";
            let remedy = "a container without a namespace of its own has the host's interfaces: give it no network";
            return Err(Error::new(Kind::Environment, problem, remedy));
        }
        let port = self.port();
        let inside = enter(netns)?;
        let inner = self.interface;
        if look(&inside, inner)?.is_some() {
            let problem = format!("the container has an interface {inner} already");
            let remedy =
                "give it another name (CNI_IFNAME; with podman, --network NAME:interface_name=...)";
            return Err(Error::new(Kind::Config, problem, remedy));
        }
        if look(netlink, &port)?.is_some() {
            let problem =
                format!("{inner} of container {} is in {} already", self.container, self.network);
            let remedy = "remove it first (DEL; with podman, `podman network disconnect`)";
            return Err(Error::new(Kind::Config, problem, remedy));
        }
        let &Interface { mtu, mac, .. } = interface;
        let pair = Pair { here: &port, there: inner, netns: Some(netns), mtu, mac };
        pair.make(netlink).map_err(|cause| {
            let mut error = Error::link(format!("{port} with {inner} in the container"))(cause);
            if mtu.is_some() && error.problem.contains("Invalid argument") {
                error.remedy = WHICH_MTUS.into();
            }
            error
        })?;
        let complete = || -> Result<Ends, Error> {
            let end = look(netlink, &port)?.ok_or_else(|| has_gone(&port))?;
            link::set_alias(netlink, end.index, &self.alias()).map_err(Error::link(&port))?;
            link::silence(netlink, end.index).map_err(Error::link(&port))?;
            let inner = look(&inside, inner)?.ok_or_else(|| has_gone(inner))?;
            let sources = inner.mac.filter(|_| interface.spoofcheck);
            daemon.attach(interface.place, &port, sources)?;
            link::set_up(&inside, inner.index).map_err(Error::link(&inner.name))?;
            link::set_up(netlink, end.index).map_err(Error::link(&port))?;
            let (end, inner) = (look(netlink, &port)?, look(&inside, &inner.name)?);
            let (port, inner) = end.zip(inner).ok_or_else(|| has_gone(&port))?;
            Ok(Ends { port, inner })
        };
        complete().inspect_err(|_| {
            let _ = self.remove(netlink, Some(daemon));
        })
    }

    /// Detaches and removes the pair, and the gateway if this was the network's last container. It succeeds if
    /// nothing is there.
    ///
    /// Without the daemon it removes the interfaces alone.
    pub fn remove(&self, netlink: &Netlink, daemon: Option<&Daemon>) -> Result<(), Error> {
        let removed = remove_port(netlink, daemon, &self.port(), &self.alias());
        removed.and(gateway::remove_if_unused(netlink, daemon, self.network))
    }

    /// Gives the interface its addresses and routes. Returns for each route whether it was added: another network
    /// of the container's may have it.
    pub fn configure(
        &self,
        netns: BorrowedFd<'_>,
        addresses: &[Address],
        hops: &[Hop],
    ) -> Result<Vec<bool>, Error> {
        let inside = enter(netns)?;
        let name = self.interface;
        let inner = look(&inside, name)?.ok_or_else(|| has_gone(name))?;
        for Address { address, .. } in addresses {
            link::add_address(&inside, inner.index, *address)
                .map_err(Error::link(format!("{name}: {address}")))?;
        }
        let add = |hop: &Hop| {
            let shown = hop.destination.map_or_else(|| "default".into(), |net| net.to_string());
            match link::add_route(&inside, inner.index, hop) {
                Ok(()) => Ok(true),
                Err(e) if link::is(&e, Errno::EXIST) => Ok(false),
                Err(e) => Err(Error::link(format!("{name}: route to {shown}"))(e)),
            }
        };
        hops.iter().map(add).collect()
    }

    /// Whether all is as it was made.
    pub fn verify(
        &self,
        netlink: &Netlink,
        daemon: &Daemon,
        interface: &Interface<'_>,
        netns: BorrowedFd<'_>,
        expected: &Expected<'_>,
    ) -> Result<(), Error> {
        let differs = |problem: String| Err(Error::new(Kind::Differs, problem, ""));
        let name = self.interface;
        let port = self.port();
        let Some(end) = look(netlink, &port)? else {
            return differs(format!("{port}, the end of {name} on this side, is missing"));
        };
        if end.alias != self.alias() {
            return differs(format!("{port} is another one: {:?}", end.alias));
        }
        let inside = enter(netns)?;
        let Some(inner) = look(&inside, name)? else {
            return differs(format!("the container has no interface {name}"));
        };
        for link in [&end, &inner] {
            if !link.is_up {
                return differs(format!("{} is down", link.name));
            }
        }
        if let Some(mac) = expected.mac.filter(|mac| inner.mac != Some(*mac)) {
            let found = inner.mac.map(|mac| mac.to_string()).unwrap_or_default();
            return differs(format!("{name} has the address {found}, not {mac}"));
        }
        if let Some(mtu) = interface.mtu.filter(|mtu| inner.mtu != *mtu) {
            return differs(format!("{name} has the MTU {}, not {mtu}", inner.mtu));
        }
        let found = link::addresses(&inside, inner.index).map_err(Error::link(name))?;
        if let Some(missing) = expected.addresses.iter().find(|net| !found.contains(net)) {
            return differs(format!("{name} has not the address {missing}"));
        }
        let found = link::routes(&inside, inner.index).map_err(Error::link(name))?;
        let is_there = |(to, by): &(IpNet, Option<IpAddr>)| {
            found.iter().any(|(net, gateway)| *net == to.trunc() && (by.is_none() || gateway == by))
        };
        if let Some((missing, _)) = expected.routes.iter().find(|route| !is_there(route)) {
            return differs(format!("{name} has no route to {missing}"));
        }
        daemon.check(interface.place, &port, inner.mac.filter(|_| interface.spoofcheck))
    }
}

/// What `verify` compares with.
pub struct Expected<'a> {
    pub mac: Option<Mac>,
    pub addresses: &'a [IpNet],
    /// Where to, and by which gateway if that is known.
    pub routes: &'a [(IpNet, Option<IpAddr>)],
}

impl Gateway<'_> {
    /// Whether it is there, on the switch, with these addresses.
    pub fn verify(
        &self,
        netlink: &Netlink,
        daemon: &Daemon,
        place: &Place,
        addresses: &[IpNet],
    ) -> Result<(), Error> {
        let differs = |problem: String| Err(Error::new(Kind::Differs, problem, ""));
        let name = &*self.interface;
        let Some(own) = look(netlink, name)? else {
            return differs(format!("the gateway's interface {name} is missing"));
        };
        let found = link::addresses(netlink, own.index).map_err(Error::link(name))?;
        if let Some(missing) = addresses.iter().find(|net| !found.contains(net)) {
            return differs(format!("{name} has not the address {missing}"));
        }
        if !own.is_up {
            return differs(format!("{name} is down"));
        }
        daemon.check(place, &names::gateway_port(self.network), None)
    }
}

/// Removes all interfaces of a network's containers but those that are `valid`, also from the switch where
/// their interfaces have gone. `removed` gets the container and the interface of each, where the alias says it.
pub fn collect(
    netlink: &Netlink,
    daemon: &Daemon,
    network: &str,
    valid: &[Attachment<'_>],
    removed: &mut Vec<(String, String)>,
) -> Result<(), Error> {
    let valid: Vec<String> = valid.iter().map(Attachment::port).collect();
    let prefix = names::alias_prefix(network);
    let links = link::links(netlink).map_err(Error::link("interfaces"))?;
    let mut result = Ok(());
    for link in &links {
        let Some(whose) = link.alias.strip_prefix(&prefix) else { continue };
        if !valid.contains(&link.name) {
            result = result.and(remove_port(netlink, Some(daemon), &link.name, &link.alias));
            let parts = whose.split_once(' ');
            removed
                .extend(parts.map(|(container, interface)| (container.into(), interface.into())));
        }
    }
    // With its namespace, a container's interface goes by itself; the switch waits for another one then.
    let of_network = names::container_prefix(network);
    for (_, info) in daemon.ports()? {
        let port = switch::half(&info.name);
        let is_here = links.iter().any(|link| link.name == port);
        let is_left = port.starts_with(&of_network) && info.absent && !is_here;
        if is_left && !valid.iter().any(|name| name == port) {
            result = result.and(daemon.detach(port));
        }
    }
    result.and(gateway::remove_if_unused(netlink, Some(daemon), network))
}

/// Detaches first: a switch waits for an interface that it loses.
fn remove_port(
    netlink: &Netlink,
    daemon: Option<&Daemon>,
    port: &str,
    alias: &str,
) -> Result<(), Error> {
    let link = look(netlink, port)?;
    // Another network's, whose name happens to be the same, is not to be touched.
    if link.as_ref().is_some_and(|link| !link.alias.is_empty() && link.alias != alias) {
        return Ok(());
    }
    let detached = daemon.map_or(Ok(()), |daemon| daemon.detach(port));
    if let Some(link) = link {
        match link::remove(netlink, link.index) {
            // The runtime has removed the container's namespace meanwhile.
            Err(e) if link::is(&e, Errno::NODEV) => {}
            result => result.map_err(Error::link(port))?,
        }
    }
    detached
}

fn look(netlink: &Netlink, name: &str) -> Result<Option<Link>, Error> {
    link::find(netlink, name).map_err(Error::link(name))
}

fn has_gone(name: &str) -> Error {
    Error::new(Kind::Link, format!("{name} has gone while it was set up"), "try again")
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use rustix::fd::AsFd;

    use super::*;

    #[test]
    fn a_file_that_is_no_namespace_is_said_to_be_none() {
        let file = File::open("/dev/null").unwrap();
        let error = enter(file.as_fd()).map(drop).unwrap_err();
        assert!(error.problem.contains("no network namespace"), "{error}");
        assert!(error.remedy.contains("CNI_NETNS"), "{error}");
    }
}
