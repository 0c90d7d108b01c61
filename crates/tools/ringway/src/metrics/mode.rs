//! The mode of an interface, as labels: what the daemon tells has reasons behind it, and those differ without bounds.

/// The mode, and what forwards for an interface on a switch: `kernel` or `worker`. Of what is no mode, nothing.
pub fn mode_and_path(text: &str) -> (&'static str, &'static str) {
    const MODES: [&str; 5] = ["kernel", "zerocopy", "copy", "generic", "packet"];
    let first = text.split([',', ';']).next().unwrap_or_default();
    let Some(mode) = MODES.into_iter().find(|mode| *mode == first) else { return ("", "") };
    let is_kernels = mode == "kernel" && !text.contains(", by the worker");
    (mode, if is_kernels { "kernel" } else { "worker" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_are_left_out() {
        for (text, expected) in [
            ("kernel", ("kernel", "kernel")),
            ("kernel; not zerocopy: the driver has none", ("kernel", "kernel")),
            ("kernel, by the worker: it has monitors", ("kernel", "worker")),
            ("copy; not zerocopy: no hook", ("copy", "worker")),
            ("zerocopy", ("zerocopy", "worker")),
            ("packet", ("packet", "worker")),
            ("its interface has gone", ("", "")),
            ("no queues", ("", "")),
            ("", ("", "")),
        ] {
            assert_eq!(mode_and_path(text), expected, "{text}");
        }
    }
}
