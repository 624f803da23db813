//! What the server's process takes of this machine, from `/proc` (proc(5)).

use anyhow::{Context, Result};
use serde::Serialize;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

/// What `/proc` counts processor time in: `sysconf(_SC_CLK_TCK)`, which is 100 on every Linux.
const TICKS_PER_SECOND: f64 = 100.0;

/// A process on this machine.
pub struct ServerProcess {
    folder: PathBuf,
}

/// Its use at one moment.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    processor_ticks: u64,
    resident_bytes: u64,
    peak_resident_bytes: u64,
}

/// Its use over a while.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Usage {
    /// Of one core.
    pub cpu_percent: f64,
    /// Main memory at the end.
    pub resident_bytes: u64,
    /// The most main memory it has had since its start.
    pub peak_resident_bytes: u64,
}

impl ServerProcess {
    /// The process of this number.
    pub fn new(pid: u32) -> Self {
        Self { folder: PathBuf::from(format!("/proc/{pid}")) }
    }

    /// Now.
    pub fn sample(&self) -> Result<Sample> {
        let stat = self.read("stat")?;
        let status = self.read("status")?;
        Ok(Sample {
            processor_ticks: processor_ticks(&stat).context("/proc/PID/stat is not understood")?,
            resident_bytes: status_bytes(&status, "VmRSS:").context("/proc/PID/status has no VmRSS")?,
            peak_resident_bytes: status_bytes(&status, "VmHWM:").context("/proc/PID/status has no VmHWM")?,
        })
    }

    fn read(&self, name: &str) -> Result<String> {
        let path = self.folder.join(name);
        fs::read_to_string(&path).with_context(|| format!("cannot read {}: has the server ended?", path.display()))
    }
}

impl Sample {
    /// From an earlier moment to this one.
    pub fn since(self, before: Self, passed: Duration) -> Usage {
        let ticks = self.processor_ticks.saturating_sub(before.processor_ticks);
        Usage {
            cpu_percent: ticks as f64 / TICKS_PER_SECOND / passed.as_secs_f64() * 100.0,
            resident_bytes: self.resident_bytes,
            peak_resident_bytes: self.peak_resident_bytes,
        }
    }
}

/// Fields 14 and 15, `utime` and `stime`. Field 2 is the program's name and may hold spaces and brackets.
fn processor_ticks(stat: &str) -> Option<u64> {
    let (_, after_name) = stat.rsplit_once(')')?;
    let mut fields = after_name.split_whitespace().skip(11);
    let user: u64 = fields.next()?.parse().ok()?;
    let system: u64 = fields.next()?.parse().ok()?;
    Some(user + system)
}

fn status_bytes(status: &str, field: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix(field))?;
    let kibibytes: u64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kibibytes * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processor_time_is_read_behind_a_name_with_brackets() {
        let stat = "42 (a b) c) S 1 42 42 0 -1 4194560 100 0 0 0 12 30 0 0 20 0 5 0 100 1000 10";
        assert_eq!(processor_ticks(stat), Some(42));
    }

    #[test]
    fn memory_is_read_in_bytes() {
        assert_eq!(status_bytes("Name:\tx\nVmRSS:\t   10240 kB\n", "VmRSS:"), Some(10_485_760));
    }
}
