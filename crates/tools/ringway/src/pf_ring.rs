//! `ringway ports --pf-ring`: the rings of PF_RING's programs, by the texts that these write.

use std::{collections::BTreeMap, fs, path::Path};

use serde::Serialize;

/// A ring, or with the name `info` what there is in all.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "type", rename = "pf_ring")]
pub struct Text {
    name: String,
    /// Values by their labels.
    fields: BTreeMap<String, String>,
    /// As it is for people.
    #[serde(skip)]
    text: String,
}

impl Text {
    fn read(folder: &Path, name: String) -> Option<Text> {
        let text = fs::read_to_string(folder.join(&name)).ok()?;
        let fields = text.lines().filter_map(|line| line.split_once(": "));
        let fields = fields.map(|(label, value)| (label.trim().into(), value.into())).collect();
        Some(Text { name, fields, text })
    }
}

/// What this user's programs have written, `info` first. What a program has left behind that was killed is removed.
pub fn texts() -> Vec<Text> {
    let Ok(folder) = ringway::user_folder() else { return Vec::new() };
    let (folder, mut rings) = ringway::sweep_ring_texts(&folder);
    // Looking leaves no empty folder behind.
    ringway::leave_user_folder();
    rings.sort();
    let all = (!rings.is_empty()).then(|| "info".to_owned());
    all.into_iter().chain(rings).filter_map(|name| Text::read(&folder, name)).collect()
}

pub fn show(texts: &[Text]) -> String {
    if texts.is_empty() {
        return "no rings of PF_RING are open".into();
    }
    let show = |text: &Text| format!("{}\n{}", text.name, text.text);
    texts.iter().map(show).collect::<Vec<_>>().join("\n").trim_end().into()
}
