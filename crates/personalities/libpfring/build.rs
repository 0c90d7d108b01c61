//! Says under which name the library is loaded.

fn main() {
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libpfring.so");
    println!("cargo::rustc-cdylib-link-arg=-Wl,-Bsymbolic-functions");
}
