//! What is wrong with a `tunnels.yaml`, in words. A file for each language; one that lacks a fault does not compile.

mod en;
mod zh;

use super::problem::Fault;
use app::i18n::Language;
use app::i18n::system_words::SystemCause;
use std::path::Path;

/// What is wrong, and what to write instead, in a line.
pub fn fault(fault: &Fault, language: Language) -> String {
    match language {
        Language::En => en::fault(fault),
        Language::Zh => zh::fault(fault),
    }
}

/// The file cannot be read.
pub fn unreadable(path: &Path, cause: &SystemCause, language: Language) -> String {
    let (path, cause) = (path.display(), cause.words(language));
    match language {
        Language::En => format!("cannot read {path}: {cause}"),
        Language::Zh => format!("无法读取 {path}：{cause}"),
    }
}

fn path_of(table: &str, key: &str) -> String {
    if table.is_empty() { key.to_owned() } else { format!("{table}.{key}") }
}

#[cfg(test)]
mod tests;
