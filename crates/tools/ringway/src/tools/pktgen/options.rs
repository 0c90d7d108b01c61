//! The options of `pkt-gen`.

use super::range::range;
use crate::endpoint::{Endpoints, Family, Mac};
use crate::tools::getopt::{Arg, Getopt, LONGEST, count, number, seconds};
use crate::tools::log::log;
use crate::tools::portname;
use ringway::PortShape;
use std::path::PathBuf;
use std::time::Duration;

pub const USAGE: &str = "\
Usage:
pkt-gen arguments
\t-i interface        interface name, or null, tap:<name>, pcap:<interface>
\t-f function         tx rx ping pong txseq rxseq
\t-n count            number of packets; 0: unlimited
\t-l pkt_size         frame size in bytes without CRC; twice: random sizes up to the first
\t-b burst            burst size
\t-4 / -6             IPv4 or IPv6
\t-d dst_ip[:port[-dst_ip:port]]   single address, or a range
\t-s src_ip[:port[-src_ip:port]]   single address, or a range
\t-D dst-mac          destination MAC address
\t-S src-mac          source MAC address
\t-a cpu_id           first CPU to run on
\t-c cpus             CPUs to use; 0: all
\t-p threads          threads, each with a ring
\t-T report_ms        milliseconds between reports
\t-w wait_for_link_time            seconds before starting
\t-W                  end after a second without packets
\t-R rate             packets a second
\t-P file             send the first packet of a pcap file
\t-H len              virtio-net header length
\t-F num_frags        slots a packet
\t-M frag_size        bytes a slot
\t-I                  indirect buffers, on VALE ports
\t-X                  dump payload
\t-z / -Z             random source / destination addresses and ports
\t-r                  send buffers as they are (rubbish)
\t-A                  show average and deviation of the rate
\t-B                  count framing and CRC in the bandwidth
\t-N                  plain numbers
\t-C tx_slots[,rx_slots[,tx_rings[,rx_rings]]]     shape of a new port
\t-o data_generation_options       see the manual page
\t-v                  verbose
\t-h                  this help";

/// What to do with the port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    Rx,
    Tx,
    Ping,
    Pong,
    TxSeq,
    RxSeq,
}

impl Mode {
    fn named(name: &str) -> Option<Mode> {
        Some(match name {
            "rx" => Mode::Rx,
            "tx" => Mode::Tx,
            "ping" => Mode::Ping,
            "pong" => Mode::Pong,
            "txseq" => Mode::TxSeq,
            "rxseq" => Mode::RxSeq,
            _ => return None,
        })
    }

    pub fn sends(self) -> bool {
        matches!(self, Mode::Tx | Mode::TxSeq)
    }

    pub fn receives(self) -> bool {
        matches!(self, Mode::Rx | Mode::RxSeq)
    }

    /// What its summary begins with.
    pub fn done(self) -> &'static str {
        if self.receives() { "Received" } else { "Sent" }
    }
}

/// Where packets go to or come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Device {
    /// Packets are made, and that is it.
    Null,
    Tap(String),
    /// An interface, by a packet socket.
    Pcap(String),
    Port(String),
}

impl Device {
    fn named(name: &str) -> Device {
        if name == "null" {
            Device::Null
        } else if let Some(tap) = name.strip_prefix("tap:") {
            Device::Tap(tap.into())
        } else if name.starts_with("tap") {
            Device::Tap(name.into())
        } else if let Some(interface) = name.strip_prefix("pcap:") {
            Device::Pcap(interface.into())
        } else {
            Device::Port(portname::with_prefix(name))
        }
    }
}

/// The bits of `-o`, and the options that stand for them.
pub mod how {
    /// Write every packet anew: one bit to copy, one to use memcpy.
    pub const COPY: u64 = 4 | 8;
    pub const INDIRECT: u64 = 32;
    pub const DUMP: u64 = 64;
    pub const RUBBISH: u64 = 256;
    pub const RANDOM_SRC: u64 = 512;
    pub const RANDOM_DST: u64 = 1024;
    pub const STATS: u64 = 2048;
}

#[derive(Clone, Debug)]
pub struct Options {
    /// As the user wrote it.
    pub name: String,
    pub device: Device,
    pub mode: Mode,
    /// 0: unlimited.
    pub count: u64,
    /// Frame sizes: all of the second, or if there is a first, random from it on.
    pub shortest: Option<usize>,
    pub size: usize,
    pub burst: usize,
    pub src: Endpoints,
    pub dst: Endpoints,
    /// As the user wrote them.
    pub src_text: String,
    pub dst_text: String,
    pub src_mac: Option<Mac>,
    pub dst_mac: Mac,
    pub cpu: Option<usize>,
    pub cpus: usize,
    pub threads: usize,
    pub interval: Duration,
    pub link_wait: Duration,
    pub stop_when_silent: bool,
    pub rate: Option<f64>,
    pub capture: Option<PathBuf>,
    pub header: Option<u32>,
    pub fragments: usize,
    /// Bytes a fragment, at most.
    pub fragment_size: Option<usize>,
    pub framing: bool,
    pub plain: bool,
    pub shape: PortShape,
    pub how: u64,
    pub verbose: u32,
}

/// What comes of the arguments.
pub enum Parsed {
    Run(Box<Options>),
    Help,
    /// Why not, if there is more to say than how it is used.
    Wrong(Option<String>),
}

/// The options, as getopt is told of them.
pub const LETTERS: &str = "46a:f:F:Nn:i:Il:d:s:D:S:b:c:o:p:T:w:WvR:XC:H:rP:zZAhBM:";

/// The original's default, which most scripts rely on.
const SIZE: usize = 60;

pub fn parse(args: Vec<String>) -> Parsed {
    match read(args) {
        Ok(Some(options)) => Parsed::Run(Box::new(options)),
        Ok(None) => Parsed::Help,
        Err(why) => Parsed::Wrong(why),
    }
}

/// `None` for help.
fn read(args: Vec<String>) -> Result<Option<Options>, Option<String>> {
    let mut name = None;
    let mut mode = Mode::Rx;
    let (mut burst, mut link_wait) = (None, None);
    let mut family = Family::V4;
    let (mut src_text, mut dst_text) = (None, None);
    let (mut threads, mut sized) = (1, false);
    let mut options = Options {
        name: String::new(),
        device: Device::Null,
        mode,
        count: 0,
        shortest: None,
        size: SIZE,
        burst: 0,
        src: "10.0.0.1".parse().expect("this is an address"),
        dst: "10.1.0.1".parse().expect("this is an address"),
        src_text: String::new(),
        dst_text: String::new(),
        src_mac: None,
        dst_mac: Mac::BROADCAST,
        cpu: None,
        cpus: 1,
        threads,
        interval: Duration::from_millis(1000),
        link_wait: Duration::ZERO,
        stop_when_silent: false,
        rate: None,
        capture: None,
        header: None,
        fragments: 1,
        fragment_size: None,
        framing: false,
        plain: false,
        shape: PortShape::default(),
        how: 0,
        verbose: 0,
    };
    for arg in Getopt::new(LETTERS, args) {
        let (option, value) = match arg.map_err(|wrong| Some(format!("pkt-gen: {wrong}")))? {
            Arg::Opt(option, value) => (option, value),
            Arg::Operand(_) => continue,
        };
        match option {
            'i' => name = Some(value),
            'f' => match Mode::named(&value) {
                Some(named) => mode = named,
                None => log!("main", "unrecognised function {value}"),
            },
            'n' => options.count = count(&value),
            'l' if sized => {
                options.shortest = Some(count(&value) as usize).filter(|size| *size > 0)
            }
            'l' => (options.size, sized) = (count(&value) as usize, true),
            'b' => burst = Some(count(&value) as usize),
            '4' => family = Family::V4,
            '6' => family = Family::V6,
            'd' => dst_text = Some(value),
            's' => src_text = Some(value),
            'D' => options.dst_mac = value.parse().map_err(explain)?,
            'S' => options.src_mac = Some(value.parse().map_err(explain)?),
            'a' => options.cpu = usize::try_from(number(&value)).ok(),
            'c' => options.cpus = count(&value) as usize,
            'p' => threads = count(&value) as usize,
            'T' => options.interval = Duration::from_millis(count(&value).max(1)).min(LONGEST),
            'w' => link_wait = Some(seconds(&value)),
            'W' => options.stop_when_silent = true,
            'R' => options.rate = Some(count(&value) as f64).filter(|rate| *rate > 0.0),
            'P' => options.capture = Some(value.into()),
            'H' => options.header = Some(count(&value) as u32),
            'F' => match count(&value) {
                fragments @ 1..=63 => options.fragments = fragments as usize,
                _ => log!("main", "invalid frags {value} [1..63], ignore"),
            },
            'M' => options.fragment_size = Some(count(&value) as usize).filter(|size| *size > 0),
            'B' => options.framing = true,
            'N' => options.plain = true,
            'C' => options.shape = portname::config(&value),
            'o' => options.how |= number(&value) as u64,
            'I' => options.how |= how::INDIRECT,
            'X' => options.how |= how::DUMP,
            'r' => options.how |= how::RUBBISH,
            'z' => options.how |= how::RANDOM_SRC,
            'Z' => options.how |= how::RANDOM_DST,
            'A' => options.how |= how::STATS,
            'v' => options.verbose += 1,
            _ => return Ok(None),
        }
    }
    let name = name.ok_or_else(|| Some("missing ifname".to_string()))?;
    options.device = Device::named(&name);
    options.mode = mode;
    options.threads = threads.max(1);

    for size in [Some(options.size), options.shortest].into_iter().flatten() {
        if !(16..=65536).contains(&size) {
            return Err(Some(format!("bad pktsize {size} [16..65536]")));
        }
    }
    if options.shortest.is_some_and(|least| least > options.size) {
        return Err(Some("the second -l is the least size, and may not be above the first".into()));
    }
    if options.header.is_some_and(|len| ![0, 10, 12].contains(&len)) {
        return Err(Some("a virtio-net header has 0, 10 or 12 bytes".into()));
    }

    let one_at_a_time = matches!(mode, Mode::Ping | Mode::Pong);
    options.burst = burst.unwrap_or(if one_at_a_time { 1 } else { 512 }).max(1);
    if let Some(rate) = options.rate {
        options.burst = options.burst.min(((rate / 300.0) as usize).max(1));
    }
    let usual = Duration::from_secs(if name.starts_with("vale") { 0 } else { 2 });
    options.link_wait = link_wait.unwrap_or(usual);

    let (src, dst) = match family {
        Family::V4 => ("10.0.0.1", "10.1.0.1"),
        Family::V6 => ("fd00::1", "fd01::1"),
    };
    options.src_text = src_text.unwrap_or(src.into());
    options.dst_text = dst_text.unwrap_or(dst.into());
    options.src = range(&options.src_text, family, src);
    options.dst = range(&options.dst_text, family, dst);
    if mode == Mode::Ping && family == Family::V6 {
        return Err(Some("ping is for IPv4 only".into()));
    }
    if one_at_a_time {
        options.threads = 1;
    }
    options.name = name;
    Ok(Some(options))
}

fn explain(error: crate::error::Error) -> Option<String> {
    Some(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(line: &str) -> Options {
        match parse(line.split(' ').map(String::from).collect()) {
            Parsed::Run(options) => *options,
            Parsed::Help => panic!("help"),
            Parsed::Wrong(why) => panic!("{why:?}"),
        }
    }

    #[test]
    fn defaults() {
        let plain = options("-i eth0");
        assert_eq!((plain.mode, plain.size, plain.burst), (Mode::Rx, 60, 512));
        assert_eq!(plain.device, Device::Port("netmap:eth0".into()));
        assert_eq!((plain.threads, plain.link_wait), (1, Duration::from_secs(2)));
        assert_eq!((&plain.src_text[..], &plain.dst_text[..]), ("10.0.0.1", "10.1.0.1"));
        assert_eq!(options("-i vale0:a").link_wait, Duration::ZERO);
        assert_eq!(options("-i eth0 -f ping").burst, 1);
        assert_eq!(options("-i eth0 -f tx -f nonsense").mode, Mode::Tx);
        assert_eq!(options("-i eth0 -R 900").burst, 3);
        assert_eq!(options("-i eth0 -R 100").burst, 1);
        assert_eq!(options("-i eth0 -6").src.family, Family::V6);
    }

    #[test]
    fn devices() {
        for (name, device) in [
            ("null", Device::Null),
            ("tap:x", Device::Tap("x".into())),
            ("tap3", Device::Tap("tap3".into())),
            ("pcap:eth0", Device::Pcap("eth0".into())),
            ("netmap:p{0", Device::Port("netmap:p{0".into())),
            ("vale0:a", Device::Port("vale0:a".into())),
        ] {
            assert_eq!(options(&format!("-i {name}")).device, device);
        }
    }

    #[test]
    fn letters_and_bits_of_o_are_one() {
        let all = options("-i null -XrzZAI -o 12");
        assert_eq!(all.how, how::DUMP | how::RUBBISH | 512 | 1024 | how::STATS | 32 | 12);
    }

    /// As `atoi` and `ether_aton` take them, and with what the original only warns of.
    #[test]
    fn odd_values_are_taken_as_the_original_takes_them() {
        let mac = |line| options(line).dst_mac;
        assert_eq!(mac("-i x -D 1:2:3:4:5:6"), Mac([1, 2, 3, 4, 5, 6]));
        assert_eq!(options("-i x -F 7 -F 99").fragments, 7);
        assert_eq!(options("-i x -F 0").fragments, 1);
        let sizes = |line| (options(line).shortest, options(line).size);
        assert_eq!(sizes("-i x -l 90 -l 61 -l 62"), (Some(62), 90));
        assert_eq!(sizes("-i x -l 90 -l 0"), (None, 90));
        let odd = options("-i x -d 300.1.1.1");
        assert_eq!((&odd.dst, &odd.dst_text[..]), (&options("-i x").dst, "300.1.1.1"));
        assert_eq!(options("-i x -6 -d 10.0.0.1").dst.family, Family::V6);
    }

    #[test]
    fn wrong_values() {
        for bad in
            ["-f rx", "-i x -l 15", "-i x -l 60 -l 61", "-i x -H 11", "-i x -D nowhere", "-i x -q"]
        {
            let parsed = parse(bad.split(' ').map(String::from).collect());
            assert!(matches!(parsed, Parsed::Wrong(Some(_))), "{bad}");
        }
        assert!(matches!(parse(vec!["-h".into()]), Parsed::Help));
    }
}
