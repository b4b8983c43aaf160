use crate::*; use crate::pairwise::*; use crate::call::*; use bochner_numerics::*; 
pub(crate) type Starts<T> = Vec<T>;
pub(crate) fn attend<T: Real>(_: &dyn kernel::PairKernel<T>, _: &Call<T>, _: &[bool], _: OutputRows<T>) -> Result<(Vec<Operands<T>>, Vec<Starts<T>>), Error> { todo!() }
pub(crate) fn pull_back<T: Real>(_: &dyn kernel::PairKernel<T>, _: &HeadAt<T>, _: &Inputs<T>, _: &Operands<T>, _: &Starts<T>, _: &Cotangent<T>) -> HeadGradients<T> { todo!() }
