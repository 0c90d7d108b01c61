//! A program under callgrind.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

/// What the counted parts of a case have executed.
#[derive(Clone, Copy, Debug)]
pub struct Counts {
    /// Instructions of Ringway's own code, and of the standard library's that is linked into it.
    pub own: u64,
    /// Those of all code of the process, libc's among it.
    pub whole: u64,
    /// System calls.
    pub calls: u64,
    /// Looks at the clock, which are system calls under callgrind alone.
    pub clock: u64,
}

/// Of libc's functions valgrind's processor would choose those for the host's: all are told to be like the oldest. And a
/// function is found when the program is started, not when it is called first.
const SAME_EVERYWHERE: [(&str, &str); 2] = [
    (
        "GLIBC_TUNABLES",
        "glibc.cpu.hwcaps=-AVX512F,-AVX512VL,-AVX512BW,-AVX2,-AVX,-BMI1,-BMI2,-LZCNT,-MOVBE,-ERMS,-FSRM,\
         -SSE4_2,-SSE4_1,-SSSE3",
    ),
    ("LD_BIND_NOW", "1"),
];

/// Runs `command` under callgrind, with these variables and no others. `own` is the file of Ringway's code. What is called
/// by functions with `counted` in their name is counted.
pub fn count(
    name: &str,
    own: &Path,
    command: &[&str],
    variables: &[(&str, &str)],
) -> Result<Counts, String> {
    let profile = env::temp_dir().join(format!("ringway-callgrind.{}", std::process::id()));
    let output = Command::new("valgrind")
        .env_clear()
        .envs(env::vars_os().filter(|(name, _)| name == "PATH"))
        .envs(SAME_EVERYWHERE)
        .envs(variables.iter().copied())
        .args(["--tool=callgrind", "--toggle-collect=*counted*", "--compress-strings=no"])
        .args([
            "--compress-pos=no",
            "--dump-line=no",
            "--collect-systime=yes",
            "--error-exitcode=1",
        ])
        .arg(format!("--callgrind-out-file={}", profile.display()))
        .args(command)
        .output()
        .map_err(|e| format!("valgrind: {e}; `scripts/need test` installs it"))?;
    let text = fs::read_to_string(&profile);
    // It may not be there: then that is what is told.
    let _ = fs::remove_file(&profile);
    if !output.status.success() {
        let said = [&output.stdout[..], &output.stderr].concat();
        let said = String::from_utf8_lossy(&said);
        return Err(format!("{name} under callgrind: {}\n{said}", output.status));
    }
    let text = text.map_err(|e| format!("{}: {e}", profile.display()))?;
    let counts = counts(&text, &own.display().to_string());
    match counts.own {
        0 => Err(format!("{name}: callgrind saw nothing of {}", own.display())),
        _ => Ok(counts),
    }
}

/// This program, for cases that are parts of it.
pub fn this_program() -> Result<PathBuf, String> {
    env::current_exe().map_err(|e| format!("this program has no path: {e}"))
}

/// Instructions are costs of functions without what they call. System calls callgrind counts in these whether or not it
/// collects, so of them there are those of all that was called by counted functions, shared out as the others are.
fn counts(profile: &str, own: &str) -> Counts {
    let (mut inside, mut call, mut clock, mut counted) = (false, false, false, false);
    let (mut counts, mut looks, mut others) =
        (Counts { own: 0, whole: 0, calls: 0, clock: 0 }, 0, 0);
    let mut all = 0;
    for line in profile.lines() {
        if let Some(object) = line.strip_prefix("ob=") {
            inside = object == own;
        } else if let Some(function) = line.strip_prefix("fn=") {
            clock = function.contains("clock_gettime");
            counted = function.contains("counted");
        } else if line.starts_with("calls=") {
            // The next line has what was called, all in all.
            call = true;
        } else if line.starts_with(|c: char| c.is_ascii_digit()) {
            let mut costs = line.split(' ').skip(1).map(|cost| cost.parse::<u64>().unwrap_or(0));
            let (instructions, calls) = (costs.next().unwrap_or(0), costs.next().unwrap_or(0));
            if !call {
                counts.whole += instructions;
                counts.own += if inside { instructions } else { 0 };
                *if clock { &mut looks } else { &mut others } += calls;
            } else if counted {
                all += calls;
            }
            call = false;
        }
    }
    counts.clock = (all * looks).checked_div(looks + others).unwrap_or(0);
    counts.calls = all - counts.clock;
    counts
}
