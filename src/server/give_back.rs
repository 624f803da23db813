//! Gives memory back to the system that bursts of joining workers leave free.

use super::links::Links;
use super::supervisor::Job;
use std::convert::Infallible;
use std::time::Duration;
use tokio::task::spawn_blocking;
use tokio::time::{MissedTickBehavior, interval};

const LOOK_INTERVAL: Duration = Duration::from_secs(20);
/// Fewer that came or went leave too little for it to be worth while.
const MANY_LINKS: usize = 500;
/// However few came or went.
const LOOKS_AT_MOST: u32 = 90;

/// Looks for ever. Memory is given back once the number of links has changed by much and changes no more, and every half
/// an hour.
pub async fn run(links: Links, job: Job) -> Infallible {
    let mut look = interval(LOOK_INTERVAL);
    look.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let (mut given_back_at, mut before, mut looks) = (0_usize, 0_usize, 0_u32);
    loop {
        look.tick().await;
        let now = links.count();
        looks += 1;
        let is_burst_over = now.abs_diff(given_back_at) >= MANY_LINKS && now.abs_diff(before) < MANY_LINKS;
        before = now;
        if is_burst_over || looks >= LOOKS_AT_MOST {
            // on a thread of its own, as it holds the allocator's lock for a moment
            if let Err(panic) = spawn_blocking(heap::give_back).await {
                tracing::error!(%panic, "memory was not given back");
            }
            (given_back_at, looks) = (now, 0);
        }
        job.succeeded();
    }
}
