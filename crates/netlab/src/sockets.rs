//! The TCP sockets of a host, as the kernel lists them.

use anyhow::{Context, Result};

/// States of `/proc/net/tcp`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SocketState {
    Established,
    Listening,
}

/// How many sockets of this state have this port at their own end, on the host of this process.
pub fn count(process: &str, state: SocketState, port: u16) -> Result<usize> {
    let mut count = 0;
    for table in ["tcp", "tcp6"] {
        let path = format!("/proc/{process}/net/{table}");
        let table = std::fs::read_to_string(&path).with_context(|| format!("cannot read {path}"))?;
        count += table.lines().filter(|line| is_socket(line, state, port)).count();
    }
    Ok(count)
}

fn is_socket(line: &str, state: SocketState, port: u16) -> bool {
    let state = match state {
        SocketState::Established => "01",
        SocketState::Listening => "0A",
    };
    let mut fields = line.split_whitespace().skip(1);
    let local = fields.next().unwrap_or_default();
    local.ends_with(&format!(":{port:04X}")) && fields.nth(1) == Some(state)
}

#[cfg(test)]
mod tests {
    use super::SocketState::{Established, Listening};
    use super::*;

    #[test]
    fn sockets_are_told_by_their_own_port_and_their_state() {
        let connection = "   1: 010A12C6:1F9A 140A12C6:D2F0 01 00000000:00000000 00:00000000 00000000 0 0 77 1";
        let listener = "   1: 00000000:1F9A 00000000:0000 0A 00000000:00000000 00:00000000 00000000 0 0 77 1";
        let other_end = "   1: 010A12C6:D2F0 140A12C6:1F9A 01 00000000:00000000 00:00000000 00000000 0 0 77 1";
        let closed = "   1: 010A12C6:1F9A 140A12C6:D2F0 06 00000000:00000000 00:00000000 00000000 0 0 77 1";
        let heading = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid";
        for line in [connection, listener, other_end, closed, heading] {
            assert_eq!(is_socket(line, Established, 8090), line == connection, "{line}");
            assert_eq!(is_socket(line, Listening, 8090), line == listener, "{line}");
        }
    }
}
