//! Lists in pages: no user can have so much that what is there cannot be told in one answer.

use ringway_proto::{
    BridgeInfo, BridgePortInfo, Forwarding, PortInfo, SourceAddresses, SwitchMirrorInfo, Vlan,
};

/// Bytes of a page, about: a message has room for a third more, and for one more item.
const PAGE: usize = 96 << 10;

/// Bytes of the texts of all filters of a port that are shown, and of all action programs.
const RULE_TEXT: usize = 16 << 10;

/// The first of `items`, which have so many bytes, as far as they fit a page, but one at least; and
/// where the next page begins, if there is one.
pub(crate) fn page<P, T>(
    items: impl Iterator<Item = (P, T)>,
    bytes: impl Fn(&T) -> usize,
) -> (Vec<T>, Option<P>) {
    let (mut page, mut used) = (Vec::new(), 0);
    for (position, item) in items {
        used += bytes(&item);
        if used > PAGE && !page.is_empty() {
            return (page, Some(position));
        }
        page.push(item);
    }
    (page, None)
}

/// Bytes of a port in a list, or a few more.
pub(crate) fn port_bytes(port: &PortInfo) -> usize {
    let mode = port.mode.as_ref().map_or(0, String::len);
    let filters = port.filters.iter().map(|f| f.text.len() + f.queues.len() * 5 + 50);
    let actions = port.actions.iter().map(|action| {
        let redirects = action.redirects.iter().map(|name| name.len() + 5).sum::<usize>();
        action.text.len() + action.queues.len() * 5 + redirects + 60
    });
    let rules = filters.sum::<usize>() + actions.sum::<usize>();
    210 + port.name.len() + mode + port.queues.len() * 5 + rules
}

/// The same, of a switch without its ports.
pub(crate) fn switch_bytes(switch: &BridgeInfo) -> usize {
    let forwarding = match &switch.forwarding {
        Forwarding::Learning { .. } | Forwarding::Flood => 10,
        Forwarding::Static { addresses, .. } => {
            addresses.iter().map(|(_, port)| port.len() + 10).sum()
        }
        Forwarding::Hash { over, back } => over.iter().chain(back).map(|name| name.len() + 5).sum(),
    };
    let rounds = switch.rounds.counts.len() * 10;
    let place = switch.declared_at.as_ref().map_or(0, String::len);
    75 + switch.name.len() + place + forwarding + rounds
}

/// The same, of one of its ports.
pub(crate) fn switch_port_bytes(port: &BridgePortInfo) -> usize {
    let vlans = match &port.vlan {
        Vlan::Trunk { allowed, .. } => allowed.len() * 3,
        Vlan::Unaware | Vlan::Access(_) => 0,
    };
    let sources = match &port.sources {
        SourceAddresses::Only(macs) => macs.len() * 6,
        SourceAddresses::Any | SourceAddresses::One => 0,
    };
    let texts = [&port.mode, &port.waits_for, &port.loops_with, &port.interface];
    let others = [&port.filter_in, &port.filter_out, &port.declared_at];
    let texts = texts.into_iter().chain(others);
    let texts = texts.flatten().map(String::len).sum::<usize>();
    400 + port.name.len() + texts + vlans + sources
}

/// The same, of one of its mirrors.
pub(crate) fn switch_mirror_bytes(mirror: &SwitchMirrorInfo) -> usize {
    let SwitchMirrorInfo { name, from, to, filter, absent, foreign, .. } = mirror;
    let ports = from.iter().flatten().chain(absent).chain(foreign).chain([to, name]);
    150 + ports.map(|port| port.len() + 2).sum::<usize>() + filter.as_ref().map_or(0, String::len)
}

/// Shortens the texts of filters and action programs, where there are many and long ones.
pub(crate) fn shorten_texts(port: &mut PortInfo) {
    shorten(port.filters.iter_mut().map(|filter| &mut filter.text));
    shorten(port.actions.iter_mut().map(|action| &mut action.text));
}

fn shorten<'a>(texts: impl ExactSizeIterator<Item = &'a mut String>) {
    let most = RULE_TEXT / texts.len().max(1);
    for text in texts.filter(|text| text.len() > most) {
        let cut = (0..=most).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
        text.truncate(cut);
        text.push('…');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_have_all_items_once() {
        let sizes: Vec<usize> = (0..1000).map(|n| n * 7919 % 30_000).chain([PAGE * 2, 5]).collect();
        let (mut seen, mut from, mut pages) = (Vec::new(), Some(0), 0);
        while let Some(begin) = from {
            let rest = sizes.iter().copied().enumerate().skip(begin);
            let (items, next) = page(rest, |size| *size);
            assert!(items.len() == 1 || items.iter().sum::<usize>() <= PAGE);
            seen.extend(items);
            (from, pages) = (next, pages + 1);
        }
        assert_eq!(seen, sizes);
        assert!(pages > 100);
    }
}
