//! Parameters of methods, as users write them behind a method's name.

use std::fmt;

use crate::text::Clean;
use crate::text::features::FeatureSpec;

/// Parameters of one method, which a user may write behind its name. `Default` is the name alone; `Display`
/// writes all parameters, as they stand behind the name.
pub(super) trait Parameters: Default + fmt::Display {
    /// Sets `key=value`. The value of a word that stands alone is empty.
    fn set(&mut self, key: &str, value: &str) -> Result<(), WrongParameter>;
    /// Checks that the parameters go together, once all are set; the error says why they do not.
    fn check(&self) -> Result<(), String> {
        Ok(())
    }
}

/// Reason why a parameter is refused.
pub(super) enum WrongParameter {
    /// The method has no parameter of that name.
    Unknown,
    /// The value is not of the form that is given here.
    Expected(&'static str),
}

/// Parses the parameters of the method `name`, which are separated by commas.
pub(super) fn parse<P: Parameters>(name: &str, parameters: &str) -> Result<P, String> {
    let mut parsed = P::default();
    for parameter in parameters.split(',').filter(|parameter| !parameter.is_empty()) {
        let (key, value) = parameter.split_once('=').unwrap_or((parameter, ""));
        parsed.set(key, value).map_err(|wrong| match wrong {
            WrongParameter::Unknown => format!("{name} has no parameter \"{key}\""),
            WrongParameter::Expected(expected) if key.starts_with(|c: char| c.is_ascii_digit()) => {
                format!("{key} is not {expected}")
            }
            WrongParameter::Expected(expected) => format!("{key} must be {expected}, not \"{value}\""),
        })?;
    }
    parsed.check()?;
    Ok(parsed)
}

/// Stores a parsed value. The error says what was `expected`.
pub(super) fn store<T>(
    place: &mut T,
    value: Option<T>,
    expected: &'static str,
) -> Result<(), WrongParameter> {
    *place = value.ok_or(WrongParameter::Expected(expected))?;
    Ok(())
}

/// Parses and stores a number if it is one of those `allowed`. The error says what was `expected`.
pub(super) fn number(
    place: &mut u32,
    value: &str,
    mut allowed: impl Iterator<Item = u32>,
    expected: &'static str,
) -> Result<(), WrongParameter> {
    store(place, value.parse().ok().filter(|&number| allowed.any(|one| one == number)), expected)
}

/// Parses and stores the parameter `features`.
pub(super) fn store_features(place: &mut FeatureSpec, value: &str) -> Result<(), WrongParameter> {
    store(place, FeatureSpec::parse(value), "jieba, char:N, word:N or unit:N, N from 1 to 64")
}

/// Parses and stores the parameter `clean`.
pub(super) fn store_clean(place: &mut Clean, value: &str) -> Result<(), WrongParameter> {
    store(place, Clean::parse(value), "none, nfkc, post or weibo")
}
