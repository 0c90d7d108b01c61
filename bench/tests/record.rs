//! The way of a figure from the benchmark into the documents.

use std::{
    env, fs,
    path::Path,
    process::{Command, Output},
};

use ringway_testkit::{Folder, install};

const BENCH: &str = env!("CARGO_BIN_EXE_ringway-bench");
const PROJECT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");

fn run(program: &str, arguments: &[&str]) -> Output {
    Command::new(program).args(arguments).output().unwrap_or_else(|e| panic!("{program}: {e}"))
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&[&output.stdout[..], &output.stderr].concat()).into_owned()
}

/// A record of one experiment that takes no root, measured now.
fn measure(folder: &Path) -> serde_json::Value {
    let record = folder.join("bench/record.json");
    let file = record.to_string_lossy();
    let done = run(BENCH, &["--quick", "--only", "poll of", "--output", &file]);
    assert!(done.status.success(), "{}", text(&done));
    serde_json::from_str(&fs::read_to_string(&record).unwrap()).unwrap()
}

#[test]
fn documents_are_made_of_the_record_and_of_nothing_else() {
    let folder = Folder::new();
    let root = folder.path().to_string_lossy().into_owned();
    let script = format!("{PROJECT}/scripts/performance");
    let document = folder.path().join("docs/performance.md");
    fs::create_dir(folder.path().join("docs")).unwrap();
    fs::write(folder.path().join("README.md"), "# A\n").unwrap();
    // Neither is there, then one without the other.
    assert!(run(&script, &["--check", &root]).status.success());
    fs::write(&document, "").unwrap();
    assert!(!run(&script, &["--check", &root]).status.success());

    let record = measure(folder.path());
    assert!(!run(&script, &["--check", &root]).status.success());
    let made = run(&script, &[&root]);
    assert!(made.status.success(), "{}", text(&made));
    assert!(run(&script, &["--check", &root]).status.success());
    let made = fs::read_to_string(&document).unwrap();
    let records = record["records"].as_array().unwrap();
    assert_eq!(records.len(), 3);
    for one in records {
        let (name, cpus) = (one["name"].as_str().unwrap(), one["cpus"].as_str().unwrap());
        let row = made.lines().find(|line| line.starts_with(&format!("| {name} |"))).unwrap();
        assert!(row.contains(&format!("| {:.0} ns |", one["median"].as_f64().unwrap())), "{row}");
        assert!(row.contains(cpus), "{row}");
    }
    assert!(made.contains("was not complete"));
    fs::write(&document, made.replace(" ns |", "0 ns |")).unwrap();
    assert!(!run(&script, &["--check", &root]).status.success());

    // The page has a plot, and nothing from elsewhere.
    let page = fs::read_to_string(folder.path().join("bench/record.html")).unwrap();
    assert!(page.contains("<svg") && page.contains(records[0]["name"].as_str().unwrap()));
    let links = page.matches("http").count();
    assert_eq!(links, page.matches("http://www.w3.org/2000/svg").count());
}

#[test]
fn rows_of_a_later_run_say_so_and_the_rest_stays() {
    let folder = Folder::new();
    let root = folder.path().to_string_lossy().into_owned();
    fs::create_dir(folder.path().join("docs")).unwrap();
    fs::write(folder.path().join("README.md"), "# A\n").unwrap();
    let merge = |only: &str| {
        let record = folder.path().join("bench/record.json");
        let file = record.to_string_lossy();
        let arguments = ["--merge", "--only", only, "--output", &file];
        run(BENCH, &[&arguments[..], &["--runs", "1", "--seconds", "0.1"]].concat())
    };
    let refused = merge("no library");
    assert!(!refused.status.success() && text(&refused).contains("cannot read"), "{refused:?}");

    let before = measure(folder.path());
    let done = merge("no library");
    assert!(done.status.success(), "{}", text(&done));
    let path = folder.path().join("bench/record.json");
    let read = || fs::read_to_string(&path).unwrap();
    let after: serde_json::Value = serde_json::from_str(&read()).unwrap();
    let [before, rows] = [&before, &after].map(|all| all["records"].as_array().unwrap());
    assert_eq!(rows.len(), before.len());
    for (old, new) in before.iter().zip(rows) {
        assert_eq!(old["name"], new["name"]);
        let is_later = new["contestant"] == "plain";
        assert_eq!(is_later, new["origin"]["command"].is_string(), "{new}");
        assert!(is_later || old == new, "{old} {new}");
    }
    assert!(!after["command"].as_str().unwrap().contains("--merge"));

    // The document says it, and what is compared across runs.
    let script = format!("{PROJECT}/scripts/performance");
    assert!(run(&script, &[&root]).status.success());
    let document = fs::read_to_string(folder.path().join("docs/performance.md")).unwrap();
    let rows: Vec<&str> = document.lines().filter(|line| line.contains("no library |")).collect();
    assert!(rows.iter().any(|row| row.contains("run 2")), "{rows:?}");
    assert!(document.contains("| 2 | ") && document.contains("--merge"), "{document}");

    // Another machine's figures do not stand beside these, and nothing is half done.
    let kernel = after["machine"]["kernel"].as_str().unwrap();
    let others = read().replace(&format!("\"kernel\": \"{kernel}\""), "\"kernel\": \"0.1\"");
    fs::write(&path, &others).unwrap();
    let refused = merge("no library");
    assert!(!refused.status.success() && text(&refused).contains("the kernel"), "{refused:?}");
    assert_eq!(read(), others);
}

#[test]
fn a_rate_without_a_record_is_refused() {
    let folder = Folder::new();
    let path = |name: &str| folder.path().join(name);
    for directory in ["scripts", "docs/guide", "conformance", "bench"] {
        fs::create_dir_all(path(directory)).unwrap();
    }
    install([format!("{PROJECT}/scripts/claims")], path("scripts"));
    for name in ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md"] {
        fs::write(path(name), "").unwrap();
    }
    fs::write(path("conformance/rules.txt"), "S-SYNC-10\n").unwrap();
    let record = r#"{"records": [{"name": "a pipe", "median": 62.04}]}"#;
    fs::write(path("bench/record.json"), record).unwrap();
    let check = |readme: &str, entry: &str| {
        fs::write(path("README.md"), readme).unwrap();
        let entry = format!("[[claim]]\nin = \"README.md\"\nsays = \"M packets/s\"\n{entry}\n");
        fs::write(path("docs/claims.toml"), entry).unwrap();
        let checked = run(&path("scripts/claims").to_string_lossy(), &[]);
        (checked.status.success(), text(&checked))
    };
    let sentence = "A pipe carries 62.0 M packets/s.\n";
    let of_record = r#"record = "bench/record.json: a pipe""#;
    assert!(check(sentence, of_record).0);
    let (fine, said) = check(sentence, r#"rule = "S-SYNC-10""#);
    assert!(!fine && said.contains("nothing shows this"), "{said}");
    let (fine, said) = check("A pipe carries 63 M packets/s.\n", of_record);
    assert!(!fine && said.contains("62.04"), "{said}");
    let (fine, said) = check(sentence, r#"record = "bench/record.json: a switch""#);
    assert!(!fine && said.contains("has no a switch"), "{said}");
    // What a program prints is no exception.
    let block = "```console\n$ make demo\n  pipe 70.0 M packets/s\n```\n";
    assert!(!check(block, of_record).0);
    assert!(check(&block.replace("70.0", "62"), of_record).0);
}
