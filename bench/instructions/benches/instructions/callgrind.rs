//! A case under callgrind.

use std::{env, fs, process::Command};

/// Instructions that the counted parts of case `name` execute in this program's own code, which
/// Ringway's and the standard library's are linked into.
pub fn instructions(name: &str) -> Result<u64, String> {
    let own = env::current_exe().map_err(|e| format!("this program has no path: {e}"))?;
    let profile = env::temp_dir().join(format!("ringway-callgrind.{}", std::process::id()));
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--toggle-collect=*counted*", "--compress-strings=no"])
        .args(["--compress-pos=no", "--dump-line=no", "--error-exitcode=1"])
        .arg(format!("--callgrind-out-file={}", profile.display()))
        .arg(&own)
        .args(["case", name])
        .output()
        .map_err(|e| format!("valgrind: {e}; `scripts/need test` installs it"))?;
    let text = fs::read_to_string(&profile);
    // It may not be there: then that is what is told.
    let _ = fs::remove_file(&profile);
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(format!("{name} under callgrind: {}\n{said}", output.status));
    }
    let text = text.map_err(|e| format!("{}: {e}", profile.display()))?;
    match own_cost(&text, &own.display().to_string()) {
        0 => Err(format!("{name}: callgrind saw nothing of {}", own.display())),
        cost => Ok(cost),
    }
}

/// The cost of functions of the object file `own`, without what they call.
fn own_cost(profile: &str, own: &str) -> u64 {
    let (mut inside, mut call, mut total) = (false, false, 0);
    for line in profile.lines() {
        if let Some(object) = line.strip_prefix("ob=") {
            inside = object == own;
        } else if line.starts_with("calls=") {
            // The next line has what was called, all in all.
            call = true;
        } else if line.starts_with(|c: char| c.is_ascii_digit()) {
            let cost = line.split(' ').nth(1).and_then(|cost| cost.parse::<u64>().ok());
            if inside && !call {
                total += cost.unwrap_or(0);
            }
            call = false;
        }
    }
    total
}
