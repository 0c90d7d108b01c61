//! Programs that tests make, to run them.
//!
//! They are written by a process of their own. What a test has open for writing, a child that another test forks
//! meanwhile has open, too, until that one is another program; and who runs it then is told "Text file busy".

use std::{
    io::Write,
    path::Path,
    process::{Command, Stdio},
};

/// Copies programs into a folder, or one to a new name.
pub fn install<P: AsRef<Path>>(programs: impl IntoIterator<Item = P>, to: impl AsRef<Path>) {
    let mut install = Command::new("install");
    install.args(["-m", "755"]);
    programs.into_iter().for_each(|program| _ = install.arg(program.as_ref()));
    run(install.arg(to.as_ref()), "");
}

/// Writes one of these lines.
pub fn install_script(text: &str, to: impl AsRef<Path>) {
    run(Command::new("install").args(["-m", "755", "/dev/stdin"]).arg(to.as_ref()), text);
}

fn run(install: &mut Command, input: &str) {
    let mut child = install.stdin(Stdio::piped()).spawn().expect("install starts");
    let mut stdin = child.stdin.take().expect("stdin is piped");
    stdin.write_all(input.as_bytes()).expect("install reads");
    drop(stdin);
    assert!(child.wait().expect("it is ours").success(), "{install:?}");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Folder;

    #[test]
    fn what_is_installed_runs() {
        let folder = Folder::new();
        let [script, copy] = ["script", "copy"].map(|name| folder.path().join(name));
        install_script("#!/bin/sh\nexit 3\n", &script);
        install([&script], &copy);
        install_script("#!/bin/sh\nexit 4\n", &script);
        for (program, status) in [(script, 4), (copy, 3)] {
            assert_eq!(Command::new(program).status().unwrap().code(), Some(status));
        }
    }
}
