//! Values that are used and never shown.

use std::fmt;
use thiserror::Error;

/// A text that must not be shown: its `Debug` says only that it is there.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Hides `text`.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text itself, to be used and not to be shown.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[hidden]")
    }
}

/// The secret with which a worker joins: visible ASCII, nothing more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JoinToken(Secret);

/// Why a text is no join token. Never holds the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Error)]
pub enum TokenError {
    /// Nothing is left after trimming.
    #[error("is empty; put the server's token there (`gpustack token` on the server prints it)")]
    Empty,
    /// More than one word or line.
    #[error("holds more than one token, or white space inside one; leave exactly one")]
    Several,
    /// Cannot be sent in an HTTP header.
    #[error("holds a character that no token has; use letters, digits and ASCII punctuation")]
    Character,
}

impl JoinToken {
    /// Reads a token as people paste it: white space and a byte order mark around it do not count.
    pub fn parse(text: &str) -> Result<Self, TokenError> {
        let token = text.trim_matches(|c: char| c == '\u{feff}' || c.is_whitespace());
        if token.is_empty() {
            return Err(TokenError::Empty);
        }
        if token.contains(char::is_whitespace) {
            return Err(TokenError::Several);
        }
        if !token.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(TokenError::Character);
        }
        Ok(Self(Secret::new(token)))
    }

    /// Reads a token file: one token, and lines that are blank or begin with `#`.
    pub fn parse_file(text: &str) -> Result<Self, TokenError> {
        let text = text.trim_start_matches('\u{feff}');
        let mut tokens = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
        let first = tokens.next().ok_or(TokenError::Empty)?;
        if tokens.next().is_some() {
            return Err(TokenError::Several);
        }
        Self::parse(first)
    }

    /// The token itself, to be sent or compared and not to be shown.
    pub fn expose(&self) -> &str {
        self.0.expose()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOKEN: &str = "c8e291d8045736ab3aa5ddb6de619291";

    fn exposed(parsed: Result<JoinToken, TokenError>) -> Result<String, TokenError> {
        parsed.map(|token| token.expose().to_owned())
    }

    #[test]
    fn what_surrounds_a_pasted_token_does_not_count() {
        for (before, after) in [("", ""), ("", "\n"), (" ", ""), ("", "\r\n"), ("\u{feff}", "\n"), ("\t", " \n\n")] {
            let text = format!("{before}{TOKEN}{after}");
            assert_eq!(exposed(JoinToken::parse(&text)), Ok(TOKEN.to_owned()), "{text:?}");
            assert_eq!(exposed(JoinToken::parse_file(&text)), Ok(TOKEN.to_owned()), "{text:?}");
        }
    }

    #[test]
    fn a_file_may_hold_comments_and_blank_lines() {
        let text = format!("\u{feff}# made by the installer\r\n\r\n  {TOKEN}  \r\n# end\r\n");
        assert_eq!(exposed(JoinToken::parse_file(&text)), Ok(TOKEN.to_owned()));
    }

    #[test]
    fn what_is_no_token_is_told_apart() {
        for (text, error) in [
            ("", TokenError::Empty),
            (" \r\n", TokenError::Empty),
            ("\u{feff}", TokenError::Empty),
            ("a b", TokenError::Several),
            ("a\nb", TokenError::Several),
            ("a\u{0}b", TokenError::Character),
            ("тoken", TokenError::Character),
        ] {
            assert_eq!(exposed(JoinToken::parse(text)), Err(error), "{text:?}");
            assert_eq!(exposed(JoinToken::parse_file(text)), Err(error), "{text:?}");
        }
        assert_eq!(exposed(JoinToken::parse_file("# only a comment\n")), Err(TokenError::Empty));
    }

    #[test]
    fn neither_debug_nor_errors_show_a_token() {
        let token = JoinToken::parse(TOKEN).unwrap();
        assert!(!format!("{token:?}").contains(TOKEN));
        let error = JoinToken::parse(&format!("{TOKEN} {TOKEN}")).unwrap_err();
        assert!(!error.to_string().contains(TOKEN));
    }

    proptest::proptest! {
        #[test]
        fn what_is_taken_can_be_sent_in_a_header(text in "\\PC{0,40}") {
            if let Ok(token) = JoinToken::parse(&text) {
                proptest::prop_assert!(http::HeaderValue::from_str(token.expose()).is_ok());
            }
        }
    }
}
