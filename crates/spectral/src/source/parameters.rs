//! Parameters by name in one flat slice.

use crate::Error;
use bochner_numerics::{Real, argument};
use ndarray::{Array, ArrayD, ArrayView, ArrayViewD, Dimension, IxDyn};

/// The sizes that parameters depend on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// Number of heads, M.
    pub heads: usize,
    /// Width of one head's queries and keys, d.
    pub width: usize,
}

impl Size {
    pub(super) fn validate(self) -> Result<(), Error> {
        argument::at_least_one("heads", self.heads)?;
        Ok(argument::at_least_one("width", self.width)?)
    }
}

/// Name and shape of one parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParameterSpec {
    /// Its name, unique within the list.
    pub name: String,
    /// Its shape.
    pub shape: Vec<usize>,
}

impl ParameterSpec {
    /// A parameter of the given name and shape.
    pub fn new(name: impl Into<String>, shape: &[usize]) -> Self {
        Self {
            name: name.into(),
            shape: shape.to_vec(),
        }
    }

    /// The number of its elements.
    pub fn count(&self) -> usize {
        self.shape.iter().product()
    }
}

/// A flat slice of parameters, seen through the list of their names.
#[derive(Debug)]
pub(super) struct Named<'a, T> {
    specs: Vec<ParameterSpec>,
    flat: &'a [T],
}

impl<'a, T: Real> Named<'a, T> {
    /// # Errors
    /// [`Error::Argument`] if the slice has another length.
    pub(super) fn new(specs: Vec<ParameterSpec>, flat: &'a [T]) -> Result<Self, Error> {
        let count = specs.iter().map(ParameterSpec::count).sum();
        argument::shape("parameters", &[count], &[flat.len()])?;
        Ok(Self { specs, flat })
    }

    pub(super) fn specs(&self) -> &[ParameterSpec] {
        &self.specs
    }

    /// The parameter called `name`.
    ///
    /// # Panics
    /// If there is none, or if it has another rank: a bug of the source.
    pub(super) fn get<D: Dimension>(&self, name: &str) -> ArrayView<'a, T, D> {
        let mut start = 0;
        for spec in &self.specs {
            let end = start + spec.count();
            if spec.name == name {
                return ArrayViewD::from_shape(IxDyn(&spec.shape), &self.flat[start..end])
                    .expect("cut to its shape")
                    .into_dimensionality()
                    .expect("the rank of its specification");
            }
            start = end;
        }
        panic!("no parameter is called {name}")
    }

    /// The error that names the first parameter with a number that is not finite.
    pub(super) fn expect_finite(&self) -> Result<(), Error> {
        for spec in &self.specs {
            let values: ArrayViewD<T> = self.get(&spec.name);
            argument::finite(format!("parameter {}", spec.name), &spec.shape, values)?;
        }
        Ok(())
    }
}

/// Gradients by name, in any order.
#[derive(Debug)]
pub(super) struct NamedGradients<T>(Vec<(String, ArrayD<T>)>);

impl<T: Real> NamedGradients<T> {
    pub(super) fn new() -> Self {
        Self(Vec::new())
    }

    pub(super) fn push<D: Dimension>(&mut self, name: impl Into<String>, array: Array<T, D>) {
        self.0.push((name.into(), array.into_dyn()));
    }

    /// The gradients in one flat slice.
    ///
    /// # Panics
    /// If one is missing or has another shape: a bug of the source.
    pub(super) fn flatten(&self, specs: &[ParameterSpec]) -> Vec<T> {
        let mut flat = Vec::new();
        for spec in specs {
            let mut all = self.0.iter();
            let (_, array) = all
                .find(|(name, _)| *name == spec.name)
                .expect("a known name");
            assert_eq!(array.shape(), spec.shape, "shape of {}", spec.name);
            flat.extend(array.iter().copied());
        }
        flat
    }
}
