//! What the server asked its database, from its log.

use anyhow::{Context, Result};
use std::fs;
use std::path::Path;

/// sqlx writes one line for each statement, with this field in it.
const MARK: &str = "rows_returned=";

/// How many statements the log names so far.
pub fn count_statements(log: &Path) -> Result<u64> {
    let text = fs::read_to_string(log).with_context(|| format!("cannot read {}", log.display()))?;
    Ok(text.lines().filter(|line| line.contains(MARK)).count() as u64)
}
