//! `scripts/junit`: what libtest prints, as JUnit's XML.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

const PRINTED: &str = "\
     Running unittests src/lib.rs (target/quick/deps/ringway_flow-0123456789abcdef)

running 3 tests
test tests::good ... ok
test tests::ignored_one ... ignored, takes hours
test tests::bad ... FAILED

failures:

---- tests::bad stdout ----

thread 'tests::bad' (7) panicked at crates/x.rs:1:2:
left < right & \"so\"

failures:
    tests::bad

test result: FAILED. 1 passed; 1 failed; 1 ignored; 0 measured; 0 filtered out; finished in 1.25s

     Running tests/switch.rs (target/quick/deps/switch-0123456789abcdef)

running 2 tests
test needs_root ... ok
test learns ... ok

test result: ok. 2 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.50s

   Doc-tests ringway_flow

running 1 test
test crates/packets/flow/src/lib.rs - flow (line 3) ... ok
";

/// What the script writes, and the status with which it ends, for a command that prints `text`.
fn junit(name: &str, text: &str, status: i32) -> (String, Option<i32>) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the project");
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("junit-{name}"));
    fs::create_dir_all(&folder).expect("a folder");
    let (printed, skipped, xml) =
        (folder.join("printed"), folder.join("skipped"), folder.join("out/results.xml"));
    fs::write(&printed, text).expect("it is written");
    fs::write(&skipped, "needs_root\tnot root\n").expect("it is written");
    let done = Command::new(root.join("scripts/junit"))
        .arg(&xml)
        .args(["sh", "-c", "cat \"$0\"; exit \"$1\""])
        .arg(&printed)
        .arg(status.to_string())
        .env("RINGWAY_SKIPPED", &skipped)
        .output()
        .expect("python3 runs");
    assert_eq!(String::from_utf8_lossy(&done.stdout), text, "it shows what is printed");
    (fs::read_to_string(&xml).expect("it has written"), done.status.code())
}

#[test]
fn results_become_junit() {
    let (xml, status) = junit("results", PRINTED, 101);
    assert_eq!(status, Some(101));
    for part in [
        r#"<testsuite name="ringway_flow src/lib.rs" time="1.25" tests="3" failures="1" errors="0" skipped="1">"#,
        r#"<testcase classname="ringway_flow src/lib.rs" name="tests::good" />"#,
        r#"<skipped message="takes hours" />"#,
        r#"<failure message="thread 'tests::bad' (7) panicked at crates/x.rs:1:2:">"#,
        "left &lt; right &amp; \"so\"",
        r#"<testsuite name="switch tests/switch.rs" time="0.50" tests="2" failures="0" errors="0" skipped="1">"#,
        r#"<skipped message="not root" />"#,
        // The documentation's tests have no end.
        r#"<testsuite name="doc-tests ringway_flow" time="0" tests="2" failures="0" errors="1" skipped="0">"#,
        r#"name="crates/packets/flow/src/lib.rs - flow (line 3)""#,
        "it ended before its result",
    ] {
        assert!(xml.contains(part), "{part} is not in\n{xml}");
    }
}

#[test]
fn a_command_that_fails_without_a_test_is_an_error() {
    let (xml, status) = junit("command", "error: could not compile\n", 3);
    assert_eq!(status, Some(3));
    assert!(xml.contains("ended with 3, and no test failed"), "{xml}");
    let (xml, status) = junit("nothing", "", 0);
    assert_eq!((xml.contains("<error"), status), (false, Some(0)));
}
