//! Where values come from: the default file, a file, the environment, flags. Later ones win.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use super::Secret;

/// Every setting with its default, and what it is for.
pub(crate) const DEFAULT_FILE: &str = include_str!("default.toml");
/// The file that is read if it is there and none is named.
const USUAL_FILE: &str = "tidegate.toml";
/// In the environment, names begin so.
const PREFIX: &str = "TIDEGATE_";
/// A variable that is no setting: where the file is.
const FILE_VARIABLE: &str = "TIDEGATE_CONFIG";
/// The key for secrets. Like the next one it stands in the environment only: a file or a flag would show it.
pub(crate) const SECRET_KEY: &str = "TIDEGATE_SECRET_KEY";
/// The operator key that a first start makes.
pub(super) const BOOTSTRAP_KEY: &str = "TIDEGATE_BOOTSTRAP_KEY";

/// Where a value stood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// Nobody said anything.
    Default,
    /// In this file.
    File(PathBuf),
    /// In this variable.
    Environment(String),
    /// In this flag.
    Flag(String),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File(path) => write!(f, "{}", path.display()),
            Self::Environment(name) => f.write_str(name),
            Self::Flag(name) => f.write_str(name),
        }
    }
}

/// A value as it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Written {
    /// One.
    One(String),
    /// Several.
    Many(Vec<String>),
}

impl fmt::Display for Written {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::One(text) => write!(f, "{text:?}"),
            Self::Many(texts) => write!(f, "{texts:?}"),
        }
    }
}

/// All settings, with what was written last and where.
#[derive(Clone, Debug, Default)]
pub(crate) struct Layers {
    values: BTreeMap<String, (Written, Origin)>,
    /// By their variable's name.
    secrets: BTreeMap<String, Secret>,
    /// All that is wrong so far.
    pub(super) problems: Vec<String>,
}

impl Layers {
    /// The defaults alone.
    pub(crate) fn defaults() -> Self {
        let mut layers = Self::default();
        let table: toml::Table = DEFAULT_FILE.parse().expect("the embedded file is tested");
        for (key, value) in flatten(&table) {
            layers.values.insert(key, (value, Origin::Default));
        }
        layers
    }

    /// The file that was named, else the usual one if it is there.
    pub(crate) fn add_file(&mut self, named: Option<&Path>) {
        let path = named.unwrap_or(Path::new(USUAL_FILE));
        match std::fs::read_to_string(path) {
            Ok(text) => self.add_text(path, &text),
            Err(error) if named.is_none() && error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => self.problems.push(format!("{}: cannot be read: {error}", path.display())),
        }
    }

    /// What stands in the file at `path`.
    pub(crate) fn add_text(&mut self, path: &Path, text: &str) {
        match text.parse::<toml::Table>() {
            Err(error) => self.problems.push(format!("{}: {}", path.display(), error.to_string().trim_end())),
            Ok(table) => {
                for (key, value) in flatten(&table) {
                    self.set(&key, value, Origin::File(path.to_owned()));
                }
            }
        }
    }

    /// What the environment says.
    pub(crate) fn add_environment(&mut self, variables: impl IntoIterator<Item = (String, String)>) {
        let known: BTreeMap<String, String> =
            self.values.keys().map(|key| (variable(key), key.clone())).collect();
        for (name, value) in variables {
            if !name.starts_with(PREFIX) || name == FILE_VARIABLE || is_service_link(&name, &value) {
                continue;
            }
            if [SECRET_KEY, BOOTSTRAP_KEY].contains(&name.as_str()) {
                self.set_secret(name, value);
                continue;
            }
            match known.get(&name) {
                Some(key) => self.set(key, Written::One(value), Origin::Environment(name.clone())),
                None => self
                    .problems
                    .push(format!("{name}: there is no such setting (see `tidegate config show --default`)")),
            }
        }
    }

    /// What a flag says.
    pub(crate) fn add_flag(&mut self, key: &str, value: Written) {
        self.set(key, value, Origin::Flag(format!("--{}", key.replace('_', "-"))));
    }

    fn set(&mut self, key: &str, value: Written, origin: Origin) {
        match self.values.get_mut(key) {
            Some(entry) => *entry = (value, origin),
            None => self.problems.push(format!(
                "{origin}: there is no setting `{key}` (see `tidegate config show --default`)"
            )),
        }
    }

    /// An empty variable is as good as none: that is how people unset one for a single command, or in a container.
    fn set_secret(&mut self, name: String, value: String) {
        if !value.is_empty() {
            self.secrets.insert(name, Secret(value.into()));
        }
    }

    /// The secret in a variable, if there is one.
    pub(super) fn secret(&self, name: &str) -> Option<&Secret> {
        self.secrets.get(name)
    }

    /// The variables that hold secrets, for `config show`.
    pub(crate) fn secret_variables(&self) -> impl Iterator<Item = &str> {
        self.secrets.keys().map(String::as_str)
    }

    /// What holds for a setting.
    pub(super) fn get(&self, key: &str) -> Option<&(Written, Origin)> {
        self.values.get(key)
    }

    /// All of them, for `config show`.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &Written, &Origin)> {
        self.values.iter().map(|(key, (value, origin))| (key.as_str(), value, origin))
    }
}

/// The variable of a setting: `timeout.min` is `TIDEGATE_TIMEOUT_MIN`.
fn variable(key: &str) -> String {
    format!("{PREFIX}{}", key.replace('.', "_").to_ascii_uppercase())
}

/// Kubernetes tells every container where a service called `tidegate` is, in variables that look like settings.
fn is_service_link(name: &str, value: &str) -> bool {
    let rest = name.strip_prefix(PREFIX).unwrap_or(name);
    rest.starts_with("SERVICE_HOST")
        || rest.starts_with("SERVICE_PORT")
        || rest.starts_with("PORT_")
        || (rest == "PORT" && value.contains("://"))
}

/// Tables become dots.
fn flatten(table: &toml::Table) -> Vec<(String, Written)> {
    let mut all = Vec::new();
    for (key, value) in table {
        match value {
            toml::Value::Table(inner) => {
                all.extend(flatten(inner).into_iter().map(|(rest, value)| (format!("{key}.{rest}"), value)));
            }
            toml::Value::Array(list) => {
                all.push((key.clone(), Written::Many(list.iter().map(text).collect())));
            }
            value => all.push((key.clone(), Written::One(text(value)))),
        }
    }
    all
}

fn text(value: &toml::Value) -> String {
    match value {
        toml::Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}
