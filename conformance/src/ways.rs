//! The ways of running a program: generation of the API, preloaded or linked, private or system daemon, root or an
//! ordinary user.

use std::fmt;

use ringway_testkit::{is_root, skip_without_root};
use ringway_tests::c::Library;

use crate::Book;

/// Where a daemon comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Daemon {
    Private,
    System,
}

/// Who runs the program: the user of this test, root if possible, or an ordinary user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum User {
    Own,
    Nobody,
}

/// One way of running a chapter.
#[derive(Clone)]
pub struct Way {
    pub variant: &'static str,
    pub library: Library,
    pub daemon: Daemon,
    pub user: User,
    /// What is costly, and the same in all ways, runs in this one alone.
    pub first: bool,
    /// Chapters for which the way makes no difference of their own run only in some ways.
    pub few: bool,
}

impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let user = if self.is_root() { "root" } else { "user" };
        let way = format!("{} {:?} {:?} {user}", self.variant, self.library, self.daemon);
        write!(f, "{}", way.to_lowercase())
    }
}

impl Way {
    fn is_root(&self) -> bool {
        self.user == User::Own && is_root()
    }

    /// Whether this way is not what a case needs, in the words of `conformance/chapter.h`.
    ///
    /// # Panics
    /// A case needs something that is no matter of the way.
    pub fn lacks(&self, need: &str, book: &Book) -> bool {
        match need {
            "root" => !self.is_root(),
            "an ordinary user" => self.is_root(),
            "the first way" => !self.first,
            variants => {
                let known = |variant| book.variants.contains(&variant);
                assert!(variants.split(" or ").all(known), "{need} is no matter of the way");
                variants.split(" or ").all(|variant| variant != self.variant)
            }
        }
    }

    /// The settings, as numbers.
    fn settings(&self, book: &Book) -> [usize; 4] {
        let variant = book.variants.iter().position(|v| *v == self.variant).unwrap_or_default();
        [variant, self.library as usize, self.daemon as usize, self.user as usize]
    }

    /// Pairs of settings that meet in this way, and are to meet.
    fn pairs(&self, book: &Book) -> impl Iterator<Item = (usize, usize, usize, usize)> + use<> {
        const VARIANT_AND_DAEMON: (usize, usize) = (0, 2);
        let (at, apart) = (self.settings(book), book.variants_end_in_the_process);
        let pairs = (0..4).flat_map(|i| (i + 1..4).map(move |j| (i, j)));
        let meet = move |pair: &(usize, usize)| !(apart && *pair == VARIANT_AND_DAEMON);
        pairs.filter(meet).map(move |(i, j)| (i, at[i], j, at[j]))
    }
}

/// All ways. `few` are as many as it takes for every two settings to meet in one of them that are to meet.
pub fn ways(book: &Book) -> Vec<Way> {
    let mut users = vec![User::Own];
    if !skip_without_root("conformance as root") {
        users.push(User::Nobody);
    }
    let mut ways = Vec::new();
    for user in users {
        for daemon in [Daemon::Private, Daemon::System] {
            for &variant in book.variants {
                for &library in book.libraries {
                    let first = ways.is_empty();
                    ways.push(Way { variant, library, daemon, user, first, few: false });
                }
            }
        }
    }
    choose_few(book, &mut ways);
    ways
}

/// Takes the way in which most of the pairs meet that have not met, until all have.
fn choose_few(book: &Book, ways: &mut [Way]) {
    let mut met = Vec::new();
    loop {
        let news = |way: &Way| way.pairs(book).filter(|pair| !met.contains(pair)).count();
        let counts = ways.iter().map(news);
        // Of several the earliest.
        let best = counts.enumerate().max_by_key(|(i, count)| (*count, usize::MAX - i));
        let Some((best, 1..)) = best else { return };
        ways[best].few = true;
        met.extend(ways[best].pairs(book));
    }
}
