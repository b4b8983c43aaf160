//! Kernels made of kernels: sums, products, multiples, and kernels of some columns.

mod columns;
mod product;
mod scale;
mod sum;

pub use columns::{Columns, ColumnsConfig};
pub use product::Product;
pub use scale::{Scale, ScaleConfig};
pub use sum::Sum;

use crate::kernel::{Kernel, Parameter, check_values};
use crate::{AnyKernel, Error};
use bochner_numerics::{ArgumentError, Real, argument};
use serde::{Deserialize, Serialize};

/// The kernels of a sum or product: at least one.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(transparent, remote = "Self")]
#[serde(bound(
    serialize = "T: Real + Serialize",
    deserialize = "T: Real + Deserialize<'de>"
))]
struct Parts<T: Real>(Vec<AnyKernel<T>>);

bochner_numerics::checked_when_read!(Parts<T: Real>, check);

impl<T: Real> Parts<T> {
    fn new(parts: Vec<AnyKernel<T>>) -> Result<Self, Error> {
        let parts = Self(parts);
        parts.check()?;
        Ok(parts)
    }

    fn check(&self) -> Result<(), ArgumentError> {
        argument::not_empty("parts", &[self.0.len()])
    }

    fn check_positive_semi_definite(&self, width: usize) -> Result<(), Error> {
        let mut parts = self.0.iter();
        parts.try_for_each(|part| part.check_positive_semi_definite(width))
    }

    /// The parameters of the first part, then of the second, and so on, each with its part's number.
    fn parameters(&self) -> Vec<Parameter<T>> {
        let parts = self.0.iter().enumerate();
        parts
            .flat_map(|(i, part)| within(&i.to_string(), part))
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
fn within<T: Real>(name: &str, part: &AnyKernel<T>) -> Vec<Parameter<T>> {
    let own = part.parameters().into_iter();
    own.map(|p| Parameter {
        name: format!("{name}.{}", p.name),
        ..p
    })
    .collect()
}
