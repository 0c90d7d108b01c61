//! Which format a scraper wants, by its header `Accept` (RFC 9110, section 12.5.1).

use super::text::Format;

/// A range of types, such as `text/*;q=0.5`, as it concerns one type.
struct Range {
    /// How closely it names the type: of the ranges that it is in, the closest counts.
    closeness: u8,
    /// How much the type is wanted, up to 1; 0: not at all.
    quality: f32,
}

/// The closeness of the type by name; with its version, one more.
const NAMED: u8 = 2;

impl Range {
    /// `None`: the type is not in it.
    fn parse(text: &str, [kind, name, version]: [&str; 3]) -> Option<Range> {
        let mut parts = text.split(';').map(str::trim);
        let (its_kind, its_name) = parts.next()?.split_once('/')?;
        let is = |its: &str, it: &str| its.eq_ignore_ascii_case(it);
        let mut closeness = match (its_kind, its_name) {
            _ if is(its_kind, kind) && is(its_name, name) => NAMED,
            (_, "*") if is(its_kind, kind) => 1,
            ("*", "*") => 0,
            _ => return None,
        };
        let mut quality = 1.0;
        for (key, value) in parts.filter_map(|part| part.split_once('=')) {
            match key {
                _ if is(key, "q") => quality = value.parse::<f32>().ok()?.clamp(0.0, 1.0),
                _ if is(key, "version") && value.trim_matches('"') != version => return None,
                _ if is(key, "version") => closeness += 1,
                _ => {}
            }
        }
        Some(Range { closeness, quality })
    }
}

/// The format that is wanted more, by the values of the header. OpenMetrics has to be named where both are wanted alike.
pub fn accepted_format(headers: &[&str]) -> Format {
    let closest = |of| {
        let ranges = headers.iter().flat_map(|value| value.split(','));
        let ranges = ranges.filter_map(|range| Range::parse(range, of));
        let order = |a: &Range, b: &Range| {
            a.closeness.cmp(&b.closeness).then(a.quality.total_cmp(&b.quality))
        };
        ranges.max_by(order).unwrap_or(Range { closeness: 0, quality: 0.0 })
    };
    let openmetrics = closest(["application", "openmetrics-text", "1.0.0"]);
    let prometheus = closest(["text", "plain", "0.0.4"]);
    let is_wanted_alike = openmetrics.quality == prometheus.quality && openmetrics.quality > 0.0;
    match openmetrics.quality > prometheus.quality
        || is_wanted_alike && openmetrics.closeness >= NAMED
    {
        true => Format::OpenMetrics,
        false => Format::Prometheus,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_format_is_what_the_scraper_wants() {
        // As Prometheus 2 and 3 ask.
        let prometheus = [
            "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,\
             text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
            "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,\
             application/openmetrics-text;version=0.0.1;q=0.5,text/plain;version=1.0.0;escaping=allow-utf-8;q=0.4,\
             text/plain;version=0.0.4;q=0.3,*/*;q=0.2",
        ];
        for wants_it in [
            &prometheus[..1],
            &prometheus[1..],
            &["text/plain", "application/openmetrics-text"],
            &["Application/OpenMetrics-Text; Q=0.5 , text/*;q=0.4"],
            &["application/*"],
            &["application/openmetrics-text;q=0.2", "*/*;q=0.1"],
        ] {
            assert_eq!(accepted_format(wants_it), Format::OpenMetrics, "{wants_it:?}");
        }
        for wants_the_other in [
            &[][..],
            &["*/*"],
            &["*/*;q=0"],
            &["application/openmetrics-text;q=0,text/plain"],
            &["text/plain;q=1,application/openmetrics-text;q=0.1"],
            &["application/openmetrics-text;q=0", "*/*"],
            &["application/openmetrics-text;version=0.0.1"],
            &["application/openmetrics-textual"],
            &["application/openmetrics-text;q=much,*/*;q=0.1"],
        ] {
            let format = accepted_format(wants_the_other);
            assert_eq!(format, Format::Prometheus, "{wants_the_other:?}");
        }
    }
}
