//! What the name of a port asks for, and what the program that opens it asks for: together, where that
//! is possible, and refused where one of them would be ignored.

use std::fmt::Display;

use crate::{error::Error, filter::Filter, own_options::OwnOptions};

/// What one of them asks for.
///
/// # Errors
/// [`Error::Name`], with both, where they ask for different things.
pub(crate) fn either<T: Display + PartialEq>(
    spec: &str,
    what: &str,
    named: Option<T>,
    asked: Option<T>,
) -> Result<Option<T>, Error> {
    match (&named, &asked) {
        (Some(named), Some(asked)) if named != asked => Err(twice(spec, what, named, asked)),
        _ => Ok(named.or(asked)),
    }
}

/// The filter: the expression of one and the sample of the other go together.
pub(crate) fn filter(
    spec: &str,
    expression: Option<&str>,
    sample: Option<u32>,
    asked: Option<&Filter>,
) -> Result<Option<ringway_proto::Filter>, Error> {
    let (Some(asked), true) = (asked, expression.is_some() || sample.is_some()) else {
        let named = OwnOptions { filter: expression.map(Into::into), sample, ..Default::default() };
        let named = named.options()?.filter;
        return Ok(named.or_else(|| asked.cloned().map(Into::into)));
    };
    let asked = ringway_proto::Filter::from(asked.clone());
    let asked_sample = (asked.one_in > 1).then_some(asked.one_in);
    let one_in = either(spec, "one frame in", sample, asked_sample)?;
    let named = match expression {
        None => asked,
        Some(expression) => {
            let named = ringway_proto::Filter::from(Filter::new(expression)?);
            if !matches_all(&asked) && named.insns != asked.insns {
                return Err(twice(spec, "the filter", &named.text, &asked.text));
            }
            named
        }
    };
    Ok(Some(ringway_proto::Filter { one_in: one_in.unwrap_or(1), ..named }))
}

/// The filter of a port where the environment has one for those that ask for none: a sample alone is one
/// of the frames that it matches.
pub(crate) fn filter_or(
    asked: Option<ringway_proto::Filter>,
    default: impl FnOnce() -> Result<Option<Filter>, Error>,
) -> Result<Option<ringway_proto::Filter>, Error> {
    let one_in = match &asked {
        None => 1,
        Some(filter) if filter.one_in > 1 && matches_all(filter) => filter.one_in,
        Some(_) => return Ok(asked),
    };
    Ok(default()?.map(|default| default.one_in(one_in).into()).or(asked))
}

/// Whether it lets each frame pass, as an empty expression does.
fn matches_all(filter: &ringway_proto::Filter) -> bool {
    /// `ret #k`: so many bytes of the frame are wanted.
    const RETURN: u16 = 0x06;
    matches!(filter.insns[..], [insn] if insn.code == RETURN && insn.k > 0)
}

fn twice(spec: &str, what: &str, named: &impl Display, asked: &impl Display) -> Error {
    let problem = format!(
        "the name asks for {what} {named}, the program or its command line for {asked}; leave one of them out"
    );
    Error::Name { name: spec.into(), problem }
}

#[cfg(test)]
mod tests {
    use ringway_proto::Cause;

    use super::*;

    /// The text, and one in how many.
    type Asked = Option<(&'static str, u32)>;
    /// The name's expression and sample, what the program asks for, and what comes of it.
    type Case = (Option<&'static str>, Option<u32>, Asked, Result<Asked, Cause>);

    fn shown(filter: Option<ringway_proto::Filter>) -> Option<(String, u32)> {
        filter.map(|filter| (filter.text, filter.one_in))
    }

    fn filter_of((text, one_in): (&str, u32)) -> Filter {
        Filter::new(text).unwrap().one_in(one_in)
    }

    #[test]
    fn a_name_and_a_program_ask_for_a_filter_together_or_in_vain() {
        let refused = Err(Cause::Invalid);
        let cases: [Case; 13] = [
            (None, None, None, Ok(None)),
            (None, None, Some(("udp", 3)), Ok(Some(("udp", 3)))),
            (Some("udp"), None, None, Ok(Some(("udp", 1)))),
            (None, Some(10), None, Ok(Some(("", 10)))),
            (None, Some(10), Some(("udp", 1)), Ok(Some(("udp", 10)))),
            (Some("udp"), None, Some(("", 10)), Ok(Some(("udp", 10)))),
            (Some("udp"), None, Some(("udp", 10)), Ok(Some(("udp", 10)))),
            (Some("udp"), Some(10), Some(("udp", 10)), Ok(Some(("udp", 10)))),
            (None, Some(1), Some(("udp", 1)), Ok(Some(("udp", 1)))),
            (Some("udp"), None, Some(("icmp", 1)), refused),
            (Some("udp"), Some(10), Some(("icmp", 10)), refused),
            (None, Some(2), Some(("udp", 3)), refused),
            (Some("udp"), Some(2), Some(("", 3)), refused),
        ];
        for (expression, sample, asked, expected) in cases {
            let asked = asked.map(filter_of);
            let is = filter("e", expression, sample, asked.as_ref()).map(shown);
            let ought = expected.map(|both| both.map(|(text, one_in)| (text.to_owned(), one_in)));
            match is {
                Err(error) => {
                    assert_eq!(Err(error.cause()), ought, "{error}");
                    assert!(error.to_string().contains("leave one of them out"), "{error}");
                }
                Ok(filter) => assert_eq!(Ok(filter), ought, "{expression:?} {sample:?} {asked:?}"),
            }
        }
    }

    #[test]
    fn a_sample_alone_leaves_the_expression_to_the_environment() {
        let cases: [(Asked, Asked, Asked); 6] = [
            (None, None, None),
            (None, Some(("udp", 1)), Some(("udp", 1))),
            (Some(("", 10)), Some(("udp", 1)), Some(("udp", 10))),
            (Some(("", 10)), None, Some(("", 10))),
            (Some(("", 1)), Some(("udp", 1)), Some(("", 1))),
            (Some(("icmp", 10)), Some(("udp", 1)), Some(("icmp", 10))),
        ];
        for (asked, default, expected) in cases {
            let asked = asked.map(|asked| filter_of(asked).into());
            let filter = filter_or(asked, || Ok(default.map(filter_of))).unwrap();
            let expected = expected.map(|(text, one_in)| (text.to_owned(), one_in));
            assert_eq!(shown(filter), expected);
        }
    }

    #[test]
    fn other_options_are_the_same_or_refused() {
        assert_eq!(either("e", "mode", Some("copy"), None).unwrap(), Some("copy"));
        assert_eq!(either("e", "mode", None, Some("copy")).unwrap(), Some("copy"));
        assert_eq!(either("e", "mode", Some("copy"), Some("copy")).unwrap(), Some("copy"));
        let error = either("e", "mode", Some("copy"), Some("packet")).unwrap_err();
        assert!(error.to_string().contains("mode copy"), "{error}");
        assert!(error.to_string().contains("for packet; leave"), "{error}");
    }
}
