//! The pages of `man/`: those of the commands are made of the same text as `--help`, the others are written by
//! hand. Each says what its exit status is, which files it has to do with, and what to read next.

use crate::Cli;
use clap::{Command, CommandFactory};
use clap_mangen::{
    Man,
    roff::{Roff, bold, italic, roman},
};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::{env, fs};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../man")
}

/// File name and text of the page of a command, and of all below it.
fn pages(command: &Command, above: Option<&str>, made: &mut BTreeMap<String, Vec<u8>>) {
    let page = Man::new(command.clone());
    let mut text = Vec::new();
    page.render(&mut text).unwrap();
    let below: Vec<&Command> = command.get_subcommands().filter(|sub| !sub.is_hide_set()).collect();
    let name = name(command);
    let mut ends = Roff::new();
    exit_status(&name, &mut ends);
    files(&name, &mut ends);
    see_also(above, &below, &mut ends);
    let mut text = unfilled(&String::from_utf8(text).unwrap()).into_bytes();
    // The apostrophes of the first part are set up.
    text.extend(ends.to_roff().into_bytes());
    made.insert(page.get_filename(), text);
    below.iter().for_each(|sub| pages(sub, Some(&name), made));
}

/// The same page, whose indented lines of free text, examples and JSON, stay lines of their own.
fn unfilled(page: &str) -> String {
    let (mut made, mut is_free, mut is_unfilled) = (String::new(), false, false);
    for line in page.lines() {
        if line.starts_with(".SH") {
            is_free = line == ".SH EXTRA";
        }
        let is_indented = is_free && line.starts_with("  ");
        if is_indented != is_unfilled {
            made.push_str(if is_indented { ".nf\n" } else { ".fi\n" });
            is_unfilled = is_indented;
        }
        made.push_str(line);
        made.push('\n');
    }
    if is_unfilled {
        made.push_str(".fi\n");
    }
    made
}

#[test]
fn indented_lines_are_not_filled() {
    let page = ".SH OPTIONS\n  a\n.SH EXTRA\ntext\n  b\n  c\n\nmore\n  d\n";
    let made = ".SH OPTIONS\n  a\n.SH EXTRA\ntext\n.nf\n  b\n  c\n.fi\n\nmore\n.nf\n  d\n.fi\n";
    assert_eq!(unfilled(page), made);
}

fn name(command: &Command) -> String {
    command.get_display_name().unwrap_or(command.get_name()).to_string()
}

fn exit_status(name: &str, page: &mut Roff) {
    page.control("SH", ["EXIT STATUS"]);
    let text = match name {
        "ringway-run" => {
            "That of the program; 127 if there is no such program, 126 if it cannot be run, 1 if it is not begun for another reason, 2 if the command line of ringway itself cannot be read."
        }
        _ => {
            "0, 1 if the command fails, 2 if its command line cannot be read, and 141 if the reader of its results has closed the pipe."
        }
    };
    page.text([roman(text)]);
}

fn files(name: &str, page: &mut Roff) {
    page.control("SH", ["FILES"]);
    let mut entry = |path: &str, text: &str| {
        page.control("TP", []);
        page.text([italic(path)]);
        page.text([roman(text)]);
    };
    if name == "ringway-schema" {
        entry("PREFIX/share/ringway/ringway-output.schema.json", "The same schema.");
    }
    if name == "ringway-run" {
        entry("PREFIX/lib/libringway_preload.so", "What is loaded into the program.");
        entry("PREFIX/lib/ringway/libringway_pcap.so", "The same, in the place of libpcap.");
    }
    entry(
        "/run/ringway/ringwayd.sock",
        "The socket of the system daemon, which is used if it exists.",
    );
    // These start none.
    if !["ringway-metrics", "ringway-log", "ringway-top"].contains(&name) {
        entry(
            "$XDG_CONFIG_HOME/ringway/ringwayd.toml, ~/.config/ringway/ringwayd.toml",
            "The configuration of the private daemon that is started otherwise.",
        );
    }
}

fn see_also(above: Option<&str>, below: &[&Command], page: &mut Roff) {
    page.control("SH", ["SEE ALSO"]);
    let commands = above.map(str::to_string).into_iter().chain(below.iter().map(|sub| name(sub)));
    let mut all: Vec<_> = commands.map(|name| (name, 1)).collect();
    all.extend([("ringway".to_string(), 7), ("ringwayd".to_string(), 8)]);
    let last = all.len() - 1;
    for (at, (name, section)) in all.into_iter().enumerate() {
        let end = if at < last { "," } else { "" };
        page.text([bold(name), roman(format!("({section}){end}"))]);
    }
}

/// With RINGWAY_UPDATE_MAN set this test writes them, and the version into those that are written by hand.
#[test]
fn the_manual_pages_are_current() {
    let mut command = Cli::command().disable_help_subcommand(true);
    command.build();
    let mut made = BTreeMap::new();
    pages(&command, None, &mut made);
    made.extend(of_this_version());
    if env::var_os("RINGWAY_UPDATE_MAN").is_some() {
        made.iter().for_each(|(file, text)| fs::write(folder().join(file), text).unwrap());
    }
    let is_kept = |file: &str, text: &[u8]| fs::read(folder().join(file)).is_ok_and(|k| k == text);
    let stale: Vec<_> = made.iter().filter(|(file, text)| !is_kept(file, text)).collect();
    let stale: Vec<_> = stale.iter().map(|(file, _)| file).collect();
    assert!(stale.is_empty(), "stale: {stale:?}; set RINGWAY_UPDATE_MAN and test again");
    // A command that is gone leaves no page.
    let kept = fs::read_dir(folder()).unwrap().flatten().map(|e| e.file_name().into_string());
    let of_commands = kept.map(Result::unwrap).filter(|file| file.ends_with(".1"));
    let left: Vec<_> = of_commands.filter(|file| !made.contains_key(file)).collect();
    assert!(left.is_empty(), "pages of no command: {left:?}");
}

/// The pages that are written by hand, with this version in their headings.
fn of_this_version() -> BTreeMap<String, Vec<u8>> {
    const BEFORE: &str = " \"Ringway ";
    let mut pages = BTreeMap::new();
    for below in ["", "netmap-tools/"] {
        for entry in fs::read_dir(folder().join(below)).unwrap().flatten() {
            let file = format!("{below}{}", entry.file_name().into_string().unwrap());
            if entry.path().is_dir() || file.ends_with(".1") {
                continue;
            }
            let text = fs::read_to_string(entry.path()).unwrap();
            let heading = text.lines().find(|line| line.starts_with(".TH ")).expect("a heading");
            let (title, rest) = heading.split_once(BEFORE).expect("a version");
            let (_, rest) = rest.split_once('"').expect("the version's end");
            let current = format!("{title}{BEFORE}{}\"{rest}", env!("CARGO_PKG_VERSION"));
            pages.insert(file, text.replacen(heading, &current, 1).into_bytes());
        }
    }
    assert!(pages.len() > 8, "{:?}", pages.keys());
    pages
}

/// Those written by hand, too.
#[test]
fn each_page_says_exit_status_files_and_what_else_to_read() {
    let mut pages = 0;
    for folder in [folder(), folder().join("netmap-tools")] {
        for page in fs::read_dir(folder).unwrap().flatten().map(|entry| entry.path()) {
            if page.is_dir() {
                continue;
            }
            pages += 1;
            let text = fs::read_to_string(&page).unwrap();
            let headings: Vec<_> = text
                .lines()
                .filter_map(|line| line.strip_prefix(".SH "))
                .map(|heading| heading.trim_matches('"'))
                .collect();
            for wanted in ["EXIT STATUS", "FILES", "SEE ALSO"] {
                let count = headings.iter().filter(|heading| **heading == wanted).count();
                assert_eq!(count, 1, "{}: {wanted}: {headings:?}", page.display());
            }
        }
    }
    assert!(pages > 8, "{pages}");
}
