//! Texts from other users, such as filters and names of ports, on a terminal: what would move its cursor,
//! change its colours or its title, or turn the order of letters round, is written as an escape.

/// `text` with escapes for all control characters but those in `kept`.
pub fn printable(text: &str, kept: &[char]) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        if !kept.contains(&c) && (c.is_control() || changes_order(c)) {
            shown.extend(c.escape_default());
        } else {
            shown.push(c);
        }
    }
    shown
}

/// Marks, embeddings, overrides and isolates of the Unicode bidirectional algorithm.
fn changes_order(c: char) -> bool {
    matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_reaches_the_terminal_but_letters() {
        assert_eq!(printable("udp port 53 ü", &[]), "udp port 53 ü");
        assert_eq!(
            printable("a\u{1b}]0;root\u{7}\u{9b}2J\r\n", &['\n']),
            "a\\u{1b}]0;root\\u{7}\\u{9b}2J\\r\n"
        );
        assert_eq!(printable("\u{202e}tor", &[]), "\\u{202e}tor");
    }
}
