//! The configuration's JSON schema, for editors: dist/ringwayd.schema.json.

use regex_automata::nfa::thompson::pikevm::PikeVM;
use schemars::schema_for;
use serde_json::{Value, json};

use super::Config;

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

/// Whether a value is as a schema says, of the schemas that this one has.
fn is_valid(root: &Value, schema: &Value, value: &Value) -> bool {
    let Value::Object(rules) = schema else { return *schema == Value::Bool(true) };
    let is = |schema: &Value, value: &Value| is_valid(root, schema, value);
    let (keys, list) = (value.as_object(), value.as_array());
    let count = value.as_str().map(|text| text.chars().count());
    let has = |key: &Value| keys.is_none_or(|keys| keys.contains_key(key.as_str().unwrap()));
    let has_all = |names: &Value| names.as_array().unwrap().iter().all(&has);
    let number = |rule: &Value| rule.as_u64().unwrap();
    let matching =
        |rule: &Value| rule.as_array().unwrap().iter().filter(|schema| is(schema, value)).count();
    // For each of its members that the value has.
    let each = |rule: &Value, good: &dyn Fn(&Value, &Value) -> bool| {
        let rules = rule.as_object().unwrap().iter();
        rules.filter_map(|(key, rule)| Some((rule, keys?.get(key)?))).all(|(r, v)| good(r, v))
    };
    rules.iter().all(|(name, rule)| match name.as_str() {
        "$schema" | "$defs" | "title" | "description" | "default" | "format" => true,
        "$ref" => is(root.pointer(&rule.as_str().unwrap()[1..]).unwrap(), value),
        "type" => {
            let types = rule.as_array().map_or(std::slice::from_ref(rule), Vec::as_slice);
            types.iter().any(|name| match name.as_str().unwrap() {
                "object" => value.is_object(),
                "array" => value.is_array(),
                "string" => value.is_string(),
                "integer" => value.is_i64() || value.is_u64(),
                "boolean" => value.is_boolean(),
                "null" => value.is_null(),
                other => panic!("type {other}"),
            })
        }
        "enum" => rule.as_array().unwrap().contains(value),
        "const" => rule == value,
        "pattern" => value.as_str().is_none_or(|text| {
            let pattern = PikeVM::new(rule.as_str().unwrap()).unwrap();
            pattern.is_match(&mut pattern.create_cache(), text)
        }),
        "minimum" => value.as_i64().is_none_or(|it| it >= rule.as_i64().unwrap()),
        "maximum" => value.as_u64().is_none_or(|it| it <= number(rule)),
        "maxLength" => count.is_none_or(|count| count as u64 <= number(rule)),
        "minItems" => list.is_none_or(|list| list.len() as u64 >= number(rule)),
        "maxItems" => list.is_none_or(|list| list.len() as u64 <= number(rule)),
        "items" => list.is_none_or(|list| list.iter().all(|item| is(rule, item))),
        "properties" => each(rule, &is),
        "additionalProperties" => {
            let known = rules["properties"].as_object().unwrap();
            *rule == json!(false)
                && keys.is_none_or(|keys| keys.keys().all(|key| known.contains_key(key)))
        }
        "required" => has_all(rule),
        "dependentRequired" => each(rule, &|names, _| has_all(names)),
        "dependentSchemas" => each(rule, &|schema, _| is(schema, value)),
        "not" => !is(rule, value),
        "oneOf" => matching(rule) == 1,
        "anyOf" => matching(rule) > 0,
        other => panic!("this schema has {other}"),
    })
}

/// The schema refuses what the daemon refuses, where it can say so, and takes what the daemon takes.
#[test]
fn the_schema_takes_what_the_daemon_takes() {
    let schema = serde_json::to_value(schema_for!(Config)).unwrap();
    let switch = |keys: &str| format!("[[switch]]\nname = 'vale0'\n{keys}\n");
    let port = |keys: &str| switch(&format!("[[switch.port]]\n{keys}"));
    let mirror = |keys: &str| switch(&format!("[[switch.mirror]]\n{keys}"));
    let check = |text: &str, good: bool| {
        let value: Value = toml::from_str(text).unwrap();
        assert_eq!(is_valid(&schema, &schema, &value), good, "the schema: {text}");
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
