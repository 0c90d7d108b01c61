//! What the kernel is asked once.

use std::sync::OnceLock;

/// The answer, asked for unless there is one. An error is none: the next call asks again.
pub(crate) fn ask_once<T: Copy, E>(
    answer: &OnceLock<T>,
    ask: impl FnOnce() -> Result<T, E>,
) -> Result<T, E> {
    match answer.get() {
        Some(known) => Ok(*known),
        None => ask().map(|new| *answer.get_or_init(|| new)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_no_answer() {
        let answer = OnceLock::new();
        assert_eq!(ask_once(&answer, || Err("not now")), Err("not now"));
        assert_eq!(ask_once(&answer, || Ok::<_, &str>(false)), Ok(false));
        assert_eq!(ask_once(&answer, || Err("not now")), Ok(false));
    }
}
