//! A network's configuration, as a runtime gives it to the plugin.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Map, Value};

use super::{result::Dns, version::Version};
use crate::{
    error::{Error, Kind},
    link,
    mac::Mac,
    names,
    switch::Place,
};

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Read {
    cni_version: Option<String>,
    name: Option<String>,
    switch: Option<String>,
    vlan: Option<u16>,
    mtu: Option<u32>,
    #[serde(default)]
    is_gateway: bool,
    #[serde(default)]
    is_default_gateway: bool,
    host_interface: Option<String>,
    #[serde(default)]
    spoofcheck: bool,
    #[serde(default)]
    ip_masq: bool,
    ipam: Option<Value>,
    dns: Option<Dns>,
    runtime_config: Option<BTreeMap<String, Value>>,
    prev_result: Option<Value>,
    #[serde(rename = "cni.dev/valid-attachments")]
    valid: Option<Vec<Valid>>,
    /// As libcni wrote it before the specification had a name for it.
    #[serde(rename = "cni.dev/attachments")]
    valid_before: Option<Vec<Valid>>,
    #[serde(flatten)]
    others: BTreeMap<String, Value>,
}

/// An interface of a container that GC leaves alone.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Valid {
    #[serde(rename = "containerID")]
    pub container: String,
    #[serde(rename = "ifname")]
    pub interface: String,
}

/// Keys that are the runtime's, or another plugin's.
const OF_OTHERS: [&str; 4] = ["type", "args", "capabilities", "disableCheck"];

#[derive(Debug)]
pub struct Config {
    pub version: Version,
    pub name: String,
    pub place: Place,
    pub mtu: Option<u32>,
    /// The gateway's interface in the host's stack, if there is to be one.
    pub gateway: Option<String>,
    /// Containers have a default route by the gateway.
    pub is_default: bool,
    pub spoofcheck: bool,
    /// The program that gives addresses, if there is one.
    pub ipam: Option<String>,
    pub dns: Option<Dns>,
    /// The address of the container's interface that the runtime wants.
    pub mac: Option<Mac>,
    /// What ADD has left, as it came: of other plugins, too.
    pub previous: Option<Value>,
    /// `None`: the runtime does not say which there are. An empty list says that there are none.
    pub valid: Option<Vec<Valid>>,
}

impl Config {
    /// # Errors
    /// [`Kind::Version`], [`Kind::Decode`], [`Kind::Unsupported`] and [`Kind::Config`].
    pub fn read(text: &[u8]) -> Result<Config, Error> {
        let (version, object) = object(text)?;
        let read: Read = serde_json::from_value(object.into()).map_err(decode)?;
        debug_assert_eq!(read.cni_version.as_deref(), Some(version.name()));
        let unsupported = |key: &str, value: &dyn std::fmt::Display, remedy: &str| {
            Err(Error::new(Kind::Unsupported, format!("{key}: {value} is not supported"), remedy))
        };
        if let Some((key, value)) =
            read.others.iter().find(|(key, _)| !OF_OTHERS.contains(&&***key))
        {
            return unsupported(key, value, "leave it out, or see how it is written");
        }
        if read.ip_masq {
            let remedy =
                "leave it out, and let a rule of the host's firewall masquerade the subnet";
            return unsupported("ipMasq", &true, remedy);
        }
        let name = network_name(read.name)?;
        let place = Place::new(&name, read.switch.as_deref(), read.vlan)?;
        let is_gateway = read.is_gateway || read.is_default_gateway;
        let ipam = ipam(read.ipam)?;
        if is_gateway && ipam.is_none() {
            let key = if read.is_gateway { "isGateway" } else { "isDefaultGateway" };
            let problem = format!("{key}: a gateway has an address, and nothing gives any");
            let remedy = format!("add `ipam`, or leave {key} out");
            return Err(Error::new(Kind::Config, problem, remedy));
        }
        let mtu = read.mtu.filter(|mtu| *mtu != 0);
        if let Some(mtu) = mtu.filter(|mtu| !link::MTUS.contains(mtu)) {
            let problem = format!("mtu: {mtu} is not possible");
            return Err(Error::new(Kind::Config, problem, link::WHICH_MTUS));
        }
        let interface = read.host_interface;
        if let Some(name) = interface.as_ref().filter(|name| !names::is_interface(name)) {
            let remedy = "it has 1 to 15 printable characters, and no space, / or :";
            let problem = format!("hostInterface: {name:?} is no name of an interface");
            return Err(Error::new(Kind::Config, problem, remedy));
        }
        if interface.is_some() && !is_gateway {
            let remedy = "set isGateway, or leave it out";
            return Err(Error::new(Kind::Config, "hostInterface: there is no gateway", remedy));
        }
        let gateway =
            is_gateway.then(|| interface.unwrap_or_else(|| names::gateway_interface(&name)));
        let mut mac = None;
        for (key, value) in read.runtime_config.unwrap_or_default() {
            match &*key {
                "mac" => mac = Some(serde_json::from_value(value).map_err(decode)?),
                // Of the IPAM plugin, which gets the same configuration.
                "ips" | "ipRanges" if ipam.is_some() => {}
                _ => {
                    let remedy = "leave it out of this plugin's `capabilities`";
                    return unsupported(&format!("runtimeConfig.{key}"), &value, remedy);
                }
            }
        }
        Ok(Config {
            version,
            place,
            mtu,
            gateway,
            is_default: read.is_default_gateway,
            spoofcheck: read.spoofcheck,
            ipam,
            dns: read.dns,
            mac,
            previous: read.prev_result,
            valid: read.valid.or(read.valid_before),
            name,
        })
    }

    /// For what removes: a network's configuration may have become wrong since it was used, and what was made by it
    /// goes all the same. `note` gets what is wrong with it.
    ///
    /// # Errors
    /// The version, the name, or the list of what is to stay cannot be read: without them it is not known what is to be
    /// removed.
    pub fn read_to_remove(text: &[u8], note: &mut dyn FnMut(&str)) -> Result<Config, Error> {
        let wrong = match Config::read(text) {
            Ok(config) => return Ok(config),
            Err(error) => error,
        };
        let (version, object) = object(text)?;
        let least = Least::deserialize(Value::from(object)).map_err(decode)?;
        let name = network_name(least.name)?;
        note(&format!("{wrong}: what there is of the network is removed all the same"));
        let ipam = ipam(least.ipam).unwrap_or_else(|error| {
            note(&format!("{error}: no plugin is asked to give addresses back"));
            None
        });
        Ok(Config {
            version,
            place: Place::new(&name, None, None)?,
            mtu: None,
            gateway: None,
            is_default: false,
            spoofcheck: false,
            ipam,
            dns: None,
            mac: None,
            previous: None,
            valid: least.valid.or(least.valid_before),
            name,
        })
    }
}

/// What a removal needs.
#[derive(Deserialize)]
struct Least {
    name: Option<String>,
    ipam: Option<Value>,
    #[serde(rename = "cni.dev/valid-attachments")]
    valid: Option<Vec<Valid>>,
    #[serde(rename = "cni.dev/attachments")]
    valid_before: Option<Vec<Valid>>,
}

fn decode(error: serde_json::Error) -> Error {
    let remedy = "see the configuration of this network, and the guide to containers";
    Error::new(Kind::Decode, format!("the network's configuration: {error}"), remedy)
}

/// An object, and its version. The version comes first: what another one has in its keys is not to be complained about.
fn object(text: &[u8]) -> Result<(Version, Map<String, Value>), Error> {
    let object: Map<String, Value> = serde_json::from_slice(text).map_err(decode)?;
    Ok((Version::of(object.get("cniVersion").and_then(Value::as_str))?, object))
}

fn network_name(name: Option<String>) -> Result<String, Error> {
    let name = name.unwrap_or_default();
    if names::is_identifier(&name) {
        return Ok(name);
    }
    let remedy = "it is a letter or digit, and then also _, . and -";
    Err(Error::new(Kind::Config, format!("name: {name:?} is no network's"), remedy))
}

/// The name of the program; `{}` is as none.
fn ipam(section: Option<Value>) -> Result<Option<String>, Error> {
    let Some(Value::Object(section)) = section else {
        return match section {
            None | Some(Value::Null) => Ok(None),
            Some(other) => Err(Error::new(Kind::Decode, format!("ipam: {other} is no object"), "")),
        };
    };
    let kind = section.get("type").and_then(Value::as_str);
    match kind.filter(|kind| !kind.is_empty()) {
        Some(kind) if kind.contains('/') => {
            let remedy = "it is the name of a program in CNI_PATH, as host-local";
            Err(Error::new(Kind::Config, format!("ipam: the type {kind:?} is a path"), remedy))
        }
        Some(kind) => Ok(Some(kind.into())),
        None if section.is_empty() => Ok(None),
        None => {
            Err(Error::new(Kind::Config, "ipam: there is no `type`", "name one, as host-local"))
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(more: Value) -> Result<Config, Error> {
        let mut all = json!({"cniVersion": "1.0.0", "name": "red", "type": "ringway"});
        let more = more.as_object().unwrap().clone();
        all.as_object_mut().unwrap().extend(more);
        Config::read(all.to_string().as_bytes())
    }

    #[test]
    fn a_configuration_is_read() {
        let config = read(json!({})).unwrap();
        assert_eq!((&*config.place.switch, config.place.vlan), ("valered", None));
        assert_eq!((config.gateway, config.ipam, config.mtu), (None, None, None));
        let config = read(json!({
            "switch": "vale0", "vlan": 10, "mtu": 9000, "isDefaultGateway": true, "spoofcheck": true,
            "ipam": {"type": "host-local", "subnet": "10.1.0.0/24"},
            "capabilities": {"mac": true}, "runtimeConfig": {"mac": "02:00:00:00:00:09"},
            "args": {"what": "ever"}
        }))
        .unwrap();
        assert_eq!((&*config.place.switch, config.place.vlan), ("vale0", Some(10)));
        assert_eq!(config.gateway.as_deref(), Some("rwg-red"));
        assert_eq!(config.mac, Some(Mac([2, 0, 0, 0, 0, 9])));
        assert!(config.is_default && config.spoofcheck);
    }

    #[test]
    fn what_is_not_supported_is_said_with_key_and_value() {
        let ipam = json!({"type": "host-local"});
        for (more, code, said) in [
            (json!({"vlanId": 5}), 2, "vlanId: 5"),
            (json!({"ipMasq": true}), 2, "ipMasq: true"),
            (json!({"runtimeConfig": {"portMappings": []}}), 2, "runtimeConfig.portMappings: []"),
            (json!({"runtimeConfig": {"ips": []}}), 2, "runtimeConfig.ips: []"),
            (json!({"runtimeConfig": {"mac": "no"}}), 6, "no Ethernet address"),
            (json!({"vlan": 4095}), 7, "vlan: 4095"),
            (json!({"vlan": "10"}), 6, "invalid type"),
            (json!({"switch": "br0"}), 7, "\"br0\""),
            (json!({"isGateway": true}), 7, "isGateway"),
            (json!({"isDefaultGateway": true}), 7, "isDefaultGateway: a"),
            (json!({"mtu": 9}), 7, "mtu: 9"),
            (json!({"hostInterface": "gw0", "ipam": ipam}), 7, "hostInterface"),
            (json!({"hostInterface": "a/b", "isGateway": true, "ipam": ipam}), 7, "\"a/b\""),
            (json!({"ipam": {"type": "../sh"}}), 7, "\"../sh\""),
            (json!({"ipam": {"subnet": "10.0.0.0/8"}}), 7, "type"),
            (json!({"ipam": []}), 6, "ipam"),
            (json!({"name": "a b"}), 7, "\"a b\""),
            (json!({"cniVersion": "9.9.9", "vlanId": 5}), 1, "9.9.9"),
        ] {
            let error = read(more.clone()).unwrap_err();
            assert_eq!(error.code(), code, "{more}: {error}");
            assert!(error.problem.contains(said), "{more}: {error}");
        }
        for text in ["{", "[]", "null", "7"] {
            let error = Config::read(text.as_bytes()).unwrap_err();
            assert_eq!(error.code(), 6, "{text}: {error}");
        }
    }

    #[test]
    fn a_removal_needs_no_more_than_the_name() {
        let valid = json!([{"containerID": "a", "ifname": "eth0"}]);
        let ipam = json!({"type": "host-local"});
        for (wrong, program) in [
            (json!({"vlan": 5000, "ipam": ipam}), Some("host-local")),
            (json!({"bridge": "x", "ipam": ipam}), Some("host-local")),
            (json!({"mtu": "big"}), None),
            (json!({"switch": "br0"}), None),
            (json!({"isDefaultGateway": true}), None),
            (json!({"ipam": []}), None),
            (json!({"ipam": {"type": "../sh"}}), None),
            (json!({"dns": 7, "prevResult": 7, "runtimeConfig": 7}), None),
        ] {
            let mut all = json!({
                "cniVersion": "1.1.0", "name": "red", "cni.dev/valid-attachments": valid
            });
            all.as_object_mut().unwrap().extend(wrong.as_object().unwrap().clone());
            let text = all.to_string();
            assert!(Config::read(text.as_bytes()).is_err(), "{text}");
            let mut notes = Vec::new();
            let note = &mut |note: &str| notes.push(note.to_owned());
            let config = Config::read_to_remove(text.as_bytes(), note).unwrap();
            assert_eq!((&*config.name, config.ipam.as_deref()), ("red", program), "{text}");
            assert_eq!(config.valid.map(|valid| valid.len()), Some(1), "{text}");
            assert!(!notes.is_empty(), "{text}");
        }
        for text in [
            r#"{"cniVersion": "9.0.0", "name": "red"}"#,
            r#"{"cniVersion": "1.1.0", "name": "a b"}"#,
            r#"{"cniVersion": "1.1.0", "name": "red", "cni.dev/valid-attachments": 7}"#,
            "[]",
        ] {
            let note = &mut |note: &str| panic!("{text}: {note}");
            assert!(Config::read_to_remove(text.as_bytes(), note).is_err(), "{text}");
        }
    }

    #[test]
    fn attachments_have_an_older_name_too() {
        let valid = json!([{"containerID": "a", "ifname": "eth0"}]);
        for key in ["cni.dev/valid-attachments", "cni.dev/attachments"] {
            let config = read(json!({key: valid})).unwrap();
            let expected = vec![Valid { container: "a".into(), interface: "eth0".into() }];
            assert_eq!(config.valid, Some(expected));
            assert_eq!(read(json!({key: []})).unwrap().valid, Some(vec![]));
            assert_eq!(read(json!({key: null})).unwrap().valid, None);
        }
        assert_eq!(read(json!({})).unwrap().valid, None);
    }
}
