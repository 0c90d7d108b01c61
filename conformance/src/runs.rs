//! Runs the chapters' programs, some of them one after the other, with a home, a daemon and a network namespace of
//! their own.

use std::{
    collections::BTreeSet,
    fs,
    panic::{self, AssertUnwindSafe},
    path::PathBuf,
    process::Command,
    sync::Mutex,
    thread,
};

use ringway_testkit::{Netns, Proc, is_root};
use ringway_tests::{
    GROUP, Home, as_nobody,
    c::{Language, Library, link},
};
use rustix::process::Signal;

use crate::{
    Book,
    ways::{Daemon, User, Way, ways},
};

/// A program of a book.
#[derive(Clone)]
pub struct Chapter {
    /// Its source's name without `.c`.
    name: String,
}

impl Chapter {
    /// Whether it runs in every way: see [`Book::thorough`].
    fn is_thorough(&self, book: &Book) -> bool {
        book.thorough.iter().any(|program| is_part(&self.name, program))
    }

    /// Those of that name; none given means all.
    pub fn all(book: &Book, wanted: &BTreeSet<String>) -> Vec<Chapter> {
        let folder = format!("{}/{}", env!("CARGO_MANIFEST_DIR"), book.programs);
        let entries = fs::read_dir(&folder).unwrap_or_else(|e| panic!("{folder}: {e}")).flatten();
        let files = entries.filter_map(|entry| entry.file_name().into_string().ok());
        let names = files.filter_map(|file| Some(file.strip_suffix(".c")?.to_string()));
        let is_wanted = |name: &String| wanted.iter().any(|wanted| is_part(name, wanted));
        let mut names: Vec<String> =
            names.filter(|name| wanted.is_empty() || is_wanted(name)).collect();
        names.sort();
        names.into_iter().map(|name| Chapter { name }).collect()
    }
}

/// Whether `program` is what the chapter's name says, or one of several that it has: `vale_paths` of `vale`.
fn is_part(program: &str, chapter: &str) -> bool {
    program.strip_prefix(chapter).is_some_and(|rest| rest.is_empty() || rest.starts_with('_'))
}

/// What a case came to.
#[derive(Clone, PartialEq, Eq)]
pub enum Result {
    Passed,
    Failed,
    /// The machine lacks something.
    Skipped,
    /// It needs another way of running.
    NotApplicable,
}

/// One line of a chapter's output.
pub struct Outcome {
    pub rule: String,
    pub case: String,
    /// Why it failed, or did not run.
    pub details: String,
    pub result: Result,
    pub way: Way,
}

impl Outcome {
    fn parse(line: &str, book: &Book, way: &Way) -> Option<Outcome> {
        let (result, rest) = if let Some(rest) = line.strip_prefix("not ok ") {
            (Result::Failed, rest)
        } else if let Some(rest) = line.strip_prefix("ok ") {
            (Result::Passed, rest)
        } else if let Some(rest) = line.strip_prefix("skip ") {
            (Result::Skipped, rest)
        } else {
            (Result::NotApplicable, line.strip_prefix("n/a ")?)
        };
        let (rule, text) = rest.split_once(' ')?;
        let (case, details) = text.split_once(" (").unwrap_or((text, ""));
        let details = details.strip_suffix(')').unwrap_or(details);
        if result == Result::NotApplicable {
            assert!(way.lacks(details, book), "{way}: {line}: it is such a way");
        }
        Some(Outcome {
            rule: rule.into(),
            case: case.into(),
            details: details.into(),
            result,
            way: way.clone(),
        })
    }
}

/// A chapter's programs, one for each library of the book.
type Programs = Vec<(Library, PathBuf)>;

/// Parts that are run at the same time: their cases wait more than they work.
const AT_ONCE: usize = 8;

/// A way is run in parts of so many chapters, each with a daemon, so that no way ends long after the others.
const PART: usize = 8;

/// Chapters that run in one way, one after the other.
struct Part<'a> {
    way: &'a Way,
    /// Their numbers, which their names have, and their programs.
    chapters: Vec<(usize, &'a Programs)>,
}

/// The parts of all ways, in each those chapters that run in it: see [`Book::thorough`]. Chapters beside each other
/// in a part are far from each other in the book, for those of one name take long together.
fn parts<'a>(ways: &'a [Way], chapters: &'a [(bool, Programs)]) -> Vec<Part<'a>> {
    let mut parts = Vec::new();
    for way in ways {
        let runs = |(_, (thorough, _)): &(usize, &(bool, _))| way.few || *thorough;
        let own = chapters.iter().enumerate().filter(runs);
        let own: Vec<_> = own.map(|(number, (_, programs))| (number, programs)).collect();
        let count = own.len().div_ceil(PART);
        for first in 0..count {
            let chapters = own.iter().skip(first).step_by(count).copied().collect();
            parts.push(Part { way, chapters });
        }
    }
    parts
}

/// Of the system's daemon: one user may fill a switch, as the rules have it (S-VALE-2).
const SETTINGS: &str = "switch_ports_per_user = 254\n";

/// What all the runs came to.
#[derive(Default)]
pub struct Runs {
    pub outcomes: Vec<Outcome>,
    /// Ways after which a daemon stayed, or had died; standard error has the reason.
    pub untidy: Vec<Way>,
}

/// Runs all chapters in all ways, each part with a home, a daemon and a network namespace of its own.
pub fn run(book: &Book, chapters: &[Chapter]) -> Runs {
    let built = Home::new();
    if !book.artefacts.is_empty() {
        built.install(book.artefacts);
    }
    let build = |chapter| build(&built, book, chapter);
    let programs: Vec<Programs> = chapters.iter().map(build).collect();
    let chapters: Vec<(bool, Programs)> =
        chapters.iter().map(|chapter| chapter.is_thorough(book)).zip(programs).collect();
    let ways = ways(book);
    let parts = Mutex::new(parts(&ways, &chapters).into_iter());
    let runs = Mutex::new(Runs::default());
    let work = || {
        loop {
            let next = parts.lock().expect("no thread panics with it").next();
            let Some(part) = next else { return };
            let (outcomes, tidy) = elsewhere(|| run_part(&built, book, &part));
            let mut runs = runs.lock().expect("no thread panics with it");
            runs.outcomes.extend(outcomes);
            if !tidy {
                runs.untidy.push(part.way.clone());
            }
        }
    };
    thread::scope(|scope| (0..AT_ONCE).for_each(|_| drop(scope.spawn(work))));
    runs.into_inner().expect("no thread panicked with it")
}

fn build(home: &Home, book: &Book, chapter: &Chapter) -> Programs {
    let source = format!("conformance/{}/{}.c", book.programs, chapter.name);
    let build = |library| {
        let with = if library == Library::Preloaded { &[] } else { book.linked };
        (library, link(home, &source, Language::C11, with))
    };
    let build = &build;
    thread::scope(|scope| {
        let all: Vec<_> =
            book.libraries.iter().map(|&library| scope.spawn(move || build(library))).collect();
        all.into_iter().map(|one| one.join().unwrap_or_else(|e| panic::resume_unwind(e))).collect()
    })
}

/// In a network namespace of its own, where it may make interfaces, if root.
fn elsewhere<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    if is_root() { Netns::quiet("rwc").enter(work) } else { work() }
}

/// Runs the chapters of a part. Tells whether the daemon ended as it should.
fn run_part(built: &Home, book: &Book, part: &Part<'_>) -> (Vec<Outcome>, bool) {
    let way = part.way;
    let home = Home::new();
    let group = if is_root() { GROUP } else { rustix::process::getgid().as_raw() };
    let start = || home.system_daemon_with(group, 0o660, SETTINGS, |daemon| daemon);
    let system = (way.daemon == Daemon::System).then(start);
    if way.user == User::Nobody {
        home.give_to_nobody();
    }
    let mut outcomes = Vec::new();
    for (chapter, programs) in &part.chapters {
        let found = programs.iter().find(|(library, _)| *library == way.library);
        let program = &found.expect("each way has its program").1;
        let mut command = match way.daemon {
            Daemon::Private => home.command(program),
            Daemon::System => home.system_command(program),
        };
        command.args([way.variant, &format!("c{chapter}")]);
        // What a case that was killed leaves behind goes with the home.
        command.env("TMPDIR", home.run()).env("XDG_RUNTIME_DIR", home.run());
        if way.first {
            command.env("CONFORMANCE_ONCE", "1");
        }
        if way.library == Library::Preloaded {
            command.env("LD_PRELOAD", built.library());
        }
        let command = if way.user == User::Nobody { as_nobody(command) } else { command };
        outcomes.extend(judge(command, book, way));
    }
    let end = || {
        if let Some(mut daemon) = system {
            assert!(daemon.is_running(), "the system daemon died: {}", daemon.output());
            daemon.signal(Signal::TERM);
            let (status, output) = daemon.wait();
            assert!(status.success(), "{status}: {output}");
        }
        home.assert_left();
    };
    (outcomes, panic::catch_unwind(AssertUnwindSafe(end)).is_ok())
}

/// Every case's line; a chapter does not hang, for each of its cases has its time.
fn judge(command: Command, book: &Book, way: &Way) -> Vec<Outcome> {
    let what = format!("{command:?}");
    let (status, output) = Proc::spawn(command).wait();
    let outcomes: Vec<Outcome> =
        output.lines().filter_map(|line| Outcome::parse(line, book, way)).collect();
    let failed = outcomes.iter().any(|outcome| outcome.result == Result::Failed);
    assert!(status.success() != failed && !outcomes.is_empty(), "{what}: {status}\n{output}");
    outcomes
}
