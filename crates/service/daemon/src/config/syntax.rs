//! What a value is to be, for people: the parser names the types of the program.

/// Numbers that have closer bounds than their types.
const BOUNDS: [(&str, &str); 8] = [
    ("nic_slots", "3 to 8176"),
    ("access", "1 to 4094"),
    ("native", "1 to 4094"),
    ("rate", "8000 to 1000000000000"),
    ("storm", "1 to 1000000000"),
    ("storm_broadcast", "1 to 1000000000"),
    ("storm_multicast", "1 to 1000000000"),
    ("storm_unknown", "1 to 1000000000"),
];

/// The parser's words about the value of a key, with what to write in place of a type.
pub(super) fn problem(message: &str, key: Option<&str>) -> String {
    // Of a value of a few.
    if message == "wanted string or table" {
        return "not a text; write it in quotes".into();
    }
    let Some((wrong, kind)) = message.rsplit_once(", expected ") else { return message.into() };
    let bounds = BOUNDS.iter().find(|(its, _)| key == Some(its)).map(|(_, bounds)| *bounds);
    let number = |most: &str| match bounds {
        Some(bounds) => format!("a number from {bounds}"),
        None => format!("a number from 0 to {most}"),
    };
    let what = match kind {
        "u8" => number("255"),
        "u16" => number("65535"),
        "u32" => number("4294967295"),
        // What the format has at most.
        "u64" | "usize" => number("9223372036854775807"),
        "a boolean" => "true or false".into(),
        "a string" => "a text, in quotes".into(),
        "a sequence" if wrong.ends_with("map") => {
            "a list: the name in two brackets, such as `[[switch]]`".into()
        }
        "a sequence" => "a list, in [ ]".into(),
        "struct FilterText" => {
            "a table `{ expression = \"...\", bytecode = \"...\" }`, as `ringway switch save` prints it".into()
        }
        kind if kind.starts_with("struct ") => "a table".into(),
        kind => kind.into(),
    };
    format!("{wrong}, expected {what}")
}
