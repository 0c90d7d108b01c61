//! Says under which name the library is loaded.

fn main() {
    // The system's: what asks for libpcap by name, once this one is loaded, is given this one, whether a
    // program is linked to it or opens it while it runs.
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libpcap.so.0.8");
    println!("cargo::rustc-cdylib-link-arg=-Wl,-Bsymbolic-functions");
}
