//! The daemon as the server sees it: asked anew for each scrape, by one scrape at a time. It may go and come back.

use super::families::families;
use super::scrape::Scrape;
use super::text::{Format, encode};
use crate::error::Result;
use crate::output::note;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::Mutex;
use tokio::task::spawn_blocking;
use tokio::time::timeout;

/// How long the daemon may take, with those that asked before: Prometheus waits for ten seconds.
const PATIENCE: Duration = Duration::from_secs(8);

#[derive(Default)]
pub struct Watch {
    asking: Arc<Mutex<()>>,
    is_away: Arc<AtomicBool>,
}

impl Watch {
    /// As of now; that the daemon is not up, if it does not answer.
    pub async fn metrics(&self, format: Format) -> Result<String> {
        let scrape = timeout(PATIENCE, self.scrape()).await.ok().flatten();
        encode(families(scrape.as_ref()), format)
    }

    async fn scrape(&self) -> Option<Scrape> {
        // It is held by what asks, also when nobody waits for that any more.
        let turn = self.asking.clone().lock_owned().await;
        let is_away = self.is_away.clone();
        let ask = move || {
            let scrape = Scrape::take();
            let was_away = is_away.swap(scrape.is_err(), Ordering::Relaxed);
            match &scrape {
                Err(error) if !was_away => note(error),
                Ok(_) if was_away => note("the daemon is back"),
                _ => {}
            }
            drop(turn);
            scrape.ok()
        };
        spawn_blocking(ask).await.ok().flatten()
    }
}
