//! Settings pass the checks of whatever is built from them when they are read, too.

/// Makes reading settings end with a check, without a change of what is written.
///
/// A type derives both traits of serde with `#[serde(remote = "Self")]`, which makes functions of the type out of
/// them; the traits come from here.
#[doc(hidden)]
#[macro_export]
macro_rules! checked_when_read {
    ($settings:ty, $check:expr) => {
        impl serde::Serialize for $settings {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                // The type's own function goes before the trait's.
                <$settings>::serialize(self, serializer)
            }
        }

        impl<'de> serde::Deserialize<'de> for $settings {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let check: fn(&Self) -> Result<(), _> = $check;
                let settings = <$settings>::deserialize(deserializer)?;
                match check(&settings) {
                    Ok(()) => Ok(settings),
                    Err(error) => Err(serde::de::Error::custom(error)),
                }
            }
        }
    };
}
