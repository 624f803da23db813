//! Whether the names resolve that this host has to resolve by itself.

use super::{ForwardId, Plan};
use api::ForwardDirection;
use app::i18n::Language;
use app::i18n::system_words::SystemCause;
use futures_util::future::join_all;
use ssh::Endpoint;
use std::collections::BTreeMap;
use std::io;
use std::net::IpAddr;
use std::time::Duration;
use thiserror::Error;
use tokio::net::lookup_host;
use tokio::time::timeout;

/// For all names together.
const DEADLINE: Duration = Duration::from_secs(5);

/// A name that does not resolve. Shows itself in English.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{}", self.text(Language::En))]
pub struct NameProblem {
    /// The name.
    pub name: String,
    /// Why not; as when no name server answers, when nothing came within 5 s.
    pub cause: SystemCause,
    /// The forwards that need it.
    pub forwards: Vec<ForwardId>,
}

impl NameProblem {
    /// In a language.
    pub fn text(&self, language: Language) -> String {
        let Self { name, cause, forwards } = self;
        let cause = cause.words(language);
        let forwards: Vec<&str> = forwards.iter().map(ForwardId::as_str).collect();
        match language {
            Language::En => format!(
                "the name {name} does not resolve on this host: {cause}; write an address, or enter the name into DNS or \
                 /etc/hosts (needed by {})",
                forwards.join(", ")
            ),
            Language::Zh => format!(
                "主机名 {name} 在本机无法解析：{cause}；请改写地址，或将其加入 DNS 或 /etc/hosts（用于 {}）",
                forwards.join("、")
            ),
        }
    }
}

/// Looks up the first SSH server of each way, and listeners and targets on this host's side. All other names are
/// resolved by the SSH servers. Takes at most 5 s.
pub async fn check_names(plan: &Plan) -> Vec<NameProblem> {
    check_with(plan, |name| async move { lookup_host((name, 0)).await.map(|_| ()) }).await
}

async fn check_with<F>(plan: &Plan, look_up: impl Fn(String) -> F) -> Vec<NameProblem>
where
    F: Future<Output = io::Result<()>>,
{
    let checks = names(plan).into_iter().map(|(name, forwards)| {
        let looked_up = timeout(DEADLINE, look_up(name.to_owned()));
        async move {
            let cause = match looked_up.await {
                Ok(Ok(())) => return None,
                Ok(Err(error)) => SystemCause::of(&error),
                Err(_) => SystemCause::NoNameServer,
            };
            Some(NameProblem { name: name.to_owned(), cause, forwards })
        }
    });
    join_all(checks).await.into_iter().flatten().collect()
}

/// The names, and who needs them.
fn names(plan: &Plan) -> BTreeMap<&str, Vec<ForwardId>> {
    let mut names: BTreeMap<&str, Vec<ForwardId>> = BTreeMap::new();
    for forward in &plan.forwards {
        let here = match forward.direction {
            ForwardDirection::Local => &forward.listen,
            ForwardDirection::Remote => &forward.target,
        };
        let first = forward.route.first().map(|hop| &hop.server);
        for Endpoint { host, .. } in first.into_iter().chain([here]) {
            let is_address = host.split('%').next().is_some_and(|address| address.parse::<IpAddr>().is_ok());
            let forwards = if is_address { continue } else { names.entry(host).or_default() };
            if !forwards.contains(&forward.id) {
                forwards.push(forward.id.clone());
            }
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tunnel::plan::tests::plan;

    const FILE: &str = "
server: {address: server.corp:8090, ssh: root@jump.corp}
workers:
  npu-1: {ssh: root@npu-1.corp, via: b}
bastions:
  b: {ssh: t@b.corp}
forwards:
  back: {remote: 9000, target: loki.corp:3100, ssh: npu-1}
";

    #[tokio::test]
    async fn only_names_that_this_host_resolves_are_looked_up() {
        let plan = plan(FILE);
        let problems = check_with(&plan, |name| async move {
            if name == "jump.corp" { Ok(()) } else { Err(io::Error::other("Name or service not known")) }
        });
        let problems = problems.await;
        let names: Vec<&str> = problems.iter().map(|problem| problem.name.as_str()).collect();
        assert_eq!(names, ["b.corp", "loki.corp"]);
        insta::assert_snapshot!(problems[0]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_resolver_that_hangs_is_not_waited_for() {
        let problems = check_with(&plan(FILE), |_| std::future::pending()).await;
        assert_eq!((problems.len(), &problems[0].cause), (3, &SystemCause::NoNameServer));
    }
}
