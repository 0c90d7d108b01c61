//! One page with all that a run has measured: plots, and the figures under them. It needs nothing from elsewhere.

use std::fmt::Write;

use crate::plot;
use crate::record::{Record, Report};
use crate::study;

const STYLE: &str = "body{font-family:sans-serif;max-width:60em;margin:2em auto;padding:0 1em;color:#222}\
    table{border-collapse:collapse;font-size:85%;margin:1em 0}td,th{padding:.15em .7em;text-align:right;\
    border-bottom:1px solid #ddd}td:first-child,th:first-child{text-align:left}svg{max-width:100%;height:auto}\
    .limits{color:#555}";

/// The page.
pub fn page(report: &Report) -> Result<String, String> {
    let mut page = format!(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>Ringway: \
         measurements</title><style>{STYLE}</style></head><body>\n<h1>Ringway: measurements</h1>\n"
    );
    let machine = &report.machine;
    let told = |name: &str, value: Option<&str>| {
        value.map_or(String::new(), |value| {
            format!("<tr><td>{name}</td><td>{}</td></tr>\n", escape(value))
        })
    };
    let number = |value: Option<String>| value;
    let rows = [
        told("processor", machine.cpu.as_deref()),
        told("processors", Some(&machine.cores.to_string())),
        told("kernel", Some(&machine.kernel)),
        told("system", machine.system.as_deref()),
        told("load before", number(machine.load.map(|load| load.to_string())).as_deref()),
        told("DPDK", machine.dpdk.as_deref()),
        told("its memory", Some(&machine.eal)),
        told("libxdp", machine.libxdp.as_deref()),
        told("Open vSwitch", machine.open_vswitch.as_deref()),
        told("commit", machine.commit.as_deref()),
        told("date", machine.date.as_deref()),
        told("command", Some(&report.command)),
        told(
            "complete",
            Some(if report.complete {
                "yes"
            } else {
                "no: a part, a short run, or something failed"
            }),
        ),
    ];
    let _ = writeln!(page, "<table>{}</table>", rows.concat());
    page.push_str(
        "<p>Medians; lines beside them go from the least to the most. Blue: Ringway; grey: its peers. \
         Crosses: the original's number, on its machine.</p>\n",
    );
    for study in study::ALL {
        let records: Vec<&Record> =
            report.records.iter().filter(|record| record.subject.study == study).collect();
        if records.is_empty() {
            continue;
        }
        let description = study.description();
        let _ = writeln!(
            page,
            "<h2>{}</h2>\n<p>{}</p>\n<p class=\"limits\">{}</p>",
            escape(description.title),
            escape(description.setup),
            escape(description.limits)
        );
        for plot in plot::plots(&description, &records)? {
            page.push_str(&plot);
            page.push('\n');
        }
        page.push_str(&table(&records));
    }
    page.push_str("</body></html>\n");
    Ok(page)
}

fn table(records: &[&Record]) -> String {
    let mut table = String::from(
        "<details><summary>figures</summary><table><tr><th>experiment</th><th>median</th><th>min</th>\
         <th>max</th><th>runs</th><th>unit</th><th>TSC cycles a packet</th><th>90, 99, 99.9 %</th>\
         <th>CPUs</th><th>settings</th><th>measured later</th></tr>\n",
    );
    for record in records {
        let summary = record.summary;
        let cycles = record.cycles_per_packet.map_or(String::new(), |n| format!("{n:.1}"));
        let percentiles = record.percentiles.map_or(String::new(), |all| {
            format!("{:.2}, {:.2}, {:.2}", all.p90, all.p99, all.p99_9)
        });
        let later = record.origin.as_ref().map_or(String::new(), |origin| {
            let told = [&origin.commit, &origin.date].map(|one| one.as_deref().unwrap_or("?"));
            format!("{}, {}: {}", told[0], told[1], origin.command)
        });
        let _ = writeln!(
            table,
            "<tr><td>{}</td><td>{:.2}</td><td>{:.2}</td><td>{:.2}</td><td>{}</td><td>{}</td>\
             <td>{cycles}</td><td>{percentiles}</td><td>{}</td><td>{}</td><td>{}</td></tr>",
            escape(&record.name),
            summary.median,
            summary.min,
            summary.max,
            summary.runs,
            record.subject.unit,
            escape(&record.cpus),
            escape(record.subject.settings.as_deref().unwrap_or_default()),
            escape(&later),
        );
    }
    table + "</table></details>\n"
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
