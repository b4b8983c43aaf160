//! Settings files: how a [`Variant`] is read and written.

use super::{Variant, WRITTEN, custom, unknown};
use crate::Error;
use serde::de::value::MapAccessDeserializer;
use serde::de::{
    self, Deserialize, DeserializeSeed, Deserializer, IntoDeserializer, MapAccess, Visitor,
};
use serde::ser::{Serialize, Serializer};
use std::fmt;

/// The key of the name in the settings of our mechanisms.
const NAME: &str = "mechanism";

impl Serialize for Variant {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Custom(settings) => settings.serialize(serializer),
            _ => Self::serialize(self, serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Variant {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(VariantVisitor)
    }
}

struct VariantVisitor;

impl<'de> Visitor<'de> for VariantVisitor {
    type Value = Variant;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the settings of a mechanism, a map with `mechanism` or with a registered `mycrate/name`")
    }

    /// The first key tells whose mechanism it is: only names of other crates have a slash.
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Variant, A::Error> {
        let first = map.next_key::<String>()?;
        let Some(name) = first.as_deref().filter(|key| key.contains('/')) else {
            let settings = OurSettings {
                first,
                is_name: false,
                map,
            };
            return Variant::deserialize(MapAccessDeserializer::new(settings));
        };
        let mut registered = custom::registered().into_iter();
        let entry = registered.find(|entry| entry.name == name);
        let entry = entry.ok_or_else(|| de::Error::custom(unknown(name)))?;
        let settings = map.next_value_seed(entry)?;
        match map.next_key::<String>()? {
            None => Ok(Variant::Custom(settings)),
            Some(key) => Err(de::Error::custom(format_args!(
                "`{key}` stands beside `{name}`; the settings of `{name}` are a map of their own"
            ))),
        }
    }
}

/// The settings of one of our mechanisms, whose name is checked when it comes by.
struct OurSettings<A> {
    /// The first key, until it is read.
    first: Option<String>,
    /// Whether the last key was that of the name.
    is_name: bool,
    map: A,
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for OurSettings<A> {
    type Error = A::Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, A::Error> {
        let key = match self.first.take() {
            Some(key) => Some(key),
            None => self.map.next_key::<String>()?,
        };
        self.is_name = key.as_deref() == Some(NAME);
        key.map(|key| seed.deserialize(key.into_deserializer()))
            .transpose()
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, A::Error> {
        if !self.is_name {
            return self.map.next_value_seed(seed);
        }
        let name = self.map.next_value::<String>()?;
        check(&name).map_err(de::Error::custom)?;
        seed.deserialize(name.into_deserializer())
    }
}

/// Refuses a name that settings files cannot have for one of our mechanisms.
fn check(name: &str) -> Result<(), Error> {
    match WRITTEN.contains(&name) {
        true => Ok(()),
        false => Err(unknown(name)),
    }
}
