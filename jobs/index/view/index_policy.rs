//! The policies that an index has, by their names.

use batch::keep::Keep;
use nightly::Policy;

/// Name of the policy that prefers the document with the greatest priority, and of the field in which an export has it.
pub(crate) const PRIORITY: &str = "priority";

/// Reads a policy. An index keeps one field of a document, its priority.
pub(crate) fn policy_of_index(text: &str) -> Result<Policy, String> {
    match text.parse::<Policy>() {
        Ok(policy) if policy.field().is_none() => Ok(policy),
        Ok(policy) => Err(format!(
            "an index keeps no fields of documents, so {policy} cannot be used: give documents a priority, and take priority"
        )),
        Err(_) if text == PRIORITY => Ok(Policy::Keep(Keep::Priority(PRIORITY.to_owned()))),
        Err(_) => Err("expected old-first, newest, longest or priority".to_owned()),
    }
}

/// Returns the name of a policy, as [`policy_of_index`] reads it.
pub(crate) fn name_of_policy(policy: &Policy) -> String {
    policy.field().map_or_else(|| policy.to_string(), str::to_owned)
}
