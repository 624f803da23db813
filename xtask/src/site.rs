//! The files that the server carries, as it expects them:
//! `target/site/{dev,release}/folder` holds a name, and the folder of that name beside it all files.
//!
//! The name is a hash of everything in the folder. So files can refer to each other by plain relative names, and a
//! browser may keep what it has for ever. A release has each file in compressed form beside it.

use crate::workspace::{Profile, Workspace};
use anyhow::{Context, Result, ensure};
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// WebAssembly, JavaScript and stylesheet together, compressed with brotli: more makes the first visit slow over a
/// tunnel.
const BUDGET_BYTES: usize = 350_000;

/// What compresses well; images and fonts are compressed already.
const COMPRESSED: [&str; 6] = ["wasm", "js", "css", "svg", "json", "webmanifest"];

/// A file of the site.
pub struct SiteFile {
    /// Its path below the folder, with `/`.
    pub name: String,
    /// All of it.
    pub bytes: Vec<u8>,
}

/// Stands for everything that a site is made from: when it is the same, so is the site.
pub fn stamp(profile: Profile, inputs: &[PathBuf]) -> Result<String> {
    let mut hasher = DefaultHasher::new();
    (profile == Profile::Release).hash(&mut hasher);
    own_build_time()?.hash(&mut hasher);
    for input in inputs {
        if input.is_file() {
            read(input)?.hash(&mut hasher);
            continue;
        }
        for file in read_folder(input)? {
            file.name.hash(&mut hasher);
            file.bytes.hash(&mut hasher);
        }
    }
    Ok(format!("{:016x}", hasher.finish()))
}

/// Whether the site that lies there was made with this stamp.
pub fn is_current(workspace: &Workspace, profile: Profile, stamp: &str) -> bool {
    let folder = folder(workspace, profile);
    folder.join("folder").exists() && fs::read_to_string(stamp_file(&folder)).is_ok_and(|found| found == stamp)
}

/// Replaces the site as a whole.
pub fn write(workspace: &Workspace, profile: Profile, mut files: Vec<SiteFile>, stamp: &str) -> Result<()> {
    files.sort_by(|a, b| a.name.cmp(&b.name));
    let folder = folder(workspace, profile);
    let fresh = folder.with_extension("new");
    remove(&fresh)?;
    let name = content_hash(&files);
    for file in &files {
        put(&fresh.join(&name).join(&file.name), &file.bytes)?;
    }
    put(&fresh.join("folder"), name.as_bytes())?;
    if profile == Profile::Release {
        compress_all(&fresh.join(&name), &files)?;
    }
    put_in_place(&fresh, &folder, stamp)
}

/// Puts the files of a release where a server built for debugging reads its own, so that tests run what is shipped.
pub fn lend_release_to_debug(workspace: &Workspace) -> Result<()> {
    let (release, dev) = (folder(workspace, Profile::Release), folder(workspace, Profile::Dev));
    let stamp = fs::read_to_string(stamp_file(&release)).context("there are no browser files of a release")?;
    if is_current(workspace, Profile::Dev, &stamp) {
        return Ok(());
    }
    let fresh = dev.with_extension("new");
    remove(&fresh)?;
    for file in read_folder(&release)? {
        put(&fresh.join(&file.name), &file.bytes)?;
    }
    put_in_place(&fresh, &dev, &stamp)
}

/// Fails when a browser has to load more than a slow tunnel carries.
pub fn require_within_budget(workspace: &Workspace) -> Result<()> {
    let files = read_folder(&folder(workspace, Profile::Release))?;
    let sent = files.iter().filter(|file| Path::new(&file.name).extension().is_some_and(|extension| extension == "br"));
    let sent_bytes = sent.map(|file| file.bytes.len()).sum();
    ensure!(sent_bytes <= BUDGET_BYTES, "{}", over_budget(sent_bytes));
    Ok(())
}

fn over_budget(sent_bytes: usize) -> String {
    format!(
        "the browser's files take {sent_bytes} bytes compressed, more than the {BUDGET_BYTES} that they may; \
         docs/adr/0009-one-copy-of-code-for-all-answers.md says how to make them smaller"
    )
}

fn put_in_place(fresh: &Path, folder: &Path, stamp: &str) -> Result<()> {
    remove(folder)?;
    fs::rename(fresh, folder).with_context(|| format!("cannot rename {}", fresh.display()))?;
    put(&stamp_file(folder), stamp.as_bytes())
}

/// All files below a folder, by name; none when the folder is not there.
pub fn read_folder(folder: &Path) -> Result<Vec<SiteFile>> {
    let mut files = Vec::new();
    collect(folder, "", &mut files)?;
    files.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(files)
}

fn collect(folder: &Path, prefix: &str, files: &mut Vec<SiteFile>) -> Result<()> {
    if !folder.exists() {
        return Ok(());
    }
    for entry in fs::read_dir(folder).with_context(|| format!("cannot list {}", folder.display()))? {
        let path = entry?.path();
        let own_name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let name = format!("{prefix}{own_name}");
        if path.is_dir() {
            collect(&path, &format!("{name}/"), files)?;
        } else {
            files.push(SiteFile { name, bytes: read(&path)? });
        }
    }
    Ok(())
}

/// In the project, not in the user's target folder: the server's source names it.
fn folder(workspace: &Workspace, profile: Profile) -> PathBuf {
    let name = match profile {
        Profile::Dev => "dev",
        Profile::Release => "release",
    };
    workspace.root.join("target/site").join(name)
}

fn stamp_file(folder: &Path) -> PathBuf {
    folder.with_extension("stamp")
}

fn own_build_time() -> Result<SystemTime> {
    let own = std::env::current_exe().context("this program's own file is not known")?;
    fs::metadata(&own).and_then(|data| data.modified()).with_context(|| format!("cannot read {}", own.display()))
}

fn content_hash(files: &[SiteFile]) -> String {
    let mut hasher = DefaultHasher::new();
    for file in files {
        file.name.hash(&mut hasher);
        file.bytes.hash(&mut hasher);
    }
    format!("{:016x}", hasher.finish())
}

fn compress_all(folder: &Path, files: &[SiteFile]) -> Result<()> {
    let mut sent_bytes = 0;
    for file in files.iter().filter(|file| compresses_well(&file.name)) {
        let brotli = brotli(&file.bytes)?;
        sent_bytes += brotli.len();
        put(&folder.join(format!("{}.br", file.name)), &brotli)?;
        put(&folder.join(format!("{}.gz", file.name)), &gzip(&file.bytes)?)?;
    }
    eprintln!("browser files: {sent_bytes} bytes compressed");
    // another compiler may make a little more of the same source, which is no reason to build nothing
    if sent_bytes > BUDGET_BYTES {
        eprintln!("warning: {}", over_budget(sent_bytes));
    }
    Ok(())
}

fn compresses_well(name: &str) -> bool {
    Path::new(name).extension().is_some_and(|extension| COMPRESSED.iter().any(|known| extension == *known))
}

/// Of 16 to 24, tried on what is sent: the encoder's own choice, 18, takes 660 bytes more of 338,000.
const BLOCK_BITS: i32 = 17;

fn brotli(bytes: &[u8]) -> Result<Vec<u8>> {
    let options = brotli::enc::BrotliEncoderParams {
        quality: 11,
        lgwin: 24,
        lgblock: BLOCK_BITS,
        size_hint: bytes.len(),
        ..Default::default()
    };
    let mut compressed = Vec::new();
    brotli::BrotliCompress(&mut &bytes[..], &mut compressed, &options)?;
    Ok(compressed)
}

fn gzip(bytes: &[u8]) -> Result<Vec<u8>> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    encoder.write_all(bytes)?;
    Ok(encoder.finish()?)
}

fn read(path: &Path) -> Result<Vec<u8>> {
    fs::read(path).with_context(|| format!("cannot read {}", path.display()))
}

fn put(path: &Path, bytes: &[u8]) -> Result<()> {
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent).with_context(|| format!("cannot make {}", parent.display()))?;
    }
    fs::write(path, bytes).with_context(|| format!("cannot write {}", path.display()))
}

fn remove(folder: &Path) -> Result<()> {
    if folder.exists() {
        fs::remove_dir_all(folder).with_context(|| format!("cannot remove {}", folder.display()))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn workspace(root: &Path) -> Workspace {
        Workspace { root: root.to_owned(), target: root.join("elsewhere") }
    }

    fn file(name: &str, text: &str) -> SiteFile {
        SiteFile { name: name.to_owned(), bytes: text.as_bytes().to_vec() }
    }

    #[test]
    fn a_release_carries_each_file_plain_and_compressed_in_one_named_folder() {
        let root = tempfile::tempdir().unwrap();
        write(&workspace(root.path()), Profile::Release, vec![file("snippets/a.js", "let a;")], "s").unwrap();
        let site = root.path().join("target/site/release");
        let named = site.join(fs::read_to_string(site.join("folder")).unwrap());
        for name in ["snippets/a.js", "snippets/a.js.br", "snippets/a.js.gz"] {
            assert!(named.join(name).is_file(), "{name}");
        }
    }

    #[test]
    fn changed_content_changes_the_folder_and_leaves_nothing_of_the_old_one() {
        let root = tempfile::tempdir().unwrap();
        let site = root.path().join("target/site/dev");
        let mut names = Vec::new();
        for text in ["one", "two"] {
            write(&workspace(root.path()), Profile::Dev, vec![file("app.css", text)], text).unwrap();
            names.push(fs::read_to_string(site.join("folder")).unwrap());
        }
        assert_ne!(names[0], names[1]);
        assert!(!site.join(&names[0]).exists());
    }

    #[test]
    fn a_site_is_current_only_for_its_own_stamp_and_profile() {
        let root = tempfile::tempdir().unwrap();
        let workspace = workspace(root.path());
        write(&workspace, Profile::Dev, vec![file("app.css", "x")], "first").unwrap();
        assert!(is_current(&workspace, Profile::Dev, "first"));
        assert!(!is_current(&workspace, Profile::Dev, "second"));
        assert!(!is_current(&workspace, Profile::Release, "first"));
    }

    #[test]
    fn a_release_that_is_lent_replaces_what_was_made_for_debugging() {
        let root = tempfile::tempdir().unwrap();
        let workspace = workspace(root.path());
        write(&workspace, Profile::Dev, vec![file("app.css", "for debugging")], "dev").unwrap();
        write(&workspace, Profile::Release, vec![file("app.css", "as shipped")], "release").unwrap();
        lend_release_to_debug(&workspace).unwrap();
        let of = |profile| read_folder(&folder(&workspace, profile)).unwrap();
        let (lent, shipped) = (of(Profile::Dev), of(Profile::Release));
        let plain =
            |files: &[SiteFile]| files.iter().map(|file| (file.name.clone(), file.bytes.clone())).collect::<Vec<_>>();
        assert_eq!(plain(&lent), plain(&shipped));
        assert!(!is_current(&workspace, Profile::Dev, "dev"));
    }

    #[test]
    fn a_browser_part_that_is_too_large_is_refused() {
        let root = tempfile::tempdir().unwrap();
        let workspace = workspace(root.path());
        let site = folder(&workspace, Profile::Release);
        put(&site.join("x/app.wasm.br"), &vec![0; BUDGET_BYTES]).unwrap();
        put(&site.join("x/app.wasm"), &vec![0; BUDGET_BYTES]).unwrap();
        require_within_budget(&workspace).unwrap();
        put(&site.join("x/app.css.br"), &[0]).unwrap();
        assert!(require_within_budget(&workspace).is_err());
    }

    #[test]
    fn a_changed_input_changes_the_stamp() {
        let root = tempfile::tempdir().unwrap();
        let input = root.path().join("main.scss");
        fs::write(&input, "a").unwrap();
        let before = stamp(Profile::Dev, &[root.path().to_owned()]).unwrap();
        fs::write(&input, "b").unwrap();
        assert_ne!(before, stamp(Profile::Dev, &[root.path().to_owned()]).unwrap());
    }
}
