//! What the shells complete, made of the same definitions as `--help`: `dist/completions`.

use crate::Cli;
use clap::CommandFactory;
use clap_complete::Shell;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

/// The files have the names that the shells look for.
const SHELLS: [(Shell, &str); 3] = [
    (Shell::Bash, "bash/ringway"),
    (Shell::Zsh, "zsh/_ringway"),
    (Shell::Fish, "fish/ringway.fish"),
];

fn kept(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../dist/completions").join(file)
}

/// With RINGWAY_UPDATE_COMPLETIONS set this test writes them.
#[test]
fn the_completions_are_current() {
    for (shell, file) in SHELLS {
        let mut made = Vec::new();
        clap_complete::generate(shell, &mut Cli::command(), "ringway", &mut made);
        let made = String::from_utf8(made).unwrap();
        // In zsh's form each line with values ends with a space.
        let made: String = made.lines().map(|line| line.trim_end().to_string() + "\n").collect();
        if env::var_os("RINGWAY_UPDATE_COMPLETIONS").is_some() {
            fs::create_dir_all(kept(file).parent().unwrap()).unwrap();
            fs::write(kept(file), &made).unwrap();
        }
        let is_current = fs::read_to_string(kept(file)).unwrap_or_default() == made;
        assert!(is_current, "{file} is stale: set RINGWAY_UPDATE_COMPLETIONS and test again");
    }
}

/// What a shell that runs this script with the file prints, line by line.
fn ask(shell: &str, arguments: &[&str], file: &str) -> Vec<String> {
    let mut command = Command::new(shell);
    let output = command.args(arguments).arg(kept(file)).output();
    let output = output.unwrap_or_else(|e| panic!("{shell} (see scripts/need): {e}"));
    assert!(output.status.success(), "{shell}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().lines().map(str::to_string).collect()
}

/// As the shell does when the tabulator is pressed.
#[test]
fn bash_completes_commands_and_options() {
    let script = r#"
        . "$0"
        say() {
            COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMPREPLY=()
            _ringway ringway "${@: -1}" "${@: -2:1}"
            echo "${COMPREPLY[@]}"
        }
        say ringway switch att
        say ringway gen --durat
        complete -p ringway | grep -o ' _ringway '
    "#;
    let said = ask("bash", &["--norc", "-c", script], SHELLS[0].1);
    assert_eq!(said, ["attach", "--duration", " _ringway "]);
}

#[test]
fn fish_completes_commands() {
    let script = "source $argv[1]; complete --do-complete 'ringway switch att'";
    let said = ask("fish", &["--no-config", "-c", script], SHELLS[2].1);
    assert!(said.len() == 1 && said[0].starts_with("attach\t"), "{said:?}");
}

/// zsh completes in a terminal alone: here it loads the function, as a word of `fpath`.
#[test]
fn zsh_loads_its_function() {
    let script = r#"
        fpath=(${1:h} $fpath)
        autoload -Uz compinit
        compinit -D -u
        print $_comps[ringway]
        autoload +X _ringway
        whence -w _ringway
    "#;
    let said = ask("zsh", &["-f", "-c", script, "zsh"], SHELLS[1].1);
    assert_eq!(said, ["_ringway", "_ringway: function"]);
}
