use std::path::Path;

use rustix::io::Errno;

use super::{Problem, config, parse_text, policy, policy::Policy, read};

const POLICIES: &str = include_str!("../../../../../dist/usdpaa/usdpaa_policy_hash_ipv4.xml");
const CONFIG: &str = include_str!("../../../../../dist/usdpaa/usdpaa_config_p4_serdes_0xe.xml");

fn policy(text: &str, name: &str) -> Result<Policy, Problem> {
    parse_text(text, |root| policy::parse(root, name))
}

fn errno(text: &str) -> Errno {
    policy(text, "p").unwrap_err().errno
}

/// A file with one policy, `p`, and these distributions.
fn file(order: &str, others: &str) -> String {
    format!("<netpcd><policy name=' p '><dist_order>{order}</dist_order></policy>{others}</netpcd>")
}

fn dist(name: &str, base: &str, count: &str) -> String {
    format!("<distribution name='{name}'><queue base='{base}' count='{count}'/></distribution>")
}

const REFS: &str = "<distributionref name='a'/> <distributionref name='b'/>";

#[test]
fn the_files_that_come_with_ringway_fit_together() {
    let entries = parse_text(CONFIG, config::parse).unwrap();
    let said: Vec<String> = entries.iter().map(|e| format!("{} {}", e.place, e.policy)).collect();
    let policy_of = |n| format!("hash_ipsec_src_dst_spi_policy{n}");
    let expected = [("fm0-10g0", 5), ("fm1-1g2", 8), ("fm1-1g3", 9), ("fm1-10g0", 11)];
    assert_eq!(said, expected.map(|(place, n)| format!("{place} {}", policy_of(n))));
    for n in 0..16 {
        // Equal bases make one range.
        let found = policy(POLICIES, &policy_of(n)).unwrap();
        assert_eq!(found.ranges, [(0x400 + n * 0x100, 32)]);
        assert_eq!(found.default, 0x51 + n);
        assert_eq!(found.steps[0].key, ["ipv4.src", "ipv4.dst", "ipsec_esp.spi"]);
        assert_eq!(found.steps[1].key, ["ipv4.src", "ipv4.dst"]);
    }
}

#[test]
fn a_name_is_found_by_its_beginning_and_the_first_wins() {
    let text =
        file(REFS, &[dist("ab", "8", "4"), dist("a", "16", "4"), dist("b", "9", "1")].concat());
    let found = policy(&text, "p").unwrap();
    assert_eq!((found.ranges, found.default), (vec![(8, 4)], 9));
}

#[test]
fn a_link_leads_through_a_classification() {
    let link = "<distribution name='a'><queue base='1' count='1'/>\
        <action type='classification' name='c'/></distribution>\
        <classification name='c'><key><fieldref name='ipv4.dst'/></key>\
        <entry><data>0x0a000001</data><action type='distribution' name='usdpaa_dist1'/></entry>\
        <entry><data>0x0a000002</data><action type='distribution' name='other'/></entry></classification>";
    let others = [link, &dist("usdpaa_dist1", "0x20", "8"), &dist("b", "010", "1")].concat();
    let found = policy(&file(REFS, &others), "p").unwrap();
    assert_eq!((found.ranges, found.default), (vec![(0x20, 8)], 8));
    assert_eq!(found.steps[0].entries.len(), 1);
    assert_eq!(found.steps[0].entries[0].0, [10, 0, 0, 1]);
}

#[test]
fn what_does_not_fit_together_has_the_references_error_numbers() {
    let (a, b) = (dist("a", "8", "4"), dist("b", "9", "1"));
    assert_eq!(errno("<netpcd/>"), Errno::NXIO);
    assert_eq!(errno(&file("", "")), Errno::NXIO);
    assert_eq!(errno(&file(REFS, &a)), Errno::NXIO);
    // A comment is a child like others.
    assert_eq!(errno(&file(&format!("{REFS}<!-- -->"), &[&*a, &b].concat())), Errno::NXIO);
    assert_eq!(errno(&file("<x/><distributionref name='b'/>", &b)), Errno::NXIO);
    assert_eq!(errno(&file(REFS, &[&*a, &dist("b", "9", "2")].concat())), Errno::INVAL);
    assert_eq!(errno(&file(REFS, &[&*dist("a", "x", "4"), &b].concat())), Errno::INVAL);
    assert_eq!(errno(&file(REFS, &[&*dist("a", "0xffffff", "4"), &b].concat())), Errno::INVAL);
    let no_count = "<distribution name='a'><queue base='8'/></distribution>";
    assert_eq!(errno(&file(REFS, &[no_count, &b].concat())), Errno::INVAL);
    assert_eq!(errno("<netpcd>"), Errno::INVAL);
}

/// What is wrong is said, with what to do.
#[test]
fn problems_have_remedies() {
    let policy = |text: &str| policy(text, "p").unwrap_err();
    let named = |names: &[&str]| -> String {
        let policies = names.iter().map(|name| format!("<policy name='{name}'/>"));
        format!("<netpcd>{}</netpcd>", policies.collect::<String>())
    };
    for (names, said) in
        [(&[][..], "it has none"), (&["a"], "it has a"), (&["a", "b", "c"], "it has a, b and c")]
    {
        let problem = policy(&named(names));
        assert_eq!(problem.text, format!("there is no <policy name=\"p\">: {said}"));
    }
    assert!(policy("<cfgdata/>").text.ends_with("exchange them"));
    assert_eq!(policy("<cfgdata/>").errno, Errno::NXIO);
    let config = |text: &str| parse_text(text, config::parse).unwrap_err().text;
    assert!(config("<netpcd/>").ends_with("exchange them"));
    assert_eq!(config("<x/>"), "is no configuration: it begins with <x>, not with <cfgdata>");
    let nowhere = read(Path::new("/nonesuch"), config::parse).unwrap_err().text;
    assert!(nowhere.contains("dist/usdpaa"), "{nowhere}");
}

#[test]
fn configurations_are_read_as_the_reference_does() {
    let parse = |engine: &str, port: &str| {
        let text =
            format!("<cfgdata><config><engine name='{engine}'>{port}</engine></config></cfgdata>");
        parse_text(&text, config::parse)
    };
    let port = "<port type='?' number='0x2' policy=' p '/>";
    let found = parse("fm1", port).unwrap();
    assert_eq!((found[0].place.to_string(), &*found[0].policy), ("fm1-1g2".into(), "p"));
    for (engine, port) in [("fm10", port), ("eth0", port), ("fm0", "<port type='1G' number='1'/>")]
    {
        assert_eq!(parse(engine, port).unwrap_err().errno, Errno::INVAL);
    }
}
