//! The plugin, for both interfaces: a runtime of CNI sets `CNI_COMMAND`, and netavark gives a subcommand.
#![forbid(unsafe_code)]

use std::{
    env,
    io::{self, Read, Write},
    process::ExitCode,
};

use ringway_networks::{
    cni::{self, Call},
    error::{Error, Kind},
    netavark,
};
use serde_json::Value;

const ABOUT: &str = "\
A plugin that joins containers to Ringway's switches. Runtimes call it:
  by CNI (containerd, CRI-O, podman 4), with CNI_COMMAND in the environment
  by netavark (later podman), as `ringway create|setup NETNS|teardown NETNS|info`
The guide to containers says how a network is set up.";

fn main() -> ExitCode {
    let arguments: Vec<String> =
        env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned()).collect();
    let mut note = |text: &str| {
        let _ = writeln!(io::stderr(), "ringway: {text}");
    };
    let (said, succeeded) = if !arguments.is_empty() {
        match netavark::run(&arguments, read, &mut note) {
            Ok(said) => (said, true),
            Err(error) => (Some(netavark::refusal(&error)), false),
        }
    } else if let Some((command, call)) = Call::read() {
        let input = read();
        let known = input.as_deref().unwrap_or_default();
        let result = input
            .as_ref()
            .map_err(Clone::clone)
            .and_then(|input| cni::run(command?, &call, input, &mut note));
        match result {
            Ok(said) => (said, true),
            Err(error) => (Some(cni::refusal(&error, known)), false),
        }
    } else {
        let _ = writeln!(io::stderr(), "{ABOUT}");
        return ExitCode::FAILURE;
    };
    match said.map_or(Ok(()), |said| print(&said)) {
        Ok(()) if succeeded => ExitCode::SUCCESS,
        Ok(()) => ExitCode::FAILURE,
        Err(e) => {
            note(&format!("standard output: {e}"));
            ExitCode::FAILURE
        }
    }
}

fn read() -> Result<Vec<u8>, Error> {
    let mut input = Vec::new();
    let refused = |e| Error::new(Kind::Io, format!("standard input: {e}"), "");
    io::stdin().read_to_end(&mut input).map_err(refused)?;
    Ok(input)
}

fn print(said: &Value) -> io::Result<()> {
    writeln!(io::stdout(), "{said:#}")
}
