//! Texts from other users, such as filters and names of ports, on a terminal. All output passes here: what is
//! not printable (what moves the cursor, changes colours or the title, turns the order of letters round, or
//! cannot be seen) is written as an escape, for people as `\u{1b}`, in JSON as `\u001b`.

pub use ringway::printable;

use ringway::is_printable;
use serde::Serialize;
use serde_json::ser::{CompactFormatter, Formatter, Serializer};
use std::io::{self, Write};

/// Writes `value` as JSON on one line. What is read from it is what `value` has.
pub fn write_json(out: impl Write, value: &(impl Serialize + ?Sized)) -> io::Result<()> {
    value.serialize(&mut Serializer::with_formatter(out, Printable))?;
    Ok(())
}

/// The same as a text.
pub fn json(value: &(impl Serialize + ?Sized)) -> String {
    let mut line = Vec::new();
    // Texts and numbers always have a form in JSON, and a vector has room.
    let _ = write_json(&mut line, value);
    String::from_utf8(line).unwrap_or_default()
}

/// serde_json escapes quotes, backslashes and what is below U+0020 by itself.
struct Printable;

impl Formatter for Printable {
    fn write_string_fragment<W: Write + ?Sized>(
        &mut self,
        out: &mut W,
        fragment: &str,
    ) -> io::Result<()> {
        let mut rest = fragment;
        while let Some((at, c)) = rest.char_indices().find(|(_, c)| !is_printable(*c)) {
            CompactFormatter.write_string_fragment(out, &rest[..at])?;
            for unit in c.encode_utf16(&mut [0; 2]) {
                write!(out, "\\u{unit:04x}")?;
            }
            rest = &rest[at + c.len_utf8()..];
        }
        CompactFormatter.write_string_fragment(out, rest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn nothing_reaches_the_terminal_but_letters() {
        for (text, shown, in_json) in [
            ("udp port 53 \u{fc}", "udp port 53 \u{fc}", "udp port 53 \u{fc}"),
            ("a\u{1b}]0;root\u{7}", r"a\u{1b}]0;root\u{7}", r"a\u001b]0;root\u0007"),
            ("\u{9b}2J\r\n", "\\u{9b}2J\\r\n", r"\u009b2J\r\n"),
            ("\u{7f}", r"\u{7f}", r"\u007f"),
            ("\u{202e}tor", r"\u{202e}tor", r"\u202etor"),
            ("\u{2066}\u{61c}\u{200f}", r"\u{2066}\u{61c}\u{200f}", r"\u2066\u061c\u200f"),
            // What cannot be seen: two names that look alike.
            ("a\u{200b}\u{ad}\u{feff}b", r"a\u{200b}\u{ad}\u{feff}b", r"a\u200b\u00ad\ufeffb"),
            ("\u{2028}\u{2029}", r"\u{2028}\u{2029}", r"\u2028\u2029"),
            ("\u{e0001}\u{e000}", r"\u{e0001}\u{e000}", r"\udb40\udc01\ue000"),
            (r#"'quoted' "twice" \"#, r#"'quoted' "twice" \"#, r#"'quoted' \"twice\" \\"#),
            // Letters with marks of their own, of several scripts.
            (
                "u\u{308} \u{939}\u{93f} \u{6f22}",
                "u\u{308} \u{939}\u{93f} \u{6f22}",
                "u\u{308} \u{939}\u{93f} \u{6f22}",
            ),
        ] {
            assert_eq!(printable(text, &['\n']), shown);
            assert_eq!(json(text), format!("\"{in_json}\""));
        }
    }

    proptest! {
        #[test]
        fn json_is_printable_and_says_the_same(text in any::<String>()) {
            let line = json(&text[..]);
            prop_assert_eq!(printable(&line, &[]), line.clone());
            prop_assert_eq!(serde_json::from_str::<String>(&line).unwrap(), text);
        }

        #[test]
        fn what_was_escaped_once_stays_as_it_is(text in any::<String>()) {
            let shown = printable(&text, &['\n']);
            prop_assert_eq!(printable(&shown, &['\n']), shown);
        }
    }
}
