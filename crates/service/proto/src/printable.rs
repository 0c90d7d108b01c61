//! What a terminal shows, and does nothing else: names of ports are made of such characters alone, and
//! commands and the daemon's log write all others of a text as escapes.

/// Whether a terminal shows `c`, and does nothing else: what moves the cursor, changes colours or the
/// title, turns the order of letters round, or cannot be seen is not printable. Marks that belong to
/// the letter before them are letters of a name.
pub fn is_printable(c: char) -> bool {
    if c.is_ascii() {
        return !c.is_ascii_control();
    }
    // Behind a letter, what is not printable is escaped, and no mark that belongs to the letter.
    let mut pair = [b'a'; 5];
    let length = 1 + c.encode_utf8(&mut pair[1..]).len();
    let pair = std::str::from_utf8(&pair[..length]).unwrap_or_default();
    pair.escape_debug().eq(pair.chars())
}

/// `text` with escapes, as in `\u{1b}`, for all that is not [printable](is_printable), but for what is
/// in `kept`.
pub fn printable(text: &str, kept: &[char]) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        if kept.contains(&c) || is_printable(c) {
            shown.push(c);
        } else {
            shown.extend(c.escape_default());
        }
    }
    shown
}
