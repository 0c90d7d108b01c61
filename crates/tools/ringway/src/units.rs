//! Numbers as people write and read them: `1.5M`, `10Gbps`, `200ms`.

use crate::error::{Error, Result};
use std::fmt::Display;
use std::ops::RangeInclusive;
use std::str::FromStr;
use std::time::Duration;

const SCALES: [(char, f64); 4] = [('k', 1e3), ('M', 1e6), ('G', 1e9), ('T', 1e12)];

/// Splits `1.5M` into 1.5e6; the suffixes are powers of 1000 (`K` is taken for `k`).
fn scaled(text: &str) -> Option<f64> {
    let (digits, scale) = match text.char_indices().next_back()? {
        (at, 'K') => (&text[..at], 1e3),
        (at, last) => match SCALES.iter().find(|(letter, _)| *letter == last) {
            Some((_, scale)) => (&text[..at], *scale),
            None => (text, 1.0),
        },
    };
    // `parse` alone would also take "inf", "1e9" and "+1".
    if !digits.chars().all(|c| c.is_ascii_digit() || c == '.') {
        return None;
    }
    digits.parse::<f64>().ok().map(|n| n * scale)
}

/// Reads a whole number of packets: `1000`, `10k`, `1.5M`.
pub fn parse_count(text: &str) -> Result<u64> {
    if let Ok(plain) = text.parse() {
        return Ok(plain);
    }
    match scaled(text) {
        Some(n) if n.fract() == 0.0 && n < 1e18 => Ok(n as u64),
        _ => Err(Error::Value(format!("`{text}` is not a count; write 1000, 10k or 1.5M"))),
    }
}

/// Reads a number of bytes: `64kB`, `1500`.
pub fn parse_bytes(text: &str) -> Result<u64> {
    let wrong = |_| Error::Value(format!("`{text}` is not a size; write 64kB or 1500"));
    parse_count(text.strip_suffix('B').unwrap_or(text)).map_err(wrong)
}

/// Seconds of the longest time.
const LONGEST: f64 = 1e9;

/// Reads a time: `10s`, `200ms`, `50us`, `2m`, `24h`; a number alone is seconds.
pub fn parse_duration(text: &str) -> Result<Duration> {
    let wrong = |why: &str| Err(Error::Value(format!("`{text}` {why}; write 10s, 200ms or 2m")));
    let (digits, unit) = [("ms", 1e-3), ("us", 1e-6), ("s", 1.0), ("m", 60.0), ("h", 3600.0)]
        .iter()
        .find_map(|(suffix, unit)| text.strip_suffix(suffix).map(|digits| (digits, *unit)))
        .unwrap_or((text, 1.0));
    let plain = digits.chars().all(|c| c.is_ascii_digit() || c == '.');
    let Some(number) = digits.parse::<f64>().ok().filter(|_| plain) else {
        return wrong("is not a time");
    };
    // Less than a nanosecond is nothing.
    let time = Duration::try_from_secs_f64((number * unit).min(LONGEST)).unwrap_or_default();
    match number * unit {
        _ if time.is_zero() => wrong("is no time at all"),
        seconds if seconds >= LONGEST => wrong("is longer than 30 years"),
        _ => Ok(time),
    }
}

/// Reads a number of a range: a parser of an option's value, which says what it expects.
pub fn number<T>(range: RangeInclusive<T>, example: T) -> impl Fn(&str) -> Result<T> + Clone
where
    T: FromStr + PartialOrd + Display + Copy,
{
    move |text| {
        text.parse().ok().filter(|number| range.contains(number)).ok_or_else(|| {
            let (least, most) = (range.start(), range.end());
            let wrong = format!("`{text}` is not a number from {least} to {most}; write {example}");
            Error::Value(wrong)
        })
    }
}

/// Reads a time in whole units of an option that names its unit: `60` is so many of them, and `1m` a time.
pub fn parse_whole(text: &str, unit: Duration) -> Result<u32> {
    if let Ok(plain) = text.parse() {
        return Ok(plain);
    }
    if !text.is_empty() && text.bytes().all(|digit| digit.is_ascii_digit()) {
        return Err(Error::Value(format!("`{text}` is too much; {} is the most", u32::MAX)));
    }
    let (time, unit) = (parse_duration(text)?.as_nanos(), unit.as_nanos());
    let whole = u32::try_from(time / unit).ok().filter(|_| time % unit == 0);
    whole.ok_or_else(|| Error::Value(format!("`{text}` is more exact than this time can be")))
}

/// A limit on what is sent, in packets or in bits a second (frames without CRC).
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Rate {
    Packets(f64),
    Bits(f64),
}

/// Of packets or bits a second: what is more exact, or more, than any clock or wire is a slip of the hand.
const RATES: RangeInclusive<f64> = 1e-3..=1e15;

impl Rate {
    /// `1M` and `1Mpps` are packets a second; `10Gbps`, `10Gbit/s` and `10gbit`, as tc(8) has it, bits a second.
    /// `None`: it is no rate.
    pub fn read(text: &str) -> Result<Option<Rate>> {
        let upper = text.strip_suffix("bit").map(str::to_uppercase);
        let bits = text.strip_suffix("bps").or_else(|| text.strip_suffix("bit/s"));
        let bits = bits.or(upper.as_deref());
        let number = bits.unwrap_or(text.strip_suffix("pps").unwrap_or(text));
        match scaled(number) {
            Some(n) if n > 0.0 && !RATES.contains(&n) => Err(Error::Value(format!(
                "`{text}` is not possible; rates are from 0.001 to 1000T a second"
            ))),
            Some(n) if n > 0.0 && bits.is_some() => Ok(Some(Rate::Bits(n))),
            Some(n) if n > 0.0 => Ok(Some(Rate::Packets(n))),
            _ => Ok(None),
        }
    }
}

impl FromStr for Rate {
    type Err = Error;

    fn from_str(text: &str) -> Result<Rate> {
        Rate::read(text)?.ok_or_else(|| {
            Error::Value(format!(
                "`{text}` is not a rate; write 1M or 1Mpps for packets, 10Gbps for bits a second"
            ))
        })
    }
}

/// Writes a number with three decimals and its scale, ready for a unit: `14.881 M`, `60.000 `.
pub fn human(n: f64) -> String {
    match SCALES.iter().rev().find(|(_, scale)| n >= *scale) {
        Some((letter, scale)) => format!("{:.3} {letter}", n / scale),
        None => format!("{n:.3} "),
    }
}

/// Writes nanoseconds with three decimals of a larger unit: `0.512 us`, `1.500 ms`.
pub fn human_time(nanoseconds: u64) -> String {
    let n = nanoseconds as f64;
    match nanoseconds {
        0..1_000_000 => format!("{:.3} us", n / 1e3),
        1_000_000..1_000_000_000 => format!("{:.3} ms", n / 1e6),
        _ => format!("{:.3} s", n / 1e9),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts() {
        assert_eq!(parse_count("0").unwrap(), 0);
        assert_eq!(parse_count("10k").unwrap(), 10_000);
        assert_eq!(parse_count("10K").unwrap(), 10_000);
        assert_eq!(parse_count("1.5M").unwrap(), 1_500_000);
        assert_eq!(parse_count("18446744073709551615").unwrap(), u64::MAX);
        for bad in ["", "k", "-1", "1.5", "1e3", "inf", "1x", "ä"] {
            assert!(parse_count(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn sizes() {
        assert_eq!(parse_bytes("1500").unwrap(), 1500);
        assert_eq!(parse_bytes("64kB").unwrap(), 64_000);
        assert_eq!(parse_bytes("64KB").unwrap(), 64_000);
        for bad in ["", "B", "1.5B", "64kb", "64KiB"] {
            assert!(parse_bytes(bad).unwrap_err().to_string().contains("write 64kB"), "{bad}");
        }
    }

    #[test]
    fn durations() {
        assert_eq!(parse_duration("2s").unwrap(), Duration::from_secs(2));
        assert_eq!(parse_duration("200ms").unwrap(), Duration::from_millis(200));
        assert_eq!(parse_duration("24h").unwrap(), Duration::from_secs(86_400));
        assert_eq!(parse_duration("1.5s").unwrap(), Duration::from_millis(1500));
        assert_eq!(parse_duration("2m").unwrap(), Duration::from_secs(120));
        assert_eq!(parse_duration("20").unwrap(), Duration::from_secs(20));
        assert_eq!(parse_duration("0.1").unwrap(), Duration::from_millis(100));
        for (bad, why) in [
            ("", "`` is not a time"),
            ("s", "`s` is not a time"),
            ("-1s", "`-1s` is not a time"),
            ("1y", "`1y` is not a time"),
            ("1e3", "`1e3` is not a time"),
            ("-5", "`-5` is not a time"),
            ("0", "`0` is no time at all"),
            ("0s", "`0s` is no time at all"),
            ("0.0001us", "`0.0001us` is no time at all"),
            ("1000000000s", "`1000000000s` is longer than"),
            ("99999999999999999999999m", "is longer than"),
        ] {
            let said = parse_duration(bad).unwrap_err().to_string();
            assert!(said.contains(why), "{bad}: {said}");
        }
        let whole = |text| parse_whole(text, Duration::from_secs(1)).ok();
        assert_eq!(["60", "60s", "2m", "0"].map(whole), [Some(60), Some(60), Some(120), Some(0)]);
        assert_eq!(["1500ms", "x", "1000000000000m", "-1"].map(whole), [None; 4]);
        let said = parse_whole("99999999999", Duration::from_secs(1)).unwrap_err().to_string();
        assert_eq!(said, "`99999999999` is too much; 4294967295 is the most");
    }

    #[test]
    fn rates() {
        assert_eq!("1M".parse::<Rate>().unwrap(), Rate::Packets(1e6));
        assert_eq!("2.5kpps".parse::<Rate>().unwrap(), Rate::Packets(2500.0));
        assert_eq!("10Gbps".parse::<Rate>().unwrap(), Rate::Bits(1e10));
        assert_eq!("100Mbit/s".parse::<Rate>().unwrap(), Rate::Bits(1e8));
        assert_eq!("10mbit".parse::<Rate>().unwrap(), Rate::Bits(1e7));
        assert_eq!("1.5Gbit".parse::<Rate>().unwrap(), Rate::Bits(1.5e9));
        // Of tc these are bytes.
        for bad in ["", "0", "bps", "bit", "fast", "-1M", "10mbps"] {
            assert!(bad.parse::<Rate>().unwrap_err().to_string().contains("not a rate"), "{bad}");
        }
        for bad in ["100000000000000000000", "1001Tbps", "10000000T", "0.0001", "0.0000001bps"] {
            let said = bad.parse::<Rate>().unwrap_err().to_string();
            assert!(said.contains("from 0.001 to 1000T a second"), "{bad}: {said}");
        }
    }

    #[test]
    fn times_have_three_decimals() {
        for (time, text) in [(512, "0.512 us"), (1_500_000, "1.500 ms"), (2_000_000_000, "2.000 s")]
        {
            assert_eq!(human_time(time), text);
        }
    }

    #[test]
    fn human_scales() {
        assert_eq!(human(0.0), "0.000 ");
        assert_eq!(human(999.0), "999.000 ");
        assert_eq!(human(14_880_952.0), "14.881 M");
        assert_eq!(human(1e10), "10.000 G");
    }

    #[test]
    fn a_number_that_is_none_is_refused_with_an_example() {
        let vid = number(1..=4094u16, 10);
        assert_eq!(vid("4094").unwrap(), 4094);
        for bad in ["", "x", "-1", "0", "4095", "70000"] {
            let said = vid(bad).unwrap_err().to_string();
            assert_eq!(said, format!("`{bad}` is not a number from 1 to 4094; write 10"));
        }
    }
}
