//! Where settings come from: flag before variable before file before default.

use super::ConfigError;
use super::key::{Key, SECURITY, WITHOUT_EFFECT};
use super::resources::{RESOURCES, Resources};
use serde_norway::Value;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};

/// Files beyond this are no configuration of ours.
const FILE_MAX_BYTES: u64 = 1024 * 1024;

/// The variables of a process that concern this program.
#[derive(Clone, Debug, Default)]
pub struct Environment(BTreeMap<String, OsString>);

impl Environment {
    /// Those of this process.
    pub fn of_process() -> Self {
        let named = std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value)));
        Self(named.filter(|(name, _)| name.starts_with("GPUSTACK_")).collect())
    }

    /// These and no others.
    pub fn of_pairs<'a>(pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        Self(pairs.into_iter().map(|(name, value)| (name.to_owned(), value.into())).collect())
    }

    fn get(&self, name: &str) -> Option<&OsString> {
        self.0.get(name)
    }
}

/// Where one value came from, as an error names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The command line.
    Flag(Key),
    /// The environment.
    Variable(Key),
    /// A configuration file.
    File(Key, PathBuf),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flag(key) => f.write_str(&key.flag()),
            Self::Variable(key) => f.write_str(&key.variable()),
            Self::File(key, path) => write!(f, "`{}` in {}", key.file_path(), path.display()),
        }
    }
}

/// One value and where it came from.
#[derive(Clone, Debug)]
pub struct Given {
    /// As it was written.
    pub text: String,
    /// Where.
    pub origin: Origin,
}

impl Given {
    /// The value as a `T`, or an error that names the origin and what is allowed.
    pub fn parse<T>(&self, parse: impl FnOnce(&str) -> Result<T, String>) -> Result<T, ConfigError> {
        parse(self.text.trim()).map_err(|problem| self.bad(problem))
    }

    /// What is wrong with this value.
    pub fn bad(&self, problem: impl Into<String>) -> ConfigError {
        let key = match &self.origin {
            Origin::Flag(key) | Origin::Variable(key) | Origin::File(key, _) => *key,
        };
        // Kubernetes and old Docker links set variables such as GPUSTACK_PORT=tcp://10.0.0.1:80 for a service of
        // that name.
        let from_service_link = matches!(self.origin, Origin::Variable(_))
            && (self.text.starts_with("tcp://") || self.text.starts_with("udp://"));
        if from_service_link {
            return ConfigError::ServiceLink { variable: key.variable(), value: self.text.clone(), flag: key.flag() };
        }
        ConfigError::BadValue { origin: self.origin.clone(), problem: problem.into() }
    }
}

/// All sources together.
#[derive(Debug)]
pub struct Sources<'a> {
    flags: BTreeMap<Key, String>,
    environment: &'a Environment,
    file: BTreeMap<Key, String>,
    file_path: PathBuf,
    resources: Resources,
    warnings: Vec<String>,
}

/// What a configuration file holds.
#[derive(Default)]
struct Contents {
    settings: BTreeMap<Key, String>,
    resources: Resources,
}

impl<'a> Sources<'a> {
    /// Reads the configuration file, if one is named, and checks its keys.
    pub fn open(
        flags: BTreeMap<Key, String>,
        config_file: Option<&Path>,
        environment: &'a Environment,
    ) -> Result<Self, ConfigError> {
        let from_variable = || environment.get("GPUSTACK_CONFIG_FILE").filter(|path| !path.is_empty()).map(Path::new);
        let (path, mut warnings) = (config_file.or_else(from_variable), Vec::new());
        let contents = path.map(|path| read_file(path, &mut warnings)).transpose()?.unwrap_or_default();
        Ok(Self {
            flags,
            environment,
            file: contents.settings,
            file_path: path.map(Path::to_owned).unwrap_or_default(),
            resources: contents.resources,
            warnings,
        })
    }

    /// The value that wins.
    pub fn get(&self, key: Key) -> Result<Option<Given>, ConfigError> {
        if let Some(text) = self.flags.get(&key) {
            return Ok(Some(Given { text: text.clone(), origin: Origin::Flag(key) }));
        }
        if let Some(given) = self.variable(key)? {
            return Ok(Some(given));
        }
        Ok(self
            .file
            .get(&key)
            .map(|text| Given { text: text.clone(), origin: Origin::File(key, self.file_path.clone()) }))
    }

    /// What is described in place of what a worker would find, which only the file can do.
    pub fn resources(&self) -> &Resources {
        &self.resources
    }

    /// What the user should know although it is no error.
    pub fn into_warnings(self) -> Vec<String> {
        self.warnings
    }

    fn variable(&self, key: Key) -> Result<Option<Given>, ConfigError> {
        let Some(value) = self.environment.get(&key.variable()) else { return Ok(None) };
        let origin = Origin::Variable(key);
        let Some(text) = value.to_str() else {
            return Err(ConfigError::BadValue { origin, problem: "is not valid UTF-8".to_owned() });
        };
        // Compose files pass variables on that nobody set. An empty token is never meant.
        if text.is_empty() && !key.is_secret() {
            return Ok(None);
        }
        Ok(Some(Given { text: text.to_owned(), origin }))
    }
}

fn read_file(path: &Path, warnings: &mut Vec<String>) -> Result<Contents, ConfigError> {
    let problem = |problem: String| ConfigError::File { path: path.to_owned(), problem };
    let size = std::fs::metadata(path).map_err(|error| problem(error.to_string()))?.len();
    if size > FILE_MAX_BYTES {
        return Err(problem(format!("it has {size} bytes; this is no configuration file")));
    }
    let text = std::fs::read_to_string(path).map_err(|error| problem(error.to_string()))?;
    let root: Value = serde_norway::from_str(&text).map_err(|error| problem(error.to_string()))?;
    let entries = match root {
        Value::Null => return Ok(Contents::default()),
        Value::Mapping(entries) => entries,
        _ => return Err(problem("it must hold `key: value` lines".to_owned())),
    };
    let mut contents = Contents::default();
    for (name, value) in entries {
        let Value::String(name) = name else {
            return Err(problem("every key must be a word".to_owned()));
        };
        if name == SECURITY {
            read_security(value, path, &mut contents.settings)?;
            continue;
        }
        if name == RESOURCES {
            contents.resources = Resources::read(&value, path, warnings)?;
            continue;
        }
        let Some(key) = Key::of_name(&name) else {
            if WITHOUT_EFFECT.contains(&name.as_str()) {
                warnings.push(format!("`{name}` in {} has no effect in this version", path.display()));
                continue;
            }
            let suggestion = similar_key(&name).map(Key::file_path);
            return Err(ConfigError::UnknownKey { suggestion, name, path: path.to_owned() });
        };
        if let Some(text) = text_of(key, &value, path)? {
            contents.settings.insert(key, text);
        }
    }
    Ok(contents)
}

fn read_security(value: Value, path: &Path, settings: &mut BTreeMap<Key, String>) -> Result<(), ConfigError> {
    let entries = match value {
        Value::Null => return Ok(()),
        Value::Mapping(entries) => entries,
        _ => {
            let problem = format!("`{SECURITY}` must hold `key: value` lines, such as `data_encryption: aes-256-gcm`");
            return Err(ConfigError::File { path: path.to_owned(), problem });
        }
    };
    for (name, value) in entries {
        let name = name.as_str().unwrap_or_default().to_owned();
        let Some(key) = Key::of_security_name(&name) else {
            let suggestion = similar_key(&name).map(Key::file_path);
            let name = format!("{SECURITY}.{name}");
            return Err(ConfigError::UnknownKey { suggestion, name, path: path.to_owned() });
        };
        if let Some(text) = text_of(key, &value, path)? {
            settings.insert(key, text);
        }
    }
    Ok(())
}

/// A YAML value as a flag would spell it; None for a key without a value.
fn text_of(key: Key, value: &Value, path: &Path) -> Result<Option<String>, ConfigError> {
    let bad = |problem: &str| ConfigError::BadValue {
        origin: Origin::File(key, path.to_owned()),
        problem: problem.to_owned(),
    };
    match value {
        // `token:` with nothing behind it is a token that somebody forgot, not a wish for the default
        Value::Null if key.is_secret() => Ok(Some(String::new())),
        Value::Null => Ok(None),
        Value::Bool(flag) => Ok(Some(flag.to_string())),
        Value::Number(_) if key.is_secret() => Err(bad("must be in quotes, or its digits are read as a number")),
        Value::Number(number) => Ok(Some(number.to_string())),
        Value::String(text) => Ok(Some(text.clone())),
        Value::Mapping(_) if key == Key::SystemReserved => {
            serde_json::to_string(value).map(Some).map_err(|_| bad("must hold numbers only"))
        }
        _ => Err(bad("must be one value")),
    }
}

fn similar_key(name: &str) -> Option<Key> {
    let spelled = name.replace('-', "_").to_ascii_lowercase();
    Key::ALL
        .into_iter()
        .map(|key| (strsim::damerau_levenshtein(&spelled, key.name()), key))
        .min()
        .filter(|(distance, _)| *distance <= 3)
        .map(|(_, key)| key)
}
