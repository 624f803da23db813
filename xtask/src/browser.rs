//! The browser part: the `app` crate as WebAssembly, its bindings, the stylesheet and the static files.

use crate::site::{self, SiteFile};
use crate::toolchain::{BROWSER_TARGET, BrowserToolchain};
use crate::workspace::{Profile, Workspace};
use crate::{glue, order, process, uncalled};
use anyhow::{Context, Result};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;
use wasm_bindgen_cli_support::Bindgen;

const COMPILE_LIMIT: Duration = Duration::from_hours(1);

/// Compiles what changed and lays the files out for the server. Does little when nothing changed.
pub fn build(workspace: &Workspace, profile: Profile) -> Result<()> {
    let wasm = compile(workspace, profile)?;
    let stamp = site::stamp(profile, &[wasm.clone(), workspace.root.join("style"), workspace.root.join("public")])?;
    if site::is_current(workspace, profile, &stamp) {
        return Ok(());
    }
    let mut files = bindings(workspace, profile, &wasm)?;
    files.push(SiteFile { name: "app.css".to_owned(), bytes: stylesheet(workspace)?.into_bytes() });
    files.extend(site::read_folder(&workspace.root.join("public"))?);
    site::write(workspace, profile, files, &stamp)
}

fn compile(workspace: &Workspace, profile: Profile) -> Result<PathBuf> {
    let profile_name = match profile {
        Profile::Dev => "wasm-dev",
        Profile::Release => "wasm-release",
    };
    // Its own target folder: it shares nothing with the server's build, and the two never wait for each other.
    let target = workspace.target.join("web");
    let mut cargo = workspace.cargo();
    cargo
        .args(["rustc", "--locked", "--package", "app", "--lib", "--crate-type", "cdylib"])
        .args(["--no-default-features", "--features", "hydrate", "--target", BROWSER_TARGET, "--profile", profile_name])
        .env("CARGO_TARGET_DIR", &target)
        // flags meant for this machine's processor
        .env_remove("RUSTFLAGS")
        .env_remove("CARGO_ENCODED_RUSTFLAGS");
    if profile == Profile::Release {
        cargo.env("CARGO_ENCODED_RUSTFLAGS", release_flags().join("\u{1f}"));
    }
    BrowserToolchain::find_or_make(workspace)?.apply(&mut cargo);
    process::run(&mut cargo, COMPILE_LIMIT)?;
    Ok(target.join(BROWSER_TARGET).join(profile_name).join("app.wasm"))
}

/// What `.cargo/config.toml` has, whose place a variable takes, and short paths of the libraries in the messages of panics:
/// nobody who reads those in a browser's console has the builder's folders.
fn release_flags() -> Vec<String> {
    let cargo_home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let cargo_home = cargo_home.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cargo")));
    let registries = cargo_home.and_then(|home| fs::read_dir(home.join("registry/src")).ok());
    let folders = registries.into_iter().flatten().filter_map(|entry| Some(entry.ok()?.path()));
    let shortened = folders.map(|folder| format!("--remap-path-prefix={}/=", folder.display()));
    ["--cfg", "erase_components"].map(str::to_owned).into_iter().chain(shortened).collect()
}

fn bindings(workspace: &Workspace, profile: Profile, wasm: &Path) -> Result<Vec<SiteFile>> {
    let folder = workspace.target.join("web/bindings");
    if folder.exists() {
        fs::remove_dir_all(&folder).with_context(|| format!("cannot empty {}", folder.display()))?;
    }
    let release = profile == Profile::Release;
    Bindgen::new()
        .input_module("app", uncalled::read_without_uncalled(wasm, !release)?)
        .web(true)?
        .typescript(false)
        .omit_default_module_path(true)
        .debug(!release)
        .generate(&folder)
        .context("wasm-bindgen failed")?;
    let mut files = site::read_folder(&folder)?;
    if release {
        let program = take(&mut files, "app_bg.wasm")?;
        let script =
            String::from_utf8(take(&mut files, "app.js")?).context("wasm-bindgen made a script that is no text")?;
        let (program, script) = glue::shrink(&program, &script)?;
        files.push(SiteFile { name: "app_bg.wasm".to_owned(), bytes: order::sort_functions(&program)? });
        files.push(SiteFile { name: "app.js".to_owned(), bytes: without_comments(&script).into_bytes() });
    }
    Ok(files)
}

fn take(files: &mut Vec<SiteFile>, name: &str) -> Result<Vec<u8>> {
    let place = files.iter().position(|file| file.name == name);
    let place = place.with_context(|| format!("wasm-bindgen made no {name}"))?;
    Ok(files.swap_remove(place).bytes)
}

/// The bindings without what is there for readers: lines of nothing but a comment, and indentation. A text over several
/// lines could hold what looks like a comment, so a script that has one stays as it is.
fn without_comments(script: &str) -> String {
    let has_long_text = script.lines().any(|line| line.matches('`').count() % 2 == 1);
    if has_long_text {
        return script.to_owned();
    }
    let kept = script.lines().map(str::trim).filter(|line| !line.is_empty() && !is_comment(line));
    kept.collect::<Vec<_>>().join("\n")
}

/// Whether the line is one of the generator's comments, which are of one line, or begin each line with a star.
fn is_comment(line: &str) -> bool {
    let is_block = line.starts_with("/*") && (line.ends_with("*/") || !line.contains("*/"));
    is_block || line.starts_with("//") || line.starts_with("* ") || line == "*" || line == "*/"
}

fn stylesheet(workspace: &Workspace) -> Result<String> {
    let options = grass::Options::default().style(grass::OutputStyle::Compressed);
    grass::from_path(workspace.root.join("style/main.scss"), &options)
        .map_err(|error| anyhow::anyhow!("style/main.scss: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_indentation_are_left_out_and_code_is_not() {
        let script = "/**\n * @returns {number}\n */\nfunction a() {\n    // why\n    return `x` * 2; // said\n\n}\n/* b */ b();";
        assert_eq!(without_comments(script), "function a() {\nreturn `x` * 2; // said\n}\n/* b */ b();");
        let long_text = "a(`\n  // not a comment`);";
        assert_eq!(without_comments(long_text), long_text);
    }
}
