//! The options of `tlem`, and what they ask of the link.

use super::maxima::{self, Maxima};
use crate::link::{Bandwidth, Delay, Limit, Settings};
use crate::tools::emulation::{bits, bytes, delay, hold, loss, time};
use crate::tools::getopt::{Arg, Getopt, number};
use crate::tools::log::log;
use crate::units::Rate;
use std::time::Duration;

pub const USAGE: &str = "usage: tlem [-cHrvq] [-B bw]... [-D delay]... [-L loss]... [-R hold]... [-Q bytes]... \
                         [-O offset]... [-P 0|1]... [-M maxima]... [-d lag]... [-G gateway]... [-s file] \
                         [-b burst] [-w wait_time] [-C cores] -i port -i port\n\
                         \x20      tlem -s file [-B bw]... [-D delay]... [-L loss]... [-R hold]... [-Q bytes]... \
                         [-O offset]... [-P 0|1]...\n\
                         \x20      tlem -s file -a";

/// The options, as getopt is told of them.
pub const LETTERS: &str = "i:B:D:L:R:Q:M:P:O:d:G:s:arHb:w:C:cvq";

/// Those that may be given twice, and those of them that a session takes later.
const TWICE: &str = "iBDLRQMPOdG";
const LATER: &str = "BDLRQPO";

/// Bytes that wait for a bandwidth, where nothing is said of that.
const QUEUE: u64 = 50_000;

/// What may go at once beyond an average bandwidth: bits of this time, and two long frames.
const BUCKET_SECONDS: f64 = 0.01;
const BUCKET_LEAST: f64 = 3028.0;

/// Bytes that Ethernet adds to each frame: CRC, preamble and gap.
const FRAMING: u32 = 24;

/// Slots moved at once, where nothing good is said of that.
const BURST: usize = 1024;

/// Why usage is to be shown.
pub type Wrong = Option<String>;
pub type Parsed<T> = std::result::Result<T, Wrong>;

/// What was given, as it was given.
#[derive(Clone, Debug, Default)]
pub struct Given {
    /// The values of those that may be given twice, in their order.
    values: [Vec<String>; TWICE.len()],
    /// The letters of the others.
    others: String,
    /// The file of a session.
    pub session: Option<String>,
    /// The session is to end.
    pub end: bool,
    pub route: bool,
    pub huge_pages: bool,
    pub burst: usize,
    pub link_wait: Duration,
    pub cores: Vec<usize>,
    pub verbose: i64,
}

/// What the first process does.
#[derive(Clone, Debug)]
pub struct Options {
    pub given: Given,
    pub ports: [String; 2],
    pub settings: [Settings; 2],
    /// By which packets may be late beside that.
    pub lag: [Duration; 2],
    /// Of packets that go this way, if they are routed.
    pub gateways: [Option<std::net::Ipv4Addr>; 2],
    maxima: [Maxima; 2],
}

impl Given {
    pub fn parse(args: Vec<String>) -> Parsed<Given> {
        let mut given = Given { burst: BURST, verbose: 1, ..Given::default() };
        for arg in Getopt::new(LETTERS, args) {
            let (letter, value) = match arg {
                Ok(Arg::Opt(letter, value)) => (letter, value),
                Ok(Arg::Operand(operand)) => return Err(Some(format!("{operand}: not an option"))),
                Err(wrong) => return Err(Some(wrong.to_string())),
            };
            if let Some(at) = TWICE.find(letter) {
                given.values[at].push(value);
                if given.values[at].len() > 2 {
                    return Err(Some(format!("-{letter} is given more than twice")));
                }
                continue;
            }
            given.others.push(letter);
            match letter {
                's' if value.is_empty() => return Err(Some("-s: name a file".into())),
                's' => given.session = Some(value),
                'a' => given.end = true,
                'r' => given.route = true,
                'H' => given.huge_pages = true,
                'b' => given.burst = burst(&value),
                'w' => given.link_wait = link_wait(&value),
                'C' => given.cores = cores(&value)?,
                'v' => given.verbose += 1,
                'q' => given.verbose -= 1,
                _ => (),
            }
        }
        match given.end && given.session.is_none() {
            true => Err(Some("-a: which session is to end? name its file with -s".into())),
            false => Ok(given),
        }
    }

    fn of(&self, letter: char) -> &[String] {
        TWICE.find(letter).map_or(&[], |at| &self.values[at][..])
    }

    /// For a direction: the second value is for the way back, one alone for both.
    fn value(&self, letter: char, way: usize) -> Option<&str> {
        let values = self.of(letter);
        let value = values.get(way).or(values.first().filter(|_| letter != 'G'))?;
        (value != "none").then_some(value.as_str())
    }

    /// What `read` makes of it.
    fn read<T>(
        &self,
        letter: char,
        way: usize,
        read: impl Fn(&str) -> Option<T>,
    ) -> Parsed<Option<T>> {
        let Some(text) = self.value(letter, way) else { return Ok(None) };
        read(text)
            .map(Some)
            .ok_or_else(|| Some(format!("-{letter} {text}: not understood; see tlem(8)")))
    }

    /// What is asked of one direction.
    fn settings(&self, way: usize) -> Parsed<Settings> {
        let queue = self.read('Q', way, bytes)?;
        let bandwidth = self.read('B', way, |text| bandwidth(text, queue))?;
        let (mut delay, gaps) = self.read('D', way, delay)?.unwrap_or_default();
        if let Some(offset) = self.read('O', way, time)? {
            delay = earlier(delay, offset);
        }
        Ok(Settings {
            loss: self.read('L', way, loss)?.unwrap_or_default(),
            bandwidth: bandwidth.flatten(),
            delay,
            gaps,
            hold: self.read('R', way, hold)?,
            lossless: !self.read('P', way, flag)?.unwrap_or_default(),
            huge_pages: self.huge_pages,
            ..Settings::default()
        })
    }
}

impl Options {
    pub fn new(given: Given) -> Parsed<Options> {
        let ports = match given.of('i') {
            [a, b] if a != b => [a.clone(), b.clone()],
            _ => return Err(Some("give -i twice, with two different ports".into())),
        };
        let mut settings = [given.settings(0)?, given.settings(1)?];
        let most = |way| given.read('M', way, maxima::parse).map(Option::unwrap_or_default);
        let maxima = [most(0)?, most(1)?];
        let maxima = [0, 1].map(|way| Maxima::new(maxima[way], &settings[way]));
        for (settings, maxima) in settings.iter_mut().zip(maxima) {
            settings.memory = maxima.memory();
        }
        let lag = |way| given.read('d', way, time).map(|lag| lag.unwrap_or_default() as u64);
        let lag = [lag(0)?, lag(1)?].map(Duration::from_nanos);
        let gateway = |way| given.read('G', way, |text| text.parse().ok());
        let gateways = [gateway(0)?, gateway(1)?];
        if gateways != [None; 2] && !given.route {
            return Err(Some("-G: only where packets are routed; give -r, too".into()));
        }
        Ok(Options { ports, settings, lag, gateways, maxima, given })
    }

    /// With what a later process of the session asks for; what it does not name stays.
    pub fn changed(&self, later: &Given) -> std::result::Result<Options, String> {
        let explain = |wrong: Wrong| wrong.unwrap_or_default();
        let ports = later.of('i');
        if !ports.is_empty() && ports != self.ports {
            let [a, b] = &self.ports;
            return Err(format!("-i: the session is between {a} and {b}; name those, or none"));
        }
        let named = TWICE.chars().filter(|letter| !later.of(*letter).is_empty() && *letter != 'i');
        let fixed = named
            .filter(|letter| !LATER.contains(*letter))
            .chain(later.others.chars().filter(|letter| !"svq".contains(*letter)))
            .next();
        if let Some(letter) = fixed {
            return Err(format!(
                "-{letter}: is said when a session begins; end this one with -a, and begin another"
            ));
        }
        let mut given = self.given.clone();
        for letter in LATER.chars().filter(|letter| !later.of(*letter).is_empty()) {
            if let Some(at) = TWICE.find(letter) {
                given.values[at] = later.of(letter).to_vec();
            }
        }
        let settings = [given.settings(0).map_err(explain)?, given.settings(1).map_err(explain)?];
        for (settings, maxima) in settings.iter().zip(&self.maxima) {
            maxima.allow(settings)?;
        }
        Ok(Options { given, settings, ..self.clone() })
    }
}

fn flag(text: &str) -> Option<bool> {
    match text {
        "0" => Some(false),
        "1" => Some(true),
        _ => None,
    }
}

fn burst(text: &str) -> usize {
    match number(text) {
        burst @ 1..=8192 => burst as usize,
        other => {
            if other != 0 {
                log!("main", "invalid burst {text}, set to {BURST}");
            }
            BURST
        }
    }
}

fn link_wait(text: &str) -> Duration {
    match number(text) {
        101.. => {
            log!("main", "invalid wait_time {text}, set to 4");
            Duration::from_secs(4)
        }
        seconds => Duration::from_secs(seconds.max(0) as u64),
    }
}

/// Reads the numbers of cores.
fn cores(text: &str) -> Parsed<Vec<usize>> {
    let wrong = || Some(format!("-C {text}: name 1, 2 or 4 cores, as 0,1"));
    let cores = text.split(',').map(|core| core.trim().parse().map_err(|_| wrong()));
    let cores = cores.collect::<Parsed<Vec<usize>>>()?;
    if [1, 2, 4].contains(&cores.len()) { Ok(cores) } else { Err(wrong()) }
}

/// Reads a bandwidth; 0 is none.
fn bandwidth(text: &str, queue: Option<u64>) -> Option<Option<Bandwidth>> {
    let (value, overhead, police) = match text.split(',').collect::<Vec<_>>()[..] {
        [value] | ["constant", value] => (value, 0, false),
        ["ether", value] => (value, FRAMING, false),
        ["avg", value] => (value, 0, true),
        _ => return None,
    };
    let bps = bits(value)?;
    let bucket = (bps / 8.0 * BUCKET_SECONDS).max(BUCKET_LEAST) as u64;
    let most = queue.unwrap_or(if police { bucket } else { QUEUE });
    let limit = Limit::Bytes(most);
    Some((bps > 0.0).then_some(Bandwidth { rate: Rate::Bits(bps), overhead, limit, police }))
}

/// A delay without what the path takes itself.
fn earlier(delay: Delay, offset: f64) -> Delay {
    let less = |time: f64| (time - offset).max(0.0);
    match delay {
        Delay::Constant(time) => Delay::Constant(less(time)),
        Delay::Uniform { min, max } => Delay::Uniform { min: less(min), max: less(max) },
        Delay::Exponential { min, mean } => Delay::Exponential { min: less(min), mean: less(mean) },
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::link::{Gaps, Hold, Loss};

    fn given(args: &str) -> Parsed<Given> {
        Given::parse(args.split_whitespace().map(String::from).collect())
    }

    fn read(args: &str) -> Parsed<Options> {
        Options::new(given(&format!("-i vale0:a -i vale0:b {args}"))?)
    }

    fn settings(args: &str) -> [Settings; 2] {
        read(args).map_err(|wrong| wrong.unwrap_or_default()).unwrap().settings
    }

    #[test]
    fn one_value_is_for_both_directions_and_none_for_neither() {
        let [there, back] = settings("-D 10m -L 0.1 -L ber,1e-6 -R 0.5,1m -R none");
        assert_eq!([there.delay, back.delay], [Delay::Constant(1e7); 2]);
        assert_eq!([there.loss, back.loss], [Loss::Random(0.1), Loss::BitErrors(1e-6)]);
        assert_eq!(
            [there.hold, back.hold],
            [Some(Hold { probability: 0.5, time: 1_000_000 }), None]
        );
        assert_eq!(settings(""), [Settings { lossless: true, ..Settings::default() }; 2]);
        assert_eq!(settings("-P 1 -P 0").map(|s| s.lossless), [false, true]);
    }

    /// In the original both directions have the first queue.
    #[test]
    fn each_direction_has_its_queue() {
        let limits = |args| settings(args).map(|s| s.bandwidth.map(|width| width.limit));
        assert_eq!(limits("-B 10m"), [Some(Limit::Bytes(QUEUE)); 2]);
        let both = [Some(Limit::Bytes(10_240)), Some(Limit::Bytes(20_480))];
        assert_eq!(limits("-B 10m -Q 10k -Q 20k"), both);
        assert_eq!(limits("-B 0"), [None; 2]);
    }

    #[test]
    fn bandwidths_are_on_the_wire_or_on_average() {
        let width = |args| settings(args)[0].bandwidth.unwrap();
        assert_eq!((width("-B ether,1g").overhead, width("-B constant,1g").overhead), (24, 0));
        let average = width("-B avg,1g");
        assert!(average.police);
        assert_eq!(average.limit, Limit::Bytes(1_250_000));
    }

    #[test]
    fn delays_are_shorter_by_the_offset_and_gaps_are_kept() {
        assert_eq!(settings("-D 10m -O 2m")[0].delay, Delay::Constant(8e6));
        assert_eq!(settings("-D 1m -O 2m")[0].delay, Delay::Constant(0.0));
        let gaps = Some(Gaps { min: 1e6, max: 2e6 });
        assert_eq!(settings("-D inter-packet,1m,2m,10m")[1].gaps, gaps);
    }

    #[test]
    fn memory_is_for_what_can_be_on_its_way() {
        let memory = |args| settings(args).map(|settings| settings.memory);
        assert_eq!(memory("-D 100m"), [16 << 20; 2]);
        // 12.5 MB in 100 ms.
        assert_eq!(memory("-D 100m -D 0 -B 1g"), [(16 << 20) + 25_000_000, 16 << 20]);
        assert_eq!(memory("-B 1g -M 100m"), [(16 << 20) + 25_000_000; 2]);
        assert_eq!(memory("-B 1000g -D 100"), [1 << 30; 2]);
    }

    #[test]
    fn what_a_later_process_names_changes_and_the_rest_stays() {
        let first = read("-D 10m -L 0.1 -L 0.2 -B 1g -Q 10k -s x").unwrap();
        let later = first.changed(&given("-s x -D 5m -D none -Q none").unwrap()).unwrap();
        assert_eq!(later.settings.map(|s| s.delay), [5e6, 0.0].map(Delay::Constant));
        assert_eq!(later.settings.map(|s| s.loss), [Loss::Random(0.1), Loss::Random(0.2)]);
        assert_eq!(later.settings[1].bandwidth.unwrap().limit, Limit::Bytes(QUEUE));
        let same = later.changed(&given("-s x -i vale0:a -i vale0:b").unwrap()).unwrap();
        assert_eq!(same.settings, later.settings);
        let back = same.changed(&given("-s x -D 10m").unwrap()).unwrap();
        assert_eq!(back.settings[1].delay, Delay::Constant(1e7));
    }

    #[test]
    fn later_processes_stay_below_the_maxima() {
        let refused = |first: &str, later: &str| {
            let first = read(&format!("-s x {first}")).unwrap();
            first.changed(&given(&format!("-s x {later}")).unwrap()).err().unwrap_or_default()
        };
        for (first, later) in [
            ("-D 10m", "-D 10m"),
            ("-D 10m", "-D none"),
            ("", "-B 1g"),
            ("-M 1,0,1 -B 1m", "-B none -R 0.1,1 -D uniform,0,1"),
            ("-M 1m", "-D 1m"),
            ("-D 10m -M 5m", "-D 10m"),
            ("-D 10m -D 20m", "-D 10m -D 20m"),
            ("-M none,2m -B 1m", "-B 2m"),
        ] {
            assert_eq!(refused(first, later), "", "{first}: {later}");
        }
        for (first, later, told) in [
            ("-D 10m", "-D 11m", "greatest delay"),
            ("-D 10m", "-D inter-packet,0,20m,1m", "greatest delay"),
            ("-D 10m -D 20m", "-D 20m", "greatest delay"),
            ("-B 1m", "-B none", "greatest bandwidth"),
            ("-B 1m -M 0,2m", "-B 3m", "greatest bandwidth"),
            ("-M 1", "-R 0.1,1m", "time to hold"),
            ("", "-M 1", "-M: is said when a session begins"),
            ("", "-r", "-r: is said when"),
            ("", "-i vale0:a -i vale0:c", "between vale0:a and vale0:b"),
            ("", "-B fast", "-B fast: not understood"),
        ] {
            assert!(refused(first, later).contains(told), "{first}: {later}");
        }
    }

    #[test]
    fn bad_usage_is_explained() {
        for (bad, told) in [
            ("-B fast", "-B fast: not understood"),
            ("-D 1 -D 2 -D 3", "more than twice"),
            ("-i vale0:c", "more than twice"),
            ("-a", "with -s"),
            ("-G 10.0.0.1", "give -r"),
            ("-r -G 10.0.0", "-G 10.0.0: not understood"),
            ("-M 1,2,3,4", "-M 1,2,3,4"),
            ("-P 2", "-P 2"),
            ("-C 1,2,3", "1, 2 or 4 cores"),
            ("-C a", "1, 2 or 4 cores"),
            ("vale0:c", "not an option"),
        ] {
            let wrong = read(bad).err().flatten().unwrap_or_default();
            assert!(wrong.contains(told), "{bad}: {wrong}");
        }
        let same = given("-i vale0:a -i vale0:a").and_then(Options::new);
        assert!(same.is_err());
    }

    #[test]
    fn what_only_the_first_process_is_told() {
        let options = read("-d 1m -d 20u -b 16 -w 3 -C 0,1 -H -vvq").unwrap();
        assert_eq!(options.lag, [1000, 20].map(Duration::from_micros));
        let given = &options.given;
        assert_eq!((given.burst, given.link_wait.as_secs(), given.verbose), (16, 3, 2));
        assert_eq!((&given.cores[..], given.huge_pages), (&[0, 1][..], true));
        assert!(options.settings[1].huge_pages);
        assert_eq!(given_burst("0"), BURST);
        assert_eq!((given_burst("9000"), given_burst("8192")), (BURST, 8192));
        let gateway = "10.0.0.1".parse().ok();
        assert_eq!(read("-r -G 10.0.0.1").unwrap().gateways, [gateway, None]);
        assert_eq!(read("-r -G none -G 10.0.0.1").unwrap().gateways, [None, gateway]);
    }

    fn given_burst(value: &str) -> usize {
        read(&format!("-b {value}")).unwrap().given.burst
    }
}
