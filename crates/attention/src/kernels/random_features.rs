//! Random features as a feature map of the engine.

use bochner_engine::{Error, FeatureForm, FeatureMap, HeadRows, Shape};
use bochner_kernels::{AngleGradients, Logarithms, RandomFeatureMap};
use bochner_numerics::{Buffer, Buffers, Mat, MatMut, Panels, Real, argument, matmul};
use ndarray::{ArrayView2, ArrayView3, Axis};
use std::sync::Arc;

/// $\phi(x / d^{1/4})$ at the frequencies of a head.
#[derive(Clone, Debug)]
pub(super) struct RandomFeatures<T: Real> {
    heads: Arc<[Frequencies<T>]>,
    /// `[M, m, d]`.
    shape: [usize; 3],
    map: RandomFeatureMap,
    trained: Trained,
    numbers: Buffers<T>,
}

/// The choice between trained and drawn frequencies of random features.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trained {
    /// The frequencies have a gradient.
    Yes,
    /// The frequencies are drawn, and have no gradient.
    No,
}

/// The frequencies of one head, packed.
#[derive(Clone, Debug)]
struct Frequencies<T> {
    /// W, `[m, d]`.
    rows: Panels<T>,
    /// $W^T$.
    transposed: Panels<T>,
}

impl<T: Real> Frequencies<T> {
    fn new(w: ArrayView2<T>) -> Self {
        let w = w.as_standard_layout();
        let data = w.as_slice().expect("brought to row-major order");
        let w = Mat::new(data, w.nrows(), w.ncols());
        Self {
            rows: Panels::new(w),
            transposed: Panels::new(w.t()),
        }
    }
}

impl<T: Real> RandomFeatures<T> {
    /// Features by frequencies `[M, m, d]`.
    pub(super) fn new(w: ArrayView3<T>, map: RandomFeatureMap, trained: Trained) -> Self {
        let (heads, count, width) = w.dim();
        let packed = w
            .axis_iter(Axis(0))
            .filter(|_| !w.is_empty())
            .map(Frequencies::new);
        Self {
            heads: packed.collect(),
            shape: [heads, count, width],
            map,
            trained,
            numbers: Buffers::default(),
        }
    }

    /// $d^{-1/4}$.
    fn scale(&self) -> T {
        T::of((self.shape[2] as f64).powf(-0.25))
    }

    fn scaled(&self, x: Mat<T>) -> Buffer<T> {
        let (scale, mut scaled) = (self.scale(), self.numbers.empty(x.data().len()));
        scaled.extend(x.data().iter().map(|&x| x * scale));
        scaled
    }
}

impl<T: Real> FeatureMap<T> for RandomFeatures<T> {
    fn features(&self) -> usize {
        self.map.features(self.shape[1])
    }

    fn form(&self) -> FeatureForm {
        match self.map {
            RandomFeatureMap::Positive | RandomFeatureMap::Hyperbolic => FeatureForm::Exponentials,
            RandomFeatureMap::Trigonometric => FeatureForm::SignedExponentials,
            RandomFeatureMap::Relu { .. } => FeatureForm::Values,
        }
    }

    fn check(&self, shape: &Shape) -> Result<(), Error> {
        self.map.validate()?;
        argument::not_empty("frequencies w", &self.shape)?;
        let fitting = [shape.heads, self.shape[1], shape.width];
        Ok(argument::shape("frequencies w", &fitting, &self.shape)?)
    }

    fn parameters(&self) -> usize {
        match self.trained {
            Trained::Yes => self.shape[1] * self.shape[2],
            Trained::No => 0,
        }
    }

    fn map(&self, rows: HeadRows<T>, values: &mut [T], logs: &mut [T]) {
        let (x, (count, width)) = (self.scaled(rows.x), rows.x.shape());
        let (x, w) = (
            Mat::new(&x, count, width),
            &self.heads[rows.head].transposed,
        );
        match self.map {
            RandomFeatureMap::Relu { epsilon } => {
                let epsilon = T::of(epsilon);
                let target = MatMut::new(values, count, self.shape[1]);
                matmul(T::one(), x, w, T::zero(), target);
                values
                    .iter_mut()
                    .for_each(|u| *u = u.max(T::zero()) + epsilon);
            }
            _ => self.map.write_logarithms(
                x,
                w,
                &mut Logarithms {
                    logs,
                    signs: values,
                },
            ),
        }
    }

    fn pull(
        &self,
        rows: HeadRows<T>,
        values: &[T],
        gradient: &[T],
        out: &mut [T],
        parameters: &mut [T],
    ) {
        let [_, count, width] = self.shape;
        let n = rows.x.shape().0;
        let (mut angles, mut logs) = (vec![T::zero(); n * count], vec![T::zero(); n]);
        match self.map {
            RandomFeatureMap::Relu { epsilon } => {
                let epsilon = T::of(epsilon);
                let active = angles
                    .iter_mut()
                    .zip(values)
                    .zip(gradient)
                    .filter(|((_, f), _)| **f > epsilon);
                active.for_each(|((angle, _), &g)| *angle = g);
            }
            map => {
                let ones = vec![T::one(); if values.is_empty() { gradient.len() } else { 0 }];
                let features = if values.is_empty() { &ones } else { values };
                let along = AngleGradients {
                    angles: &mut angles,
                    logs: &mut logs,
                };
                map.pull_back((features, features), gradient, along);
            }
        }
        let (scaled, frequencies) = (self.scaled(rows.x), &self.heads[rows.head]);
        let x = Mat::new(&scaled, n, width);
        let mut along = vec![T::zero(); scaled.len()];
        let given = AngleGradients {
            angles: &mut angles,
            logs: &mut logs,
        };
        self.map
            .add_input_gradients(x, &frequencies.rows, &given, &mut along);
        let scale = self.scale();
        out.iter_mut()
            .zip(&along)
            .for_each(|(out, &g)| *out += scale * g);
        if !parameters.is_empty() {
            let angles = Mat::new(&angles, n, count).t();
            matmul(
                T::one(),
                angles,
                x,
                T::one(),
                MatMut::new(parameters, count, width),
            );
        }
    }
}
