//! Filters: only some of what an interface receives.

use ringway_proto::Cause;

use crate::error::Error;

/// Which frames a port is to get of what its interface receives. The stack gets the others, as if
/// there were no port.
///
/// Expressions are compiled in this process, by the libpcap of the machine, and run in the
/// kernel, before it does anything else with a frame.
///
/// ```no_run
/// // Needs a network interface.
/// use ringway::{Filter, Port};
///
/// let mut port = Port::options().rx_only().filter(Filter::new("udp port 53")?).open("netmap:eth0")?;
/// // Later, without losing what matches both:
/// port.set_filter(Filter::new("udp port 53 or tcp port 53")?.one_in(10))?;
/// # Ok::<(), ringway::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Filter(ringway_proto::Filter);

impl Filter {
    /// Compiles an expression (see `man pcap-filter`); an empty one matches everything.
    ///
    /// ```
    /// use ringway::Filter;
    ///
    /// let filter = Filter::new("arp or udp port 53")?;
    /// # drop(filter);
    /// println!("{}", Filter::new("udp prot 53").unwrap_err()); // It says what is wrong.
    /// # Ok::<(), ringway::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Filter`] for what is no expression; one of more than 4096 bytes is refused before it is
    /// compiled, which takes libpcap longer than a user waits.
    pub fn new(expression: &str) -> Result<Filter, Error> {
        const MOST: usize = ringway_proto::Filter::MAX_TEXT;
        if expression.len() > MOST {
            let problem = format!(
                "a filter's text has {MOST} bytes at most, and this one {}",
                expression.len()
            );
            let refused = ringway_proto::Error::new(Cause::Invalid, problem);
            return Err(refused.remedy("name ranges, such as portrange 1000-2000").into());
        }
        let insns = ringway_filter::compile(expression)?.insns().to_vec();
        Ok(Filter::classic(expression, insns))
    }

    /// A filter that has been compiled already, with a text to show for it.
    ///
    /// ```
    /// # use ringway_doc as Port;
    /// use ringway::{Filter, Insn};
    ///
    /// // Frames of 64 bytes and more: A = length; A >= 64 ? return all : return 0
    /// let insn = |code, jt, jf, k| Insn { code, jt, jf, k };
    /// let insns = vec![
    ///     insn(0x80, 0, 0, 0),
    ///     insn(0x35, 0, 1, 64),
    ///     insn(0x06, 0, 0, u32::MAX),
    ///     insn(0x06, 0, 0, 0),
    /// ];
    /// let port = Port::options().filter(Filter::classic("len >= 64", insns)).open("vale0:a")?;
    /// # drop(port);
    /// # Ok::<(), ringway::Error>(())
    /// ```
    pub fn classic(text: &str, insns: Vec<ringway_filter::Insn>) -> Filter {
        Filter(ringway_proto::Filter { text: text.into(), insns, one_in: 1 })
    }

    /// What it is compiled to.
    ///
    /// ```
    /// use ringway::Filter;
    ///
    /// let again = Filter::classic("udp", Filter::new("udp")?.insns().to_vec());
    /// assert_eq!(again, Filter::new("udp")?);
    /// # Ok::<(), ringway::Error>(())
    /// ```
    pub fn insns(&self) -> &[ringway_filter::Insn] {
        &self.0.insns
    }

    /// Takes one in `count` of the frames that match; the stack gets the others. Each CPU counts by
    /// itself.
    ///
    /// ```
    /// # use ringway_doc as Port;
    /// use ringway::Filter;
    ///
    /// let port = Port::options().filter(Filter::new("udp")?.one_in(100)).open("vale0:a")?;
    /// # drop(port);
    /// # Ok::<(), ringway::Error>(())
    /// ```
    pub fn one_in(mut self, count: u32) -> Filter {
        self.0.one_in = count;
        self
    }
}

/// As requests have it, such as [`PortSettings`](crate::PortSettings).
impl From<Filter> for ringway_proto::Filter {
    fn from(filter: Filter) -> Self {
        filter.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Such an expression takes libpcap half a minute.
    #[test]
    fn long_texts_are_refused_before_they_are_compiled() {
        let ports: Vec<_> = (1..3000).map(|port| format!("port {port}")).collect();
        let error = Filter::new(&ports.join(" or ")).unwrap_err();
        assert_eq!(error.cause(), Cause::Invalid);
        assert!(error.to_string().contains("4096 bytes at most"), "{error}");
        assert!(error.to_string().len() < 200, "{error}");
    }
}
