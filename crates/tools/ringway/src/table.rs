//! Columns for people.

use std::collections::{HashMap, HashSet};
use std::fmt;

use crate::printable::printable;

/// Rows of cells under a heading; columns are as wide as they need to be.
pub struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    pub fn new(heading: &[&str]) -> Table {
        Table { rows: vec![heading.iter().map(|cell| cell.to_string()).collect()] }
    }

    /// With that column on the right, if any row has something there.
    pub fn with_last(mut self, heading: &str, cells: Vec<Option<String>>) -> Table {
        if cells.iter().any(Option::is_some) {
            let cells = std::iter::once(heading.into())
                .chain(cells.into_iter().map(Option::unwrap_or_default));
            for (row, cell) in self.rows.iter_mut().zip(cells) {
                row.push(printable(&cell, &[]));
            }
        }
        self
    }

    /// Adds a row of as many cells as the heading has. A cell is on one line, whatever is in it.
    pub fn row(&mut self, cells: Vec<String>) {
        self.rows.push(cells.iter().map(|cell| printable(cell, &[])).collect());
    }
}

/// What tells lines of one name apart: the network namespaces of those whose names others have in other namespaces.
pub fn where_names_repeat(lines: &[(&str, Option<u64>)]) -> Vec<Option<String>> {
    let mut by_name: HashMap<&str, HashSet<Option<u64>>> = HashMap::new();
    lines.iter().for_each(|(name, netns)| {
        by_name.entry(name).or_default().insert(*netns);
    });
    let shown = |(name, netns): &(&str, Option<u64>)| match by_name[name].len() {
        1 => None,
        _ => netns.map(|netns| netns.to_string()),
    };
    lines.iter().map(shown).collect()
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width = |column: usize| self.rows.iter().map(|row| row[column].chars().count()).max();
        let widths: Vec<_> = (0..self.rows[0].len()).map(|at| width(at).unwrap_or(0)).collect();
        for (at, row) in self.rows.iter().enumerate() {
            let cells: Vec<_> =
                row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}")).collect();
            let line = cells.join("  ");
            write!(f, "{}{}", if at == 0 { "" } else { "\n" }, line.trim_end())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up() {
        let mut table = Table::new(&["port", "packets"]);
        table.row(vec!["vale0:long".into(), "5".into()]);
        assert_eq!(table.to_string(), "port        packets\nvale0:long  5");
    }

    #[test]
    fn a_last_column_is_there_if_it_has_something() {
        let table = || {
            let mut table = Table::new(&["port"]);
            table.row(vec!["a".into()]);
            table.row(vec!["b".into()]);
            table
        };
        let none = table().with_last("state", vec![None, None]);
        assert_eq!(none.to_string(), "port\na\nb");
        let some = table().with_last("state", vec![None, Some("x".into())]);
        assert_eq!(some.to_string(), "port  state\na\nb     x");
    }

    #[test]
    fn namespaces_are_told_where_names_repeat_in_others() {
        let shown = where_names_repeat(&[
            ("eth0", Some(7)),
            ("eth1", Some(7)),
            ("eth0", Some(8)),
            ("p{1", None),
            ("p{1", None),
            ("eth2", Some(8)),
            ("eth2", Some(8)),
        ]);
        let expected = [Some("7".into()), None, Some("8".into()), None, None, None, None];
        assert_eq!(shown, expected);
    }

    #[test]
    fn a_cell_makes_no_rows_of_its_own() {
        let mut table = Table::new(&["port", "filter"]);
        table.row(vec!["eth0".into(), "udp\nroot  \u{1b}[2J".into()]);
        assert_eq!(table.to_string(), "port  filter\neth0  udp\\nroot  \\u{1b}[2J");
    }
}
