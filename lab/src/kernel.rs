//! The kernels in the cache.

use std::env;
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A kernel's version, as far as features go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version {
    pub major: u32,
    pub minor: u32,
}

impl Version {
    /// Reads the beginning of what `uname -r` prints.
    pub fn parse(text: &str) -> Option<Version> {
        let mut numbers = text.split(['.', '-', '+']).map(|number| number.parse().ok());
        Some(Version { major: numbers.next()??, minor: numbers.next()?? })
    }

    /// The version of the kernel that runs.
    pub fn running() -> Version {
        let release = rustix::system::uname().release().to_string_lossy().into_owned();
        Version::parse(&release).unwrap_or_else(|| panic!("no version of a kernel: {release}"))
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

/// A kernel that was fetched.
#[derive(Clone, Debug)]
pub struct Kernel {
    /// Debian's, as in the names of its packages: `6.12.95+deb12`.
    pub release: String,
    pub version: Version,
    pub root: PathBuf,
}

/// The folder of the repository.
pub fn repository() -> PathBuf {
    let parent = Path::new(env!("CARGO_MANIFEST_DIR")).parent();
    parent.expect("the crate lies in the repository").into()
}

/// Where `lab/fetch` puts kernels.
pub fn cache() -> PathBuf {
    match env::var_os("RINGWAY_LAB_CACHE") {
        Some(cache) => repository().join(cache),
        None => repository().join("target/lab"),
    }
}

impl Kernel {
    /// The newest kernel of a series (`6.12`) in the cache.
    ///
    /// # Errors
    /// What is missing, and how to get it.
    pub fn of_series(series: &str) -> Result<Kernel, String> {
        let mut fetch = Command::new(repository().join("lab/fetch"));
        let output = fetch.args(["--cached", series]).output();
        let output = output.map_err(|e| format!("lab/fetch: {e}"))?;
        if !output.status.success() {
            return Err(String::from_utf8_lossy(&output.stderr).trim_end().into());
        }
        let folders = cache().read_dir().map_err(|e| format!("{}: {e}", cache().display()))?;
        let releases = folders.flatten().filter_map(|folder| {
            let release = folder.file_name().into_string().ok()?;
            let is_one = release.starts_with(&format!("{series}."));
            (is_one && folder.path().join("vmlinuz").exists()).then_some(release)
        });
        let newest = releases.max_by_key(|release| numbers(release));
        let release = newest.ok_or_else(|| format!("no Linux {series} in the cache"))?;
        let version = Version::parse(&release).ok_or_else(|| format!("{release}: no version"))?;
        Ok(Kernel { root: cache().join(&release), release, version })
    }

    /// Packs what a guest starts from that has the host's files.
    ///
    /// # Errors
    /// What `lab/initramfs` says.
    pub fn pack(&self, out: &Path) -> Result<(), String> {
        self.pack_with(out, |pack| pack)
    }

    /// Packs what a guest starts from that has nothing of the host's: busybox runs the script, with these modules.
    ///
    /// # Errors
    /// What `lab/initramfs` says.
    pub fn pack_alone(&self, out: &Path, script: &Path, modules: &[&str]) -> Result<(), String> {
        self.pack_with(out, |pack| pack.arg(script).args(modules))
    }

    fn pack_with(
        &self,
        out: &Path,
        more: impl FnOnce(&mut Command) -> &mut Command,
    ) -> Result<(), String> {
        let mut pack = Command::new(repository().join("lab/initramfs"));
        let output = more(pack.arg(&self.root).arg(out)).output();
        let output = output.map_err(|e| format!("lab/initramfs: {e}"))?;
        match output.status.success() {
            true => Ok(()),
            false => Err(format!("lab/initramfs: {}", String::from_utf8_lossy(&output.stderr))),
        }
    }
}

/// The numbers in a version, by which versions are in order.
fn numbers(release: &str) -> Vec<u32> {
    release.split(|c: char| !c.is_ascii_digit()).filter_map(|part| part.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_in_order() {
        let of = |text| Version::parse(text).unwrap();
        assert!(of("6.1.0-50-amd64") < of("6.12.95+deb12"));
        assert!(of("6.18.15+deb13-amd64") < of("7.2.12"));
        assert_eq!(of("7.2.12+deb13").to_string(), "7.2");
        assert!(Version::parse("lists").is_none());
        assert!(numbers("7.2.9+deb13") < numbers("7.2.12+deb13"));
    }
}
