//! What credentials depend on outside of their file: variables and the clock. Both are handed in,
//! so that a test changes neither the process nor the machine.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The variables of a process. Values may be secrets (`AWS_SECRET_ACCESS_KEY`), so that only their
/// names are ever shown.
#[derive(Clone, Default)]
pub struct Environment {
    variables: Arc<BTreeMap<OsString, OsString>>,
}

impl Environment {
    /// The variables of this process.
    pub fn of_process() -> Self {
        let mut variables: BTreeMap<_, _> = std::env::vars_os().collect();
        if let (None, Some(home)) = (variables.get(OsStr::new("HOME")), std::env::home_dir()) {
            variables.insert("HOME".into(), home.into());
        }
        Self { variables: Arc::new(variables) }
    }

    /// These variables and no others.
    pub fn of<K: Into<OsString>, V: Into<OsString>>(
        variables: impl IntoIterator<Item = (K, V)>,
    ) -> Self {
        let pairs = variables.into_iter().map(|(name, value)| (name.into(), value.into()));
        Self { variables: Arc::new(pairs.collect()) }
    }

    /// A variable that has a value; an empty one is as good as none.
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        let value = self.variables.get(OsStr::new(name))?.to_str()?;
        (!value.is_empty()).then_some(value)
    }

    /// A variable that holds a path; an empty one is as good as none.
    pub(crate) fn path(&self, name: &str) -> Option<PathBuf> {
        let value = self.variables.get(OsStr::new(name))?;
        (!value.is_empty()).then(|| PathBuf::from(value))
    }

    /// All of them, for a program that inherits them.
    pub(crate) fn all(&self) -> impl Iterator<Item = (&OsString, &OsString)> {
        self.variables.iter()
    }
}

impl fmt::Debug for Environment {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_set().entries(self.variables.keys()).finish()
    }
}

/// The wall clock. A token's life is measured by it and not by a monotonic clock, which stands
/// still while a laptop sleeps.
#[derive(Clone)]
pub struct Clock {
    now: Arc<dyn Fn() -> SystemTime + Send + Sync>,
}

impl Clock {
    /// The machine's.
    pub fn system() -> Self {
        Self::from_fn(SystemTime::now)
    }

    /// One of the caller's own.
    pub fn from_fn(now: impl Fn() -> SystemTime + Send + Sync + 'static) -> Self {
        Self { now: Arc::new(now) }
    }

    pub(crate) fn now(&self) -> SystemTime {
        (self.now)()
    }

    /// Seconds since 1970.
    pub(crate) fn seconds(&self) -> u64 {
        self.now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO).as_secs()
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("Clock").field(&self.seconds()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_variable_is_as_good_as_none() {
        let environment = Environment::of([("EMPTY", ""), ("FULL", "x")]);
        assert_eq!(environment.text("EMPTY"), None);
        assert_eq!(environment.path("EMPTY"), None);
        assert_eq!(environment.text("ABSENT"), None);
        assert_eq!(environment.text("FULL"), Some("x"));
    }

    #[test]
    fn values_are_not_shown() {
        let environment = Environment::of([("AWS_SECRET_ACCESS_KEY", "canary-value")]);
        let shown = format!("{environment:?}");
        assert!(shown.contains("AWS_SECRET_ACCESS_KEY") && !shown.contains("canary"), "{shown}");
    }
}
