//! The roles that move packets: the ends of a pipe and the ports of a bridge, through the Rust
//! client, as any program would use it.

use std::{hint, io};

use clap::Args;
use ringway::{Control, Error, Interest, Port, PortSettings, RxFrame, TxSlot};

use crate::cpu;
use crate::nic;
use crate::turn::{NAP, turn};

/// Both ends of the pipe.
pub const PIPE: [&str; 2] = ["bench{1", "bench}1"];

/// The bridge.
pub const SWITCH: &str = "valebench";

/// Bytes of a buffer.
const BUFFER: usize = 2048;

/// Packets that are written whole at first: by then every buffer that comes round has one in it.
const WRITTEN: u64 = 1 << 18;

const BROADCAST: [u8; 6] = [0xff; 6];
const SENDER: [u8; 6] = [2, 0, 0, 0, 0, 0xff];

fn sender(index: u8) -> [u8; 6] {
    let mut address = SENDER;
    address[5] -= index;
    address
}

fn receiver(index: u8) -> [u8; 6] {
    [2, 0, 0, 0, 0, index]
}

/// What sender and receivers of an experiment have in common.
#[derive(Args)]
pub struct Traffic {
    /// Bytes in a packet; those that are longer than a buffer take several slots
    #[arg(long, value_parser = clap::value_parser!(u32).range(14..=65536))]
    size: u32,
    /// Packets in a sync of the sender, at most; a receiver takes what it finds
    #[arg(long)]
    batch: usize,
    /// Write and read no payload: what is in the buffers is sent
    #[arg(long)]
    untouched: bool,
    /// On a switch: buffers change hands
    #[arg(long)]
    swaps: bool,
    /// Which of several switches
    #[arg(long, default_value_t = 0)]
    switch: u8,
    /// Which of several senders
    #[arg(long, default_value_t = 0, value_parser = clap::value_parser!(u8).range(..64))]
    sender: u8,
    /// Send UDP to port 9, for programs with filters, in so many flows
    #[arg(long, value_name = "FLOWS", value_parser = clap::value_parser!(u16).range(1..))]
    udp: Option<u16>,
}

impl Traffic {
    /// A port of the switch.
    fn port(&self, name: &str) -> String {
        match self.switch {
            0 => format!("{SWITCH}:{name}"),
            others => format!("{SWITCH}{others}:{name}"),
        }
    }
}

/// The device of the pipe's end that receives.
pub fn pipe_end() -> String {
    format!("netmap:{}", PIPE[1])
}

/// The port of receiver `index`.
pub fn receiver_port(index: u8) -> String {
    format!("{SWITCH}:receiver{index}")
}

/// A port with a name as short as an interface's.
pub fn short_port() -> String {
    format!("{SWITCH}:v4")
}

/// The packets that enter a pipe.
pub fn pipe_tx(cpu: Option<usize>, traffic: &Traffic) -> io::Result<()> {
    send(open(PIPE[0], cpu)?, traffic, BROADCAST)
}

/// The packets that leave a pipe.
pub fn pipe_rx(cpu: Option<usize>, traffic: &Traffic) -> io::Result<()> {
    receive(open(PIPE[1], cpu)?, traffic)
}

/// Packets for receiver 0, which has spoken before, or for all when there are several.
pub fn vale_tx(cpu: Option<usize>, traffic: &Traffic, receivers: usize) -> io::Result<()> {
    let to = if receivers == 1 { receiver(0) } else { BROADCAST };
    let name = match traffic.sender {
        0 => "sender".to_owned(),
        others => format!("sender{others}"),
    };
    send(open_on_switch(&traffic.port(&name), cpu, traffic)?, traffic, to)
}

/// Receiver `index` of a bridge.
pub fn vale_rx(cpu: Option<usize>, traffic: &Traffic, index: u8) -> io::Result<()> {
    let name = format!("receiver{index}");
    let mut port = open_on_switch(&traffic.port(&name), cpu, traffic)?;
    introduce(&mut port, receiver(index)).map_err(io::Error::other)?;
    receive(port, traffic)
}

/// Opens a port, then settles on `cpu`: a daemon that is started by the opening inherits the CPUs
/// of its opener, and it is to have them all.
fn open(name: &str, cpu: Option<usize>) -> io::Result<Port> {
    let port = Port::open(name).map_err(io::Error::other)?;
    cpu.map_or(Ok(()), cpu::pin)?;
    Ok(port)
}

/// Opens a port of the bridge, in the user's shared region if its buffers are to change hands.
fn open_on_switch(name: &str, cpu: Option<usize>, traffic: &Traffic) -> io::Result<Port> {
    if !traffic.swaps {
        return open(name, cpu);
    }
    let port = open(&format!("{name}@1"), cpu)?;
    let settings = PortSettings { swap_buffers: Some(true), ..PortSettings::default() };
    let control = Control::connect().map_err(io::Error::other)?;
    control.switch_port(name, settings).map_err(io::Error::other)?;
    Ok(port)
}

/// Lets the bridge learn where `address` is: one short frame, and it has been taken.
fn introduce(port: &mut Port, address: [u8; 6]) -> Result<(), Error> {
    port.tx(0).push(&from(address));
    loop {
        port.tx(0).sync();
        if port.tx(0).pending() == 0 {
            return Ok(());
        }
        port.wait_tx(Some(NAP))?;
    }
}

/// A frame of receiver `index` to the sender.
pub fn introduction(index: u8) -> [u8; 60] {
    from(receiver(index))
}

fn from(address: [u8; 6]) -> [u8; 60] {
    let mut frame = [0; 60];
    frame[..6].copy_from_slice(&SENDER);
    frame[6..12].copy_from_slice(&address);
    frame
}

/// The packets that go round: of each flow one.
fn packets(traffic: &Traffic, to: [u8; 6]) -> Vec<Vec<u8>> {
    let packets = match traffic.udp {
        Some(flows) => (0..flows).map(|flow| nic::packet(traffic.size as u16, flow)).collect(),
        None => vec![vec![0x5a; traffic.size as usize]],
    };
    let addressed = |mut packet: Vec<u8>| {
        packet[..6].copy_from_slice(&to);
        packet[6..12].copy_from_slice(&sender(traffic.sender));
        packet
    };
    packets.into_iter().map(addressed).collect()
}

fn send(port: Port, traffic: &Traffic, to: [u8; 6]) -> io::Result<()> {
    let packets = packets(traffic, to);
    let slots = (traffic.size as usize).div_ceil(BUFFER);
    let (mut next, mut written, mut part) = (0, 0, 0);
    // Who does not touch payload sends what is in the buffers. Those of a pipe change hands.
    let mut fill = |slot: &mut TxSlot<'_>| {
        let touches = !traffic.untouched || written < WRITTEN;
        if slots == 1 && touches {
            written += 1;
            slot.write(hint::black_box(&packets[next]));
            next = (next + 1) % packets.len();
        } else if slots == 1 {
            slot.set_len(traffic.size as u16);
        } else {
            let rest = &hint::black_box(&packets[next])[part * BUFFER..];
            part = (part + 1) % slots;
            slot.write_part(&rest[..rest.len().min(BUFFER)], part != 0);
        }
    };
    let batch = |port: &mut Port| {
        let mut ring = port.tx(0);
        let packets = traffic.batch.min(ring.space() / slots);
        for mut slot in ring.batch(packets * slots) {
            fill(&mut slot);
        }
        ring.sync();
        packets as u64
    };
    turn(port, 0, batch, wait(Interest::Tx))
}

fn receive(port: Port, traffic: &Traffic) -> io::Result<()> {
    let mut bytes = [0; BUFFER];
    let mut read = |frame: &RxFrame<'_>| {
        if traffic.untouched {
            hint::black_box(frame.len());
        } else {
            let len = frame.copy_to(&mut bytes);
            hint::black_box(&bytes[..len]);
        }
    };
    let batch = |port: &mut Port| {
        let mut ring = port.rx(0);
        let mut received = 0;
        for frame in ring.batch(usize::MAX) {
            read(&frame);
            received += u64::from(!frame.more_fragments());
        }
        ring.sync();
        received
    };
    turn(port, 0, batch, wait(Interest::Rx))
}

/// Waits until the port has something to do, as programs do: it looks for a moment, where that pays, and sleeps.
fn wait(interest: Interest) -> impl FnMut(&mut Port) -> io::Result<()> {
    move |port| port.wait(interest, Some(NAP)).map(drop).map_err(io::Error::other)
}
