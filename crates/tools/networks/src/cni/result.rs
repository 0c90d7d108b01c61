//! What ADD leaves, as JSON: of this plugin, of the IPAM plugin, and as `prevResult`.

use std::net::IpAddr;

use ipnet::IpNet;
use serde::{Deserialize, Serialize};

use super::version::Version;
use crate::mac::Mac;

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AddResult {
    pub cni_version: String,
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "list")]
    pub interfaces: Vec<Interface>,
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "list")]
    pub ips: Vec<Ip>,
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "list")]
    pub routes: Vec<Route>,
    pub dns: Dns,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Interface {
    pub name: String,
    /// `None` as well for what is no station's, as other plugins have it.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "mac")]
    pub mac: Option<Mac>,
    /// From version 1.1.0 on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mtu: Option<u32>,
    /// The path of the container's network namespace; empty for one of the host.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub sandbox: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ip {
    /// `4` or `6`, before version 1.0.0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    pub address: IpNet,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gateway: Option<IpAddr>,
    /// Whose it is, in `interfaces`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interface: Option<usize>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Route {
    pub dst: IpNet,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gw: Option<IpAddr>,
    // The rest from version 1.1.0 on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mtu: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub advmss: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub table: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<u8>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Dns {
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "list")]
    pub nameservers: Vec<String>,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub domain: String,
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "list")]
    pub search: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "list")]
    pub options: Vec<String>,
}

/// A list, or null for an empty one, as programs in Go write it.
fn list<'de, D, T>(deserializer: D) -> Result<Vec<T>, D::Error>
where
    D: serde::Deserializer<'de>,
    T: Deserialize<'de>,
{
    Option::<Vec<T>>::deserialize(deserializer).map(Option::unwrap_or_default)
}

fn mac<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Mac>, D::Error> {
    let text = Option::<String>::deserialize(deserializer)?;
    Ok(text.and_then(|text| text.parse().ok()))
}

impl AddResult {
    /// As it is written in that version: what that does not know is left out.
    pub fn in_version(mut self, version: Version) -> AddResult {
        self.cni_version = version.name().into();
        for ip in &mut self.ips {
            let number = if ip.address.addr().is_ipv4() { "4" } else { "6" };
            ip.version = (version < Version::V1_0_0).then(|| number.into());
        }
        if version < Version::V1_1_0 {
            for interface in &mut self.interfaces {
                interface.mtu = None;
            }
            for route in &mut self.routes {
                *route = Route::new(route.dst, route.gw);
            }
        }
        self
    }
}

impl Route {
    pub fn new(dst: IpNet, gw: Option<IpAddr>) -> Route {
        Route { dst, gw, mtu: None, advmss: None, priority: None, table: None, scope: None }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_version_has_what_it_knows() {
        let from = json!({
            "cniVersion": "1.1.0",
            "interfaces": [{"name": "eth0", "mac": "02:00:00:00:00:01", "mtu": 1400, "sandbox": "/run/netns/a"}],
            "ips": [{"address": "10.1.0.2/24", "gateway": "10.1.0.1", "interface": 0}, {"address": "fd00::2/64"}],
            "routes": [{"dst": "0.0.0.0/0", "priority": 7}],
            "dns": {"nameservers": ["10.1.0.1"], "search": null}
        });
        let result: AddResult = serde_json::from_value(from).unwrap();
        let of = |version| serde_json::to_value(result.clone().in_version(version)).unwrap();
        let newest = of(Version::V1_1_0);
        assert_eq!(newest["interfaces"][0]["mtu"], 1400);
        assert_eq!(newest["routes"][0], json!({"dst": "0.0.0.0/0", "priority": 7}));
        assert!(newest["ips"][0].get("version").is_none());
        assert_eq!(newest["dns"], json!({"nameservers": ["10.1.0.1"]}));
        let older = of(Version::V1_0_0);
        assert_eq!(older["cniVersion"], "1.0.0");
        assert!(older["interfaces"][0].get("mtu").is_none());
        assert_eq!(older["routes"][0], json!({"dst": "0.0.0.0/0"}));
        let oldest = of(Version::V0_3_1);
        assert_eq!(oldest["ips"][0]["version"], "4");
        assert_eq!(oldest["ips"][1]["version"], "6");
    }

    #[test]
    fn an_interface_of_another_plugin_may_have_no_address() {
        for mac in [json!("00:00:00:00:00:00"), json!(""), json!(null)] {
            let from = json!({"interfaces": [{"name": "tun0", "mac": mac}]});
            let result: AddResult = serde_json::from_value(from).unwrap();
            assert_eq!(result.interfaces[0].mac, None);
        }
    }

    #[test]
    fn null_is_an_empty_list() {
        let from = json!({"cniVersion": "0.4.0", "ips": null, "dns": {}});
        assert!(serde_json::from_value::<AddResult>(from).unwrap().ips.is_empty());
    }
}
