//! What the experiments are about: one description of each group of them, for the result file, the report and the
//! documents.

use serde::{Deserialize, Serialize};

/// A group of experiments that answer one question.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Study {
    /// Between processes, by each of the APIs.
    Paths,
    /// Between processes, the same workload by each of the APIs.
    L2fwd,
    Opening,
    Containers,
    Machines,
    Interfaces,
    /// A few flows to a program, the rest to the stack.
    SelectedFlows,
    Batch,
    FrameSize,
    Share,
    Forwarding,
    Latency,
    /// The price of sleeping for each packet.
    Waiting,
    Idle,
    Scaling,
    Memory,
}

/// All, in the order of the report.
pub const ALL: [Study; 16] = [
    Study::Paths,
    Study::L2fwd,
    Study::Batch,
    Study::FrameSize,
    Study::Share,
    Study::Forwarding,
    Study::Interfaces,
    Study::SelectedFlows,
    Study::Containers,
    Study::Machines,
    Study::Latency,
    Study::Waiting,
    Study::Idle,
    Study::Scaling,
    Study::Memory,
    Study::Opening,
];

/// The field of a subject that a plot has on its x axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Axis {
    Batch,
    Size,
    Share,
    Ports,
    Receivers,
    Senders,
    Switches,
    /// None: a bar for each experiment.
    Name,
}

/// A number of the original's, for the plot: it is drawn as a point, or as a line where it holds everywhere.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Original {
    pub what: &'static str,
    pub x: Option<f64>,
    pub y: f64,
}

/// How a group's experiments are made, and read.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Description {
    pub title: &'static str,
    /// What is measured, and how.
    pub setup: &'static str,
    /// How that differs from the original, or what it does not say.
    pub limits: &'static str,
    pub axis: Axis,
    pub axis_label: &'static str,
    pub original: &'static [Original],
}

const NETMAP: &str = "netmap, 10 Gbit/s NIC, 2.93 GHz (2012)";

impl Study {
    /// What the names of experiments begin with where the same path is in another group as well.
    pub fn prefix(self) -> Option<&'static str> {
        match self {
            Study::Batch => Some("batch:"),
            Study::FrameSize => Some("size:"),
            Study::Share => Some("share:"),
            Study::Scaling => Some("scale:"),
            _ => None,
        }
    }

    pub fn description(self) -> Description {
        match self {
            Study::Paths => Description {
                title: "Between processes",
                setup: "One process sends as fast as it can, one receives (or three, on a switch); what \
                        arrives counts. Touched: the sender writes every byte, the receiver reads \
                        every byte. Untouched: neither does, the second row. Programs of other APIs \
                        are compiled C programs that know nothing of Ringway.",
                limits: "testpmd writes the headers of what it sends and reads nothing: its rows are \
                         named untouched, though its drivers copy. Programs of AF_PACKET V4 do what \
                         that API's authors measured, and touch nothing.",
                axis: Axis::Name,
                axis_label: "",
                original: &[],
            },
            Study::L2fwd => Description {
                title: "The same work by each of the APIs",
                setup: "l2fwd: a reflector exchanges the addresses of each packet and sends it back by \
                        the port that it came by. The generator is Ringway's own client, the same for \
                        all; the reflectors are Ringway's client, the native one, and unmodified C \
                        programs of netmap, PF_RING, USDPAA and AF_PACKET V4. The rate is what comes \
                        back while the generator sends as fast as it can; then, with 1 and with 64 \
                        packets under way, the time that one takes, there and back.",
                limits: "The price of an API is in the column *more*: its rate, or its time, relative to \
                         the native client's. Programs of USDPAA and of AF_PACKET V4 poll all the \
                         time, the others sleep when nothing comes; USDPAA's exchanges the addresses \
                         of IPv4 as well. What a switch loses found a ring full: the generator does \
                         not wait for what comes back. With two processors the switch's worker is \
                         the third party on them.",
                axis: Axis::Name,
                axis_label: "",
                original: &[],
            },
            Study::Batch => Description {
                title: "Cost of a packet against the batch",
                setup: "Frames of 60 bytes, written and read, of which the sender hands over so many \
                        with one call. null: a port that takes all. pipe, vale: to another process. \
                        veth: one end of a pair; the kernel drops what arrives at the other.",
                limits: "netmap's figure 7 is of a physical NIC, and bound by its line rate. A null \
                         port's packets are not touched, and nothing receives them.",
                axis: Axis::Batch,
                axis_label: "packets in a batch",
                original: &[
                    Original { what: NETMAP, x: Some(1.0), y: 2.45 },
                    Original { what: NETMAP, x: Some(8.0), y: 14.88 },
                ],
            },
            Study::FrameSize => Description {
                title: "Throughput against the size of frames",
                setup: "Frames from 60 to 1514 bytes, written and read, in batches of 256; sizes \
                        beside multiples of a cache line's 64 bytes among them. Then packets of up \
                        to 64 KiB in several slots.",
                limits: "netmap's figure 6 is of a physical NIC: its dip from 65 bytes on is its \
                         bus's.",
                axis: Axis::Size,
                axis_label: "bytes of a frame",
                original: &[Original {
                    what: "netmap, receiving, 65 to 127 bytes",
                    x: Some(65.0),
                    y: 7.5,
                }],
            },
            Study::Share => Description {
                title: "Throughput against the share of the processors",
                setup: "All processes of a path, the daemon among them, are in one control group that \
                        gets so many percent of one processor.",
                limits: "netmap's figure 5 sets the clock of the processor. A clock slows everything \
                         at once; a share stops all processes for the rest of each period of 100 ms, \
                         with full speed and warm caches before. So queues fill and drain once a \
                         period, and what a share costs beyond its share is that.",
                axis: Axis::Share,
                axis_label: "percent of one processor",
                original: &[],
            },
            Study::Forwarding => Description {
                title: "Forwarding",
                setup: "Frames of 64 bytes come in by one interface (or port) and leave by another; \
                        what leaves is counted by the kernel, or by the receiver.",
                limits: "netmap's figure 8 is between two physical NICs. On a veth pair the kernel's \
                         work for each frame is the same for all, and most of the time.",
                axis: Axis::Name,
                axis_label: "",
                original: &[
                    Original { what: "netmap's bridge, 1.73 GHz", x: None, y: 14.88 },
                    Original { what: "the same by libpcap", x: None, y: 7.5 },
                ],
            },
            Study::Interfaces => Description {
                title: "On interfaces",
                setup: "veth pairs between two network namespaces. All contestants get their packets \
                        from the same sender. What is sent is counted by the kernel where it \
                        arrives, what is received by the contestant.",
                limits: "testpmd and the programs of AF_PACKET V4 touch no payload; what forwards or \
                         sends back touches none either. The kernel copies on every path: a veth pair \
                         has no zero copy.",
                axis: Axis::Name,
                axis_label: "",
                original: &[],
            },
            Study::SelectedFlows => Description {
                title: "A few flows to a program, the rest to the stack",
                setup: "Four UDP flows come at full rate by one queue of a veth interface, and a \
                        program takes them: by Ringway the queue, or the flows of that queue; by \
                        TPACKET_V3 beside the stack; or by a UDP socket. Meanwhile a UDP socket \
                        pings another through the stack, by the other queue, one packet under way: \
                        the second part of the table. Or it sends as fast as it can, and what \
                        arrives counts: the third. There, *no program* has no flows beside it.",
                limits: "With no flows beside it, a ping has to wake processors that sleep. \
                         Cloudflare's case was a NIC's queue with a filter of the card in front of \
                         it. Here one processor sends, and does the kernel's work for each frame; \
                         the program has the other one, and the stack's sockets share both. CPU time is that of \
                         the program's process.",
                axis: Axis::Name,
                axis_label: "",
                original: &[],
            },
            Study::Containers => Description {
                title: "Between containers, and with the host",
                setup: "Two network namespaces with a veth pair each, joined by a switch of \
                        Ringway's or by a Linux bridge; iperf3 and ping in them.",
                limits: "",
                axis: Axis::Name,
                axis_label: "",
                original: &[],
            },
            Study::Machines => Description {
                title: "Between virtual machines",
                setup: "The machines that send and receive are testpmd with a virtio-user card. \
                        They are joined by two vhost-user ports of a switch \
                        (`ringway vm attach`), or by a testpmd that forwards between two of its own.",
                limits: "testpmd polls all the time: it writes the headers of what it sends, and \
                         reads nothing. A switch has five processes where testpmd has three, each with \
                         memory of its own. On two processors testpmd's three polling threads take \
                         each other's time, most of all at 64 bytes: the ratio of that row says \
                         nothing of a machine with more. With both machines on one processor, and \
                         what forwards on another, testpmd is nearly four times as fast \
                         (docs/decisions/0045).",
                axis: Axis::Name,
                axis_label: "",
                original: &[],
            },
            Study::Latency => Description {
                title: "Round trips",
                setup: "One packet of 60 bytes under way, from one process to another and back. \
                        Spinning: both look at their ports all the time, each on a processor of \
                        its own. Sleeping: both sleep, and a round trip has two wake-ups in it. \
                        Host's stack: a UDP socket's datagram goes to a program with the \
                        interface's host rings, or with a TAP device, and back. Beside a load: \
                        another pair of ports, of the same switch, or of another queue of the same \
                        interface, has so many packets a second.",
                limits: "With two processors a switch's worker shares one with a program that \
                         spins, and the load's sender and receiver, which sleep between packets, \
                         share both with everything. The load comes in bursts of some 25 packets: \
                         its sender sleeps as short as the kernel's timers let it. The \
                         column *more* says how much of it has arrived.",
                axis: Axis::Name,
                axis_label: "",
                original: &[],
            },
            Study::Waiting => Description {
                title: "Waiting",
                setup: "System calls for 1000 packets of a receiver that sleeps when nothing has come, \
                        at 1000 and at 100 000 packets a second, evenly spaced, and as fast as the \
                        sender can hand packets over one by one. The kernel counts the calls, by its \
                        tracepoint of them. CPU time is the receiver's, in the kernel too.",
                limits: "The sender looks at the clock all the time, on a processor of its own; with \
                         two processors a switch's worker shares the other one with the receiver. \
                         `recv` of one datagram after the other would be 1000 calls. A wait begins \
                         with looks, up to 20 us, between which the thread yields its processor: at \
                         100 000 packets a second the next packet comes meanwhile, and most calls are \
                         `sched_yield`.",
                axis: Axis::Name,
                axis_label: "",
                original: &[],
            },
            Study::Idle => Description {
                title: "At rest",
                setup: "So many ports of a switch are open in one process that waits for packets, and \
                        none come; or so many of the kernel's interfaces are attached to one. The \
                        time that the process, the daemon and its workers use, by their control \
                        group's account.",
                limits: "A program that polls all the time would be at 100 %.",
                axis: Axis::Ports,
                axis_label: "ports of the switch",
                original: &[],
            },
            Study::Scaling => Description {
                title: "More ports",
                setup: "Frames of 60 bytes, written and read. Idle ports: from one process to \
                        another while so many ports are open on the switch. Receivers: each frame to \
                        all of so many processes; what each of them receives. Senders: so many \
                        processes to one; what that receives. Switches: so many, with a sender and a \
                        receiver each; what all receivers receive together.",
                limits: "With few processors, many processes share one: their rate falls with the \
                         time that each gets.",
                axis: Axis::Ports,
                axis_label: "ports of the switch",
                original: &[],
            },
            Study::Memory => Description {
                title: "Memory of a port",
                setup: "Shared memory that the kernel has allocated for a port that was just opened, the \
                        mean of so many: rings and buffers. A pipe has two \
                        ends. A port of a switch has a region of its own, and so has a pipe \
                        here; ports of interfaces are in the region that a user's programs share.",
                limits: "Pages are allocated when they are first written to, huge ones of 2 MiB where \
                         the kernel has them, and all of a region at once for AF_XDP: what is not \
                         there yet may come with use, up to the buffers of all slots. Memory of the \
                         kernel's own, and the heaps of the processes, are not counted.",
                axis: Axis::Name,
                axis_label: "",
                original: &[],
            },
            Study::Opening => Description {
                title: "Opening",
                setup: "From the request for a port of a veth interface with one queue to a port that \
                        can be used; and what the kernel alone waits for meanwhile.",
                limits: "",
                axis: Axis::Name,
                axis_label: "",
                original: &[],
            },
        }
    }
}
