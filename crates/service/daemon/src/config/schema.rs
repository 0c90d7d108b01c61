//! The configuration's JSON schema, for editors: dist/ringwayd.schema.json.

use ringway_testkit::check_json;
use schemars::{Schema, schema_for};
use serde_json::Value;

use super::Config;

/// The number of its format: see docs/stability.md.
const FORMAT: u32 = 1;

fn schema() -> Schema {
    let mut schema = schema_for!(Config);
    schema.insert("$id".into(), format!("urn:ringway:configuration:{FORMAT}").into());
    schema
}

#[test]
fn the_schema_is_that_of_the_configuration() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../dist/ringwayd.schema.json");
    let schema = serde_json::to_string_pretty(&schema()).unwrap() + "\n";
    if std::env::var_os("RINGWAY_UPDATE_SCHEMA").is_some() {
        std::fs::write(path, &schema).unwrap();
    }
    let there = std::fs::read_to_string(path).unwrap_or_default();
    assert_eq!(there, schema, "RINGWAY_UPDATE_SCHEMA=1 writes it anew");
}

/// The schema refuses what the daemon refuses, where it can say so, and takes what the daemon takes.
#[test]
fn the_schema_takes_what_the_daemon_takes() {
    let schema = Value::from(schema());
    let switch = |keys: &str| format!("[[switch]]\nname = 'vale0'\n{keys}\n");
    let port = |keys: &str| switch(&format!("[[switch.port]]\n{keys}"));
    let mirror = |keys: &str| switch(&format!("[[switch.mirror]]\n{keys}"));
    let check = |text: &str, good: bool| {
        let value: Value = toml::from_str(text).unwrap();
        assert_eq!(check_json(&schema, &value).is_ok(), good, "the schema: {text}");
        assert_eq!(Config::parse("x.toml", text, "").is_ok(), good, "the daemon: {text}");
    };
    for text in [
        "mode = '9'".into(),
        "mode = '7777'".into(),
        "socket = 'ringwayd.sock'".into(),
        "nic_slots = 9999".into(),
        "nic_slots = 2".into(),
        "memory_per_user = 0".into(),
        "descriptors_per_user = 0".into(),
        "log_level = 'all'".into(),
        "[[grant]]\ninterface = 'a/b'\nusers = []".into(),
        "[[reserve]]\nname = 'eth0'".into(),
        "[[switch]]\nname = 'x'".into(),
        "[[switch]]\nname = 'vale0:a'".into(),
        "[[switch]]\nname = 'vale012345678901'".into(),
        "[[switch]]\none_address = true".into(),
        switch("forward = 'bridge'"),
        switch("forward = 'flood'\nageing = 5"),
        switch("forward = 'static'\nmulticast = 'snooping'"),
        switch("drop_unknown = true"),
        switch("over = ['a', 'b']"),
        switch("forward = 'hash'"),
        switch("forward = 'hash'\nover = []"),
        switch("color = 'red'"),
        port("access = 10"),
        port("interface = 'e'\nname = 'e'"),
        port("interface = 'e'\nmode = 'fast'"),
        port("interface = 'e'\nuser = 'root'"),
        port("interface = 'e'\nswap_buffers = true"),
        port("interface = ''"),
        port("interface = 'sixteen-letters-'"),
        port("name = 'a/rt'"),
        port("name = 'a'\nhost = true"),
        port("name = 'a'\nmode = 'copy'"),
        port("name = 'a'\ngroup_forward = 1"),
        port("name = 'a'\naccess = 5000"),
        port("name = 'a'\naccess = 0"),
        port("name = 'a'\naccess = -1"),
        port("name = 'a'\naccess = 10\ntrunk = '20'"),
        port("name = 'a'\nnative = 1"),
        port("name = 'a'\ntrunk = 'x'"),
        port("name = 'a'\ntrunk = '10'\nnative = 4095"),
        port("name = 'a'\nsources = 'all'"),
        port("name = 'a'\nsources = []"),
        port("name = 'a'\nsources = ['02:00:00:00:00:01 vlan 10']"),
        port("name = 'a'\naddresses = ['1:2']"),
        port("name = 'a'\nlossless = 0"),
        port("name = 'a'\nlossless = 60001"),
        port("name = 'a'\nlossless = 5\nrate = 1000000"),
        port("name = 'a'\nmax_addresses = 0"),
        port("name = 'a'\nmax_addresses = 1025"),
        port("name = 'a'\nrate = 5"),
        port("name = 'a'\nrate = 1000000000001"),
        port("name = 'a'\nburst = 2000"),
        port("name = 'a'\nrate = 8000\nburst = 5"),
        port("name = 'a'\nstorm = 0"),
        port("name = 'a'\nstorm_unknown = 0"),
        port("name = 'a'\nstorm_unknown_burst = 9"),
        port("name = 'a'\nstorm_multicast = 5\nstorm_broadcast_burst = 9"),
        port("name = 'a'\nmulticast_router = 'never'"),
        port("name = 'a'\nfilter_in = { expression = '', bytecode = 'ip' }"),
        mirror("name = 'm m'\nfrom = 'all'\nto = 'b'"),
        mirror("name = 'm'\nfrom = []\nto = 'b'"),
        mirror("name = 'm'\nfrom = 'some'\nto = 'b'"),
        mirror("name = 'm'\nto = 'b'"),
    ] {
        check(&text, false);
    }
    for text in [
        String::new(),
        "mode = '0660'\nsocket = '/run/s'\nnic_slots = 3\nmemory_per_user = 16".into(),
        "[[reserve]]\nname = 'vale*:db'\n[[reserve]]\nname = 'vale_prod*'".into(),
        "[[switch]]\nname = 'vale'".into(),
        switch("ageing = 0\nmulticast = 'querier'"),
        switch("forward = 'learning'\nageing = 5"),
        switch("forward = 'static'\ndrop_unknown = true"),
        switch("forward = 'hash'\nover = ['a', 'vale0:b']\nback = 'c'"),
        port("interface = 'e'\nhost = true\nmode = 'zerocopy'\ngroup_forward = 8"),
        port("interface = 'e'\nmode = 'packet'\nswap_buffers = false"),
        port("name = 'a'\nuser = '7'\nswap_buffers = true\nhost = false\naccess = 4094"),
        port("name = 'a'\ntrunk = '10,20-29'\nnative = 1\naddresses = ['2:0:0:0:0:A vlan 10']"),
        port("name = 'a'\nsources = ['02:00:00:00:00:01']\nlossless = 60000"),
        port("name = 'a'\nsources = 'one'\nlossless = false\nrate = 8000\nburst = 1514"),
        port("name = 'a'\nstorm_unknown = 1\nstorm_unknown_burst = 9\nmax_addresses = 1024"),
        port("name = 'a'\nfilter_in = { expression = '', bytecode = '1,6 0 0 1' }"),
        mirror("name = 'm-1'\nfrom = ['a']\nto = 'b'\ndirection = 'sent'"),
    ] {
        check(&text, true);
    }
}
