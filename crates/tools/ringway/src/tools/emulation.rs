//! How tlem and nmreplay are told of links: `ether,10m`, `uniform,1m,5m`, `plr,0.01`.

use crate::link::{Delay, Gaps, Hold, Loss};

/// Reads a number with one of these suffixes.
pub fn scaled(text: &str, suffixes: &[(char, f64)]) -> Option<f64> {
    let found =
        suffixes.iter().find_map(|(suffix, scale)| Some((text.strip_suffix(*suffix)?, *scale)));
    let (digits, scale) = found.unwrap_or((text, 1.0));
    digits
        .parse::<f64>()
        .ok()
        .map(|value| value * scale)
        .filter(|value| value.is_finite() && *value >= 0.0)
}

/// Bits a second: the suffixes are powers of 1000.
pub fn bits(text: &str) -> Option<f64> {
    const SCALES: [(char, f64); 6] =
        [('k', 1e3), ('K', 1e3), ('m', 1e6), ('M', 1e6), ('g', 1e9), ('G', 1e9)];
    scaled(text, &SCALES)
}

/// Seconds, as nanoseconds.
pub fn time(text: &str) -> Option<f64> {
    const SCALES: [(char, f64); 4] = [('s', 1.0), ('m', 1e-3), ('u', 1e-6), ('n', 1e-9)];
    scaled(text, &SCALES).map(|seconds| seconds * 1e9)
}

/// Bytes: the suffixes are powers of 1024.
pub fn bytes(text: &str) -> Option<u64> {
    const SCALES: [(char, f64); 6] = [
        ('k', 1024.0),
        ('K', 1024.0),
        ('m', 1048576.0),
        ('M', 1048576.0),
        ('g', 1073741824.0),
        ('G', 1073741824.0),
    ];
    scaled(text, &SCALES).map(|bytes| bytes as u64)
}

fn probability(text: &str) -> Option<f64> {
    scaled(text, &[]).filter(|value| *value <= 1.0)
}

/// Reads a loss.
pub fn loss(text: &str) -> Option<Loss> {
    match text.split(',').collect::<Vec<_>>()[..] {
        [share] | ["plr", share] => probability(share).map(Loss::Random),
        ["ber", rate] => probability(rate).map(Loss::BitErrors),
        _ => None,
    }
}

/// Reads a delay, and gaps, where those are given.
pub fn delay(text: &str) -> Option<(Delay, Option<Gaps>)> {
    let delay = match text.split(',').collect::<Vec<_>>()[..] {
        [constant] | ["constant", constant] => Delay::Constant(time(constant)?),
        ["uniform", min, max] => Delay::Uniform { min: time(min)?, max: time(max)? },
        ["exp", min, mean] => Delay::Exponential { min: time(min)?, mean: time(mean)? },
        ["inter-packet", min, max, constant] => {
            let gaps = Gaps { min: time(min)?, max: time(max)? };
            return (gaps.min <= gaps.max)
                .then_some((Delay::Constant(time(constant)?), Some(gaps)));
        }
        _ => return None,
    };
    let is_good = match delay {
        Delay::Uniform { min, max } => min <= max,
        Delay::Exponential { min, mean } => min <= mean,
        _ => true,
    };
    is_good.then_some((delay, None))
}

/// Reads a share of packets that are held back.
pub fn hold(text: &str) -> Option<Hold> {
    match text.split(',').collect::<Vec<_>>()[..] {
        [share, held] | ["const", share, held] => {
            Some(Hold { probability: probability(share)?, time: time(held)? as u64 })
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_the_suffixes_of_the_originals() {
        assert_eq!(
            (bits("10m"), bits("1.5k"), bits("100")),
            (Some(1e7), Some(1500.0), Some(100.0))
        );
        assert_eq!((time("1"), time("20m"), time("5u")), (Some(1e9), Some(2e7), Some(5000.0)));
        assert_eq!((bytes("50k"), bytes("3000")), (Some(51_200), Some(3000)));
        for bad in ["", "m", "-1", "inf", "1x"] {
            assert_eq!((bits(bad), time(bad), bytes(bad)), (None, None, None), "{bad}");
        }
    }

    #[test]
    fn models_are_read() {
        assert_eq!(loss("0.1"), Some(Loss::Random(0.1)));
        assert_eq!(loss("ber,1e-6"), Some(Loss::BitErrors(1e-6)));
        assert_eq!((loss("2"), loss("plr"), loss("x,1")), (None, None, None));
        assert_eq!(delay("10m"), Some((Delay::Constant(1e7), None)));
        assert_eq!(delay("uniform,1m,5m"), Some((Delay::Uniform { min: 1e6, max: 5e6 }, None)));
        assert_eq!((delay("uniform,5m,1m"), delay("exp,2,1")), (None, None));
        let gaps = Some(Gaps { min: 1e6, max: 2e6 });
        assert_eq!(delay("inter-packet,1m,2m,10m"), Some((Delay::Constant(1e7), gaps)));
        assert_eq!(hold("const,0.1,5m"), Some(Hold { probability: 0.1, time: 5_000_000 }));
        assert_eq!(hold("0.1"), None);
    }
}
