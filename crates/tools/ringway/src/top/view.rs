//! What is on the screen, and what keys do to it.

use super::entity::Of;
use super::rates::{Row, namespaces, percent, short};
use super::screen::Line;
use crate::printable::printable;
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use std::cmp::Ordering;
use std::ops::Add;
use std::time::Duration;

/// What a key asks for that is not the view's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    Nothing,
    Quit,
    Suspend,
    /// Totals begin now.
    Reset,
    Redraw,
}

/// What there is to be shown.
pub struct Shown<'s> {
    pub rows: &'s [Row],
    /// Why there are none.
    pub problem: Option<&'s str>,
    pub state: &'s str,
    pub interval: Duration,
}

/// A column: its heading, and how wide it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Column {
    Name,
    Kind,
    Uid,
    Open,
    RxPackets,
    RxBits,
    TxPackets,
    TxBits,
    Fill,
    Drops,
}

const COLUMNS: [Column; 10] = [
    Column::Name,
    Column::Kind,
    Column::Uid,
    Column::Open,
    Column::RxPackets,
    Column::RxBits,
    Column::TxPackets,
    Column::TxBits,
    Column::Fill,
    Column::Drops,
];

/// Of the column of names, at least: all columns are in 80.
const NAME_WIDTH: usize = 19;

impl Column {
    fn heading(self, totals: bool) -> &'static str {
        match (self, totals) {
            (Column::Name, _) => "NAME",
            (Column::Kind, _) => "KIND",
            (Column::Uid, _) => "UID",
            (Column::Open, _) => "OPEN",
            (Column::Fill, _) => "FILL",
            (Column::RxPackets, false) => "RX p/s",
            (Column::RxBits, false) => "RX b/s",
            (Column::TxPackets, false) => "TX p/s",
            (Column::TxBits, false) => "TX b/s",
            (Column::Drops, false) => "DROP/s",
            (Column::RxPackets, true) => "RX pkt",
            (Column::RxBits, true) => "RX B",
            (Column::TxPackets, true) => "TX pkt",
            (Column::TxBits, true) => "TX B",
            (Column::Drops, true) => "DROPS",
        }
    }

    fn width(self) -> usize {
        match self {
            Column::Name => NAME_WIDTH,
            Column::Kind => 7,
            Column::Uid => 6,
            Column::Open | Column::Fill => 4,
            _ => 6,
        }
    }

    fn is_text(self) -> bool {
        matches!(self, Column::Name | Column::Kind)
    }

    /// What it shows as a number; 0 of texts.
    fn number(self, row: &Row, totals: bool) -> f64 {
        let of = |rate: f64, total: u64| if totals { total as f64 } else { rate };
        match self {
            Column::Name | Column::Kind => 0.0,
            Column::Uid => row.uid.map_or(-1.0, f64::from),
            Column::Open => row.users.map_or(-1.0, f64::from),
            Column::RxPackets => of(row.rx_pps, row.rx_packets),
            Column::RxBits => of(row.rx_bps, row.rx_bytes),
            Column::TxPackets => of(row.tx_pps, row.tx_packets),
            Column::TxBits => of(row.tx_bps, row.tx_bytes),
            Column::Fill => row.fill_percent.unwrap_or(-1.0),
            Column::Drops => of(row.drops_per_second, row.drops.total()),
        }
    }

    fn cell(self, row: &Row, totals: bool) -> String {
        match self {
            Column::Name => printable(&row.name, &[]),
            Column::Kind => printable(&row.kind, &[]),
            Column::Uid => row.uid.map_or_else(|| "-".into(), |uid| uid.to_string()),
            Column::Open => row.users.map_or_else(|| "-".into(), |users| users.to_string()),
            Column::Fill => percent(row.fill_percent),
            _ => short(self.number(row, totals)),
        }
    }

    fn compare(self, a: &Row, b: &Row, totals: bool) -> Ordering {
        let by_column = match self {
            Column::Name => Ordering::Equal,
            Column::Kind => a.kind.cmp(&b.kind),
            // The largest first.
            _ => self.number(b, totals).total_cmp(&self.number(a, totals)),
        };
        by_column.then_with(|| (&a.name, a.netns).cmp(&(&b.name, b.netns)))
    }
}

pub struct View {
    of: Of,
    sort: usize,
    is_reversed: bool,
    filter: String,
    /// The filter is being written.
    is_writing: bool,
    totals: bool,
    help: bool,
    selected: usize,
    /// The first row that is shown.
    first: usize,
    /// How many were, the last time.
    count: usize,
    page: usize,
}

const HELP: &str = "\
p        ports
s        ports of switches, attached interfaces included
r        rings
Tab      the next of these
< >      sort by the column to the left, or right
i        the other way round
/        only those with a text in their names; Enter ends it, Esc clears it
t        rates, or totals
z        totals begin now
up down  select: below the list is why it has dropped what it has
Ctrl-L   draw everything again
Ctrl-Z   suspend
q        quit

RX is what a port receives, TX what it sends. Rates are those of the last interval.
UID is the user whose port it is, OPEN how many handles programs have of it. FILL is how much of
its fullest ring has packets: sent and not taken yet, or received and not released.

Any key goes back.";

const WAITING: &str = "There is nothing to be seen as long as no daemon answers. The first program that opens \
a port starts a private one; the system's is ringwayd.service.";

impl View {
    pub fn new(filter: String) -> View {
        View {
            of: Of::Port,
            sort: 0,
            is_reversed: false,
            filter,
            is_writing: false,
            totals: false,
            help: false,
            selected: 0,
            first: 0,
            count: 0,
            page: 1,
        }
    }

    pub fn key(&mut self, key: KeyEvent) -> Action {
        if key.modifiers.contains(KeyModifiers::CONTROL) {
            return match key.code {
                KeyCode::Char('c') => Action::Quit,
                KeyCode::Char('z') => Action::Suspend,
                KeyCode::Char('l') => Action::Redraw,
                _ => Action::Nothing,
            };
        }
        if std::mem::take(&mut self.help) {
            return Action::Nothing;
        }
        if self.is_writing {
            self.write(key.code);
            return Action::Nothing;
        }
        match key.code {
            KeyCode::Char('q') => return Action::Quit,
            KeyCode::Char('z') => return Action::Reset,
            KeyCode::Char('p') => self.show(Of::Port),
            KeyCode::Char('s') => self.show(Of::SwitchPort),
            KeyCode::Char('r') => self.show(Of::Ring),
            KeyCode::Tab => self.show(match self.of {
                Of::Port => Of::SwitchPort,
                Of::SwitchPort => Of::Ring,
                Of::Ring => Of::Port,
            }),
            KeyCode::Char('<') => self.sort = self.sort.saturating_sub(1),
            KeyCode::Char('>') => self.sort = (self.sort + 1).min(COLUMNS.len() - 1),
            KeyCode::Char('i') => self.is_reversed = !self.is_reversed,
            KeyCode::Char('t') => self.totals = !self.totals,
            KeyCode::Char('h' | '?') => self.help = true,
            KeyCode::Char('/') => self.is_writing = true,
            KeyCode::Esc => self.filter.clear(),
            KeyCode::Up | KeyCode::Char('k') => self.select(self.selected.saturating_sub(1)),
            KeyCode::Down | KeyCode::Char('j') => self.select(self.selected + 1),
            KeyCode::PageUp => self.select(self.selected.saturating_sub(self.page)),
            KeyCode::PageDown => self.select(self.selected + self.page),
            KeyCode::Home => self.select(0),
            KeyCode::End => self.select(usize::MAX),
            _ => {}
        }
        Action::Nothing
    }

    fn write(&mut self, key: KeyCode) {
        match key {
            KeyCode::Enter => self.is_writing = false,
            KeyCode::Esc => {
                self.is_writing = false;
                self.filter.clear();
            }
            KeyCode::Backspace => {
                self.filter.pop();
            }
            KeyCode::Char(c) => self.filter.push(c),
            _ => {}
        }
    }

    fn show(&mut self, of: Of) {
        (self.of, self.selected, self.first) = (of, 0, 0);
    }

    fn select(&mut self, at: usize) {
        self.selected = at.min(self.count.saturating_sub(1));
    }

    /// The lines of a screen of so many columns and lines.
    pub fn lines(&mut self, shown: &Shown, width: usize, height: usize) -> Vec<Line> {
        let plain = |text: String| Line { text: fit(&text, width), stands_out: false };
        let mut lines = vec![plain(self.title(shown)), plain(self.sum(shown.rows))];
        if self.help {
            lines.push(Line::default());
            lines.extend(HELP.lines().map(|line| plain(line.into())));
            lines.truncate(height);
            return lines;
        }
        let rows = self.chosen(shown.rows);
        let netns = namespaces(rows.iter().copied());
        let netns = |at: usize| netns.get(at)?.as_deref();
        lines.push(Line { text: self.heading(width), stands_out: true });
        // Besides the rows: the two lines above, the heading, and the two below.
        self.page = height.saturating_sub(lines.len() + 2).max(1);
        self.count = rows.len();
        self.select(self.selected);
        let (last, page) = (self.selected, self.page);
        let first = self.first.min(self.count.saturating_sub(page));
        self.first = first.clamp((last + 1).saturating_sub(page), last);
        for (at, row) in rows.iter().enumerate().skip(self.first).take(self.page) {
            let text = self.row(row, netns(at), width);
            lines.push(Line { text, stands_out: at == self.selected });
        }
        if let Some(problem) = shown.problem {
            let text = format!("{WAITING} {}", printable(problem, &[]));
            lines.push(Line::default());
            lines.extend(wrap(&text, width).map(plain));
        }
        lines.resize(height.saturating_sub(2).max(3), Line::default());
        let selected = rows.get(self.selected);
        lines
            .push(plain(selected.map(|row| detail(row, netns(self.selected))).unwrap_or_default()));
        lines.push(plain(self.prompt()));
        lines.truncate(height);
        lines
    }

    fn title(&self, shown: &Shown) -> String {
        let what = match self.of {
            Of::Port => "ports",
            Of::SwitchPort => "ports of switches",
            Of::Ring => "rings",
        };
        let every = shown.interval.as_secs_f64();
        format!("ringway top: {what}, every {every} s; {}", printable(shown.state, &[]))
    }

    /// What all ports together do.
    fn sum(&self, rows: &[Row]) -> String {
        let ports = || rows.iter().filter(|row| row.of == Of::Port);
        let sum = |of: fn(&Row) -> f64| short(ports().map(of).fold(0.0, Add::add));
        format!(
            "{} ports: rx {}pps {}bit/s, tx {}pps {}bit/s, dropped {}/s",
            ports().count(),
            sum(|row| row.rx_pps),
            sum(|row| row.rx_bps),
            sum(|row| row.tx_pps),
            sum(|row| row.tx_bps),
            sum(|row| row.drops_per_second),
        )
    }

    /// Those that are to be shown, in order.
    fn chosen<'r>(&self, rows: &'r [Row]) -> Vec<&'r Row> {
        let is_chosen = |row: &&Row| row.of == self.of && row.name.contains(&self.filter);
        let mut rows: Vec<_> = rows.iter().filter(is_chosen).collect();
        let column = COLUMNS[self.sort];
        rows.sort_by(|a, b| column.compare(a, b, self.totals));
        if self.is_reversed {
            rows.reverse();
        }
        rows
    }

    fn heading(&self, width: usize) -> String {
        let cells = COLUMNS.iter().enumerate().map(|(at, column)| {
            let mark = match (at == self.sort, self.is_reversed) {
                (false, _) => "",
                (true, false) => ">",
                (true, true) => "<",
            };
            (*column, format!("{mark}{}", column.heading(self.totals)))
        });
        join(cells, width)
    }

    /// `netns`: what tells the row from others of its name.
    fn row(&self, row: &Row, netns: Option<&str>, width: usize) -> String {
        let cell = |column: Column| match (column, netns) {
            (Column::Name, Some(netns)) => {
                format!("{} {netns}", column.cell(row, self.totals))
            }
            _ => column.cell(row, self.totals),
        };
        join(COLUMNS.iter().map(|column| (*column, cell(*column))), width)
    }

    fn prompt(&self) -> String {
        let filter = printable(&self.filter, &[]);
        match (self.is_writing, filter.is_empty()) {
            (true, _) => format!("filter: {filter}_"),
            (false, false) => format!("filter: {filter} (Esc clears it)   h help  q quit"),
            (false, true) => {
                "p ports  s switches  r rings  <> sort  / find  t totals  z zero  h help  q quit"
                    .into()
            }
        }
    }
}

/// What there is no column for.
fn detail(row: &Row, netns: Option<&str>) -> String {
    let netns = netns.map(|netns| format!(" in network namespace {netns}")).unwrap_or_default();
    let note = if row.note.is_empty() { String::new() } else { format!("; {}", row.note) };
    printable(&format!("{}{netns}: dropped: {}{note}", row.name, row.drops), &[])
}

/// Cells under their headings; what is left of the line is the names'.
fn join(cells: impl Iterator<Item = (Column, String)>, width: usize) -> String {
    let others: usize = COLUMNS[1..].iter().map(|column| column.width() + 1).sum();
    let names = width.saturating_sub(others).max(NAME_WIDTH);
    let cells = cells.map(|(column, cell)| {
        let width = if column == Column::Name { names } else { column.width() };
        let cell = short_name(&cell, width);
        if column.is_text() { format!("{cell:<width$}") } else { format!("{cell:>width$}") }
    });
    fit(&cells.collect::<Vec<_>>().join(" "), width)
}

/// The beginning and the end of a name that is too long: paths and pipes differ at the end.
fn short_name(name: &str, width: usize) -> String {
    let letters: Vec<char> = name.chars().collect();
    if letters.len() <= width || width < 3 {
        return fit(name, width);
    }
    let end = (width - 1) / 2;
    let (front, back) = (&letters[..width - 1 - end], &letters[letters.len() - end..]);
    front.iter().chain(['~'].iter()).chain(back).collect()
}

/// Lines of whole words.
fn wrap(text: &str, width: usize) -> impl Iterator<Item = String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let line = lines.last_mut().expect("there is one to begin with");
        if line.chars().count() + 1 + word.chars().count() > width && !line.is_empty() {
            lines.push(word.into());
        } else {
            line.push_str(if line.is_empty() { "" } else { " " });
            line.push_str(word);
        }
    }
    lines.into_iter()
}

fn fit(text: &str, width: usize) -> String {
    text.chars().take(width).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drops::Drops;

    fn row(of: Of, name: &str, rx_pps: f64, ring_full: u64) -> Row {
        let drops = Drops { ring_full, ..Drops::default() };
        Row {
            of,
            name: name.into(),
            kind: "vale".into(),
            uid: Some(0),
            rx_pps,
            drops,
            ..Row::default()
        }
    }

    fn press(view: &mut View, keys: &str) -> Vec<Action> {
        let key = |c| match c {
            '\n' => KeyCode::Enter,
            '\t' => KeyCode::Tab,
            '\u{1b}' => KeyCode::Esc,
            c => KeyCode::Char(c),
        };
        keys.chars().map(|c| view.key(KeyEvent::from(key(c)))).collect()
    }

    fn lines(view: &mut View, rows: &[Row], width: usize, height: usize) -> Vec<Line> {
        let shown =
            Shown { rows, problem: None, state: "totals of 5 s", interval: Duration::from_secs(1) };
        view.lines(&shown, width, height)
    }

    /// The names, in order.
    fn names(view: &mut View, rows: &[Row]) -> Vec<String> {
        let lines = lines(view, rows, 80, 24);
        let rows = lines[3..22].iter().filter(|line| !line.text.is_empty());
        rows.map(|line| line.text.split(' ').next().unwrap().to_owned()).collect()
    }

    fn three() -> [Row; 5] {
        [
            row(Of::Port, "vale0:b", 5.0, 7),
            row(Of::Port, "vale0:a", 1.0, 0),
            row(Of::Port, "p{1", 9.0, 0),
            row(Of::SwitchPort, "vale0:x", 0.0, 0),
            row(Of::Ring, "vale0:a/rx", 0.0, 0),
        ]
    }

    #[test]
    fn it_fits_the_screen_whatever_that_is() {
        let mut many: Vec<_> =
            (0..50).map(|i| row(Of::Port, &format!("p{i:02}"), 1.0, 0)).collect();
        many[0].name = "long".repeat(100);
        for (width, height) in [(80, 24), (200, 60), (20, 5), (1, 1), (0, 0), (80, 2)] {
            let mut view = View::new(String::new());
            for keys in ["", "\t", "h", "/x", "\u{1b}p"] {
                press(&mut view, keys);
                let lines = lines(&mut view, &many, width, height);
                assert!(lines.len() <= height, "{width}x{height} {keys}: {}", lines.len());
                assert!(lines.iter().all(|line| line.text.chars().count() <= width));
            }
        }
        let mut view = View::new(String::new());
        let screen = lines(&mut view, &many, 80, 24);
        assert_eq!(screen.len(), 24);
        assert!(screen[2].text.ends_with("DROP/s"), "all columns are in 80: {:?}", screen[2].text);
        assert!(screen[23].text.ends_with("q quit"), "{:?}", screen[23].text);
    }

    #[test]
    fn keys_choose_what_is_shown_and_in_which_order() {
        let (mut view, rows) = (View::new(String::new()), three());
        assert_eq!(names(&mut view, &rows), ["p{1", "vale0:a", "vale0:b"]);
        press(&mut view, ">>>>");
        assert_eq!(names(&mut view, &rows), ["p{1", "vale0:b", "vale0:a"]);
        press(&mut view, "i");
        assert_eq!(names(&mut view, &rows), ["vale0:a", "vale0:b", "p{1"]);
        press(&mut view, "/vale\n");
        assert_eq!(names(&mut view, &rows), ["vale0:a", "vale0:b"]);
        press(&mut view, "s");
        assert_eq!(names(&mut view, &rows), ["vale0:x"]);
        press(&mut view, "\t");
        assert_eq!(names(&mut view, &rows), ["vale0:a/rx"]);
        press(&mut view, "\u{1b}\t<<<<<<<i");
        assert_eq!(names(&mut view, &rows), ["p{1", "vale0:a", "vale0:b"]);
    }

    #[test]
    fn letters_of_a_filter_are_no_keys() {
        let mut view = View::new(String::new());
        assert_eq!(press(&mut view, "/qz\n"), [Action::Nothing; 4]);
        assert_eq!(view.filter, "qz");
        assert_eq!(press(&mut view, "zq"), [Action::Reset, Action::Quit]);
        let control = |c| KeyEvent::new(KeyCode::Char(c), KeyModifiers::CONTROL);
        press(&mut view, "/");
        assert_eq!(view.key(control('c')), Action::Quit);
        assert_eq!(view.key(control('z')), Action::Suspend);
    }

    #[test]
    fn the_selected_one_is_explained_and_stays_on_the_screen() {
        let (mut view, rows) = (View::new(String::new()), three());
        lines(&mut view, &rows, 80, 24);
        press(&mut view, "jj");
        let screen = lines(&mut view, &rows, 80, 24);
        assert!(screen[5].stands_out && screen[5].text.starts_with("vale0:b"));
        assert_eq!(screen[22].text, "vale0:b: dropped: 7 ring full");
        let many: Vec<_> = (0..50).map(|i| row(Of::Port, &format!("p{i:02}"), 1.0, 0)).collect();
        let mut view = View::new(String::new());
        lines(&mut view, &many, 80, 24);
        view.key(KeyEvent::from(KeyCode::End));
        let screen = lines(&mut view, &many, 80, 24);
        assert!(screen[21].stands_out && screen[21].text.starts_with("p49"));
        assert!(screen[22].text.starts_with("p49: "));
        // They have gone.
        let screen = lines(&mut view, &many[..2], 80, 24);
        assert!(screen[4].stands_out && screen[4].text.starts_with("p01"));
    }

    #[test]
    fn interfaces_of_one_name_have_their_namespaces_behind_it() {
        let mut rows = [("eth0", 4026532009), ("eth1", 4026532008), ("eth0", 4026532008)]
            .map(|(name, netns)| Row { netns: Some(netns), ..row(Of::Port, name, 1.0, 0) });
        let mut view = View::new(String::new());
        let screen = lines(&mut view, &rows, 80, 24);
        let names = ["eth0 4026532008  ", "eth0 4026532009  ", "eth1  "];
        for (line, name) in screen[3..].iter().zip(names) {
            assert!(line.text.starts_with(name), "{screen:?}");
        }
        assert!(screen[22].text.starts_with("eth0 in network namespace 4026532008: dropped"));
        rows.iter_mut().for_each(|row| row.netns = Some(7));
        assert!(lines(&mut view, &rows, 80, 24)[3].text.starts_with("eth0   "));
    }

    #[test]
    fn names_of_others_do_nothing_to_the_terminal() {
        let mut view = View::new(String::new());
        let screen = lines(&mut view, &[row(Of::Port, "a\u{1b}[2J\n", 0.0, 0)], 80, 24);
        assert!(!screen.iter().any(|line| line.text.contains(char::is_control)));
    }

    #[test]
    fn without_a_daemon_it_says_so() {
        let problem = Some("cannot reach ringwayd: No such file");
        let shown =
            Shown { rows: &[], problem, state: "waiting", interval: Duration::from_secs(1) };
        let mut view = View::new(String::new());
        let lines = view.lines(&shown, 80, 24);
        let text: Vec<_> = lines.iter().map(|line| &*line.text).collect();
        let text = text.join(" ");
        assert!(
            text.contains("The first program that opens a port starts a private one"),
            "{text}"
        );
        assert!(
            text.contains("cannot reach ringwayd: No such file") && lines.len() == 24,
            "{text}"
        );
    }

    #[test]
    fn long_names_keep_their_ends() {
        assert_eq!(short_name("netmap:interface", 9), "netm~face");
        assert_eq!(short_name("vale0:a", 9), "vale0:a");
    }
}
