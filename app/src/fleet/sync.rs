//! Keeps a snapshot and a stream of numbered updates together, without a gap and without applying anything twice.

use api::FleetUpdate;

/// Updates kept while a snapshot is on its way; more than these and the snapshot is asked for again.
const MAX_KEPT: usize = 500;

/// Where the browser stands in the stream.
#[derive(Debug)]
pub enum Sync {
    /// A snapshot is on its way; these updates wait for it.
    Waiting(Vec<FleetUpdate>),
    /// Everything up to this number has been applied.
    At(u64),
}

/// What to do with an update.
#[derive(Debug, PartialEq)]
pub enum Step {
    /// Apply it.
    Apply(FleetUpdate),
    /// Nothing: it waits for the snapshot, or is in it already.
    Nothing,
    /// One before it was lost: ask for a snapshot.
    Lost,
}

impl Default for Sync {
    fn default() -> Self {
        Self::new()
    }
}

impl Sync {
    /// Nothing has come yet.
    pub const fn new() -> Self {
        Self::Waiting(Vec::new())
    }

    /// Takes the next update of the stream.
    pub fn take(&mut self, update: FleetUpdate) -> Step {
        match self {
            Self::Waiting(kept) if kept.len() < MAX_KEPT => {
                kept.push(update);
                Step::Nothing
            }
            Self::At(sequence) if update.sequence <= *sequence => Step::Nothing,
            Self::At(sequence) if update.sequence == *sequence + 1 => {
                *sequence = update.sequence;
                Step::Apply(update)
            }
            Self::Waiting(_) | Self::At(_) => Step::Lost,
        }
    }

    /// A snapshot has come: gives the kept updates that follow it, or None when one before them was lost.
    pub fn snapshot(&mut self, sequence: u64) -> Option<Vec<FleetUpdate>> {
        let kept = match std::mem::replace(self, Self::At(sequence)) {
            Self::Waiting(kept) => kept,
            Self::At(_) => Vec::new(),
        };
        let mut following = Vec::new();
        for update in kept {
            match self.take(update) {
                Step::Apply(update) => following.push(update),
                Step::Nothing => {}
                Step::Lost => {
                    *self = Self::new();
                    return None;
                }
            }
        }
        Some(following)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn update(sequence: u64) -> FleetUpdate {
        FleetUpdate { sequence, ..FleetUpdate::default() }
    }

    fn numbers(updates: Option<Vec<FleetUpdate>>) -> Option<Vec<u64>> {
        updates.map(|updates| updates.into_iter().map(|update| update.sequence).collect())
    }

    #[test]
    fn updates_that_came_before_the_snapshot_wait_for_it() {
        let mut sync = Sync::new();
        for sequence in 5..=8 {
            assert_eq!(sync.take(update(sequence)), Step::Nothing);
        }
        assert_eq!(numbers(sync.snapshot(6)), Some(vec![7, 8]));
        assert_eq!(sync.take(update(9)), Step::Apply(update(9)));
    }

    #[test]
    fn an_update_is_never_applied_twice() {
        let mut sync = Sync::At(4);
        assert_eq!(sync.take(update(4)), Step::Nothing);
        assert_eq!(sync.take(update(5)), Step::Apply(update(5)));
        assert_eq!(sync.take(update(5)), Step::Nothing);
    }

    #[test]
    fn a_gap_asks_for_a_snapshot() {
        assert_eq!(Sync::At(4).take(update(6)), Step::Lost);
        let mut sync = Sync::new();
        sync.take(update(9));
        assert_eq!(numbers(sync.snapshot(6)), None);
        assert!(matches!(sync, Sync::Waiting(_)));
    }

    #[test]
    fn a_snapshot_that_never_comes_does_not_fill_the_memory() {
        let mut sync = Sync::new();
        let last = (0..=MAX_KEPT as u64).map(|sequence| sync.take(update(sequence))).last();
        assert_eq!(last, Some(Step::Lost));
    }
}
