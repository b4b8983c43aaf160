//! Kernels made of kernels: sums, products, multiples, and kernels of some columns.

mod columns;
mod product;
mod scale;
mod sum;

pub use columns::{Columns, ColumnsConfig};
pub use product::Product;
pub use scale::{Scale, ScaleConfig};
pub use sum::Sum;

use crate::Error;
use crate::kernel::{Kernel, Parameter, check_values};
use bochner_numerics::Real;
use bochner_numerics::argument;

/// The kernels a sum or product is made of: at least one.
#[derive(Clone, Debug)]
struct Parts<T: Real>(Vec<Box<dyn Kernel<T>>>);

impl<T: Real> Parts<T> {
    fn new(parts: Vec<Box<dyn Kernel<T>>>) -> Result<Self, Error> {
        argument::not_empty("parts", &[parts.len()])?;
        Ok(Self(parts))
    }

    fn check_positive_semi_definite(&self, width: usize) -> Result<(), Error> {
        let mut parts = self.0.iter();
        parts.try_for_each(|part| part.check_positive_semi_definite(width))
    }

    /// The parameters of the first part, then of the second, and so on, each with its part's number.
    fn parameters(&self) -> Vec<Parameter<T>> {
        let parts = self.0.iter().enumerate();
        parts
            .flat_map(|(i, part)| within(&i.to_string(), part.as_ref()))
            .collect()
    }

    fn set_parameters(&mut self, values: &[T]) -> Result<(), Error> {
        // All values are checked first: a part must not change when a later one refuses.
        check_values(&self.parameters(), values)?;
        let mut rest = values;
        for part in &mut self.0 {
            let own;
            (own, rest) = rest.split_at(part.parameters().len());
            part.set_parameters(own)?;
        }
        Ok(())
    }
}

/// The parameters of a part, with the part's name in front.
fn within<T: Real>(name: &str, part: &dyn Kernel<T>) -> Vec<Parameter<T>> {
    let own = part.parameters().into_iter();
    own.map(|p| Parameter {
        name: format!("{name}.{}", p.name),
        ..p
    })
    .collect()
}
