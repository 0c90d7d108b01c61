//! Lists that no user can make too long for an answer (trust rule 6).

mod common;

use common::World;
use ringway_proto::{
    BridgeInfo, Forwarding, PortSettings, Reply, Request, SourceAddresses, SwitchPosition, Vlan,
};

/// All pages of the switches, and how many those were. A page fits a message.
fn switches(w: &mut World) -> (Vec<BridgeInfo>, usize) {
    let (mut all, mut next, mut pages): (Vec<BridgeInfo>, _, _) =
        (Vec::new(), Some(SwitchPosition::default()), 0);
    while let Some(from) = next.take() {
        let Ok(Reply::Switches { switches, next: behind }) = w.ask(Request::Switches { from })
        else {
            panic!("a list")
        };
        let vids = |vlan: &Vlan| match vlan {
            Vlan::Trunk { allowed, .. } => allowed.len(),
            _ => 0,
        };
        let ports = switches.iter().flat_map(|switch| &switch.ports);
        // Two or three bytes each.
        assert!(ports.map(|port| vids(&port.vlan) * 3).sum::<usize>() < 120_000);
        for switch in switches {
            match all.last_mut().filter(|last| last.name == switch.name) {
                Some(last) => last.ports.extend(switch.ports),
                None => all.push(switch),
            }
        }
        (next, pages) = (behind, pages + 1);
    }
    (all, pages)
}

#[test]
fn what_one_user_has_chosen_is_told_in_pages() {
    let mut w = World::new();
    let names: Vec<_> = (0..40).map(|n| format!("vale0:{n}")).collect();
    let mut handles: Vec<_> = names.iter().map(|name| w.open(name).0).collect();
    let all = Vlan::Trunk { allowed: (1..=4094).collect(), native: None };
    for name in &names {
        let settings = PortSettings { vlan: Some(all.clone()), ..PortSettings::default() };
        w.ask(Request::SwitchPort { name: name.clone(), settings }).unwrap();
    }
    handles.push(w.open("vale1:other").0);
    let (switches, pages) = switches(&mut w);
    assert!(pages > 3, "{pages} pages");
    let told: Vec<Vec<_>> = switches
        .iter()
        .map(|switch| switch.ports.iter().map(|port| port.name.clone()).collect())
        .collect();
    assert_eq!(told, [names, vec!["vale1:other".into()]]);
    handles.into_iter().for_each(|handle| w.registry.close(handle));
    w.assert_empty();
}

#[test]
fn a_forwarding_function_and_a_list_of_addresses_have_an_end() {
    const EINVAL: i32 = 22;
    let mut w = World::new();
    let (handle, _) = w.open("vale0:a");
    let forward = |forwarding| Request::SwitchForward { bridge: "vale0".into(), forwarding };
    let over = |count| Forwarding::Hash { over: vec!["a".into(); count], back: None };
    assert_eq!(w.ask(forward(over(60_000))).unwrap_err(), EINVAL);
    w.ask(forward(over(252))).unwrap();
    let addresses = |count| Forwarding::Static {
        addresses: vec![([2; 6], "a".into()); count],
        flood_unknown: true,
    };
    assert_eq!(w.ask(forward(addresses(60_000))).unwrap_err(), EINVAL);
    w.ask(forward(addresses(512))).unwrap();
    let only = |count| PortSettings {
        sources: Some(SourceAddresses::Only(vec![[2; 6]; count])),
        ..PortSettings::default()
    };
    let port = |settings| Request::SwitchPort { name: "vale0:a".into(), settings };
    assert_eq!(w.ask(port(only(65))).unwrap_err(), EINVAL);
    w.ask(port(only(64))).unwrap();
    assert!(matches!(&switches(&mut w).0[0].ports[0].sources,
        SourceAddresses::Only(macs) if macs.len() == 64));
    w.close([handle]);
}

#[test]
fn ports_of_a_switch_are_bound_to_one_address_where_its_maker_says_so() {
    let mut w = World::new();
    w.ask(Request::SwitchNew { bridge: "vale0".into(), one_address: true }).unwrap();
    w.ask(Request::SwitchNew { bridge: "vale1".into(), one_address: false }).unwrap();
    let handles = [w.open("vale0:a").0, w.open("vale1:a").0];
    let of: Vec<_> = switches(&mut w)
        .0
        .into_iter()
        .map(|s| s.ports.into_iter().next().unwrap().sources)
        .collect();
    assert_eq!(of, [SourceAddresses::One, SourceAddresses::Any]);
    w.close(handles);
}
