//! The browser part: the `app` crate as WebAssembly, its bindings, the stylesheet and the static files.

use crate::site::{self, SiteFile};
use crate::toolchain::{BROWSER_TARGET, BrowserToolchain};
use crate::workspace::{Profile, Workspace};
use crate::{order, process, uncalled};
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
    BrowserToolchain::find_or_make(workspace)?.apply(&mut cargo);
    process::run(&mut cargo, COMPILE_LIMIT)?;
    Ok(target.join(BROWSER_TARGET).join(profile_name).join("app.wasm"))
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
        let program = files.iter_mut().find(|file| file.name == "app_bg.wasm");
        let program = program.context("wasm-bindgen made no app_bg.wasm")?;
        program.bytes = order::sort_functions(&program.bytes)?;
    }
    Ok(files)
}

fn stylesheet(workspace: &Workspace) -> Result<String> {
    let options = grass::Options::default().style(grass::OutputStyle::Compressed);
    grass::from_path(workspace.root.join("style/main.scss"), &options)
        .map_err(|error| anyhow::anyhow!("style/main.scss: {error}"))
}
