//! Another CNI plugin that gives the addresses: it is called as this one was.

use std::{
    io::{self, Write},
    path::PathBuf,
    process::{Command, Stdio},
};

use serde::Deserialize;
use serde_json::{Value, json};

use crate::{
    cni::{AddResult, Version},
    error::{Error, Kind},
};

pub struct Ipam<'a> {
    name: String,
    program: PathBuf,
    /// The network's configuration, as it came.
    config: &'a [u8],
}

#[derive(Deserialize)]
struct Refusal {
    code: u32,
    #[serde(default)]
    msg: String,
    #[serde(default)]
    details: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Versions {
    supported_versions: Vec<String>,
}

impl<'a> Ipam<'a> {
    /// The program of that name in the folders of `CNI_PATH`.
    pub fn find(name: &str, path: &[PathBuf], config: &'a [u8]) -> Result<Ipam<'a>, Error> {
        let mut programs = path.iter().map(|folder| folder.join(name));
        let program = programs.find(|program| program.is_file()).ok_or_else(|| {
            let problem = format!("ipam: there is no plugin {name} in CNI_PATH");
            let remedy = "install it (Debian: containernetworking-plugins), or name its folder";
            Error::new(Kind::Config, problem, remedy)
        })?;
        Ok(Ipam { name: name.into(), program, config })
    }

    /// Asks for addresses.
    pub fn add(&self) -> Result<AddResult, Error> {
        let said = self.call("ADD", self.config)?;
        serde_json::from_slice(&said).map_err(|e| self.unreadable(&e))
    }

    /// Gives them back, also those that it has not got.
    pub fn del(&self) -> Result<(), Error> {
        self.call("DEL", self.config).map(drop)
    }

    /// The same for another container than that of this call.
    pub fn del_of(&self, container: &str, interface: &str) -> Result<(), Error> {
        let whose = [("CNI_CONTAINERID", container), ("CNI_IFNAME", interface), ("CNI_NETNS", "")];
        self.call_with("DEL", self.config, &whose).map(drop)
    }

    /// Whether they are the container's.
    pub fn check(&self) -> Result<(), Error> {
        self.call("CHECK", self.config).map(drop)
    }

    /// `GC` or `STATUS`, if it knows them.
    pub fn call_if_known(&self, command: &str) -> Result<(), Error> {
        let newest = Version::NEWEST.name();
        let question: Value = json!({"cniVersion": newest});
        let said = self.call("VERSION", question.to_string().as_bytes())?;
        let versions: Versions = serde_json::from_slice(&said).map_err(|e| self.unreadable(&e))?;
        match versions.supported_versions.iter().any(|version| version == newest) {
            true => self.call(command, self.config).map(drop),
            false => Ok(()),
        }
    }

    fn call(&self, command: &str, input: &[u8]) -> Result<Vec<u8>, Error> {
        self.call_with(command, input, &[])
    }

    fn call_with(
        &self,
        command: &str,
        input: &[u8],
        variables: &[(&str, &str)],
    ) -> Result<Vec<u8>, Error> {
        let run = || -> io::Result<_> {
            let mut program = Command::new(&self.program);
            program
                .env("CNI_COMMAND", command)
                .envs(variables.iter().copied())
                .stdin(Stdio::piped())
                .stdout(Stdio::piped());
            let mut process = program.spawn()?;
            if let Some(mut stdin) = process.stdin.take() {
                match stdin.write_all(input) {
                    // It has an answer without having read all.
                    Err(e) if e.kind() == io::ErrorKind::BrokenPipe => {}
                    result => result?,
                }
            }
            process.wait_with_output()
        };
        let name = &self.name;
        let output = run()
            .map_err(|e| Error::new(Kind::Io, format!("{}: {e}", self.program.display()), ""))?;
        if output.status.success() {
            return Ok(output.stdout);
        }
        let refusal = serde_json::from_slice(&output.stdout);
        let refusal = refusal.unwrap_or_else(|_| Refusal {
            code: Kind::Io.number(),
            msg: format!("{command} failed, {}", output.status),
            details: String::from_utf8_lossy(&output.stdout).into_owned(),
        });
        let Refusal { code, msg, details } = refusal;
        let problem = if msg.starts_with(&**name) { msg } else { format!("{name}: {msg}") };
        Err(Error::new(Kind::Delegate(code), problem, details))
    }

    fn unreadable(&self, e: &serde_json::Error) -> Error {
        Error::new(Kind::Decode, format!("{}: it answers {e}", self.name), "")
    }
}
