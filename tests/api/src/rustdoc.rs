//! What rustdoc says of a crate, as JSON. That is no stable output of rustdoc: one Rust is used, and told that it may.

use std::{path::PathBuf, process::Command};

use serde_json::Value;

/// The Rust whose output the crate `public-api` of Cargo.toml reads.
const RUST: &str = "1.95";

/// The crate, and what it hands on of others.
pub struct Documented {
    /// What it has itself, an item a line.
    pub lines: Vec<String>,
    /// Names that it hands on, each with the crate that defines the item, and the name there.
    pub handed_on: Vec<[String; 3]>,
}

/// Reads a crate of the workspace, by its package's name.
pub fn read(package: &str, all_features: bool) -> Result<Documented, String> {
    let json = build(package, all_features)?;
    let text = std::fs::read_to_string(&json).map_err(|e| format!("{}: {e}", json.display()))?;
    let mut builder = public_api::Builder::from_rustdoc_json(&json);
    builder = builder.omit_blanket_impls(true);
    let api = builder.build().map_err(|e| format!("{}: {e}", json.display()))?;
    let krate: Value =
        serde_json::from_str(&text).map_err(|e| format!("{}: {e}", json.display()))?;
    let lines = api.items().map(ToString::to_string).collect();
    Ok(Documented { lines, handed_on: handed_on(&krate) })
}

fn build(package: &str, all_features: bool) -> Result<PathBuf, String> {
    let root = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    let target = root.join("target/api");
    let mut cargo = Command::new("cargo");
    if !is_that_rust() {
        cargo.arg(format!("+{RUST}.0")).env_remove("RUSTUP_TOOLCHAIN");
    }
    cargo.args(["rustdoc", "--quiet", "--locked", "--lib", "--package", package, "--target-dir"]);
    cargo.arg(&target).args(if all_features { &["--all-features"][..] } else { &[] });
    cargo.args(["--", "-Z", "unstable-options", "--output-format", "json"]);
    cargo.env("RUSTC_BOOTSTRAP", "1").env_remove("RUSTC").env_remove("RUSTDOC").current_dir(&root);
    match cargo.status() {
        Ok(status) if status.success() => {
            Ok(target.join("doc").join(package.replace('-', "_") + ".json"))
        }
        _ => Err(format!(
            "rustdoc of Rust {RUST} has not read {package}; install that Rust, if it is not there: \
             rustup toolchain install {RUST}.0 --profile minimal"
        )),
    }
}

fn is_that_rust() -> bool {
    let version = Command::new("rustc").arg("--version").output();
    version.is_ok_and(|output| output.stdout.starts_with(format!("rustc {RUST}.").as_bytes()))
}

/// What the crate's root has of other crates, and where that is defined.
fn handed_on(krate: &Value) -> Vec<[String; 3]> {
    let index = &krate["index"];
    let item = |id: &Value| &index[id.to_string()];
    let items = item(&krate["root"])["inner"]["module"]["items"].as_array();
    let uses = items.into_iter().flatten().map(|id| &item(id)["inner"]["use"]);
    let uses = uses.filter_map(|used| {
        let path = krate["paths"][used["id"].to_string()]["path"].as_array()?;
        let (from, there) = (path.first()?.as_str()?, path.last()?.as_str()?);
        let is_other = from.starts_with("ringway_");
        is_other.then(|| [used["name"].as_str().unwrap_or(there), from, there].map(str::to_owned))
    });
    uses.collect()
}
