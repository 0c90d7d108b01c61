//! `ringway metrics`: what the daemon counts and measures, for Prometheus and what else reads its format.

mod accept;
mod address;
mod exporter;
mod families;
pub mod family;
mod labels;
mod mirrors;
mod mode;
mod ports;
mod reasons;
mod regions;
mod scrape;
pub mod server;
mod socket;
mod switches;
mod text;
mod watch;

use crate::error::Result;
use crate::output::{Output, note};
use address::Address;
use families::families;
use family::Family;
use scrape::Scrape;
use text::Format;

#[derive(clap::Args)]
#[command(after_help = "\
Without --listen it prints the metrics once, in the format that node_exporter's textfile collector
reads. With --listen it answers GET /metrics, in the OpenMetrics format if the scraper accepts that,
else in Prometheus' own, and asks the daemon anew for each answer. A Unix socket is for the user that
runs the command, and its group; every user of the machine reaches an address with a port. Other
machines reach neither.

The command starts no daemon, and keeps none. While there is none, ringway_up is 0.

Examples:
  ringway metrics
  ringway metrics --listen unix:/run/ringway-metrics/metrics.sock
  ringway metrics --listen 127.0.0.1:9464
  ringway metrics --openmetrics")]
pub struct Args {
    /// Serve them by HTTP at unix:/PATH, 127.0.0.1:PORT or [::1]:PORT, until interrupted
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<Address>,

    /// Print the OpenMetrics format, instead of Prometheus' own
    #[arg(long, conflicts_with = "listen")]
    openmetrics: bool,
}

pub fn run(args: &Args) -> Result<()> {
    if let Some(address) = &args.listen {
        return server::serve(address);
    }
    let scrape = Scrape::take().inspect_err(|error| note(error)).ok();
    let families = families(scrape.as_ref());
    let output = Output::chosen();
    if output.json {
        let lines: Vec<_> = families.iter().flat_map(Family::lines).collect();
        return output.write_all(&lines, String::new);
    }
    let format = if args.openmetrics { Format::OpenMetrics } else { Format::Prometheus };
    output.write_lines(&text::encode(families, format)?)
}
