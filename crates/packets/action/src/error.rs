//! Why there is no action program.

/// Why an object, or instructions, are refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// No instruction, or too many.
    #[error("an action program has 1 to 4096 instructions, not {0}; make it shorter")]
    Length(usize),
    /// An instruction that is not for action programs.
    #[error("instruction {at} of the action program {fault}")]
    Instruction { at: usize, fault: Fault },
    /// The file is no object that can be read.
    #[error("it is no BPF object ({0}); compile it with `clang -target bpf -O2 -c`")]
    NoObject(String),
    /// There is no function in a section for XDP.
    #[error("it has no function in a section xdp; put SEC(\"xdp\") before the function")]
    NoFunction,
    /// There is none of that name, but there are others.
    #[error("it has no program {name}, only {others}; name one that it has")]
    NoSuch { name: String, others: String },
    /// There are several, and none was named.
    #[error("it has several programs ({0}); name one of them")]
    Several(String),
    /// A function refers to a map, or to global data.
    #[error(
        "{function} refers to `{symbol}`, and action programs have no maps and no global data; use \
         locals, and constants that the compiler puts into instructions"
    )]
    Data { function: String, symbol: String },
    /// A function calls another that is not in the object.
    #[error("{function} calls a function that is not in the object{symbol}; define it there")]
    Undefined { function: String, symbol: String },
}

/// What is wrong with an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    #[error("is none of eBPF, or one that is for other kinds of programs")]
    Unknown,
    #[error("refers to a map, or to another thing of the kernel's; leave it out")]
    Reference,
    #[error("jumps or calls out of the program")]
    Target,
    #[error(
        "calls helper {0}, which action programs may not; docs/guide/actions.md lists those that they may"
    )]
    Helper(i32),
    #[error("calls a function of the kernel's; leave it out")]
    KernelFunction,
    #[error("is half of one that loads 64 bits")]
    Half,
}
