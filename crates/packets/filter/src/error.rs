//! Why there is no filter.

/// Why an expression or a program is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// No libpcap on this machine.
    #[error(
        "filter expressions need libpcap, which cannot be loaded ({0}); `apt-get install \
         libpcap0.8`"
    )]
    NoLibrary(String),
    /// libpcap does not take the expression.
    #[error("filter `{expression}`: {problem}; see `man pcap-filter`")]
    Expression { expression: String, problem: String },
    /// No instruction, or more than the kernel takes in classic BPF.
    #[error("a filter has 1 to 4096 instructions, not {0}; ask for less at once")]
    Length(usize),
    /// An instruction that has no meaning.
    #[error("instruction {at} of the filter {fault}")]
    Instruction { at: usize, fault: Fault },
    /// Jumps would be too wide for eBPF.
    #[error("the filters of this interface are too long together; ask for less at once")]
    TooLong,
}

/// What is wrong with an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    #[error("is no instruction of classic BPF")]
    Unknown,
    #[error("reads what the kernel knows of a packet, not the packet; write it for frames alone")]
    Extension,
    #[error("jumps out of the filter, or back as `protochain` does")]
    Target,
    #[error("uses scratch memory that there is not")]
    Memory,
    #[error("divides by zero")]
    Division,
    #[error("shifts by 32 bits or more")]
    Shift,
    #[error("is the last and returns nothing")]
    End,
}
