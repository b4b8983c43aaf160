//! Settings of training runs.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The settings of a training run, besides data and seed: a suite's own settings as a JSON object.
///
/// The frame reads few of its fields: `epochs`, which every suite has, and `p` and `points`, which tables show
/// where they are there. The order of the fields is kept, since a unit's id is a fingerprint of the text.
///
/// ```
/// use bochner_report::Settings;
///
/// #[derive(serde::Serialize, serde::Deserialize)]
/// struct Mine { width: usize, epochs: usize, p: Option<f64> }
///
/// let mut settings = Settings::of(&Mine { width: 8, epochs: 3, p: Some(2.0) });
/// settings.set_epochs(5);
/// assert_eq!((settings.epochs(), settings.p(), settings.points()), (5, Some(2.0), None));
/// assert_eq!(settings.read::<Mine>()?.width, 8);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Settings(Value);

impl Settings {
    /// The settings that a suite has written down.
    ///
    /// # Panics
    /// If they cannot be written as JSON: settings have plain fields.
    pub fn of(settings: &impl Serialize) -> Self {
        // By way of the text: a number of 32 bits keeps its few digits.
        let text = serde_json::to_string(settings).expect("settings have plain fields");
        Self(serde_json::from_str(&text).expect("what was written just now"))
    }

    /// The settings as a suite knows them.
    ///
    /// # Errors
    /// If they are those of another suite.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, serde_json::Error> {
        T::deserialize(&self.0)
    }

    /// Passes over the training data; where training can end before, the most there can be.
    pub fn epochs(&self) -> usize {
        let epochs = self.0["epochs"].as_u64();
        epochs.map_or(0, |epochs| usize::try_from(epochs).unwrap_or(usize::MAX))
    }

    /// Sets another number of epochs.
    pub fn set_epochs(&mut self, epochs: usize) {
        self.0["epochs"] = epochs.into();
    }

    /// Whether every setting that an older description has is the same here. What the older one lacks had no other value
    /// then.
    pub fn agree_with(&self, older: &Self) -> bool {
        agree(&self.0, &older.0)
    }

    /// Every how many rows of the data set are used; one for all.
    pub fn every(&self) -> usize {
        let every = self.0["every"].as_u64();
        every.map_or(1, |every| usize::try_from(every).unwrap_or(usize::MAX))
    }

    /// The norm of the attention's magnitudes; absent where there is no choice.
    pub fn p(&self) -> Option<f64> {
        self.0["p"].as_f64()
    }

    /// The spectral points R; absent where there are none.
    pub fn points(&self) -> Option<u64> {
        self.0["points"].as_u64()
    }
}

fn agree(today: &Value, older: &Value) -> bool {
    match (today, older) {
        (Value::Object(today), Value::Object(older)) => older.iter().all(|(name, value)| {
            let today = today.get(name);
            today.is_some_and(|today| agree(today, value))
        }),
        (today, older) => today == older,
    }
}
