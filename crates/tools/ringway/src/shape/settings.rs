//! What a user asks of a link: `20ms`, `uniform,1ms,5ms`, `burst,1%,20%`.

use crate::error::{Error, Result};
use crate::link::{Burst, Delay, Hold, Limit, Loss};
use crate::units::{Rate, number, parse_count, parse_duration};
use std::str::FromStr;

/// A value that can be `none`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Maybe<T>(pub Option<T>);

impl<T: FromStr<Err = Error>> FromStr for Maybe<T> {
    type Err = Error;

    fn from_str(text: &str) -> Result<Maybe<T>> {
        match text {
            "none" => Ok(Maybe(None)),
            _ => Ok(Maybe(Some(text.parse()?))),
        }
    }
}

fn wrong(text: &str, what: &str) -> Error {
    Error::Value(format!("`{text}` is not {what}"))
}

/// Reads `1%` or `0.01`: 0 to 1.
pub fn probability(text: &str) -> Result<f64> {
    let (digits, scale) = text.strip_suffix('%').map_or((text, 1.0), |digits| (digits, 0.01));
    let value = digits.parse::<f64>().ok().map(|value| value * scale);
    value
        .filter(|value| (0.0..=1.0).contains(value))
        .ok_or_else(|| wrong(text, "a probability; write 1% or 0.01"))
}

/// The same as an option's value; `none` is none of it.
pub fn share(text: &str) -> Result<f64> {
    if text == "none" { Ok(0.0) } else { probability(text) }
}

/// Bytes that a frame takes beside its own.
pub fn overhead(text: &str) -> Result<u32> {
    if text == "none" { Ok(0) } else { number(0..=u32::MAX, 24)(text) }
}

/// Nanoseconds; `0` and `0ms`, too.
fn time(text: &str) -> Result<f64> {
    if ["", "us", "ms", "s", "m", "h"].iter().any(|unit| text.strip_suffix(unit) == Some("0")) {
        return Ok(0.0);
    }
    Ok(parse_duration(text)?.as_nanos() as f64)
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DelayArg(pub Delay);

impl FromStr for DelayArg {
    type Err = Error;

    fn from_str(text: &str) -> Result<DelayArg> {
        let fields: Vec<_> = text.split(',').collect();
        let delay = match fields[..] {
            ["none"] => Delay::Constant(0.0),
            [constant] | ["constant", constant] => Delay::Constant(time(constant)?),
            ["uniform", min, max] => Delay::Uniform { min: time(min)?, max: time(max)? },
            ["normal", mean, deviation] => {
                Delay::Normal { mean: time(mean)?, deviation: time(deviation)? }
            }
            ["exp", min, mean] => Delay::Exponential { min: time(min)?, mean: time(mean)? },
            ["pareto", min, mean] => Delay::Pareto { min: time(min)?, mean: time(mean)? },
            _ => {
                let known = "a delay; write 20ms, uniform,MIN,MAX, normal,MEAN,DEVIATION, exp,MIN,MEAN or \
                             pareto,MIN,MEAN";
                return Err(wrong(text, known));
            }
        };
        let is_good = match delay {
            Delay::Constant(_) | Delay::Normal { .. } => true,
            Delay::Uniform { min, max } => min <= max,
            Delay::Exponential { min, mean } => min <= mean,
            Delay::Pareto { min, mean } => 0.0 < min && min < mean,
        };
        match is_good {
            true => Ok(DelayArg(delay)),
            false => {
                Err(wrong(text, "a delay: the least time comes first, and that of pareto is not 0"))
            }
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LossArg(pub Loss);

impl FromStr for LossArg {
    type Err = Error;

    fn from_str(text: &str) -> Result<LossArg> {
        let fields: Vec<_> = text.split(',').collect();
        Ok(LossArg(match fields[..] {
            ["none"] => Loss::None,
            [share] => Loss::Random(probability(share)?),
            ["bits", rate] => Loss::BitErrors(probability(rate)?),
            ["burst", begins, ends, ref lost @ ..] if lost.len() <= 2 => Loss::Burst(Burst {
                begins: probability(begins)?,
                ends: probability(ends)?,
                lost_bad: lost.first().map_or(Ok(1.0), |lost| probability(lost))?,
                lost_good: lost.get(1).map_or(Ok(0.0), |lost| probability(lost))?,
            }),
            _ => {
                let known =
                    "a loss; write 1%, bits,1e-6 or burst,BEGINS,ENDS[,LOST-BAD[,LOST-GOOD]]";
                return Err(wrong(text, known));
            }
        }))
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LimitArg(pub Limit);

/// All wait for which there is memory.
pub const UNLIMITED: LimitArg = LimitArg(Limit::Frames(usize::MAX));

impl FromStr for LimitArg {
    type Err = Error;

    fn from_str(text: &str) -> Result<LimitArg> {
        if text == "none" {
            return Ok(UNLIMITED);
        }
        let bytes = text.strip_suffix('B');
        let count = parse_count(bytes.unwrap_or(text)).ok().filter(|count| *count > 0);
        let count =
            count.ok_or_else(|| wrong(text, "a queue; write 1000 for frames, 64kB for bytes"))?;
        Ok(LimitArg(match bytes {
            Some(_) => Limit::Bytes(count),
            None => Limit::Frames(usize::try_from(count).unwrap_or(usize::MAX)),
        }))
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HoldArg(pub Hold);

impl FromStr for HoldArg {
    type Err = Error;

    fn from_str(text: &str) -> Result<HoldArg> {
        let (share, held) = text
            .split_once(',')
            .ok_or_else(|| wrong(text, "a probability and a time; write 1%,5ms"))?;
        Ok(HoldArg(Hold { probability: probability(share)?, time: time(held)? as u64 }))
    }
}

/// Which frames are held back.
pub type ReorderArg = Maybe<HoldArg>;

/// A bandwidth. A number alone would be bits a second to one user, and packets to another.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LinkRate(pub Rate);

impl FromStr for LinkRate {
    type Err = Error;

    fn from_str(text: &str) -> Result<LinkRate> {
        match Rate::read(text)? {
            Some(Rate::Packets(_)) if !text.ends_with("pps") => Err(Error::Value(format!(
                "`{text}` has no unit; write {text}bps for bits, {text}pps for packets a second"
            ))),
            Some(rate) => Ok(LinkRate(rate)),
            None => {
                Err(wrong(text, "a bandwidth; write 10Mbps for bits, 1kpps for packets a second"))
            }
        }
    }
}

/// A bandwidth, or none.
pub type BandwidthArg = Maybe<LinkRate>;

/// The values of both directions: one is for both, of two the second is for the way back.
pub fn both<T: Clone>(values: &[T], default: T) -> Result<[T; 2]> {
    match values {
        [] => Ok([default.clone(), default]),
        [both] => Ok([both.clone(), both.clone()]),
        [there, back] => Ok([there.clone(), back.clone()]),
        _ => Err(Error::Value(
            "an option of a link is given once for both directions, or twice: there and back"
                .into(),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read() {
        let delay = |text: &str| text.parse::<DelayArg>().unwrap().0;
        assert_eq!(delay("20ms"), Delay::Constant(2e7));
        for none in ["0", "0ms", "none"] {
            assert_eq!(delay(none), Delay::Constant(0.0));
        }
        assert_eq!(delay("uniform,0,5us"), Delay::Uniform { min: 0.0, max: 5000.0 });
        assert_eq!(delay("normal,10ms,1ms"), Delay::Normal { mean: 1e7, deviation: 1e6 });
        assert_eq!(delay("pareto,1ms,2ms"), Delay::Pareto { min: 1e6, mean: 2e6 });
        let loss = |text: &str| text.parse::<LossArg>().unwrap().0;
        assert_eq!((loss("0.5"), loss("none")), (Loss::Random(0.5), Loss::None));
        assert_eq!(loss("bits,1e-6"), Loss::BitErrors(1e-6));
        let burst = Burst { begins: 0.01, ends: 0.25, lost_bad: 1.0, lost_good: 0.0 };
        assert_eq!(loss("burst,1%,25%"), Loss::Burst(burst));
        assert_eq!("64kB".parse::<LimitArg>().unwrap().0, Limit::Bytes(64_000));
        assert_eq!("100".parse::<LimitArg>().unwrap().0, Limit::Frames(100));
        let hold = "1%,5ms".parse::<HoldArg>().unwrap().0;
        assert_eq!(hold, Hold { probability: 0.01, time: 5_000_000 });
        assert_eq!("none".parse::<BandwidthArg>().unwrap(), Maybe(None));
        assert_eq!("none".parse::<ReorderArg>().unwrap(), Maybe(None));
        assert_eq!("none".parse::<LimitArg>().unwrap(), UNLIMITED);
        assert_eq!((share("none").unwrap(), overhead("none").unwrap()), (0.0, 0));
        assert_eq!(
            "1Mbps".parse::<BandwidthArg>().unwrap(),
            Maybe(Some(LinkRate(Rate::Bits(1e6))))
        );
        assert_eq!("1kpps".parse::<LinkRate>().unwrap(), LinkRate(Rate::Packets(1e3)));
    }

    #[test]
    fn nonsense_is_refused_with_an_example() {
        for bad in ["", "fast", "uniform,1ms", "uniform,5ms,1ms", "pareto,0,1ms", "gamma,1ms,2ms"] {
            assert!(bad.parse::<DelayArg>().is_err(), "{bad}");
        }
        for bad in ["", "2", "101%", "-1%", "burst,1%", "burst,1%,2%,3%,4%,5%"] {
            let message = bad.parse::<LossArg>().unwrap_err().to_string();
            assert!(message.contains("write 1%"), "{message}");
        }
        for bad in ["0", "B", "many"] {
            assert!(bad.parse::<LimitArg>().is_err(), "{bad}");
        }
        assert!("1%".parse::<HoldArg>().is_err());
        for (bad, why) in [
            ("10", "`10` has no unit; write 10bps for bits, 10pps for packets a second"),
            ("10M", "`10M` has no unit; write 10Mbps for bits"),
            ("fast", "`fast` is not a bandwidth; write 10Mbps"),
            ("10mbps", "`10mbps` is not a bandwidth; write 10Mbps"),
            ("0.0001bps", "is not possible"),
        ] {
            let said = bad.parse::<BandwidthArg>().unwrap_err().to_string();
            assert!(said.contains(why), "{bad}: {said}");
        }
    }

    #[test]
    fn one_value_is_for_both_directions() {
        assert_eq!(both(&[], 7).unwrap(), [7, 7]);
        assert_eq!(both(&[1], 7).unwrap(), [1, 1]);
        assert_eq!(both(&[1, 2], 7).unwrap(), [1, 2]);
        assert!(both(&[1, 2, 3], 7).is_err());
    }
}
