//! The configuration of a run: the options that decide its result, as `_SUCCESS` records them.

use std::collections::BTreeMap;
use std::env;

use anyhow::Result;
use cluster::text_of_path;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Configuration of a run. The options are the same type that the command line is parsed into, so what is
/// recorded is what was parsed; null stands for an option that was not given.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Configuration<T> {
    /// Options of the job, which are recorded beside the other members.
    #[serde(flatten)]
    pub options: T,
    /// Number of worker threads of all processes; the result does not depend on it.
    #[serde(with = "text")]
    pub workers: usize,
    /// Inputs as the user has named them; relative names are below `directory`.
    pub inputs: Vec<String>,
    /// Working directory, which relative names of inputs and options are below.
    pub directory: String,
}

impl<T> Configuration<T> {
    /// Makes the configuration of a run in the working directory of this process.
    pub fn here(options: T, workers: usize, inputs: &[String]) -> Result<Self> {
        let directory = text_of_path(env::current_dir()?.as_os_str());
        Ok(Configuration { options, workers, inputs: inputs.to_vec(), directory })
    }
}

/// Returns the members of a recorded configuration that decide the result: all but the number of workers.
pub fn deciding(configuration: &Value) -> BTreeMap<&String, &Value> {
    configuration.as_object().into_iter().flatten().filter(|(name, _)| *name != "workers").collect()
}

/// Values that are recorded as users write them.
pub mod text {
    use std::fmt::Display;
    use std::str::FromStr;

    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};

    /// Writes a value as the text that its [`Display`] makes.
    pub fn serialize<T: Display, S: Serializer>(value: &T, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(value)
    }

    /// Reads a value from its text, and returns the error of [`FromStr`] if that fails.
    pub fn deserialize<'de, T: FromStr<Err: Display>, D: Deserializer<'de>>(from: D) -> Result<T, D::Error> {
        String::deserialize(from)?.parse().map_err(D::Error::custom)
    }
}

/// The same for values that may be missing.
pub mod optional_text {
    use std::fmt::Display;
    use std::str::FromStr;

    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    /// Writes a value as its text, and null for `None`.
    pub fn serialize<T: Display, S: Serializer>(value: &Option<T>, to: S) -> Result<S::Ok, S::Error> {
        value.as_ref().map(T::to_string).serialize(to)
    }

    /// Reads a value from its text, and `None` from null.
    pub fn deserialize<'de, T: FromStr<Err: Display>, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Option<T>, D::Error> {
        let text = Option::<String>::deserialize(from)?;
        text.map(|text| text.parse()).transpose().map_err(D::Error::custom)
    }
}
