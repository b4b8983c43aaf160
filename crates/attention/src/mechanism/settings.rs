//! Settings files: how a [`Variant`] is read and written.

use super::{Variant, custom, unknown};
use serde::de::value::MapAccessDeserializer;
use serde::de::{
    self, Deserialize, DeserializeSeed, Deserializer, IntoDeserializer, MapAccess, Visitor,
};
use serde::ser::{Serialize, Serializer};
use std::fmt;

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
            let settings = WithFirst { first, map };
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

/// A map whose first key was read before.
struct WithFirst<A> {
    first: Option<String>,
    map: A,
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for WithFirst<A> {
    type Error = A::Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, A::Error> {
        match self.first.take() {
            Some(key) => seed.deserialize(key.into_deserializer()).map(Some),
            None => self.map.next_key_seed(seed),
        }
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, A::Error> {
        self.map.next_value_seed(seed)
    }
}
