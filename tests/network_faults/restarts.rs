//! Programs that are killed, and hosts that vanish.

use crate::field::{Field, lost_link};
use netlab::{Quality, has};

/// More than any connection of the moment could hide.
const OFTEN: usize = 6;

pub fn a_worker_that_is_killed_is_shown_as_gone_and_comes_back_as_itself() {
    let field = Field::new();
    let host = field.host(20);
    let worker = host.start_worker("npu-a");
    let before = field.settled("npu-a");
    worker.kill();
    let row = field.worker("npu-a", "is unreachable", |row| row["state"] == "unreachable");
    assert!(lost_link(&row, "closed"), "{row}");
    assert!(has(&row, "direct", "false", "direct_refused"), "{row}");
    let _worker = host.start_worker("npu-a");
    field.is_back(&before);
}

pub fn workers_that_are_killed_again_and_again_leave_nothing_open_on_the_server() {
    let field = Field::new();
    let host = field.host(20);
    let mut worker = host.start_worker("npu-a");
    let before = field.settled("npu-a");
    let open = field.open();
    for _ in 0..OFTEN {
        let link = field.settled_link("npu-a");
        worker.kill();
        worker = host.start_worker("npu-a");
        field.has_other_link("npu-a", &link);
    }
    field.is_back(&before);
    field.has_no_more_open_than(open);
    drop(worker);
}

pub fn a_worker_whose_host_vanished_comes_back_although_its_old_link_still_stands() {
    let field = Field::new();
    let host = field.host(20);
    let worker = host.start_worker("npu-a");
    let before = field.settled("npu-a");
    let (link, open) = (field.settled_link("npu-a"), field.open());
    // its kernel closes the connection, but nobody hears of it
    host.cable.set(Quality { is_silent: true, ..Quality::default() });
    worker.kill();
    host.cable.forget_connections();
    host.cable.set(Quality::default());
    let _worker = host.start_worker("npu-a");
    field.has_other_link("npu-a", &link);
    field.is_back(&before);
    field.has_no_more_open_than(open);
}

pub fn a_server_that_is_killed_knows_its_workers_again() {
    let mut field = Field::new();
    let host = field.host(20);
    let worker = host.start_worker("npu-a");
    let before = field.settled("npu-a");
    let open = worker.process().open_files().unwrap();
    for _ in 0..OFTEN {
        field.server.kill();
        field.server.start_again(&field.here).unwrap();
        field.settled_link("npu-a");
    }
    field.is_back(&before);
    netlab::until("no more open on the worker than before", || {
        let now = worker.process().open_files().unwrap();
        if now <= open { Ok(()) } else { Err(now) }
    });
}
