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
            let tag = first.as_deref() == Some("mechanism");
            let name = tag.then(|| map.next_value::<String>()).transpose()?;
            if let Some(name) = name.as_deref().filter(|name| name.contains('/')) {
                registered(name)?;
                return Err(de::Error::custom(format_args!(
                    "`{name}` is a mechanism of another crate: write {{\"{name}\": {{}}}}, with its settings inside"
                )));
            }
            let settings = WithFirst { first, name, map };
            return Variant::deserialize(MapAccessDeserializer::new(settings));
        };
        let entry = registered(name)?;
        let settings = map.next_value_seed(entry)?;
        match map.next_key::<String>()? {
            None => Ok(Variant::Custom(settings)),
            Some(key) => Err(de::Error::custom(format_args!(
                "`{key}` stands beside `{name}`; the settings of `{name}` are a map of their own"
            ))),
        }
    }
}

/// Returns the registered mechanism of a name.
fn registered<E: de::Error>(name: &str) -> Result<custom::Entry, E> {
    let mut all = custom::registered().into_iter();
    let entry = all.find(|entry| entry.name == name);
    entry.ok_or_else(|| E::custom(unknown(name)))
}

/// A map whose first key was read before, and its value if that is the name of a mechanism.
struct WithFirst<A> {
    first: Option<String>,
    name: Option<String>,
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
        match self.name.take() {
            Some(name) => seed.deserialize(name.into_deserializer()),
            None => self.map.next_value_seed(seed),
        }
    }
}
