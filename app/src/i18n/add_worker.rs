//! Texts of the page that gives the join command.

/// Texts of the page that gives the join command.
#[derive(Debug)]
pub struct AddWorkerMessages {
    /// Title of the page.
    pub title: &'static str,
}

/// English.
pub const EN: AddWorkerMessages = AddWorkerMessages { title: "Add worker" };

/// Simplified Chinese.
pub const ZH: AddWorkerMessages = AddWorkerMessages { title: "添加节点" };
