//! Cables that are pulled, cut, lossy, long and slow.

use crate::field::{Field, has_link, lost_link};
use netlab::{Quality, condition, has};
use std::time::Duration;

const SILENT: Quality = Quality { is_silent: true, delay: Duration::ZERO, loss_per_mille: 0, bytes_per_s: None };

pub fn a_worker_whose_cable_is_pulled_is_not_ready_until_it_is_plugged_in_again() {
    // the shortest that is allowed
    let field = Field::with(&["--worker-offline-timeout", "30"]);
    let host = field.host(20);
    let _worker = host.start_worker("npu-a");
    let before = field.settled("npu-a");
    let open = field.open();
    host.pull_cable();
    let row = field.worker("npu-a", "is not ready", |row| row["state"] == "not_ready");
    assert!(has(&row, "heartbeat", "false", "heartbeat_lost"), "{row}");
    field.worker("npu-a", "has lost its link", |row| lost_link(row, "silent"));
    host.plug_in_cable();
    field.is_back(&before);
    field.has_no_more_open_than(open);
}

pub fn a_worker_cut_off_without_a_word_is_unreachable_until_it_is_heard_again() {
    let field = Field::new();
    let (host, other_host) = (field.host(20), field.host(21));
    let _worker = host.start_worker("npu-a");
    let before = field.settled("npu-a");
    let _other_worker = other_host.start_worker("npu-b");
    let others_link = field.settled_link("npu-b");
    host.cable.set(SILENT);
    let row = field.worker("npu-a", "is unreachable", |row| row["state"] == "unreachable");
    assert!(lost_link(&row, "silent"), "{row}");
    assert!(has(&row, "direct", "false", "direct_timed_out"), "{row}");
    assert!(has(&row, "heartbeat", "true", "heartbeat_received"), "its time to be heard is not over: {row}");
    host.cable.set(Quality::default());
    field.is_back(&before);
    assert_eq!(field.settled_link("npu-b"), others_link, "the fault is one worker's alone");
}

pub fn a_worker_behind_a_cable_that_loses_packets_stays_ready() {
    let field = Field::new();
    let host = field.host(20);
    host.cable.set(Quality { loss_per_mille: 50, ..Quality::default() });
    let _worker = host.start_worker("npu-a");
    let before = field.settled("npu-a");
    let link = field.settled_link("npu-a");
    field.stays_ready("npu-a", 3);
    field.is_back(&before);
    assert_eq!(field.settled_link("npu-a"), link, "the link outlives lost packets");
}

pub fn a_worker_far_away_is_ready_and_its_distance_is_known() {
    let field = Field::new();
    let host = field.host(20);
    host.cable.set(Quality { delay: Duration::from_millis(200), ..Quality::default() });
    let _worker = host.start_worker("npu-a");
    let before = field.settled("npu-a");
    field.worker("npu-a", "shows its distance", |row| {
        let round_trip_ms = row["link"]["readings"][0].as_f64();
        has_link(row) && round_trip_ms.is_some_and(|ms| ms >= 400.0)
    });
    let row = field.worker("npu-a", "has a measured clock", |row| has(row, "clock", "true", "clock_in_sync"));
    // the way there and the way back may differ by as much as the round trip takes
    let error_ms = condition(&row, "clock").unwrap()["params"]["error_ms"].as_i64().unwrap();
    assert!(error_ms >= 200, "{row}");
    field.is_back(&before);
}

pub fn a_worker_behind_a_slow_line_stays_ready() {
    const MEGABIT: u64 = 1_000_000 / 8;
    let field = Field::new();
    let host = field.host(20);
    host.cable.set(Quality { bytes_per_s: Some(MEGABIT), ..Quality::default() });
    let _worker = host.start_worker("npu-a");
    let before = field.settled("npu-a");
    let link = field.settled_link("npu-a");
    field.stays_ready("npu-a", 3);
    field.is_back(&before);
    assert_eq!(field.settled_link("npu-a"), link, "a slow line is no broken one");
}

pub fn a_link_that_a_router_forgot_is_replaced_by_itself() {
    let field = Field::new();
    let host = field.host(20);
    let _worker = host.start_worker("npu-a");
    let before = field.settled("npu-a");
    let (link, open) = (field.settled_link("npu-a"), field.open());
    host.cable.forget_connections();
    field.has_other_link("npu-a", &link);
    field.is_back(&before);
    field.has_no_more_open_than(open);
}
