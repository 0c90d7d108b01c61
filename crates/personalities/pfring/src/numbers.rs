//! Numbers as text, with a mark at the thousands.

/// `1'234'567.89`: the billions are modulo a thousand, and the decimals are cut.
pub fn format(value: f64, decimals: bool) -> String {
    if value < 1000. {
        return if decimals { format!("{value:.2}") } else { format!("{}", value as u32) };
    }
    let whole = value as u64;
    let groups = [whole / 1_000_000_000 % 1000, whole / 1_000_000 % 1000, whole / 1000 % 1000];
    let first = match whole {
        1_000_000_000.. => 0,
        1_000_000.. => 1,
        _ => 2,
    };
    let mut text = groups[first].to_string();
    for group in groups[first + 1..].iter().chain([&(whole % 1000)]) {
        text.push_str(&format!("'{group:03}"));
    }
    if decimals {
        text.push_str(&format!(".{:02}", ((value - whole as f64) * 100.) as u32));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::format;

    #[test]
    fn thousands_are_marked() {
        for (value, plain, decimals) in [
            (0., "0", "0.00"),
            (999.994, "999", "999.99"),
            (1000., "1'000", "1'000.00"),
            (1234567.895, "1'234'567", "1'234'567.89"),
            (5_001_002_003_004.5, "1'002'003'004", "1'002'003'004.50"),
        ] {
            assert_eq!(format(value, false), plain);
            assert_eq!(format(value, true), decimals);
        }
    }
}
