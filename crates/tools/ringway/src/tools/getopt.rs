//! Options as getopt(3) reads them: `-f tx`, `-ftx`, `-vv`, operands anywhere, `--` ends them.

use std::collections::VecDeque;
use std::time::Duration;

/// The longest time that an option can give.
pub const LONGEST: Duration = Duration::from_secs(1_000_000_000);

/// What an argument turned out to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Arg {
    /// An option; its value is empty if it takes none.
    Opt(char, String),
    /// What is no option.
    Operand(String),
}

/// Why an argument cannot be used, in getopt's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Wrong {
    #[error("invalid option -- '{0}'")]
    Unknown(char),
    #[error("option requires an argument -- '{0}'")]
    NoValue(char),
}

/// The arguments of a program, one after the other.
pub struct Getopt {
    args: VecDeque<String>,
    /// The known options, each followed by `:` if it takes a value.
    known: &'static str,
    /// The options that are left of the argument at hand.
    cluster: String,
    no_more: bool,
}

impl Getopt {
    pub fn new(known: &'static str, args: Vec<String>) -> Getopt {
        Getopt { args: args.into(), known, cluster: String::new(), no_more: false }
    }

    fn option(&mut self) -> Result<Arg, Wrong> {
        let option = self.cluster.remove(0);
        let at = self.known.find(option).filter(|_| option != ':').ok_or(Wrong::Unknown(option))?;
        if !self.known[at + option.len_utf8()..].starts_with(':') {
            return Ok(Arg::Opt(option, String::new()));
        }
        let value = match std::mem::take(&mut self.cluster) {
            rest if rest.is_empty() => self.args.pop_front().ok_or(Wrong::NoValue(option))?,
            rest => rest,
        };
        Ok(Arg::Opt(option, value))
    }
}

impl Iterator for Getopt {
    type Item = Result<Arg, Wrong>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.cluster.is_empty() {
            let arg = self.args.pop_front()?;
            match arg.strip_prefix('-') {
                Some("-") if !self.no_more => {
                    self.no_more = true;
                    return self.next();
                }
                Some(cluster) if !self.no_more && !cluster.is_empty() => {
                    self.cluster = cluster.into();
                }
                _ => return Some(Ok(Arg::Operand(arg))),
            }
        }
        Some(self.option())
    }
}

/// Reads a number as strtol does: what follows the digits is ignored, and no digits are zero.
pub fn number(text: &str) -> i64 {
    let text = text.trim_start();
    let (sign, text) = match text.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, text.strip_prefix('+').unwrap_or(text)),
    };
    let (base, digits) = match text.strip_prefix("0x").or(text.strip_prefix("0X")) {
        Some(hex) => (16, hex),
        None => (10, text),
    };
    let value = digits
        .chars()
        .map_while(|c| c.to_digit(base))
        .fold(0i64, |sum, digit| sum.saturating_mul(base.into()).saturating_add(digit.into()));
    sign * value
}

/// The same where nothing below zero makes sense.
pub fn count(text: &str) -> u64 {
    number(text).max(0) as u64
}

/// Reads seconds. More than thirty years are thirty years: no clock of a machine has so many, and sums fit.
pub fn seconds(text: &str) -> Duration {
    Duration::from_secs(count(text)).min(LONGEST)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(known: &'static str, args: &[&str]) -> Vec<Result<Arg, Wrong>> {
        Getopt::new(known, args.iter().map(|arg| arg.to_string()).collect()).collect()
    }

    #[test]
    fn options_operands_and_values() {
        let opt = |c, value: &str| Ok(Arg::Opt(c, value.into()));
        let operand = |text: &str| Ok(Arg::Operand(text.into()));
        assert_eq!(
            read("f:vc", &["-f", "tx", "a", "-vc", "-ftx", "-vf", "-v", "-", "--", "-v"]),
            [
                opt('f', "tx"),
                operand("a"),
                opt('v', ""),
                opt('c', ""),
                opt('f', "tx"),
                opt('v', ""),
                opt('f', "-v"),
                operand("-"),
                operand("-v"),
            ]
        );
    }

    #[test]
    fn wrong_options_are_named() {
        assert_eq!(read("f:", &["-x"]), [Err(Wrong::Unknown('x'))]);
        assert_eq!(read("f:", &["-f"]), [Err(Wrong::NoValue('f'))]);
        assert_eq!(read("f:", &["-:"]), [Err(Wrong::Unknown(':'))]);
    }

    #[test]
    fn numbers_as_c_reads_them() {
        assert_eq!([number("10"), number("10x"), number("x"), number("-3")], [10, 10, 0, -3]);
        assert_eq!(
            [number("0x10"), number(" 7"), number("99999999999999999999")],
            [16, 7, i64::MAX]
        );
        assert_eq!(count("-3"), 0);
    }

    #[test]
    fn any_time_can_be_added_to_now() {
        assert_eq!(seconds("3"), Duration::from_secs(3));
        assert_eq!(seconds("-3"), Duration::ZERO);
        assert!(std::time::Instant::now().checked_add(seconds("9223372036854775807")).is_some());
    }
}
