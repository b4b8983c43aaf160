//! Mechanisms of other crates: the trait, their settings without their type, and the registry.

use super::{Mechanism, SharedMechanism, Variant};
use crate::{Card, Error};
use bochner_numerics::Real;
use serde::de::{self, DeserializeOwned, DeserializeSeed, Deserializer};
use serde::ser::{Serialize, SerializeMap, Serializer};
use std::any::{Any, TypeId};
use std::fmt::{self, Debug};
use std::sync::{Arc, PoisonError, RwLock};

/// The settings of a mechanism of another crate.
///
/// They convert into a [`Variant`], which layers, models and settings files take as they take ours. [`register`] makes
/// the name known to settings files and to [`find`](super::find). For a [`Score`](bochner_engine::Score) there is a
/// shorter way: [`ScoreMechanism`](super::ScoreMechanism).
///
/// ```
/// use bochner_attention::engine::{FeatureMap, HeadRows};
/// use bochner_attention::mechanism::{CustomMechanism, Mechanism, Pass, Streams};
/// use bochner_attention::{Card, Error, Mask, MultiHeadConfig, Settings, Variant, register};
/// use bochner_attention::engine::numerics::Real;
/// use serde::{Deserialize, Serialize};
///
/// /// Features $\operatorname{elu}(x) + 1$ (Katharopoulos et al. 2020).
/// #[derive(Debug)]
/// struct EluMap {
///     width: usize,
/// }
///
/// impl<T: Real> FeatureMap<T> for EluMap {
///     fn features(&self) -> usize {
///         self.width
///     }
///
///     fn map(&self, rows: HeadRows<T>, values: &mut [T], _logs: &mut [T]) {
///         let elu = |x: T| if x > T::zero() { x + T::one() } else { x.exp() };
///         values.iter_mut().zip(rows.x.data()).for_each(|(f, &x)| *f = elu(x));
///     }
///
///     fn pull(&self, _: HeadRows<T>, values: &[T], gradient: &[T], out: &mut [T], _: &mut [T]) {
///         let all = out.iter_mut().zip(values).zip(gradient);
///         all.for_each(|((d, &f), &g)| *d = *d + g * f.min(T::one()));
///     }
/// }
///
/// #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
/// struct Elu {}
///
/// impl CustomMechanism for Elu {
///     const NAME: &'static str = "mycrate/elu";
/// }
///
/// impl<T: Real> Mechanism<T> for Elu {
///     fn card(&self) -> Card {
///         Card { name: Self::NAME, title: "features elu + 1", ..Card::FEATURES }
///     }
///
///     fn kernel(&self, inputs: &Streams<T>, _: &[T], _: &Pass) -> Result<Settings<T>, Error> {
///         let width = inputs.size().width;
///         Ok(Settings::features(EluMap { width }, inputs.mask))
///     }
/// }
///
/// register::<Elu>()?;
/// let variant: Variant = serde_json::from_str(r#"{"mycrate/elu": {}}"#).unwrap();
/// assert_eq!(variant, Elu {}.into());
/// # Ok::<(), Error>(())
/// ```
pub trait CustomMechanism:
    Mechanism<f32>
    + Mechanism<f64>
    + Serialize
    + DeserializeOwned
    + Default
    + Clone
    + PartialEq
    + 'static
{
    /// The name of the mechanism, `mycrate/name`: that of the crate, a slash, and that of the mechanism.
    const NAME: &'static str;
}

/// Makes a mechanism of another crate known by its name, in this process: to settings files, to
/// [`find`](super::find) and to [`registry`](super::registry()).
///
/// Call it in `main`, before settings are read. Registering the same type again does nothing. A [`Variant`] that is
/// made of the settings themselves, and whatever is written, needs no registration.
///
/// # Errors
/// [`Error::MechanismName`] for a name without a prefix, [`Error::RegisteredTwice`] if another type has the name.
pub fn register<M: CustomMechanism>() -> Result<(), Error> {
    let parts = M::NAME.split_once('/');
    if parts.is_none_or(|(prefix, name)| prefix.is_empty() || name.is_empty()) {
        return Err(Error::MechanismName { given: M::NAME });
    }
    let mut all = REGISTRY.write().unwrap_or_else(PoisonError::into_inner);
    match all.iter().find(|entry| entry.name == M::NAME) {
        Some(entry) if entry.settings == TypeId::of::<M>() => Ok(()),
        Some(_) => Err(Error::RegisteredTwice { name: M::NAME }),
        None => {
            all.push(Entry::new::<M>());
            Ok(())
        }
    }
}

static REGISTRY: RwLock<Vec<Entry>> = RwLock::new(Vec::new());

/// Returns the registered mechanisms, in the order in which they were registered.
pub(super) fn registered() -> Vec<Entry> {
    let all = REGISTRY.read().unwrap_or_else(PoisonError::into_inner);
    all.clone()
}

/// A registered mechanism.
#[derive(Clone, Copy)]
pub(super) struct Entry {
    pub(super) name: &'static str,
    settings: TypeId,
    pub(super) default: fn() -> Variant,
    read: fn(&mut dyn erased_serde::Deserializer) -> Result<CustomSettings, erased_serde::Error>,
}

impl Entry {
    fn new<M: CustomMechanism>() -> Self {
        Self {
            name: M::NAME,
            settings: TypeId::of::<M>(),
            default: || M::default().into(),
            read: |source| erased_serde::deserialize::<M>(source).map(CustomSettings::new),
        }
    }
}

/// Reads the settings, and checks them.
impl<'de> DeserializeSeed<'de> for Entry {
    type Value = CustomSettings;

    fn deserialize<D: Deserializer<'de>>(self, source: D) -> Result<CustomSettings, D::Error> {
        let settings = (self.read)(&mut <dyn erased_serde::Deserializer>::erase(source));
        let settings = settings.map_err(de::Error::custom)?;
        let mechanism = settings.mechanism::<f64>();
        mechanism.validate().map_err(de::Error::custom)?;
        Ok(settings)
    }
}

/// The settings of a [`CustomMechanism`], whatever their type.
///
/// Written down, they are a map from the name to the settings: `{"mycrate/name": {"exponent": 2.0}}`. Two of them are
/// equal if their types and their settings are.
#[derive(Clone)]
pub struct CustomSettings {
    settings: Arc<dyn AnySettings>,
    mechanism: SharedMechanism,
}

impl CustomSettings {
    /// Returns the settings without their type.
    pub fn new<M: CustomMechanism>(settings: M) -> Self {
        let settings = Arc::new(settings);
        Self {
            mechanism: SharedMechanism::from(Arc::clone(&settings)),
            settings,
        }
    }

    /// Returns the settings, if they are of this type.
    pub fn downcast_ref<M: CustomMechanism>(&self) -> Option<&M> {
        self.settings.any().downcast_ref()
    }

    /// The name of the mechanism.
    pub fn name(&self) -> &'static str {
        self.settings.name()
    }

    pub(super) fn card(&self) -> Card {
        let name = self.name();
        Card {
            name,
            ..self.mechanism::<f64>().card()
        }
    }

    pub(super) fn mechanism<T: Real>(&self) -> &dyn Mechanism<T> {
        self.mechanism.get().as_ref()
    }

    pub(super) fn shared(&self) -> SharedMechanism {
        self.mechanism.clone()
    }
}

impl<M: CustomMechanism> From<M> for Variant {
    fn from(settings: M) -> Self {
        Self::Custom(CustomSettings::new(settings))
    }
}

impl Debug for CustomSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Debug::fmt(&self.settings, f)
    }
}

impl PartialEq for CustomSettings {
    fn eq(&self, other: &Self) -> bool {
        self.settings.equals(other.settings.any())
    }
}

impl Serialize for CustomSettings {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(1))?;
        map.serialize_entry(self.name(), self.settings.written())?;
        map.end()
    }
}

/// A [`CustomMechanism`] without its type.
trait AnySettings: Debug + Send + Sync {
    fn name(&self) -> &'static str;
    fn any(&self) -> &dyn Any;
    fn equals(&self, other: &dyn Any) -> bool;
    fn written(&self) -> &dyn erased_serde::Serialize;
}

impl<M: CustomMechanism> AnySettings for M {
    fn name(&self) -> &'static str {
        M::NAME
    }

    fn any(&self) -> &dyn Any {
        self
    }

    fn equals(&self, other: &dyn Any) -> bool {
        other.downcast_ref() == Some(self)
    }

    fn written(&self) -> &dyn erased_serde::Serialize {
        self
    }
}
