//! What the environment asks of network interfaces: for programs whose names of ports cannot.

use std::str::FromStr;

use ringway_proto::{NicMode, Options, Registration, RingSelection};

use crate::{asked_twice, error::Error, filter::Filter, open_options::is_interface};

/// Adds to `options`, where they ask for nothing, what the environment asks of the port `name`.
///
/// `RINGWAY_NIC_MODE` is a [mode](crate::NicMode), and no other mode than that; `RINGWAY_NIC_BUFFERS`
/// the bytes of buffers, where no region is asked for; `RINGWAY_NIC_TIMESTAMPS` the
/// [timestamps](crate::Timestamps) of frames. `RINGWAY_FILTER` is an expression, for what receives by the
/// rings of an interface; a sample without an expression is one of the frames that it matches. Errors: [`Error::Name`] and [`Error::Filter`] when they say anything else.
pub fn add_environment(name: &str, reg: &Registration, options: &mut Options) -> Result<(), Error> {
    if options.mode.is_none() {
        options.mode = mode_of_environment()?;
    }
    if options.buf_size.is_none() && options.extmem.is_none() && reg.mem_id == 0 {
        options.buf_size = variable("RINGWAY_NIC_BUFFERS")?.map(|Bytes(bytes)| bytes);
    }
    if options.timestamps.is_none() {
        options.timestamps = variable("RINGWAY_NIC_TIMESTAMPS")?;
    }
    if receives_by_interface(name, reg) {
        options.filter = asked_twice::filter_or(options.filter.take(), || {
            let expression = variable::<String>("RINGWAY_FILTER")?;
            expression.map(|expression| Filter::new(&expression)).transpose()
        })?;
    }
    Ok(())
}

/// What `RINGWAY_NIC_MODE` asks for. Errors: as [`add_environment`].
pub fn mode_of_environment() -> Result<Option<NicMode>, Error> {
    variable("RINGWAY_NIC_MODE")
}

struct Bytes(u32);

impl FromStr for Bytes {
    type Err = String;

    fn from_str(text: &str) -> Result<Bytes, String> {
        let wrong = |_| format!("{text:?} is no number of bytes; write 4096, say");
        text.parse().map(Bytes).map_err(wrong)
    }
}

/// `None` where it is not set, or empty.
fn variable<T: FromStr<Err: ToString>>(name: &str) -> Result<Option<T>, Error> {
    let Some(text) = ringway_environment::variable(name).filter(|text| !text.is_empty()) else {
        return Ok(None);
    };
    let wrong = |problem: T::Err| Error::Name { name: name.into(), problem: problem.to_string() };
    text.to_string_lossy().parse().map(Some).map_err(wrong)
}

fn receives_by_interface(name: &str, reg: &Registration) -> bool {
    is_interface(name)
        && matches!(reg.rings, RingSelection::All | RingSelection::One(_))
        && !(reg.without_rx || reg.monitor.tx || reg.monitor.rx)
}

#[cfg(test)]
mod tests {
    use ringway_proto::Monitor;

    use super::*;

    #[test]
    fn buffers_have_bytes() {
        assert_eq!("4096".parse().map(|Bytes(bytes)| bytes), Ok(4096));
        for wrong in ["4k", "-1", " 4096", "99999999999"] {
            let problem = wrong.parse::<Bytes>().err().unwrap();
            assert_eq!(problem, format!("{wrong:?} is no number of bytes; write 4096, say"));
        }
    }

    #[test]
    fn filters_are_for_interfaces_that_receive() {
        let all = Registration::default();
        assert!(receives_by_interface("eth0", &all));
        for name in ["vale0:a", "p{1", "p}1"] {
            assert!(!receives_by_interface(name, &all), "{name}");
        }
        let monitor = |tx, rx| Monitor { tx, rx, zero_copy: false };
        let one = Registration { rings: RingSelection::One(1), ..all };
        assert!(receives_by_interface("eth0", &one));
        for reg in [
            Registration { without_rx: true, ..one },
            Registration { monitor: monitor(true, false), ..one },
            Registration { monitor: monitor(false, true), ..one },
            Registration { rings: RingSelection::Host, ..all },
        ] {
            assert!(!receives_by_interface("eth0", &reg), "{reg:?}");
        }
    }
}
