//! Prefixes of joined names: none is used twice, nor is one the name of another server, so that
//! a joined name leads to one server only.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use cofer_model::{FieldError, ServerId, ServerSpec};

/// Changes between their check and the moment at which the supervisor has them: two that are made
/// at the same time must not both get the same prefix.
#[derive(Default)]
pub(crate) struct PrefixClaims(Mutex<HashMap<ServerId, ServerSpec>>);

/// A change under way. Dropped when the supervisor has it, or when it failed.
pub(crate) struct PrefixClaim<'a> {
    claims: &'a PrefixClaims,
    id: ServerId,
}

impl PrefixClaims {
    /// Reserves name and prefix of `spec` for server `id`; `current` are the registrations as
    /// the supervisor has them.
    pub(crate) fn claim<'a, S: AsRef<ServerSpec>>(
        &'a self,
        id: ServerId,
        spec: &ServerSpec,
        current: impl Iterator<Item = (ServerId, S)>,
    ) -> Result<PrefixClaim<'a>, FieldError> {
        let mut claims = self.lock();
        let is_free = |(other, taken): (ServerId, &ServerSpec)| match prefix_clash(spec, taken) {
            Some(error) if other != id => Err(error),
            _ => Ok(()),
        };
        for (other, taken) in current {
            is_free((other, taken.as_ref()))?;
        }
        claims.iter().try_for_each(|(other, taken)| is_free((*other, taken)))?;
        claims.insert(id, spec.clone());
        drop(claims);
        Ok(PrefixClaim { claims: self, id })
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<ServerId, ServerSpec>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for PrefixClaim<'_> {
    fn drop(&mut self) {
        self.claims.lock().remove(&self.id);
    }
}

/// Why `spec` cannot be registered beside `other`, as far as prefixes are concerned. Equal names
/// are found by the store.
pub(crate) fn prefix_clash(spec: &ServerSpec, other: &ServerSpec) -> Option<FieldError> {
    let (name, taken_by) = (spec.name.as_str(), &other.name);
    if let Some(prefix) = spec.prefix.as_deref()
        && (other.prefix.as_deref() == Some(prefix) || taken_by.as_str() == prefix)
    {
        let message = format!("The prefix “{prefix}” is in use by server “{taken_by}”");
        return Some(FieldError::new("prefix", message));
    }
    (other.prefix.as_deref() == Some(name)).then(|| {
        let message = format!("The name “{name}” is in use as the prefix of server “{taken_by}”");
        FieldError::new("name", message)
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use cofer_model::parse_registration;
    use serde_json::json;
    use uuid::Uuid;

    fn spec(name: &str, prefix: Option<&str>) -> Arc<ServerSpec> {
        let body = json!({"name": name, "command": "x", "prefix": prefix});
        Arc::new(parse_registration(body).unwrap())
    }

    #[test]
    fn a_prefix_is_neither_a_prefix_nor_the_name_of_another_server() {
        let clash = |a: (&str, Option<&str>), b: (&str, Option<&str>)| {
            prefix_clash(&spec(a.0, a.1), &spec(b.0, b.1)).map(|error| error.field)
        };
        assert_eq!(clash(("a", Some("p")), ("b", Some("p"))).as_deref(), Some("prefix"));
        assert_eq!(clash(("a", Some("b")), ("b", None)).as_deref(), Some("prefix"));
        assert_eq!(clash(("a", Some("b")), ("b", Some("q"))).as_deref(), Some("prefix"));
        assert_eq!(clash(("p", None), ("b", Some("p"))).as_deref(), Some("name"));
        assert_eq!(clash(("a", Some("a")), ("b", None)), None);
        assert_eq!(clash(("a", None), ("b", None)), None);
    }

    #[test]
    fn changes_under_way_are_registrations_too() {
        let claims = PrefixClaims::default();
        let (first, second) = (ServerId(Uuid::new_v4()), ServerId(Uuid::new_v4()));
        let none = || std::iter::empty::<(ServerId, Arc<ServerSpec>)>();
        let claim = claims.claim(first, &spec("a", Some("p")), none()).ok().unwrap();
        assert!(claims.claim(second, &spec("b", Some("p")), none()).is_err());
        drop(claim);
        assert!(claims.claim(second, &spec("b", Some("p")), none()).is_ok());
        let current = [(first, spec("a", Some("p")))];
        assert!(claims.claim(first, &spec("a", Some("p")), current.clone().into_iter()).is_ok());
        assert!(claims.claim(second, &spec("b", Some("p")), current.into_iter()).is_err());
    }
}
