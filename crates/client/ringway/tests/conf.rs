//! `@conf:` in the name of a port: it works, or the port is not opened. Each test has pipes of its own parent: those of
//! one share a region, which is as large as the first needs.

use ringway_doc as doc;

fn problem(name: &str) -> String {
    doc::open(name).map(|_| ()).expect_err(name).to_string()
}

#[test]
fn what_the_port_would_not_have_is_refused() {
    for (name, expected) in [
        ("vale7:a@conf:slots=99999999", "asks for 99999999 tx slots, and the port has 4096"),
        ("vale7:a@conf:rx-slots=4097", "asks for 4097 rx slots, and the port has 4096"),
        ("vale7:a@conf:rings=17", "asks for 17 tx rings, and the port has 16"),
        ("vale7:a@conf:host-rings=3", "asks for 3 tx host rings, and the port has 0"),
        ("vale7:a@conf:slots=0", "conf needs a number from 1"),
        ("vale7:a@conf:rings=65537", "no port has 65537 rings"),
        ("port{1@conf:slots=5000", "asks for 5000 tx slots, and the port has 4096"),
    ] {
        let said = problem(name);
        assert!(said.contains(expected), "{name}: {said}");
    }
    let open = doc::open("vale7:a@conf:slots=64,rx-rings=2").unwrap();
    assert_eq!((open.rx_rings(), open.binding().registration().tx_slots), (2, 64));
    // A port that is there already keeps what it has.
    let said = problem("vale7:a@conf:slots=128");
    assert!(said.contains("asks for 128 tx slots, and the port has 64"), "{said}");
    drop(doc::open("vale7:a@conf:slots=64").unwrap());
    let said = problem("vale7:a/r@conf:rings=4");
    assert!(said.contains("asks for 4 tx rings, and the port has 1"), "{said}");
}

/// Options of the program are for ports that it makes, and hold there as those of the name do.
#[test]
fn what_a_new_port_would_not_have_is_refused_to_the_program_too() {
    let options = || doc::options();
    for (options, name, expected) in [
        (options().tx_rings(100), "vale7:n", "asks for 100 tx rings, and the port has 16"),
        (options().rx_slots(5000), "vale7:n", "asks for 5000 rx slots, and the port has 4096"),
        (options().tx_slots(5000), "program}1", "asks for 5000 tx slots, and the port has 4096;"),
    ] {
        let said = options.open(name).map(|_| ()).expect_err(name).to_string();
        assert!(said.contains(expected), "{name}: {said}");
    }
    let port = options().tx_rings(2).tx_slots(64).open("vale7:n@conf:tx-slots=32").unwrap();
    assert_eq!((port.tx_rings(), port.binding().registration().tx_slots), (2, 32));
    assert_eq!(options().tx_rings(4).open("vale7:n").unwrap().tx_rings(), 2, "it is there already");
    let first = options().tx_slots(64).open("program{2").unwrap();
    let second = options().tx_slots(128).open("program}2").unwrap();
    let slots = [&first, &second].map(|port| port.binding().registration().tx_slots);
    assert_eq!(slots, [64, 1024], "the first to open one end makes both");
}

/// Numbers are those of the end that is opened, whichever end makes the pipe.
#[test]
fn each_end_of_a_pipe_has_the_numbers_that_its_name_asks_for() {
    let ends = [
        ("{", [3, 1], "@conf:tx-rings=3,rx-rings=1,tx-slots=64,rx-slots=32"),
        ("}", [1, 3], "@conf:tx-rings=1,rx-rings=3,tx-slots=32,rx-slots=64"),
    ];
    for (pipe, [one, other]) in [(2, ends), (3, [ends[1], ends[0]])] {
        let opened = [one, other].map(|(end, rings, conf)| {
            let port = doc::open(&format!("ends{end}{pipe}{conf}")).unwrap();
            assert_eq!([port.tx_rings(), port.rx_rings()], rings, "{pipe}{end}");
            port
        });
        let said = problem(&format!("ends}}{pipe}@conf:tx-rings=3"));
        assert!(said.contains("asks for 3 tx rings, and the port has 1"), "{said}");
        drop(opened);
    }
}
