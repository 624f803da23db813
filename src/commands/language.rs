//! In which language a command speaks.

use super::exit::CommandError;
use app::i18n::Language;
use std::collections::BTreeMap;

/// The variables that choose a language, the first that is set wins (`locale(7)`).
const LOCALE: [&str; 3] = ["LC_ALL", "LC_MESSAGES", "LANG"];

/// The variables of this process that are text.
pub fn text_variables() -> BTreeMap<String, String> {
    std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .collect()
}

/// The one that `--language` names, else the locale's, else English.
pub fn choose(wished: Option<&str>, variables: &BTreeMap<String, String>) -> Result<Language, CommandError> {
    if let Some(wished) = wished {
        let unknown = || CommandError::usage(format!("--language is `{wished}`; it must be en or zh"));
        return Language::from_tag(wished).ok_or_else(unknown);
    }
    let set = LOCALE.iter().filter_map(|name| variables.get(*name)).find(|value| !value.is_empty());
    Ok(set.and_then(|value| Language::from_tag(value)).unwrap_or(Language::En))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_language_is_the_wished_one_or_that_of_the_locale() {
        let of = |wished: Option<&str>, pairs: &[(&str, &str)]| {
            let variables = pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
            choose(wished, &variables).ok()
        };
        assert_eq!(of(None, &[]), Some(Language::En));
        assert_eq!(of(None, &[("LANG", "zh_CN.UTF-8")]), Some(Language::Zh));
        assert_eq!(of(None, &[("LC_ALL", "C"), ("LANG", "zh_CN.UTF-8")]), Some(Language::En));
        assert_eq!(of(Some("zh"), &[("LANG", "en_US.UTF-8")]), Some(Language::Zh));
        assert_eq!(of(Some("fr"), &[]), None);
    }
}
