//! What `ringway --json` prints.

use std::sync::LazyLock;

use serde_json::Value;

use crate::{check_json, closed_schema};

static SCHEMA: LazyLock<Value> = LazyLock::new(|| {
    let text = include_str!("../../../crates/tools/ringway/ringway-output.schema.json");
    closed_schema(serde_json::from_str(text).unwrap())
});

/// Reads lines, each of which is as `ringway schema` describes it, and has no other fields.
pub fn json_lines(text: &str) -> Vec<Value> {
    let parse = |line| {
        let line = serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"));
        check_json_line(&line).unwrap_or_else(|problem| panic!("{problem}"));
        line
    };
    text.lines().map(parse).collect()
}

/// Checks one line in the same way.
///
/// # Errors
///
/// Says what is wrong with it, and where.
pub fn check_json_line(line: &Value) -> Result<(), String> {
    check_json(&SCHEMA, line)
}
