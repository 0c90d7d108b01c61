//! Reserved names of switches and ports, and the users and groups that may take them.

use std::sync::Arc;

use ringway_ipc::members_of;
use ringway_registry::{Lasting, NamePattern, Reserved, for_others};
use serde::{Deserialize, Serialize};

use crate::peer::CONTAINED_ROOT;

/// A pattern of names, and the only users and groups that may take these, besides root.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Reservation {
    pattern: NamePattern,
    uids: Vec<u32>,
    gids: Vec<u32>,
    /// Of the groups, by the machine's files: for what is set up again while its user is not there.
    members: Vec<u32>,
}

impl Reservation {
    /// To be called while the machine's lists of users can be read.
    pub fn new(pattern: NamePattern, uids: Vec<u32>, gids: Vec<u32>) -> Reservation {
        let members = gids.iter().flat_map(|gid| members_of(*gid)).collect();
        Reservation { pattern, uids, gids, members }
    }

    #[cfg(test)]
    pub fn pattern(&self) -> &NamePattern {
        &self.pattern
    }

    fn concerning(&self, is_holder: bool) -> Reserved {
        Reserved { pattern: self.pattern.clone(), is_holder }
    }
}

/// The reservations as they concern a connected user, who is in these groups.
pub fn of_connected(all: &[Reservation], uid: u32, groups: &[u32]) -> Arc<[Reserved]> {
    let is_in = |gid: &u32| groups.contains(gid);
    all.iter().map(|r| r.concerning(r.uids.contains(&uid) || r.gids.iter().any(is_in))).collect()
}

/// The same where only the user's id is known.
pub fn of_user(all: &[Reservation], uid: u32) -> Arc<[Reserved]> {
    let is_holder = |r: &Reservation| r.uids.contains(&uid) || r.members.contains(&uid);
    all.iter().map(|r| r.concerning(is_holder(r))).collect()
}

/// Strikes what users had set up under names that have been reserved for others since; says what
/// that is.
pub fn strike(all: &[Reservation], lasting: &mut Lasting) -> Vec<String> {
    let mut struck = Vec::new();
    if all.is_empty() {
        return struck;
    }
    let pattern_against = |uid: u32, switch: &str, port: Option<&str>| {
        // Nothing is reserved from the machine's root.
        let reservations = if uid == 0 { Arc::default() } else { of_user(all, config_uid(uid)) };
        for_others(&reservations, switch, port).map(NamePattern::to_string)
    };
    let mut stays = |name: &str, uid: u32, pattern: Option<String>| match pattern {
        Some(pattern) => {
            struck.push(format!("{name}: `{pattern}` reserves it for other users than user {uid}"));
            false
        }
        None => true,
    };
    lasting.switches.retain(|switch| match switch.keeper {
        Some(keeper) => stays(&switch.name, keeper, pattern_against(keeper, &switch.name, None)),
        None => true,
    });
    let kept: Vec<String> =
        lasting.switches.iter().filter(|s| s.keeper.is_some()).map(|s| s.name.clone()).collect();
    lasting.attached.retain(|attached| {
        let Some((switch, port)) = attached.name.split_once(':') else { return true };
        let by_port = pattern_against(attached.uid, switch, Some(port));
        let makes_switch = !kept.iter().any(|kept| kept == switch);
        let by_switch =
            || if makes_switch { pattern_against(attached.uid, switch, None) } else { None };
        stays(&attached.name, attached.uid, by_port.or_else(by_switch))
    });
    struck
}

/// The user id that a configuration may name.
fn config_uid(account: u32) -> u32 {
    if account == CONTAINED_ROOT { 0 } else { account }
}

#[cfg(test)]
mod tests {
    use ringway_registry::{LastingAttachment, LastingNetns, LastingSwitch};

    use super::*;

    fn reservation(name: &str, uids: &[u32], gids: &[u32]) -> Reservation {
        Reservation::new(NamePattern::parse(name).unwrap(), uids.to_vec(), gids.to_vec())
    }

    #[test]
    fn users_and_their_groups_hold_a_reservation() {
        let all = [reservation("vale0", &[7], &[100, 54330])];
        let holds = |reserved: Arc<[Reserved]>| reserved[0].is_holder;
        assert!(holds(of_connected(&all, 7, &[])) && holds(of_connected(&all, 8, &[5, 54330])));
        assert!(!holds(of_connected(&all, 8, &[5])) && holds(of_user(&all, 7)));
        assert!(!holds(of_user(&all, 54331)));
        // Root is of the group of its name, by the machine's files.
        assert!(holds(of_user(&[reservation("vale0", &[], &[0])], 0)));
    }

    #[test]
    fn what_was_set_up_under_a_name_that_is_reserved_now_goes() {
        let switch = |name: &str, keeper| LastingSwitch {
            name: name.into(),
            keeper,
            one_address: false,
            configured_by: None,
            forwarding: Default::default(),
            multicast: Default::default(),
            settings: Vec::new(),
            addresses: Vec::new(),
            mirrors: Vec::new(),
            declared: None,
        };
        let attached = |name: &str, uid| LastingAttachment {
            name: name.into(),
            uid,
            netns: LastingNetns::Unknown,
            stack: false,
            mode: None,
            polling: None,
            never_there: false,
            renamed: None,
            absent: false,
        };
        let mut lasting = Lasting {
            switches: vec![
                switch("vale_prod1", Some(8)),
                switch("vale_prod2", Some(7)),
                switch("vale_prod3", Some(0)),
                switch("vale1", Some(8)),
            ],
            attached: vec![
                attached("vale_prod1:e0", 8),
                attached("vale_prod2:e1", 8),
                attached("vale1:db", 8),
                attached("vale1:e2", 8),
                attached("vale1:db", 0),
            ],
            ..Lasting::default()
        };
        let all = [reservation("vale_prod*", &[7], &[]), reservation("vale*:db", &[7], &[])];
        let struck = strike(&all, &mut lasting);
        let switches: Vec<_> = lasting.switches.iter().map(|s| s.name.as_str()).collect();
        assert_eq!(switches, ["vale_prod2", "vale_prod3", "vale1"]);
        let names: Vec<_> = lasting.attached.iter().map(|a| (a.name.as_str(), a.uid)).collect();
        assert_eq!(names, [("vale_prod2:e1", 8), ("vale1:e2", 8), ("vale1:db", 0)]);
        assert!(struck.len() == 3 && struck[0].contains("`vale_prod*`"), "{struck:?}");
        assert_eq!(strike(&[], &mut lasting), [""; 0]);
    }
}
