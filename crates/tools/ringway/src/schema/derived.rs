//! The schema as the types that are printed have it: ringway-output.schema.json.

use schemars::generate::SchemaSettings;
use schemars::transform::RecursiveTransform;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::{Value, json};

use super::{FORMAT, described};

/// Adds the schema of a type of lines, with its `type`, under a name of its own.
fn add<T: JsonSchema>(generator: &mut SchemaGenerator, name: &str) -> Schema {
    let mut schema = T::json_schema(generator);
    let rules = schema.ensure_object();
    let fields = rules["properties"].as_object_mut().unwrap();
    fields.insert("type".into(), json!({ "const": T::schema_name() }));
    match rules.get_mut("required").and_then(Value::as_array_mut) {
        Some(required) => required.insert(0, "type".into()),
        None => drop(rules.insert("required".into(), json!(["type"]))),
    }
    generator.definitions_mut().insert(name.into(), schema.into());
    json_schema!({ "$ref": format!("#/$defs/{name}") })
}

/// What is written about the types, for readers of JSON.
fn in_words_of_json(schema: &mut Schema) {
    if let Some(Value::String(text)) = schema.get_mut("description") {
        *text = text.replace('\n', " ").replace("`None`", "null").replace("None:", "null:");
    }
}

fn derived() -> String {
    let settings = SchemaSettings::draft2020_12().for_serialize();
    let settings = settings.with_transform(RecursiveTransform(in_words_of_json));
    let mut generator = settings.into_generator();
    let mut lines: Vec<Schema> = Vec::new();
    macro_rules! lines {
        ($($line:ty),* $(,)?) => {
            $(lines.push(add::<$line>(&mut generator, &<$line>::schema_name()));)*
        };
    }
    lines! {
        crate::action::Line, crate::bridge::Method, crate::doctor::Diagnosis, crate::doctor::trial::report::Trial,
        crate::drops::Losses, crate::failure::Failure, crate::filter::Line, crate::lateness::Pacing, crate::lb::Sent,
        crate::log::Line, crate::losses::DeviceLosses, crate::metrics::family::Line, crate::metrics::server::Listening,
        crate::opened::Opened, crate::output::Done, crate::output::Note, crate::pf_ring::Text, crate::ping::Line,
        crate::pong::Ignored, crate::ports::Line, crate::print::Line, crate::report::Line, crate::report::Summary,
        crate::rings::Line, crate::shape::Begun, crate::shape::Outcome, crate::steer::Line, crate::switch::Switch,
        crate::switch::fdb::Line, crate::switch::mdb::Line, crate::switch::mirrors::Line,
        crate::switch::save::Declaration, crate::switch::show_port::Settings, crate::switch::stats::PortLine,
        crate::switch::vlan::Line, crate::top::rates::Row, crate::verify::Tally, crate::vm::card::Event,
        crate::vm::card::MachineLosses, super::Schema,
    }
    // It has the `type` of other commands' summaries, and other fields.
    lines.push(add::<crate::ping::Summary>(&mut generator, "ping_summary"));
    // No line of its own: `done` has it.
    add::<described::LogLevel>(&mut generator, &described::LogLevel::schema_name());
    let defs = generator.take_definitions(true);
    let schema = json_schema!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": format!("urn:ringway:output:{FORMAT}"),
        "title": "What ringway --json prints",
        "description": "Each line on standard output and standard error is one of these, told apart by `type`. \
            Programs ignore types and fields that they do not know.",
        "oneOf": lines,
        "$defs": defs,
    });
    serde_json::to_string_pretty(&schema).unwrap() + "\n"
}

#[test]
fn the_schema_is_that_of_what_is_printed() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/ringway-output.schema.json");
    let schema = derived();
    if std::env::var_os("RINGWAY_UPDATE_SCHEMA").is_some() {
        std::fs::write(path, &schema).unwrap();
    }
    let there = std::fs::read_to_string(path).unwrap_or_default();
    assert!(
        there == schema,
        "RINGWAY_UPDATE_SCHEMA=1 writes it anew; if a type or a field has gone, FORMAT is raised (docs/stability.md)"
    );
}
