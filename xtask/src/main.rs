//! `cargo xtask build [--release]`: browser files (wasm, js, css) first, then the server that embeds them.
use anyhow::{Context, Result, bail};
use std::{
    fs,
    io::Write,
    path::{Path, PathBuf},
    process::Command,
    time::Instant,
};

const TARGET: &str = "wasm32-unknown-unknown";
const FALLBACK: &str = "wasm32-debian"; // the toolchain that scripts/wasm-target.sh links

fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let release = args.iter().any(|a| a == "--release");
    // set by `cargo run`; not env!(), which would go stale in a copied target folder
    std::env::set_current_dir(Path::new(&std::env::var("CARGO_MANIFEST_DIR")?).parent().unwrap())?;
    match args.first().map(String::as_str) {
        Some("web") => web(release),
        Some("build") => web(release).and_then(|()| server(release)),
        _ => bail!("usage: cargo xtask web|build [--release]"),
    }
}

fn run(c: &mut Command) -> Result<()> {
    eprintln!("+ {c:?}");
    if !c.status().with_context(|| format!("{c:?}"))?.success() {
        bail!("failed: {c:?}")
    }
    Ok(())
}

/// Does this toolchain (None: the active one) have std for the browser target?
fn has_target(toolchain: Option<&str>) -> bool {
    let mut c = Command::new("rustc");
    if let Some(t) = toolchain {
        c.env("RUSTUP_TOOLCHAIN", t);
    }
    let Ok(out) = c.args(["--print", "target-libdir", "--target", TARGET]).stderr(std::process::Stdio::null()).output()
    else {
        return false;
    };
    let dir = PathBuf::from(String::from_utf8_lossy(&out.stdout).trim());
    out.status.success()
        && fs::read_dir(dir).is_ok_and(|d| d.flatten().any(|f| f.file_name().to_string_lossy().starts_with("libstd-")))
}

/// The rustup toolchain for the browser build; None is the active one.
fn wasm_toolchain() -> Result<Option<&'static str>> {
    if has_target(None) {
        return Ok(None);
    }
    if has_target(Some(FALLBACK)) {
        return Ok(Some(FALLBACK));
    }
    if std::env::var_os("WASM_TARGET_NO_RUSTUP").is_none() {
        let _ = Command::new("rustup").args(["target", "add", TARGET]).status();
        if has_target(None) {
            return Ok(None);
        }
    }
    let _ = Command::new("bash").arg("scripts/wasm-target.sh").status();
    if has_target(Some(FALLBACK)) {
        return Ok(Some(FALLBACK));
    }
    bail!("no {TARGET} standard library: run `rustup target add {TARGET}`")
}

fn web(release: bool) -> Result<()> {
    let profile = if release { "wasm-release" } else { "dev" };
    let t = Instant::now();
    let mut c = Command::new("cargo");
    if let Some(tc) = wasm_toolchain()? {
        c.env("RUSTUP_TOOLCHAIN", tc);
    }
    // its own target folder: the browser build shares nothing with the server's, and the two never wait for each other
    c.env_remove("CARGO").env("CARGO_TARGET_DIR", "target/web");
    run(c.args([
        "rustc",
        "--locked",
        "-p",
        "app",
        "--lib",
        "--crate-type",
        "cdylib",
        "--no-default-features",
        "--features",
        "hydrate",
        "--target",
        TARGET,
        "--profile",
        profile,
    ]))?;
    eprintln!("  wasm compiled in {:.1?}", t.elapsed());
    let dir = if release { "wasm-release" } else { "debug" };
    let input = format!("target/web/{TARGET}/{dir}/app.wasm");
    let tmp = Path::new("target/web/bindgen");
    let _ = fs::remove_dir_all(tmp);
    fs::create_dir_all(tmp)?;
    let t = Instant::now();
    wasm_bindgen_cli_support::Bindgen::new()
        .input_path(&input)
        .out_name("app")
        .web(true)?
        .typescript(false)
        .omit_default_module_path(true)
        .debug(!release)
        .keep_debug(!release)
        .remove_name_section(release)
        .remove_producers_section(true)
        .generate(tmp)?;
    eprintln!("  bindings generated in {:.1?}", t.elapsed());
    if release {
        optimise(&tmp.join("app_bg.wasm"))?;
    }

    let t = Instant::now();
    let css = grass::from_path("style/main.scss", &grass::Options::default().style(grass::OutputStyle::Compressed))
        .map_err(|e| anyhow::anyhow!("{e}"))?;
    fs::write(tmp.join("app.css"), css)?;
    let mut files = Vec::new();
    collect(tmp, tmp, &mut files)?;
    files.sort();
    // one folder named by the hash of everything in it: files refer to each other by plain relative names
    let mut hash = 0xcbf29ce484222325u64;
    for (name, data) in &files {
        for b in name.bytes().chain(data.iter().copied()) {
            hash = (hash ^ u64::from(b)).wrapping_mul(0x100000001b3);
        }
    }
    let site = Path::new("target/site/pkg");
    let _ = fs::remove_dir_all(site);
    let id = format!("{hash:016x}");
    let (mut total, mut zipped) = (0, 0);
    for (name, data) in &files {
        let path = site.join(&id).join(name);
        fs::create_dir_all(path.parent().unwrap())?;
        let br = put(&path, data, release)?;
        total += data.len();
        zipped += br;
    }
    eprintln!("  all files: {total} bytes, brotli {zipped}");
    fs::write(site.join("folder"), &id)?;
    eprintln!("  site written in {:.1?}", t.elapsed());
    Ok(())
}

fn collect(root: &Path, dir: &Path, out: &mut Vec<(String, Vec<u8>)>) -> Result<()> {
    for f in fs::read_dir(dir)? {
        let p = f?.path();
        if p.is_dir() {
            collect(root, &p, out)?;
            continue;
        }
        out.push((p.strip_prefix(root)?.to_string_lossy().replace('\\', "/"), fs::read(&p)?));
    }
    Ok(())
}

/// Shrinks further where a wasm-opt program is about; the build does not need it.
fn optimise(path: &Path) -> Result<()> {
    let before = fs::metadata(path)?.len();
    let tool = std::env::var("WASM_OPT").unwrap_or("wasm-opt".into());
    let out = path.with_extension("opt");
    let t = Instant::now();
    match Command::new(&tool).arg(path).args(["-Oz", "--all-features", "-o"]).arg(&out).status() {
        Ok(s) if s.success() => {
            fs::rename(&out, path)?;
            eprintln!("  {tool}: {before} -> {} bytes in {:.1?}", fs::metadata(path)?.len(), t.elapsed());
        }
        Ok(s) => bail!("{tool} failed: {s}"),
        Err(_) => eprintln!("  no wasm-opt here: the browser file stays somewhat larger"),
    }
    Ok(())
}

/// Writes a file, and in release its compressed forms beside it; returns the brotli size.
fn put(path: &Path, data: &[u8], compress: bool) -> Result<usize> {
    fs::write(path, data)?;
    if !compress {
        return Ok(0);
    }
    let with = |ext: &str| PathBuf::from(format!("{}.{ext}", path.display()));
    let mut br = Vec::new();
    let p = brotli::enc::BrotliEncoderParams { quality: 11, lgwin: 24, size_hint: data.len(), ..Default::default() };
    brotli::BrotliCompress(&mut &data[..], &mut br, &p)?;
    let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    gz.write_all(data)?;
    let gz = gz.finish()?;
    eprintln!(
        "  {}: {} bytes, gzip {}, brotli {}",
        path.file_name().unwrap().display(),
        data.len(),
        gz.len(),
        br.len()
    );
    fs::write(with("br"), &br)?;
    fs::write(with("gz"), gz)?;
    Ok(br.len())
}

/// `--static`: one file that needs no C library beside it (glibc is linked in), for an empty container image.
fn server(release: bool) -> Result<()> {
    let mut c = Command::new("cargo");
    c.env_remove("CARGO").args(["build", "--locked"]);
    if release {
        c.arg("--release");
    }
    if std::env::args().any(|a| a == "--static") {
        // with --target the flag reaches neither build scripts nor macros; the variable replaces what .cargo/config.toml sets
        c.env("RUSTFLAGS", "-C target-feature=+crt-static --cfg erase_components").args(["--target", "x86_64-unknown-linux-gnu"]);
    }
    run(&mut c)
}
