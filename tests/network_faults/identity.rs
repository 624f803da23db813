//! Two hosts that say that they are the same worker.

use crate::field::{Field, Identity};
use netlab::{condition, has};

pub fn a_copied_worker_is_refused_and_told_of_while_the_first_one_lives() {
    let field = Field::new();
    let (host, mut other_host) = (field.host(20), field.host(21));
    let _worker = host.start_worker("npu-a");
    let before = field.settled("npu-a");
    let link = field.settled_link("npu-a");
    other_host.folder = host.folder.copy().unwrap();
    let _copied = other_host.start_worker("npu-a");
    let row = field.worker("npu-a", "is told of", |row| has(row, "identity", "false", "identity_duplicated"));
    let told = &condition(&row, "identity").unwrap()["params"];
    assert_eq!((&told["hostname"], &told["address"]), (&"npu-21".into(), &other_host.address.to_string().into()));
    assert_eq!((&row["state"], &row["ip"]), (&"ready".into(), &host.address.to_string().into()), "{row}");
    assert_eq!(Identity::of(&row), before);
    assert_eq!(field.settled_link("npu-a"), link, "the copy takes no link away");
    assert_eq!(field.server.workers().unwrap().len(), 1);
}
