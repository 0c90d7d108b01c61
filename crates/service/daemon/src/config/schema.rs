//! The configuration's JSON schema, for editors: dist/ringwayd.schema.json.

use schemars::{JsonSchema, schema_for};

use super::Config;

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

#[test]
fn the_schema_is_that_of_the_configuration() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../dist/ringwayd.schema.json");
    let schema = serde_json::to_string_pretty(&schema_for!(Config)).unwrap() + "\n";
    if std::env::var_os("RINGWAY_UPDATE_SCHEMA").is_some() {
        std::fs::write(path, &schema).unwrap();
    }
    let there = std::fs::read_to_string(path).unwrap_or_default();
    assert_eq!(there, schema, "RINGWAY_UPDATE_SCHEMA=1 writes it anew");
}
