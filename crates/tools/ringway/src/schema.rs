//! `ringway schema`: what `--json` prints, for programs that read it. The schema is made of the types that are printed,
//! by a test, and is kept beside the program.

use crate::error::Result;
use crate::output::Output;
use serde::Serialize;
use serde_json::Value;
use std::fmt;

#[cfg(test)]
mod derived;
#[cfg(test)]
pub mod described;

/// Print the JSON schema of what --json prints
#[derive(clap::Args)]
#[command(after_long_help = AFTER_HELP)]
pub struct Args {}

const AFTER_HELP: &str = "\
Each line that a command prints with --json is valid by this schema (JSON Schema, draft 2020-12). Its `$id` ends with
the number of the format, which --json prints too:
  ringway schema --json | jq .format
The number is raised when something that programs may rely on goes or changes: a type, a field, what a
field means. What is added does not raise it, so programs ignore fields and types that they do not know.";

/// The number of the format.
pub const FORMAT: u32 = 1;

const SCHEMA: &str = include_str!("../ringway-output.schema.json");

/// The schema and the number of its format.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "type", rename = "schema")]
pub struct Schema {
    format: u32,
    #[cfg_attr(test, schemars(with = "serde_json::Map<String, Value>"))]
    schema: Value,
}

impl fmt::Display for Schema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(SCHEMA.trim_end())
    }
}

pub fn run(_: &Args) -> Result<()> {
    let schema = serde_json::from_str(SCHEMA).expect("a test has made it");
    Output::chosen().write(&Schema { format: FORMAT, schema })
}
