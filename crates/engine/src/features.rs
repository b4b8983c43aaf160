use crate::*; use crate::Shape; use bochner_numerics::*; use bochner_numerics::memory::Unwritten; use ndarray::*;
pub trait FeatureMap<T: Real>: std::fmt::Debug + Send + Sync + 'static { fn features(&self) -> usize; fn check(&self, _: &Shape) -> Result<(), Error> { Ok(()) } }
#[derive(Clone, Debug)] pub(crate) struct FeaturesState<T>(T);
pub(crate) fn attend<T: Real>(_: &dyn FeatureMap<T>, _: &call::Call<T>, _: Unwritten<T>) -> Result<FeaturesState<T>, Error> { todo!() }
pub(crate) fn weights<T: Real>(_: &dyn FeatureMap<T>, _: &call::Call<T>) -> Result<Array4<T>, Error> { todo!() }
pub(crate) fn pull_back<T: Real>(_: &dyn FeatureMap<T>, _: &call::Call<T>, _: &FeaturesState<T>, _: [ArrayView4<T>; 2], _: Wanted) -> Result<Gradients<T>, Error> { todo!() }
