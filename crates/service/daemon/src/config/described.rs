//! What the configuration's JSON schema says of values that types do not tell.

use schemars::{JsonSchema, Schema};
use serde_json::json;

/// Octal permissions.
pub(super) const MODE: &str = r"^\+?0*[0-7]{1,3}$";
/// The name of a switch.
pub(super) const SWITCH_NAME: &str = "^vale[A-Za-z0-9_]{0,11}$";
/// What an interface or a port can be called, and the host's stack behind it.
pub(super) const PORT_NAME: &str = r"^[^/:@{}]{1,15}\^*$";
/// Names that are reserved.
pub(super) const NAME_PATTERN: &str = "^vale[A-Za-z0-9_*]*(:.*)?$";
/// Numbers of VLANs.
pub(super) const VIDS: &str = r"^\+?[0-9]+(-\+?[0-9]+)?(,\+?[0-9]+(-\+?[0-9]+)?)*$";
/// An address.
pub(super) const MAC: &str = "^[0-9A-Fa-f]{1,2}(:[0-9A-Fa-f]{1,2}){5}$";
/// The same, perhaps with a VLAN.
pub(super) const ADDRESS: &str = r"^[0-9A-Fa-f]{1,2}(:[0-9A-Fa-f]{1,2}){5}( vlan \+?[0-9]+)?$";

/// A compiled filter.
pub(super) const BYTECODE: &str =
    r"^[ \t\r\n]*[0-9]+[ \t\r\n]*(,[ \t\r\n]*[0-9]+([ \t\r\n]+[0-9]+){3}[ \t\r\n]*)*$";

/// How packets of an interface are moved.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "it is described, and not read")]
#[schemars(rename_all = "lowercase")]
pub(super) enum Mode {
    Zerocopy,
    Copy,
    Generic,
    Packet,
}

/// Which keys of a switch go together: some are for one `forward` alone.
pub(super) fn of_switch(schema: &mut Schema) {
    let learning = json!({ "properties": { "forward": { "const": "learning" } } });
    let only = |forward| json!({ "properties": { "forward": { "const": forward } }, "required": ["forward"] });
    schema.insert(
        "dependentSchemas".into(),
        json!({
            "ageing": learning,
            "multicast": learning,
            "drop_unknown": only("static"),
            "over": only("hash"),
            "back": only("hash"),
        }),
    );
    let not_hash = json!({ "properties": { "forward": { "not": { "const": "hash" } } } });
    schema.insert("anyOf".into(), json!([not_hash, { "required": ["over"] }]));
}

/// Which keys of a port go together. It is an interface's or a program's.
pub(super) fn of_port(schema: &mut Schema) {
    let of_interface = json!({
        "required": ["interface"],
        "properties": { "name": false, "user": false, "swap_buffers": { "const": false } },
    });
    let of_program = json!({
        "required": ["name"],
        "properties": {
            "interface": false, "mode": false, "group_forward": false, "host": { "const": false },
        },
    });
    schema.insert("oneOf".into(), json!([of_interface, of_program]));
    schema.insert(
        "dependentSchemas".into(),
        json!({
            "access": { "properties": { "trunk": false, "native": false } },
            "rate": { "properties": { "lossless": { "const": false } } },
        }),
    );
    schema.insert(
        "dependentRequired".into(),
        json!({
            "native": ["trunk"],
            "burst": ["rate"],
            "storm_broadcast_burst": ["storm_broadcast"],
            "storm_multicast_burst": ["storm_multicast"],
            "storm_unknown_burst": ["storm_unknown"],
        }),
    );
}

/// See [`Level`](ringway_proto::Level).
#[derive(JsonSchema)]
#[expect(dead_code, reason = "it is described, and not read")]
#[schemars(rename_all = "lowercase")]
pub(super) enum Level {
    Error,
    Warn,
    Info,
    Debug,
}

/// See [`Sizes`](ringway_region::Sizes).
#[derive(JsonSchema)]
#[expect(dead_code, reason = "it is described, and not read")]
#[schemars(deny_unknown_fields)]
pub(super) struct Region {
    /// Bytes of an interface object.
    if_size: Option<u32>,
    /// Interface objects.
    if_num: Option<u32>,
    /// Bytes of a ring object: 256, and 16 a slot, of which `nic_slots` are the least.
    ring_size: Option<u32>,
    /// Ring objects.
    ring_num: Option<u32>,
    /// Bytes of a buffer, its headroom of 256 included: 320 to 65536.
    buf_size: Option<u32>,
    /// Buffers, the two reserved ones included.
    buf_num: Option<u32>,
}
