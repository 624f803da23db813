//! Builds, starts and tests the project: `cargo xtask help`.

mod browser;
mod glue;
mod machine;
mod order;
mod process;
mod server;
mod site;
mod steps;
mod suite;
mod toolchain;
mod uncalled;
mod workspace;

use anyhow::{Result, bail};
use std::process::ExitCode;
use steps::Steps;
use workspace::{Profile, Workspace};

const USAGE: &str = "\
cargo xtask start [ARG…]              build a release and run `gpustack start` on port 8090, data in ./gpustack-data;
                                      ARGs are passed on to it
cargo xtask test [--no-browser]       every test: Rust's, then the browser's
cargo xtask browser-test [ARG…]       the browser tests alone; ARGs are passed on to Playwright
cargo xtask build [--release] [--static]
                                      the browser part and the server that carries it; --static links the C library in
cargo xtask web [--release]           the browser part alone";

enum Task {
    Help,
    Start { server_args: Vec<String> },
    Test { browser: bool },
    BrowserTest { playwright_args: Vec<String> },
    Build { profile: Profile, linkage: server::Linkage },
    Web { profile: Profile },
}

fn main() -> ExitCode {
    let outcome = parse(std::env::args().skip(1).collect()).and_then(run);
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn parse(mut args: Vec<String>) -> Result<Task> {
    if args.is_empty() {
        return Ok(Task::Help);
    }
    let task = args.remove(0);
    let mut flag = |name: &str| {
        let before = args.len();
        args.retain(|arg| arg != name);
        args.len() < before
    };
    let task = match task.as_str() {
        "start" => return Ok(Task::Start { server_args: args }),
        "browser-test" => return Ok(Task::BrowserTest { playwright_args: args }),
        "test" => Task::Test { browser: !flag("--no-browser") },
        "build" => Task::Build {
            profile: Profile::from_release(flag("--release")),
            linkage: server::Linkage::from_static(flag("--static")),
        },
        "web" => Task::Web { profile: Profile::from_release(flag("--release")) },
        "help" | "--help" | "-h" => Task::Help,
        other => bail!("there is no task `{other}`\n{USAGE}"),
    };
    match args.first() {
        None => Ok(task),
        Some(unknown) => bail!("`{unknown}` means nothing here\n{USAGE}"),
    }
}

fn run(task: Task) -> Result<()> {
    if matches!(task, Task::Help) {
        eprintln!("{USAGE}");
        return Ok(());
    }
    let workspace = Workspace::find()?;
    match task {
        Task::Help => Ok(()),
        Task::Start { server_args } => server::start(&workspace, server_args),
        Task::Test { browser } => suite::run_all(&workspace, browser),
        Task::BrowserTest { playwright_args } => suite::run_browser(&workspace, &playwright_args),
        Task::Build { profile, linkage } => {
            let mut steps = Steps::new(2);
            machine::require_c_compiler()?;
            steps.run("browser part", || browser::build(&workspace, profile))?;
            let binary = steps.run("server", || server::build(&workspace, profile, linkage))?;
            eprintln!("built {}", binary.display());
            Ok(())
        }
        Task::Web { profile } => Steps::new(1).run("browser part", || browser::build(&workspace, profile)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse_line(line: &str) -> Result<Task> {
        parse(line.split_whitespace().map(str::to_owned).collect())
    }

    #[test]
    fn what_follows_start_belongs_to_the_server() {
        let Ok(Task::Start { server_args }) = parse_line("start --port 9000 --debug") else { panic!("no start") };
        assert_eq!(server_args, ["--port", "9000", "--debug"]);
    }

    #[test]
    fn flags_stand_in_any_order() {
        let task = parse_line("build --static --release");
        assert!(matches!(task, Ok(Task::Build { profile: Profile::Release, linkage: server::Linkage::Static })));
    }

    #[test]
    fn an_unknown_flag_is_named() {
        let error = parse_line("test --no-broswer").err().map(|error| error.to_string());
        assert!(error.is_some_and(|text| text.contains("--no-broswer")));
    }
}
