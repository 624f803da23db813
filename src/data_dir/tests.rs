use super::*;
use crate::config::JoinToken;
use std::os::unix::fs::PermissionsExt;
use tempfile::TempDir;

const TOKEN: &str = "c8e291d8045736ab3aa5ddb6de619291";

fn data_dir() -> (TempDir, DataDir) {
    let temporary = tempfile::tempdir().unwrap();
    let data_dir = DataDir::open(&temporary.path().join("state")).unwrap();
    (temporary, data_dir)
}

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn the_folder_and_its_files_are_for_their_owner_alone() {
    let (_temporary, data_dir) = data_dir();
    assert_eq!(mode(data_dir.path()), 0o700);
    data_dir.write("secret", "x").unwrap();
    assert_eq!(mode(&data_dir.file("secret")), 0o600);
}

#[test]
fn writing_replaces_as_a_whole_and_leaves_nothing_else_behind() {
    let (_temporary, data_dir) = data_dir();
    assert_eq!(data_dir.read("name").unwrap(), None);
    data_dir.write("name", "first and long").unwrap();
    data_dir.write("name", "second").unwrap();
    assert_eq!(data_dir.read("name").unwrap().as_deref(), Some("second"));
    let names: Vec<_> = std::fs::read_dir(data_dir.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["name"]);
    data_dir.remove("name").unwrap();
    data_dir.remove("name").unwrap();
    assert_eq!(data_dir.read("name").unwrap(), None);
}

#[test]
fn a_token_is_made_once_in_gpustacks_form() {
    let (_temporary, data_dir) = data_dir();
    let made = data_dir.join_token(None).unwrap();
    let text = data_dir.read("token").unwrap().unwrap();
    assert_eq!(text, format!("{}\n", made.expose()));
    assert_eq!(made.expose().len(), 32);
    assert!(made.expose().bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte)));
    assert_eq!(mode(&data_dir.token_path()), 0o600);
    assert_eq!(data_dir.join_token(None).unwrap(), made);
}

#[test]
fn a_token_that_is_there_is_kept_however_it_was_written() {
    for written in [format!("{TOKEN}\n"), format!("\u{feff}{TOKEN}\r\n"), format!("# old\n\n {TOKEN}")] {
        let (_temporary, data_dir) = data_dir();
        std::fs::write(data_dir.token_path(), &written).unwrap();
        assert_eq!(data_dir.join_token(None).unwrap().expose(), TOKEN);
        assert_eq!(data_dir.read("token").unwrap().unwrap(), written);
    }
}

#[test]
fn a_given_token_wins_and_is_not_written_down() {
    let (_temporary, data_dir) = data_dir();
    let given = JoinToken::parse("given").unwrap();
    assert_eq!(data_dir.join_token(Some(&given)).unwrap(), given);
    assert_eq!(data_dir.read("token").unwrap(), None);
}

#[test]
fn a_token_file_that_cannot_be_meant_is_named_and_not_shown() {
    for (written, expected) in
        [("", "is empty"), ("\n", "is empty"), ("one1 two2", "more than one"), ("one1\ntwo2\n", "more than one")]
    {
        let (_temporary, data_dir) = data_dir();
        std::fs::write(data_dir.token_path(), written).unwrap();
        let told = data_dir.join_token(None).unwrap_err().to_string();
        assert!(told.contains(expected) && told.contains("/token"), "{told}");
        assert!(!told.contains("one1"), "{told}");
    }
}

#[test]
fn one_server_and_one_worker_use_a_folder() {
    let (_temporary, data_dir) = data_dir();
    let held = data_dir.lock(LockName::Server).unwrap();
    let _worker = data_dir.lock(LockName::Worker).unwrap();
    let Err(DataDirError::InUse { pid, .. }) = data_dir.lock(LockName::Server) else { panic!("locked twice") };
    assert_eq!(pid, std::process::id());
    drop(held);
    data_dir.lock(LockName::Server).unwrap();
}

#[test]
fn a_file_in_the_folders_place_is_told() {
    let temporary = tempfile::tempdir().unwrap();
    let path = temporary.path().join("file");
    std::fs::write(&path, "").unwrap();
    for error in [DataDir::open(&path).unwrap_err(), DataDir::existing(&path).unwrap_err()] {
        let told = error.to_string();
        assert!(
            told.starts_with("cannot use the data directory") && told.ends_with("a file is in its place"),
            "{told}"
        );
    }
    assert!(matches!(DataDir::existing(&temporary.path().join("no")), Err(DataDirError::Missing { .. })));
}

#[test]
fn a_full_or_read_only_disk_says_what_to_do() {
    for (kind, expected) in [
        (io::ErrorKind::StorageFull, "free some space there"),
        (io::ErrorKind::ReadOnlyFilesystem, "mount it writable"),
        (io::ErrorKind::PermissionDenied, "run as its owner"),
    ] {
        let error = DataDirError::Write { path: "/d/token".into(), source: kind.into() };
        assert!(error.to_string().contains(expected), "{error}");
    }
}
