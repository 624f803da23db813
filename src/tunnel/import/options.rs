//! `ssh`'s options: which of them take a word, and which change nothing for a forward that an agent makes.

/// Options with a word behind them (`getopt` of OpenSSH's `ssh.c`).
const WITH_WORD: &str = "bceilmopwBDEFIJLOPQRSW";
/// What an agent does anyhow, or what concerns a terminal.
const WITHOUT_EFFECT: &str = "fnNTtqvxakyKM";
/// Keywords of `ssh_config(5)` likewise.
const KEYWORDS_WITHOUT_EFFECT: [&str; 12] = [
    "batchmode",
    "connecttimeout",
    "connectionattempts",
    "exitonforwardfailure",
    "forkafterauthentication",
    "loglevel",
    "passwordauthentication",
    "preferredauthentications",
    "pubkeyauthentication",
    "sessiontype",
    "setenv",
    "tcpkeepalive",
];

/// Whether an option has a word behind it.
pub fn takes_word(option: char) -> bool {
    WITH_WORD.contains(option)
}

/// Whether nothing is lost without it.
pub fn is_without_effect(option: char) -> bool {
    WITHOUT_EFFECT.contains(option)
}

/// Whether nothing is lost without a keyword, in lower case.
pub fn is_keyword_without_effect(keyword: &str) -> bool {
    KEYWORDS_WITHOUT_EFFECT.contains(&keyword)
}

/// `Key=Value`, `Key Value` and `Key = Value`; the key in lower case.
pub fn key_and_value(option: &str) -> (String, String) {
    let option = option.trim();
    let end = option.find(|c: char| c == '=' || c.is_whitespace()).unwrap_or(option.len());
    let (key, rest) = option.split_at(end);
    let value = rest.trim_start();
    let value = value.strip_prefix('=').unwrap_or(value).trim();
    (key.to_ascii_lowercase(), value.trim_matches('"').to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keywords_are_read_in_every_spelling() {
        for option in [
            "ServerAliveInterval=60",
            "serveraliveinterval 60",
            "ServerAliveInterval = 60",
            "ServerAliveInterval \"60\"",
        ] {
            assert_eq!(key_and_value(option), ("serveraliveinterval".to_owned(), "60".to_owned()), "{option}");
        }
        assert_eq!(key_and_value("SetEnv=Notes=GPUStack"), ("setenv".to_owned(), "Notes=GPUStack".to_owned()));
        assert_eq!(key_and_value(""), (String::new(), String::new()));
    }
}
