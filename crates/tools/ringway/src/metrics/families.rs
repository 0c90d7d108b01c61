//! All that is told.

use super::family::Family;
use super::scrape::Scrape;
use super::{exporter, mirrors, ports, regions, switches};

/// All metrics; without a scrape, those that need no daemon.
pub fn families(scrape: Option<&Scrape>) -> Vec<Family> {
    let mut all = exporter::families(scrape);
    let nothing = Scrape::default();
    let scrape = scrape.unwrap_or(&nothing);
    all.extend(switches::families(scrape));
    all.extend(mirrors::families(scrape));
    all.extend(ports::families(scrape));
    all.extend(regions::families(scrape));
    all
}
