//! Objects as compilers make them: what is linked, and what is refused.
#![cfg(feature = "elf")]

use std::fs;

use proptest::prelude::*;
use ringway_action::{Error, Program};

const START: &str = "
    #define SEC(name) __attribute__((section(name), used))
    #define APART static __attribute__((noinline))
    struct xdp_md { unsigned data, data_end, data_meta, ifindex, queue, egress; };
    char LICENSE[] SEC(\"license\") = \"GPL\";
";

/// What clang makes of it.
fn object(source: &str) -> Vec<u8> {
    compiled("a.c", &format!("{START}{source}"))
}

fn compiled(name: &str, source: &str) -> Vec<u8> {
    let folder = ringway_testkit::Folder::new();
    let from = folder.path().join(name);
    fs::write(&from, source).unwrap();
    fs::read(ringway_testkit::bpf_object(folder.path(), &from)).unwrap()
}

const CALLS: &str = "
    APART int third(unsigned char n) { return n == 7 ? 1 : n == 8 ? 3 : 2; }
    APART int second(unsigned char n) { return third(n) + (n == 9 ? third(n + 1) : 0); }
    SEC(\"xdp/other\") int other(struct xdp_md *ctx) { return 1; }
    SEC(\"xdp/calls\") int calls(struct xdp_md *ctx) {
        unsigned char *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
        if (data + 15 > end)
            return 2;
        return second(data[14]) + third(data[13]);
    }
";

#[test]
fn functions_that_are_called_come_along_and_others_do_not() {
    let object = object(CALLS);
    let calls = Program::from_elf(&object, Some("calls")).unwrap();
    let targets = calls.insns().iter().enumerate().filter(|(_, insn)| insn.code == 0x85);
    let mut targets: Vec<_> =
        targets.map(|(at, insn)| at as i64 + 1 + i64::from(insn.immediate)).collect();
    targets.sort_unstable();
    targets.dedup();
    assert_eq!(targets.len(), 2, "{:x?}", calls.insns());
    for target in targets {
        // Each begins behind the end of another.
        assert_eq!(calls.insns()[target as usize - 1].code, 0x95);
    }
    let exits = |program: &Program| program.insns().iter().filter(|i| i.code == 0x95).count();
    assert_eq!(exits(&calls), 3);
    let other = Program::from_elf(&object, Some("other")).unwrap();
    assert_eq!((other.insns().len(), exits(&other)), (2, 1));
}

#[test]
fn a_program_is_named_where_there_are_several() {
    let object = object(CALLS);
    let error = Program::from_elf(&object, None).unwrap_err();
    assert_eq!(error, Error::Several("other, calls".into()));
    let missing = Program::from_elf(&object, Some("second")).unwrap_err();
    assert_eq!(missing, Error::NoSuch { name: "second".into(), others: "other, calls".into() });
}

#[test]
fn maps_and_data_are_refused_by_name() {
    let refused = |source: &str| Program::from_elf(&object(source), None).unwrap_err();
    let data = |symbol: &str| Error::Data { function: "f".into(), symbol: symbol.into() };
    assert_eq!(
        refused("int count; SEC(\"xdp\") int f(void *ctx) { return ++count; }"),
        data("count")
    );
    assert_eq!(
        refused(
            "struct { int (*type)[2]; } map SEC(\".maps\");
             static void *(*look_up)(void *, void *) = (void *)1;
             SEC(\"xdp\") int f(void *ctx) { int k = 0; return !look_up(&map, &k); }"
        ),
        data("map")
    );
    let error = refused("int far(void *); SEC(\"xdp\") int f(void *ctx) { return far(ctx); }");
    assert_eq!(error, Error::Undefined { function: "f".into(), symbol: " (far)".into() });
    let error = refused(
        "static void (*print)(const char *, int) = (void *)6;
         SEC(\"xdp\") int f(void *ctx) { char text[] = \"x\"; print(text, 2); return 2; }",
    );
    assert!(error.to_string().contains("helper 6"), "{error}");
}

/// Each function has a section of its own, as rustc has it.
const RUST: &str = "
    .section .text._RN7verdict,\"ax\",@progbits
    .type _RN7verdict,@function
_RN7verdict:
    r0 = 5
    if r1 != 8 goto done
    r0 = 3
done:
    exit
end0:
    .size _RN7verdict, end0 - _RN7verdict
    .section .text._RN5other,\"ax\",@progbits
    .type _RN5other,@function
_RN5other:
    r0 = 9
    exit
end1:
    .size _RN5other, end1 - _RN5other
    .section xdp,\"ax\",@progbits
    .globl firewall
    .type firewall,@function
firewall:
    r1 = *(u32 *)(r1 + 16)
    call _RN7verdict
    exit
end2:
    .size firewall, end2 - firewall
";

#[test]
fn functions_may_have_sections_of_their_own() {
    let program = Program::from_elf(&compiled("a.s", RUST), None).unwrap();
    let insns = program.insns();
    assert_eq!(insns.len(), 7);
    assert_eq!((insns[1].code, insns[1].immediate), (0x85, 1));
    assert!(insns.iter().all(|insn| insn.immediate != 9), "{insns:x?}");
}

#[test]
fn what_is_no_object_is_refused() {
    for bytes in [&b""[..], b"text", &fs::read("/proc/self/exe").unwrap()] {
        let error = Program::from_elf(bytes, None).unwrap_err();
        assert!(matches!(error, Error::NoObject(_)), "{error}");
    }
    let none = Program::from_elf(&object("int f(void *ctx) { return 1; }"), None).unwrap_err();
    assert_eq!(none, Error::NoFunction);
}

#[test]
fn any_damage_to_an_object_is_borne() {
    let whole = object(CALLS);
    for end in 0..whole.len() {
        let _ = Program::from_elf(&whole[..end], Some("calls"));
    }
    let damage = prop::collection::vec((0..whole.len(), any::<u8>()), 1..8);
    proptest!(|(damage in damage)| {
        let mut object = whole.clone();
        for (at, byte) in damage {
            object[at] = byte;
        }
        let _ = Program::from_elf(&object, Some("calls"));
    });
}
