//! The preload library as a stranger in other programs: what it asks of them, what it takes from
//! libc, and under which names.

use std::{collections::BTreeSet, fs, path::Path, process::Command};

use ringway_testkit::{Netns, skip_without_root};
use ringway_tests::{
    Home,
    c::{Language::C11, link, project, succeed},
    inside,
};

/// All that the library may ask for by name, wherever it finds it. Nothing here makes a system call
/// on a descriptor.
const ALLOWED: [&str; 35] = [
    // Memory and strings.
    "bcmp",
    "calloc",
    "free",
    "malloc",
    "memcmp",
    "memcpy",
    "memmove",
    "memset",
    "posix_memalign",
    "realloc",
    "strlen",
    // The environment, errors, and the end. The kernel's table of facts about the process.
    "__errno_location",
    "__xpg_strerror_r",
    "abort",
    "environ",
    "getauxval",
    "getenv",
    // Threads.
    "__cxa_thread_atexit_impl",
    "__register_atfork",
    "__tls_get_addr",
    "pthread_create",
    "pthread_detach",
    "pthread_key_create",
    "pthread_key_delete",
    "pthread_setspecific",
    // The loader.
    "dl_iterate_phdr",
    "dladdr",
    "dlerror",
    "dlopen",
    "dlsym",
    // What the linker puts into every library.
    "__cxa_finalize",
    "__gmon_start__",
    "_ITM_deregisterTMCloneTable",
    "_ITM_registerTMCloneTable",
    "__stack_chk_fail",
];

/// The names of a library's dynamic symbols, without versions.
fn symbols(library: &Path, which: &str) -> BTreeSet<String> {
    let output = Command::new("nm").args(["-D", which]).arg(library).output().expect("nm is there");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).expect("symbols are ASCII");
    let functions = text.lines().filter_map(|line| {
        let mut words = line.split_whitespace().rev();
        let (name, kind) = (words.next()?, words.next()?);
        // GLIBC_PRIVATE is between the libraries of glibc.
        let theirs = name.ends_with("@GLIBC_PRIVATE") || !"TWiUwv".contains(kind);
        (!theirs).then(|| name.split('@').next().unwrap_or(name).to_string())
    });
    functions.collect()
}

fn hooked(home: &Home) -> BTreeSet<String> {
    symbols(&home.library(), "--defined-only")
}

/// The libc that programs here are linked to.
fn libc() -> BTreeSet<String> {
    let output = Command::new("cc").arg("-print-file-name=libc.so.6").output().expect("cc runs");
    let path = String::from_utf8(output.stdout).expect("a path");
    symbols(Path::new(path.trim()), "--defined-only")
}

#[test]
fn it_asks_for_nothing_that_a_program_may_have_of_its_own() {
    let home = Home::new();
    let mut asked = symbols(&home.library(), "--undefined-only");
    // The unwinder is libgcc's, and has names that are nothing else's.
    asked.retain(|name| !name.starts_with("_Unwind_") && !ALLOWED.contains(&name.as_str()));
    assert!(
        asked.is_empty(),
        "add to crates/personalities/interpose/src/raw/wrapped.rs, or argue: {asked:?}"
    );
}

/// Names of libc's functions that are system calls by another name: a number at the end, or an
/// underscore in front.
fn is_system_call(name: &str, calls: &BTreeSet<String>) -> bool {
    let plain = name.trim_start_matches('_').trim_end_matches("_chk");
    let plain = plain.trim_end_matches("_time64").trim_end_matches("64").trim_end_matches("_2");
    calls.contains(name) || calls.contains(plain)
}

/// The system calls that the headers know.
fn system_calls() -> BTreeSet<String> {
    let mut compiler = Command::new("cc");
    compiler.args(["-E", "-dM", "-include", "sys/syscall.h", "-x", "c", "/dev/null"]);
    let output = compiler.output().expect("cc runs");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let names = text.lines().filter_map(|line| line.strip_prefix("#define SYS_"));
    names.filter_map(|rest| Some(rest.split(' ').next()?.to_string())).collect()
}

/// The functions of libc that the library replaces for itself.
fn wrapped() -> Vec<String> {
    let text =
        fs::read_to_string(project().join("crates/personalities/interpose/src/raw/names.rs"))
            .expect("it is there");
    let names = text.lines().filter_map(|line| line.trim().strip_prefix('"')?.strip_suffix("\","));
    names.map(str::to_string).collect()
}

/// An object with a function under each of these names, all of which are traps.
fn traps(home: &Home, names: &BTreeSet<String>) -> String {
    let load = match std::env::consts::ARCH {
        "aarch64" => |at: usize| {
            format!("adrp x0, .Lname{at}\n add x0, x0, :lo12:.Lname{at}\n b own_function\n")
        },
        _ => |at: usize| format!("lea .Lname{at}(%rip), %rdi\n jmp own_function\n"),
    };
    let mut text = String::from(".section .note.GNU-stack,\"\",%progbits\n");
    for (at, name) in names.iter().enumerate() {
        text += &format!(".section .rodata\n.Lname{at}: .asciz \"{name}\"\n.text\n.globl {name}\n");
        text += &format!(".type {name}, %function\n{name}:\n {}", load(at));
    }
    let path = home.path().join("traps.s");
    fs::write(&path, text).expect("the folder is ours");
    path.display().to_string()
}

/// Runs a program that has each of libc's system calls, and each function that the library stands in
/// front of, under the same name itself; it would end there.
#[test]
fn it_never_meets_functions_of_the_program() {
    let home = Home::new();
    let calls = system_calls();
    let mut names: BTreeSet<String> =
        libc().into_iter().filter(|name| is_system_call(name, &calls)).collect();
    names.extend(hooked(&home));
    names.extend(wrapped());
    for name in ["close", "send", "socket", "open64", "stat64", "mmap", "syscall", "waitpid"] {
        assert!(names.contains(name), "no trap for {name}");
    }
    assert!(names.len() > 300, "{names:?}");
    let traps = traps(&home, &names);
    let program = link(&home, "tests/c/own_names.c", C11, &[&traps, "-rdynamic", "-ldl"]);
    let run = |from: &str, to: &str| {
        let mut command = home.command(&program);
        command.args([from, to]).env("LD_PRELOAD", home.library());
        command
    };
    // Each of these starts a daemon.
    for (from, to) in [("valeown:a", "valeown:b"), ("own{1", "own}1")] {
        assert_eq!(succeed(run(from, to)), "ok\n");
        home.assert_left();
    }
    if skip_without_root("it_never_meets_functions_of_the_program: interfaces") {
        return;
    }
    let netns = Netns::quiet("rwi");
    let _pair = netns.veth(&netns, "n0", "n1");
    for mode in ["copy", "packet"] {
        let mut command = run("netmap:n0", "netmap:n1");
        command.env("RINGWAY_NIC_MODE", mode).env("RINGWAY_VERBOSE", "1");
        assert_eq!(succeed(inside(&netns, command)), "ok\n", "{mode}");
        home.assert_left();
    }
}

/// Traps work: without the library the same program ends in one.
#[test]
fn a_trap_is_one() {
    let home = Home::new();
    let names = BTreeSet::from(["close".to_string(), "dup".to_string()]);
    let traps = traps(&home, &names);
    let source = home.path().join("caller.c");
    fs::write(
        &source,
        "int dup(int); void own_function(const char *); int puts(const char *);\n\
        void own_function(const char *name) { __builtin_printf(\"%s\\n\", name); }\n\
        int main(void) { dup(1); return 0; }\n",
    )
    .expect("the folder is ours");
    let program = home.path().join("caller");
    let mut compiler = Command::new("cc");
    compiler.args(["-rdynamic", "-o"]).arg(&program).arg(&source).arg(&traps);
    assert!(compiler.status().expect("cc runs").success());
    assert_eq!(succeed(home.command(&program)), "dup\n");
}

/// The names in backticks of a section of `docs/libc-coverage.md`.
fn listed(section: &str) -> BTreeSet<String> {
    let text = fs::read_to_string(project().join("docs/libc-coverage.md")).expect("it is there");
    let from = text.split_once(&format!("\n## {section}\n")).expect("it has this section").1;
    let part = from.split_once("\n## ").map_or(from, |(part, _)| part);
    let rows = part.lines().filter(|line| line.starts_with("| `"));
    let names = rows.filter_map(|row| row.split('|').nth(1));
    names.flat_map(|cell| cell.split('`').skip(1).step_by(2)).map(str::to_string).collect()
}

/// What glibc may call a variant of a function: fortified, with 64-bit offsets or times, or by a name
/// with underscores.
fn variants(name: &str) -> Vec<String> {
    let plain = name.trim_start_matches('_').trim_end_matches("_chk").trim_end_matches("_2");
    let plain = plain.trim_end_matches("64v2").trim_end_matches("v2").trim_end_matches("64");
    let numbers = ["", "2", "64", "v2", "64v2"];
    let ends = ["", "_2", "_chk", "_time64", "_time64_chk", "_chk_time64"];
    let all = numbers.iter().flat_map(|number| ends.iter().map(move |end| (number, end)));
    all.flat_map(|(number, end)| {
        ["", "__", "__libc_"].map(|start| format!("{start}{plain}{number}{end}"))
    })
    .collect()
}

#[test]
fn every_variant_of_a_hooked_call_is_hooked_or_listed() {
    let home = Home::new();
    let (hooked, left) = (hooked(&home), listed("Not hooked"));
    let libc = libc();
    let missing: BTreeSet<String> = hooked
        .iter()
        .flat_map(|name| variants(name))
        .filter(|name| libc.contains(name) && !hooked.contains(name) && !left.contains(name))
        .collect();
    assert!(missing.is_empty(), "hook them, or say in docs/libc-coverage.md why not: {missing:?}");
    assert_eq!(listed("Hooked"), hooked, "docs/libc-coverage.md lists what is hooked");
    let both: Vec<_> = left.intersection(&hooked).collect();
    assert!(both.is_empty(), "{both:?}");
    // The variants are found: of these there are some in every glibc.
    for name in ["__read_chk", "__open64_2", "preadv64v2", "__poll_chk", "__dup2"] {
        assert!(libc.contains(name) && hooked.iter().any(|h| variants(h).contains(&name.into())));
    }
}

/// A library whose constructor opens the device, wherever it stands among those that are preloaded.
#[test]
fn constructors_of_other_libraries_find_the_device() {
    let home = Home::new();
    let source = home.path().join("early.c");
    fs::write(
        &source,
        "#include <fcntl.h>\n#include <stdio.h>\n#include <unistd.h>\n\
        __attribute__((constructor)) static void early(void) {\n\
        int fd = open(\"/dev/netmap\", O_RDWR);\n\
        puts(fd == -1 ? \"nothing\" : \"a device\"); close(fd); }\n",
    )
    .expect("the folder is ours");
    let early = home.path().join("early.so");
    let mut compiler = Command::new("cc");
    compiler.args(["-shared", "-fPIC", "-o"]).arg(&early).arg(&source);
    assert!(compiler.status().expect("cc runs").success());
    let (early, library) = (early.display().to_string(), home.library().display().to_string());
    for order in [[&library, &early], [&early, &library]] {
        let mut command = home.command("true");
        command.env("LD_PRELOAD", order.map(String::as_str).join(":"));
        assert_eq!(succeed(command), "a device\n", "{order:?}");
        home.assert_left();
    }
}

/// A program that is given both names has one library, and one table of descriptors.
#[test]
fn two_names_are_one_library() {
    let home = Home::new();
    let old = home.bin().join("libringway_netmap.so");
    let mut command = home.command("cat");
    command.arg("/proc/self/maps");
    command.env("LD_PRELOAD", format!("{}:{}", home.library().display(), old.display()));
    let maps = succeed(command);
    let loaded: BTreeSet<&str> = maps
        .lines()
        .filter_map(|line| line.split(' ').next_back())
        .filter(|p| p.contains("ringway"))
        .collect();
    assert_eq!(loaded.len(), 1, "{loaded:?}");
}
