//! Answers to forms that were sent without JavaScript: the browser shows what the server answers, so the answer is
//! the way to a page, and what came of the form travels in that page's query.

use std::fmt::Write as _;

/// Whether a browser sent the form itself and will show the answer as a page.
pub fn is_plain_form(request: &http::request::Parts) -> bool {
    let accepted = request.headers.get(http::header::ACCEPT).and_then(|value| value.to_str().ok());
    accepted.is_some_and(|accepted| accepted.contains("text/html"))
}

/// Leads to a page of this server.
pub fn lead_to(path: &str) {
    leptos_axum::redirect(&header_safe(path));
}

/// A path as it may stand in a header: what is no visible ASCII is percent-encoded (RFC 3986, section 2.1), also
/// white space, which a browser would drop and read the rest anew.
pub fn header_safe(path: &str) -> String {
    path.bytes().fold(String::with_capacity(path.len()), |mut safe, byte| {
        if byte.is_ascii_graphic() {
            safe.push(char::from(byte));
        } else {
            // writing to a String cannot fail
            let _ = write!(safe, "%{byte:02X}");
        }
        safe
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_cannot_break_out_of_its_header() {
        for (path, safe) in [
            ("/workers?q=rack%20b07&x=1", "/workers?q=rack%20b07&x=1"),
            ("/workers?q=节", "/workers?q=%E8%8A%82"),
            ("/\t/evil.example", "/%09/evil.example"),
            ("/a\r\nSet-Cookie: x", "/a%0D%0ASet-Cookie:%20x"),
        ] {
            assert_eq!(header_safe(path), safe);
        }
    }

    #[test]
    fn only_a_browser_that_shows_the_answer_is_a_plain_form() {
        let request = |accept: &str| http::Request::builder().header("accept", accept).body(()).unwrap().into_parts().0;
        assert!(is_plain_form(&request("text/html,application/xhtml+xml")));
        assert!(!is_plain_form(&request("application/json")));
    }
}
