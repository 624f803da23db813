//! What a login attempt came to, as the browser learns it: as a value, or in the query of the next page.

#[cfg(feature = "ssr")]
use crate::paths;
use serde::{Deserialize, Serialize};

/// What a login attempt came to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum LoginAnswer {
    /// The password was right. `check` is the page that shows whether the browser kept the cookie, and leads on.
    LoggedIn {
        /// A path of this server.
        check: String,
    },
    /// It was not.
    Refused(LoginProblem),
}

/// Why nobody is logged in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum LoginProblem {
    /// Wrong user or password.
    Wrong,
    /// Too many attempts.
    TooMany {
        /// Try again after so many seconds.
        retry_after_s: u64,
    },
    /// The server could not check.
    Failed,
    /// The server was not reached.
    NotReached,
}

/// The login page, which leads to `next` when the session's cookie comes along, and explains when it does not.
#[cfg(feature = "ssr")]
pub fn check_path(next: &str) -> String {
    format!("{}?entered=1&next={}", paths::LOGIN, paths::escape_query(next))
}

/// Whether the page was opened by [`check_path`].
pub fn is_check(parameter: impl Fn(&str) -> Option<String>) -> bool {
    parameter("entered").is_some()
}

/// The login page with a problem.
#[cfg(feature = "ssr")]
pub fn problem_path(problem: LoginProblem, next: &str) -> String {
    let problem = match problem {
        LoginProblem::Wrong => "wrong".to_owned(),
        LoginProblem::TooMany { retry_after_s } => format!("too_many&wait={retry_after_s}"),
        LoginProblem::Failed | LoginProblem::NotReached => "failed".to_owned(),
    };
    format!("{}?problem={problem}&next={}", paths::LOGIN, paths::escape_query(next))
}

/// Reads [`problem_path`].
pub fn problem_of_query(parameter: impl Fn(&str) -> Option<String>) -> Option<LoginProblem> {
    match parameter("problem")?.as_str() {
        "wrong" => Some(LoginProblem::Wrong),
        "too_many" => {
            let retry_after_s = parameter("wait").and_then(|wait| wait.parse().ok()).unwrap_or(0);
            Some(LoginProblem::TooMany { retry_after_s })
        }
        "failed" => Some(LoginProblem::Failed),
        _ => None,
    }
}

#[cfg(all(test, feature = "ssr"))]
mod tests {
    use super::*;

    fn parameter_of(path: &str) -> impl Fn(&str) -> Option<String> {
        let query = path.split_once('?').map_or("", |(_, query)| query).to_owned();
        move |name| {
            query
                .split('&')
                .filter_map(|pair| pair.split_once('='))
                .find(|(key, _)| *key == name)
                .map(|(_, value)| value.to_owned())
        }
    }

    #[test]
    fn every_problem_reads_back_from_the_address() {
        for problem in [LoginProblem::Wrong, LoginProblem::TooMany { retry_after_s: 30 }, LoginProblem::Failed] {
            let path = problem_path(problem, "/workers");
            assert_eq!(problem_of_query(parameter_of(&path)), Some(problem), "{path}");
        }
    }

    #[test]
    fn an_address_without_a_problem_has_none() {
        assert_eq!(problem_of_query(parameter_of("/login?next=%2Fworkers")), None);
        assert_eq!(problem_of_query(parameter_of("/login?problem=nonsense")), None);
    }

    #[test]
    fn the_check_leads_on_to_the_page_that_was_wanted() {
        let path = check_path("/workers/3?tab=1");
        assert!(is_check(parameter_of(&path)));
        assert_eq!(path, "/login?entered=1&next=%2Fworkers%2F3%3Ftab%3D1");
    }
}
