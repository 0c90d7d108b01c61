//! The texts of `--help`, as wide as the terminal.

use clap::Command;
use clap::builder::StyledStr;

/// Leaves it to clap where the lines of the texts below the options end, for the command and those below it. In the
/// sources they end where they are easy to read.
pub fn wrapped(command: Command) -> Command {
    let text = |text: Option<&StyledStr>| text.map(|text| joined(&text.to_string()));
    let (short, long) = (text(command.get_after_help()), text(command.get_after_long_help()));
    let command = match short {
        Some(short) => command.after_help(short),
        None => command,
    };
    let command = match long {
        Some(long) => command.after_long_help(long),
        None => command,
    };
    command.mut_subcommands(wrapped)
}

/// The same text with the lines of a paragraph as one. Indented lines, which are examples, stay lines of their own.
fn joined(text: &str) -> String {
    let is_prose = |line: &str| !line.is_empty() && !line.starts_with(' ');
    let (mut joined, mut goes_on) = (String::new(), false);
    for line in text.lines() {
        if !joined.is_empty() {
            joined.push(if goes_on && is_prose(line) { ' ' } else { '\n' });
        }
        joined.push_str(line);
        goes_on = is_prose(line);
    }
    joined
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn paragraphs_are_joined_and_examples_are_not() {
        let text = "a\nb\n\nc:\n  d\n  e\nf\ng";
        assert_eq!(joined(text), "a b\n\nc:\n  d\n  e\nf g");
    }

    /// No line is longer than a narrow terminal is wide, unless it is one word, or the usage.
    #[test]
    fn help_is_as_wide_as_the_terminal() {
        fn check(command: &mut Command) {
            let help = command.clone().term_width(60).render_long_help().to_string();
            let is_usage =
                |line: &str| line.trim_start_matches("Usage:").trim_start().starts_with("ringway ");
            let texts = help.lines().filter(|line| !is_usage(line));
            for line in texts.filter(|line| line.chars().count() > 60) {
                assert_eq!(line.split_whitespace().count(), 1, "{}: {line}", command.get_name());
            }
            command.get_subcommands_mut().for_each(check);
        }
        let mut command = wrapped(crate::Cli::command());
        command.build();
        check(&mut command);
    }
}
