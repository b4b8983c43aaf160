//! A mechanism apart from its settings.

use super::Mechanism;
use bochner_numerics::Real;
use std::any::Any;
use std::sync::Arc;

/// A mechanism of both precisions that outlives its settings, such as [`Mechanism::at_step`] makes it.
#[derive(Clone, Debug)]
pub struct SharedMechanism {
    single: Arc<dyn Mechanism<f32>>,
    double: Arc<dyn Mechanism<f64>>,
}

impl SharedMechanism {
    /// Shares a mechanism.
    pub fn new(mechanism: impl Mechanism<f32> + Mechanism<f64> + 'static) -> Self {
        Self::from(Arc::new(mechanism))
    }

    /// The mechanism, for `f32` or `f64`.
    pub fn get<T: Real>(&self) -> &Arc<dyn Mechanism<T>> {
        let mut both = [&self.single as &dyn Any, &self.double].into_iter();
        let own = both.find_map(|own| own.downcast_ref());
        own.expect("numbers are f32 or f64")
    }
}

impl<M: Mechanism<f32> + Mechanism<f64> + 'static> From<Arc<M>> for SharedMechanism {
    fn from(mechanism: Arc<M>) -> Self {
        Self {
            single: Arc::clone(&mechanism) as _,
            double: mechanism,
        }
    }
}
