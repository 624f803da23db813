//! The cookie that holds a session. Cookies are shared by all ports of a host, so its name is bound to the instance.

use http::{HeaderMap, header};

/// How long a browser keeps it; the server ends an idle session much sooner.
pub(super) const MAX_AGE_S: i64 = 7 * 24 * 60 * 60;

/// The name of this instance's cookie.
pub(super) struct CookieName(String);

impl CookieName {
    pub(super) fn of_instance(instance_id: &str) -> Self {
        let short: String = instance_id.chars().take(8).collect();
        Self(format!("gpustack_session_{short}"))
    }

    /// The value that a request brings.
    pub(super) fn value_in<'a>(&self, headers: &'a HeaderMap) -> Option<&'a str> {
        let lines = headers.get_all(header::COOKIE).into_iter().filter_map(|line| line.to_str().ok());
        lines.flat_map(|line| line.split(';')).find_map(|pair| {
            let (name, value) = pair.split_once('=')?;
            (name.trim() == self.0).then(|| value.trim().trim_matches('"'))
        })
    }

    pub(super) fn is_in(&self, headers: &HeaderMap) -> bool {
        self.value_in(headers).is_some()
    }

    /// `Set-Cookie` for a new session. A browser drops a `Secure` cookie that came over plain http without a word, so
    /// that is set only when the request really came over https.
    pub(super) fn set(&self, value: &str, https: bool) -> String {
        let secure = if https { "; Secure" } else { "" };
        format!("{}={value}; Path=/; Max-Age={MAX_AGE_S}; HttpOnly; SameSite=Lax{secure}", self.0)
    }

    /// `Set-Cookie` that removes it.
    pub(super) fn remove(&self) -> String {
        format!("{}=; Path=/; Max-Age=0; HttpOnly; SameSite=Lax", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(lines: &[&str]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for line in lines {
            headers.append(header::COOKIE, line.parse().unwrap());
        }
        headers
    }

    #[test]
    fn two_instances_on_one_host_use_different_cookies() {
        let first = CookieName::of_instance("0123456789abcdef");
        let second = CookieName::of_instance("fedcba9876543210");
        let both = headers(&["gpustack_session_01234567=one; gpustack_session_fedcba98=two"]);
        assert_eq!(first.value_in(&both), Some("one"));
        assert_eq!(second.value_in(&both), Some("two"));
    }

    #[test]
    fn the_cookie_is_found_among_others_and_on_every_line() {
        let name = CookieName::of_instance("0123456789abcdef");
        for (lines, value) in [
            (vec!["gpustack_session_01234567=v"], Some("v")),
            (vec!["a=b; gpustack_session_01234567=v;c=d"], Some("v")),
            (vec!["a=b", "gpustack_session_01234567=\"v\""], Some("v")),
            (vec!["xgpustack_session_01234567=v"], None),
            (vec!["gpustack_session=v; nonsense"], None),
            (vec![], None),
        ] {
            assert_eq!(name.value_in(&headers(&lines)), value, "{lines:?}");
        }
    }

    #[test]
    fn only_https_makes_it_secure() {
        let name = CookieName::of_instance("0123456789abcdef");
        assert_eq!(name.set("v", false), "gpustack_session_01234567=v; Path=/; Max-Age=604800; HttpOnly; SameSite=Lax");
        assert!(name.set("v", true).ends_with("; Secure"));
    }
}
