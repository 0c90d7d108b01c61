//! Clients that are to be served, in turns: one of each account at a time, so that how much one account's
//! clients ask for at once is no matter of the others.
//!
//! Within an account those who have gone come first: a client that closes one port and then asks for
//! something finds it closed. Then come those whose requests have waited: others wait behind them. The rest
//! come in the order in which they were heard.

use std::collections::{BTreeMap, HashMap, VecDeque};

/// What a client is ready for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum For {
    /// It may have a request.
    Request,
    /// Its request waited for work of others, and is to be begun again.
    Resumption,
    /// It has gone.
    End,
}

/// The clients of an account.
#[derive(Default)]
struct Lane {
    gone: VecDeque<u64>,
    resumed: VecDeque<u64>,
    others: VecDeque<u64>,
}

impl Lane {
    fn next(&mut self) -> Option<u64> {
        let Lane { gone, resumed, others } = self;
        gone.pop_front().or_else(|| resumed.pop_front()).or_else(|| others.pop_front())
    }

    fn forget(&mut self, client: u64) {
        let Lane { gone, resumed, others } = self;
        for queue in [gone, resumed, others] {
            queue.retain(|&other| other != client);
        }
    }

    fn is_empty(&self) -> bool {
        self.gone.is_empty() && self.resumed.is_empty() && self.others.is_empty()
    }
}

/// See above. Each client is in it once.
#[derive(Default)]
pub struct Ready {
    lanes: BTreeMap<u32, Lane>,
    clients: HashMap<u64, For>,
}

impl Ready {
    /// A client of an account is ready. What it was ready for before comes first, unless it has gone.
    pub fn add(&mut self, account: u32, client: u64, what: For) {
        let before = self.clients.get(&client).copied();
        if before.is_some_and(|before| before >= what) {
            return;
        }
        self.clients.insert(client, what);
        let lane = self.lanes.entry(account).or_default();
        match what {
            For::End => {
                lane.forget(client);
                lane.gone.push_back(client);
            }
            For::Resumption => {
                lane.forget(client);
                lane.resumed.push_back(client);
            }
            For::Request => lane.others.push_back(client),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.clients.is_empty()
    }

    /// Accounts that have clients here, each to be asked for [one](Self::next_of) in a turn.
    pub fn accounts(&self) -> Vec<u32> {
        self.lanes.keys().copied().collect()
    }

    /// The next client of an account.
    pub fn next_of(&mut self, account: u32) -> Option<(u64, For)> {
        let lane = self.lanes.get_mut(&account)?;
        let next = lane.next();
        if lane.is_empty() {
            self.lanes.remove(&account);
        }
        let client = next?;
        Some((client, self.clients.remove(&client)?))
    }

    /// The next client of an account that has gone, before its turn.
    pub fn next_gone(&mut self, account: u32) -> Option<u64> {
        let client = *self.lanes.get(&account)?.gone.front()?;
        self.forget(account, client);
        Some(client)
    }

    /// A client is none any more.
    pub fn forget(&mut self, account: u32, client: u64) {
        if self.clients.remove(&client).is_none() {
            return;
        }
        let Some(lane) = self.lanes.get_mut(&account) else { return };
        lane.forget(client);
        if lane.is_empty() {
            self.lanes.remove(&account);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The clients in the order in which they are served.
    fn served(ready: &mut Ready) -> Vec<u64> {
        let mut served = Vec::new();
        while !ready.is_empty() {
            for account in ready.accounts() {
                served.extend(ready.next_of(account).map(|(client, _)| client));
            }
        }
        assert!(ready.accounts().is_empty());
        served
    }

    #[test]
    fn an_accounts_clients_wait_for_one_of_each_other() {
        let mut ready = Ready::default();
        (0..1000).for_each(|client| ready.add(7, client, For::End));
        (1000..2000).for_each(|client| ready.add(8, client, For::Request));
        ready.add(9, 5000, For::Request);
        let served = served(&mut ready);
        assert_eq!(served.len(), 2001);
        assert_eq!(served.iter().position(|&client| client == 5000), Some(2));
    }

    #[test]
    fn those_who_have_gone_come_first_and_the_rest_in_their_order() {
        let mut ready = Ready::default();
        for client in [1, 2, 3] {
            ready.add(7, client, For::Request);
        }
        ready.add(7, 4, For::End);
        // Once each, whatever is heard of it.
        ready.add(7, 1, For::Request);
        ready.add(7, 3, For::End);
        ready.add(7, 3, For::Request);
        ready.add(7, 2, For::Resumption);
        ready.forget(7, 9);
        assert_eq!(ready.next_of(7), Some((4, For::End)));
        assert_eq!(ready.next_of(7), Some((3, For::End)));
        assert_eq!(ready.next_of(7), Some((2, For::Resumption)));
        assert_eq!((ready.next_gone(7), ready.next_gone(9)), (None, None));
        ready.add(7, 5, For::Request);
        ready.add(7, 6, For::End);
        assert_eq!(ready.next_gone(7), Some(6));
        ready.forget(7, 5);
        assert_eq!(ready.next_of(7), Some((1, For::Request)));
        assert!(ready.is_empty() && ready.next_of(7).is_none());
    }
}
