//! Workers whose clocks are a time zone off.

use crate::field::Field;
use netlab::{condition, has};

pub fn a_worker_whose_clock_is_eight_hours_ahead_is_ready_and_told_of() {
    is_ready_with_clock("+8h", 16);
}

pub fn a_worker_whose_clock_is_eight_hours_behind_is_ready_and_told_of() {
    is_ready_with_clock("-8h", -16);
}

fn is_ready_with_clock(shift: &str, half_hours: i64) {
    let field = Field::new();
    let host = field.host(20);
    // time that passes stays as it is
    let wrapper = ["env", "FAKETIME_DONT_FAKE_MONOTONIC=1", "faketime", "-m", "-f", shift];
    let _worker = host.start_worker_under("npu-a", &wrapper);
    let before = field.settled("npu-a");
    let row = field.worker("npu-a", "is told of", |row| has(row, "clock", "false", "clock_offset_zone"));
    assert_eq!(condition(&row, "clock").unwrap()["params"]["half_hours"], half_hours, "{row}");
    field.stays_ready("npu-a", 2);
    field.is_back(&before);
}
