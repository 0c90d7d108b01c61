//! `ringway metrics`: what scrapers get.

use crate::control::daemon;
use crate::home::{Home, LIMIT, find, finish};
use ringway_testkit::{Netns, Proc, skip_without_root};
use rustix::process::{Signal, kill_process};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

/// A value, by its name and its labels as they are written.
fn value(text: &str, series: &str) -> Option<f64> {
    let line = text.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
    line.map(|value| value.parse().unwrap())
}

fn values(text: &str, series: &str) -> f64 {
    value(text, series).unwrap_or_else(|| panic!("no {series} in {text}"))
}

fn printed(home: &Home, more: &[&str]) -> String {
    let output = home.run(&[&["metrics"], more].concat());
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// What `promtool` thinks of a text; it must be there (`scripts/need test`).
fn promtool(args: &[&str], input: &str) {
    let mut command = Command::new("promtool");
    command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut promtool = command.spawn().expect("promtool; `scripts/need test` installs it");
    promtool.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let output = promtool.wait_with_output().unwrap();
    let said = [output.stdout, output.stderr].concat();
    assert!(output.status.success(), "{}\n{input}", String::from_utf8_lossy(&said));
}

fn project(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..").join(path)
}

/// Connects, and asks.
trait Stream: Read + Write {}
impl<T: Read + Write> Stream for T {}

/// A scraper's request and the answer to it: the head, and what is behind it.
fn asked(mut stream: impl Stream, request: &str) -> (String, String) {
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or_else(|| panic!("{answer:?}"));
    (head.into(), body.into())
}

const GET: &str = "GET /metrics HTTP/1.1\r\nHost: here\r\n\r\n";

fn scraped(stream: impl Stream) -> String {
    let (head, body) = asked(stream, GET);
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
    body
}

/// Serves, and says where.
fn serve(home: &Home, address: &str) -> (Proc, String) {
    let exporter = home.start(&["metrics", "--listen", address]);
    let said = exporter.wait_for(r#""type":"listening""#, LIMIT);
    let line = &crate::home::lines(said.lines().next_back().unwrap())[0];
    (exporter, line["address"].as_str().unwrap().into())
}

fn end(exporter: Proc) {
    exporter.signal(Signal::INT);
    let (status, text) = exporter.wait();
    assert!(status.success(), "{text}");
}

/// All names in a text that could be those of metrics.
fn names(text: &str) -> BTreeSet<String> {
    let words = text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
    words.filter(|word| word.starts_with("ringway_")).map(Into::into).collect()
}

/// The names that the exporter has, and those that stand for a histogram's series.
fn known(text: &str) -> (BTreeSet<String>, BTreeSet<String>) {
    let types = text.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split_once(' '));
    let (mut names, mut series) = (BTreeSet::new(), BTreeSet::new());
    for (name, kind) in types {
        names.insert(name.to_owned());
        if kind == "histogram" {
            series.extend(["bucket", "sum", "count"].map(|suffix| format!("{name}_{suffix}")));
        }
    }
    (names, series)
}

#[test]
fn values_are_those_that_other_commands_show() {
    let home = Home::new();
    let receiver = home.open(&["recv", "vale0:b"]);
    home.json(&["gen", "vale0:a", "--count", "1000", "--size", "60"]);
    let choose = ["switch", "port", "vale0:b", "--filter-out", "udp port 1"];
    assert!(home.run(&choose).status.success());
    home.json(&["gen", "vale0:a", "--count", "300", "--size", "60"]);
    let text = printed(&home, &[]);
    promtool(&["check", "metrics"], &text);
    let stats = home.json(&["switch", "stats"]);
    let port = find(&stats, "switch_port");
    let of = |name: &str| format!("{name}{{switch=\"vale0\",port=\"vale0:b\"");
    let number = |value: &Value| value.as_f64().unwrap();
    for (series, shown) in [
        ("ringway_switch_port_packets_total", "received_packets"),
        ("ringway_switch_port_bytes_total", "received_bytes"),
    ] {
        let series = format!("{},direction=\"received\"}}", of(series));
        assert_eq!(values(&text, &series), number(&port[shown]), "{series}");
        assert!(values(&text, &series) >= 1000.0);
    }
    let drops = port["drops"].as_object().unwrap();
    assert_eq!((drops["denied"].as_u64(), drops.len()), (Some(300), 17));
    for (reason, count) in drops {
        let series = format!("{},reason=\"{reason}\"}}", of("ringway_switch_port_drops_total"));
        assert_eq!(values(&text, &series), number(count), "{series}");
    }
    let rings = home.json(&["ports", "--rings"]);
    let ring = rings.iter().find(|ring| ring["receives"] == true).unwrap();
    let of = "{port=\"vale0:b\",direction=\"received\",rings=\"port\"}";
    assert_eq!(values(&text, &format!("ringway_port_packets_total{of}")), number(&ring["packets"]));
    assert_eq!(values(&text, &format!("ringway_port_ring_slots{of}")), number(&ring["slots"]));
    assert_eq!(values(&text, "ringway_up"), 1.0);
    assert_eq!(values(&text, "ringway_switch_ports{switch=\"vale0\"}"), 1.0);
    assert_eq!(values(&text, "ringway_left_out{what=\"ports\"}"), 0.0);
    let uid = rustix::process::geteuid().as_raw();
    let asked = values(&text, &format!("ringway_region_asked_bytes{{uid=\"{uid}\"}}"));
    assert!(asked > 0.0 && asked < values(&text, "ringway_memory_per_user_limit_bytes"));
    let register = "ringway_request_duration_seconds_count{request=\"register\"}";
    assert_eq!(values(&text, register), 3.0);
    let version = env!("CARGO_PKG_VERSION");
    let build = format!("ringway_build_info{{program=\"ringwayd\",version=\"{version}\"}}");
    assert_eq!(values(&text, &build), 1.0);
    let openmetrics = printed(&home, &["--openmetrics"]);
    assert!(openmetrics.ends_with("\n# EOF\n"), "{openmetrics}");
    let lines = home.json(&["metrics"]);
    let up = lines.iter().find(|line| line["name"] == "ringway_up").unwrap();
    assert_eq!((&up["type"], &up["value"]), (&"metric".into(), &1.into()));
    receiver.signal(Signal::INT);
    finish(receiver);
    home.is_left_clean();
}

#[test]
fn mirrors_of_a_switch_are_counted() {
    let home = Home::new();
    let keeper = home.open(&["recv", "vale0:keeper"]);
    let probe = home.open(&["recv", "vale0:probe", "--filter", "udp port 9"]);
    let add = ["switch", "mirror", "add", "vale0", "span", "--from", "a", "--to", "probe"];
    let output = home.run(&add);
    assert!(output.status.success(), "{output:?}");
    home.json(&["gen", "vale0:a", "--count", "100", "--size", "60"]);
    let text = printed(&home, &[]);
    promtool(&["check", "metrics"], &text);
    let stats = home.json(&["switch", "mirror", "show", "vale0"]);
    let mirror = find(&stats, "mirror");
    let of = |name: &str, more: &str| {
        values(
            &text,
            &format!("ringway_switch_mirror_{name}{{switch=\"vale0\",mirror=\"span\"{more}}}"),
        )
    };
    let copied = of("packets_total", "");
    let denied = of("drops_total", ",reason=\"denied\"");
    assert_eq!(copied + denied, 100.0, "{text}");
    assert_eq!(Some(copied), mirror["copied_packets"].as_f64(), "{mirror}");
    assert_eq!(of("bytes_total", ""), 60.0 * copied);
    assert_eq!(of("active", ""), 1.0);
    probe.signal(Signal::INT);
    finish(probe);
    let text = printed(&home, &[]);
    assert_eq!(
        value(&text, "ringway_switch_mirror_active{switch=\"vale0\",mirror=\"span\"}"),
        Some(0.0),
        "{text}"
    );
    keeper.signal(Signal::INT);
    finish(keeper);
}

/// As long as it takes until a round has been measured.
#[test]
fn rounds_of_a_worker_are_measured() {
    let home = Home::new();
    let receiver = home.open(&["recv", "vale0:b"]);
    let sender = home.open(&["gen", "vale0:a"]);
    let deadline = Instant::now() + LIMIT;
    let of = |name: &str, more: &str| {
        format!("ringway_switch_round_duration_seconds_{name}{{{more}switch=\"vale0\"}}")
    };
    loop {
        let text = printed(&home, &[]);
        let count = values(&text, &of("count", ""));
        assert_eq!(values(&text, &of("bucket", "le=\"+Inf\",")), count);
        if count > 2.0 {
            break;
        }
        assert!(Instant::now() < deadline, "{text}");
    }
    for proc in [sender, receiver] {
        proc.signal(Signal::INT);
        finish(proc);
    }
    home.is_left_clean();
}

/// The daemon is not started for it, not kept, and may end and come back.
#[test]
fn a_daemon_may_come_and_go() {
    let home = Home::new();
    let (exporter, address) = serve(&home, "127.0.0.1:0");
    let scrape = || scraped(TcpStream::connect(&address).unwrap());
    let is_up = || values(&scrape(), "ringway_up");
    assert_eq!(is_up(), 0.0);
    assert!(!home.dir.join("ringwayd.sock").exists(), "none was started");
    // Nothing but the rings' memory is needed of the daemon.
    let receiver = home.open(&["recv", "p}0"]);
    let text = scrape();
    promtool(&["check", "metrics"], &text);
    assert_eq!(values(&text, "ringway_up"), 1.0);
    assert_eq!(values(&text, "ringway_port_handles{port=\"p}0\"}"), 1.0);
    // A daemon that says nothing is not up either, until it goes on.
    kill_process(daemon(&home), Signal::STOP).unwrap();
    assert_eq!(is_up(), 0.0);
    kill_process(daemon(&home), Signal::CONT).unwrap();
    assert_eq!(is_up(), 1.0);
    kill_process(daemon(&home), Signal::KILL).unwrap();
    receiver.signal(Signal::INT);
    receiver.wait();
    let text = scrape();
    promtool(&["check", "metrics"], &text);
    assert_eq!(values(&text, "ringway_up"), 0.0);
    assert_eq!(value(&text, "ringway_port_handles{port=\"p}0\"}"), None);
    let receiver = home.open(&["recv", "vale0:c"]);
    let text = scrape();
    assert_eq!(values(&text, "ringway_up"), 1.0);
    assert_eq!(values(&text, "ringway_port_handles{port=\"vale0:c\"}"), 1.0);
    receiver.signal(Signal::INT);
    finish(receiver);
    home.is_left_clean();
    assert_eq!(is_up(), 0.0);
    end(exporter);
}

#[test]
fn a_unix_socket_is_for_a_group_and_removed_at_the_end() {
    let home = Home::new();
    let path = home.dir.join("m.sock");
    let address = format!("unix:{}", path.display());
    let connect = || UnixStream::connect(&path).unwrap();
    let (exporter, said) = serve(&home, &address);
    assert_eq!(said, address);
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o7777, 0o660);
    assert_eq!(values(&scraped(connect()), "ringway_up"), 0.0);
    let another = home.failure(&["metrics", "--listen", &address]);
    assert!(another.contains("m.sock") && another.contains("in use"), "{another}");
    assert_eq!(values(&scraped(connect()), "ringway_up"), 0.0);
    end(exporter);
    assert!(!path.exists());
    let (exporter, _) = serve(&home, &address);
    exporter.kill();
    assert!(path.exists(), "it had no time");
    let (exporter, _) = serve(&home, &address);
    end(exporter);
    assert!(!path.exists());
    fs::write(&path, "no socket").unwrap();
    assert!(home.failure(&["metrics", "--listen", &address]).contains("m.sock"));
    assert_eq!(fs::read_to_string(&path).unwrap(), "no socket");
    let nowhere = home.failure(&["metrics", "--listen", "unix:/nonexistent/m.sock"]);
    assert!(nowhere.contains("make its directory"), "{nowhere}");
}

#[test]
fn other_machines_are_not_listened_to() {
    let home = Home::new();
    for address in ["0.0.0.0:0", "[::]:0", "192.0.2.1:0", "localhost"] {
        let output = home.run(&["metrics", "--listen", address]);
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains("127.0.0.1:") && said.contains("unix:/PATH"), "{said}");
    }
}

/// As `nc -N` asks: nothing follows the request, and the answer is waited for.
#[test]
fn a_scraper_may_shut_down_its_side_before_the_answer() {
    let home = Home::new();
    let (exporter, address) = serve(&home, "127.0.0.1:0");
    let mut stream = TcpStream::connect(&address).unwrap();
    stream.write_all(GET.as_bytes()).unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer:?}");
    end(exporter);
    home.is_left_clean();
}

/// Each has its bounds of time and memory, so a scraper that asks properly is answered.
#[test]
fn scrapers_that_say_nothing_stop_no_others() {
    let home = Home::new();
    let (exporter, address) = serve(&home, "127.0.0.1:0");
    let connect = || TcpStream::connect(&address).unwrap();
    let silent: Vec<_> = (0..20)
        .map(|n| {
            let mut stream = connect();
            let begun = if n % 2 == 0 { "" } else { "GET /metrics HT" };
            stream.write_all(begun.as_bytes()).unwrap();
            stream
        })
        .collect();
    assert_eq!(values(&scraped(connect()), "ringway_up"), 0.0);
    for mut stream in silent {
        // Those whose turn has come are closed, the others when theirs comes.
        let mut said = Vec::new();
        let _ = stream.read_to_end(&mut said);
        assert!(!said.starts_with(b"HTTP/1.1 200"), "{said:?}");
    }
    let mut long = connect();
    let filling = "x: yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy\r\n";
    let begun = long.write_all(b"GET /metrics HTTP/1.1\r\n");
    // It may be cut off before it is through.
    let sent = begun.and_then(|()| long.write_all(filling.repeat(10_000).as_bytes()));
    let mut said = Vec::new();
    let _ = sent.and_then(|()| long.read_to_end(&mut said).map(drop));
    assert!(!said.starts_with(b"HTTP/1.1 200"), "{said:?}");
    for (request, expected) in [
        ("GET / HTTP/1.1\r\nHost: here\r\n\r\n", "404"),
        ("POST /metrics HTTP/1.1\r\nHost: here\r\nContent-Length: 0\r\n\r\n", "405"),
        ("nonsense\r\n\r\n", "400"),
    ] {
        let (head, _) = asked(connect(), request);
        assert!(head.starts_with(&format!("HTTP/1.1 {expected} ")), "{request}: {head}");
    }
    let accepting = GET.replace("\r\n\r\n", "\r\nAccept: application/openmetrics-text\r\n\r\n");
    let (head, body) = asked(connect(), &accepting);
    assert!(head.contains("application/openmetrics-text; version=1.0.0"), "{head}");
    assert!(body.ends_with("# EOF\n"), "{body}");
    let (_, body) = asked(connect(), &GET.replace("GET", "HEAD"));
    assert_eq!(body, "");
    end(exporter);
}

/// Interfaces have modes, and may have the same name in two network namespaces.
#[test]
fn interfaces_are_told_apart() {
    if skip_without_root("cli::metrics::interfaces_are_told_apart") {
        return;
    }
    let home = Home::new();
    let [one, other, far] = [(); 3].map(|()| Netns::quiet("mx"));
    let _pairs = [
        one.veth(&far, "mx0", "mx1"),
        other.veth(&far, "mx0", "mx2"),
        one.veth(&far, "mx3", "mx3"),
    ];
    let receive = |netns: &Netns| {
        let receiver = Proc::spawn(home.command_in(netns, &["recv", "netmap:mx0", "--json"]));
        receiver.wait_for(r#""type":"open""#, LIMIT);
        receiver
    };
    let first = receive(&one);
    let text = printed(&home, &[]);
    assert_eq!(values(&text, "ringway_port_handles{port=\"mx0\"}"), 1.0);
    assert_eq!(values(&text, "ringway_port_mtu_bytes{port=\"mx0\"}"), 1500.0);
    let second = receive(&other);
    let attach = ["switch", "attach", "vale0", "mx3"];
    assert!(home.command_in(&one, &attach).status().unwrap().success());
    let text = printed(&home, &[]);
    promtool(&["check", "metrics"], &text);
    let twins =
        text.lines().filter(|line| line.starts_with("ringway_port_handles{port=\"mx0\",id=\""));
    assert_eq!(twins.count(), 2, "{text}");
    let mode = "ringway_switch_port_info{switch=\"vale0\",port=\"vale0:mx3\",mode=\"";
    let mode = text.lines().find_map(|line| line.strip_prefix(mode)).unwrap();
    let shown = home.json(&["switch", "list"]);
    let shown = find(&shown, "switch")["ports"][0]["mode"].as_str().unwrap();
    let (mode, _) = mode.split_once('"').unwrap();
    assert!(shown.starts_with(mode), "{shown}");
    assert!(home.run(&["switch", "delete", "vale0"]).status.success());
    for receiver in [first, second] {
        receiver.signal(Signal::INT);
        finish(receiver);
    }
    home.is_left_clean();
}

#[test]
fn the_alerts_and_the_dashboard_use_metrics_that_there_are() {
    let (names_there, series) = known(&printed(&Home::new(), &[]));
    let read = |path: &str| fs::read_to_string(project(path)).unwrap();
    let alerts = project("dist/metrics/alerts.yml");
    promtool(&["check", "rules", alerts.to_str().unwrap()], "");
    for path in ["dist/metrics/alerts.yml", "dist/metrics/dashboard.json"] {
        let used = names(&read(path));
        let wrong: Vec<_> = used
            .iter()
            .filter(|name| !names_there.contains(*name) && !series.contains(*name))
            .collect();
        assert!(used.len() > 10 && wrong.is_empty(), "{path}: {wrong:?}");
    }
    // The guide has all of them, and no others.
    let told: BTreeSet<_> = names(&read("docs/guide/metrics.md"))
        .into_iter()
        .filter(|name| !series.contains(name))
        .collect();
    assert_eq!(told, names_there);
    is_a_dashboard(&serde_json::from_str(&read("dist/metrics/dashboard.json")).unwrap());
}

/// What Grafana asks of a dashboard's JSON model: fields, places in a grid of 24 columns, and queries that Prometheus
/// understands.
fn is_a_dashboard(dashboard: &Value) {
    assert!(dashboard["title"].is_string() && dashboard["schemaVersion"].is_u64());
    let variables: Vec<_> = dashboard["templating"]["list"].as_array().unwrap().iter().collect();
    let names: Vec<_> =
        variables.iter().map(|variable| variable["name"].as_str().unwrap()).collect();
    let (mut ids, mut taken, mut queries) = (BTreeSet::new(), BTreeSet::new(), Vec::new());
    for panel in dashboard["panels"].as_array().unwrap() {
        assert!(ids.insert(panel["id"].as_u64().unwrap()), "{panel}");
        assert!(
            ["stat", "timeseries", "table"].contains(&panel["type"].as_str().unwrap()),
            "{panel}"
        );
        assert!(
            panel["title"].is_string() && panel["fieldConfig"]["defaults"].is_object(),
            "{panel}"
        );
        let [x, y, w, h] = ["x", "y", "w", "h"].map(|of| panel["gridPos"][of].as_u64().unwrap());
        assert!(x + w <= 24 && w > 0 && h > 0, "{panel}");
        for place in (x..x + w).flat_map(|x| (y..y + h).map(move |y| (x, y))) {
            assert!(taken.insert(place), "two panels in one place: {panel}");
        }
        for target in panel["targets"].as_array().unwrap() {
            assert_eq!(target["datasource"]["uid"], "${datasource}", "{panel}");
            assert!(target["refId"].is_string() && target["legendFormat"].is_string(), "{panel}");
            let mut query = target["expr"].as_str().unwrap().replace("$__rate_interval", "5m");
            for name in &names {
                query = query.replace(&format!("${name}"), ".*");
            }
            assert!(!query.contains('$'), "{query}");
            queries.push(query);
        }
    }
    assert!(names.contains(&"datasource"));
    let rules: Vec<_> = (0..)
        .zip(&queries)
        .map(|(n, query)| serde_json::json!({"record": format!("query:{n}"), "expr": query}))
        .collect();
    // JSON is YAML.
    let file = serde_json::json!({"groups": [{"name": "dashboard", "rules": rules}]});
    let folder = ringway_testkit::Folder::new();
    let path = folder.path().join("rules.yml");
    fs::write(&path, file.to_string()).unwrap();
    promtool(&["check", "rules", path.to_str().unwrap()], "");
}
