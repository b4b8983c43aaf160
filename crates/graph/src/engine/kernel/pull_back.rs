//! The gradient of the kernel score: through both similarities and the magnitudes.

use super::similarities::{Unit, count, inputs, units};
use super::{Kernel, Parameters, Side, Similarity, gaussian};
use crate::engine::rows::add_scaled;
use crate::engine::sums::{by_source, by_target};
use crate::engine::{Call, Parts, backward, elements, held};
use crate::error::largest;
use crate::score::{Half, PointsGradients};
use crate::{Error, Points};
use bochner_kernels::{FeatureMapGradients, feature_map, feature_map_vjp};
use bochner_numerics::elementary::SquaredNorms;
use bochner_numerics::instructions::{Arithmetic, Task, run};
use bochner_numerics::{Real, parallel};
use ndarray::{Array2, Axis, s};

/// Gradients that are summed up over nodes.
struct Sums<T> {
    points: PointsGradients<T>,
    /// Along the features of $a$ and of the slope times $a$, `[2, 2R]` for each head.
    features: Vec<Array2<T>>,
    /// `[H, 2F]`.
    a: Array2<T>,
}

/// The gradients of one unit.
struct Own<T> {
    inputs: FeatureMapGradients<T>,
    features: Array2<T>,
}

impl<T: Real> Kernel<'_, '_, T> {
    /// The gradients, from those along the scores and through the values.
    pub(in crate::engine) fn pull_back(
        &self,
        call: &Call<T>,
        mut along_scores: Vec<T>,
        along_values: Vec<T>,
    ) -> Result<Parts<T>, Error> {
        let classes = self.by_class(call, &along_scores);
        let along_targets = by_target(call.graph, &classes, 2 * self.heads);
        let along_sources = by_source(call.graph, &classes, 2 * self.heads);
        drop(classes);
        let mut a = Array2::zeros(self.parameters.a.dim());
        let mut targets = vec![T::zero(); call.target_features().len()];
        let mut sources = along_values;
        let points = {
            let sides = [&along_targets[..], &along_sources];
            let along_inputs = [&mut targets[..], &mut sources];
            match self.parameters.similarity {
                Similarity::Squared { points, floor } => {
                    let kernel = Squared {
                        kernel: self,
                        points,
                        floor,
                    };
                    Some(kernel.pull_back(call, sides, along_inputs, &mut a)?)
                }
                Similarity::Gaussian => {
                    self.through_gaussians(call, sides, along_inputs, &mut a);
                    None
                }
            }
        };
        if let Some(p) = self.parameters.p {
            self.through_magnitudes(call, p, &along_sources, &mut sources, &mut a);
        }
        backward::scale_by_leak(call, &self.own.u, &mut along_scores);
        Ok(Parts {
            targets,
            sources,
            a: a.into_raw_vec_and_offset().0,
            points,
            edges: call.pull_back_edges(&along_scores),
        })
    }

    /// Through the Gaussian similarities of both sides.
    fn through_gaussians(
        &self,
        call: &Call<T>,
        sides: [&[T]; 2],
        along_inputs: [&mut [T]; 2],
        along_a: &mut Array2<T>,
    ) {
        let halves = [Half::Target, Half::Source].into_iter().zip(sides);
        for ((half, along), along_inputs) in halves.zip(along_inputs) {
            let along_a = along_a
                .as_slice_mut()
                .expect("allocated in row-major order");
            let out = [along_inputs, along_a];
            gaussian::pull_back(call, self.parameters.a, half, along, out);
        }
    }

    /// The gradients along the scores, those of edges with $c = 1$ before those of the others,
    /// `[E, 2H]` by place.
    fn by_class(&self, call: &Call<T>, along_scores: &[T]) -> Vec<T> {
        let (heads, u) = (self.heads, &self.own.u);
        let mut classes = vec![T::zero(); 2 * along_scores.len()];
        let mut own_u = vec![T::zero(); heads];
        let rows = classes
            .chunks_exact_mut(2 * heads)
            .zip(along_scores.chunks_exact(heads));
        let targets = 0..call.graph.targets();
        let ends = targets.flat_map(|i| call.graph.by_target.row(i).iter().map(move |&j| (i, j)));
        for (place, ((classes, along_scores), (target, source))) in rows.zip(ends).enumerate() {
            u.write(target, source as usize, place, &mut own_u);
            let (one, slope) = classes.split_at_mut(heads);
            for (head, (&g, &u)) in along_scores.iter().zip(&own_u).enumerate() {
                if u >= T::zero() {
                    one[head] = g;
                } else {
                    slope[head] = g;
                }
            }
        }
        classes
    }

    /// Through $\tfrac12 |k_j|_p^2$ and $c^2 |a|_p^2$. The query's own is the same for all edges of a
    /// target, along which the gradients of the scores add up to zero.
    fn through_magnitudes(
        &self,
        call: &Call<T>,
        p: f64,
        along_sources: &[T],
        along_keys: &mut [T],
        along_a: &mut Array2<T>,
    ) {
        let heads = self.heads;
        let mut squares = vec![0.0; heads];
        let mut halves = Vec::with_capacity(along_sources.len() / 2);
        for along in along_sources.chunks_exact(2 * heads) {
            for (head, square) in squares.iter_mut().enumerate() {
                let [one, slope] = [along[head], along[heads + head]].map(T::as_f64);
                halves.push(0.5 * (one + slope));
                *square += one + self.slope * self.slope * slope;
            }
        }
        add_norms(call.source_features(), self.width, p, &halves, along_keys);
        let Parameters { a, .. } = &self.parameters;
        let a = &elements(*a);
        let along_a = along_a
            .as_slice_mut()
            .expect("allocated in row-major order");
        add_norms(a, 2 * self.width, p, &squares, along_a);
    }
}

/// The similarities of a squared kernel.
struct Squared<'k, 'a, 'b, T> {
    kernel: &'k Kernel<'a, 'b, T>,
    points: Points<'b, T>,
    floor: f64,
}

impl<T: Real> Squared<'_, '_, '_, T> {
    /// Adds the gradients along the features of both sides and along $a$; those along the points.
    fn pull_back(
        &self,
        call: &Call<T>,
        sides: [&[T]; 2],
        along_inputs: [&mut [T]; 2],
        along_a: &mut Array2<T>,
    ) -> Result<PointsGradients<T>, Error> {
        let own = self.kernel.own;
        let mut sums = Sums {
            points: self.points.zero_gradients(),
            features: own
                .features
                .iter()
                .map(|x| Array2::zeros(x.dim()))
                .collect(),
            a: Array2::zeros(along_a.dim()),
        };
        let [along_targets, along_sources] = along_inputs;
        let (half, side) = (Half::Target, &own.targets);
        self.through_nodes(call, half, side, sides[0], along_targets, &mut sums)?;
        let (half, side) = (Half::Source, &own.sources);
        self.through_nodes(call, half, side, sides[1], along_sources, &mut sums)?;
        self.through_features_of_a(call, &mut sums)?;
        *along_a += &sums.a;
        Ok(sums.points)
    }

    /// Through the similarities of one side.
    fn through_nodes(
        &self,
        call: &Call<T>,
        half: Half,
        side: &Side<T>,
        along_scores: &[T],
        along_inputs: &mut [T],
        sums: &mut Sums<T>,
    ) -> Result<(), Error> {
        let along_f = along_similarities(&side.f, along_scores, self.floor);
        let units = units(self.kernel.heads, count(call, half));
        let parts = parallel::map(units.len(), |i| {
            self.of_unit(call, half, &units[i], &along_f)
        });
        let (width, columns) = (self.kernel.width, call.shape.columns());
        let place = match half {
            Half::Target => 0..width,
            Half::Source => width..2 * width,
        };
        for (unit, part) in units.iter().zip(parts) {
            let Own { inputs, features } = part?;
            sums.features[unit.head] += &features;
            let add = |target: &mut ndarray::Array3<T>, own: &Array2<T>| {
                let mut target = target.slice_mut(s![unit.head, .., place.clone()]);
                target += own;
            };
            add(&mut sums.points.w1, &inputs.w1);
            if let (Some(w2), Some(own)) = (&mut sums.points.w2, &inputs.w2) {
                add(w2, own);
            }
            let rows = along_inputs[unit.nodes.start * columns..].chunks_exact_mut(columns);
            for (row, own) in rows.zip(inputs.x.rows()) {
                let row = row[unit.head * width..][..width].iter_mut();
                row.zip(own).for_each(|(x, &own)| *x += own);
            }
        }
        Ok(())
    }

    /// The gradients of one unit's similarities.
    fn of_unit(
        &self,
        call: &Call<T>,
        half: Half,
        unit: &Unit,
        along_f: &[T],
    ) -> Result<Own<T>, Error> {
        let points = self.points.half(unit.head, half);
        let (x, a_features) = (
            inputs(call, half, unit),
            &self.kernel.own.features[unit.head],
        );
        let phi = feature_map(x, &points)?;
        let mut cotangent = Array2::zeros(phi.raw_dim());
        let mut features = Array2::zeros(a_features.raw_dim());
        run(Products {
            phi: phi.as_slice().expect("allocated in row-major order"),
            features: a_features.as_slice().expect("allocated in row-major order"),
            along_f: &along_f[unit.nodes.start * 2 * self.kernel.heads..],
            heads: [unit.head, self.kernel.heads],
            inverse: points.normaliser().recip(),
            along_phi: cotangent
                .as_slice_mut()
                .expect("allocated in row-major order"),
            along_features: features
                .as_slice_mut()
                .expect("allocated in row-major order"),
        });
        Ok(Own {
            inputs: feature_map_vjp(x, &points, cotangent.view())?,
            features,
        })
    }

    /// From the features of $a$ and of the slope times $a$ to $a$ and the points.
    fn through_features_of_a(&self, call: &Call<T>, sums: &mut Sums<T>) -> Result<(), Error> {
        let slope = call.slope();
        for (head, cotangent) in sums.features.iter().enumerate() {
            let points = self.points.head(head);
            let directions = self.kernel.parameters.directions(head, slope);
            let own = feature_map_vjp(directions.view(), &points, cotangent.view())?;
            let mut a = sums.a.row_mut(head);
            a += &own.x.row(0);
            a.scaled_add(slope, &own.x.row(1));
            let mut w1 = sums.points.w1.index_axis_mut(Axis(0), head);
            w1 += &own.w1;
            if let (Some(w2), Some(own)) = (&mut sums.points.w2, &own.w2) {
                let mut w2 = w2.index_axis_mut(Axis(0), head);
                w2 += own;
            }
        }
        Ok(())
    }
}

/// Adds the gradients of squared norms of rows.
fn add_norms<T: Real>(x: &[T], width: usize, p: f64, cotangents: &[f64], out: &mut [T]) {
    let rows = 2048;
    parallel::for_each_chunk(out, rows * width, |i, out| {
        let x = &x[i * rows * width..][..out.len()];
        let cotangents = &cotangents[i * rows..][..out.len() / width];
        let gradient = SquaredNorms::new(x, width, p).pull_back(x, cotangents);
        for (out, gradient) in out.iter_mut().zip(gradient) {
            *out = held(*out + held(T::of(gradient)));
        }
    });
}

/// The gradients along f, from those along $\log(f^2 + e)$.
fn along_similarities<T: Real>(f: &[T], along_logarithms: &[T], floor: f64) -> Vec<T> {
    let limit = largest::<T>().as_f64();
    let slope = |f: T| {
        let f = f.as_f64();
        // So near to a zero of f nothing but rounding is left of it.
        let slope = if f == 0.0 { 0.0 } else { 2.0 / (f + floor / f) };
        slope.clamp(-limit, limit)
    };
    let along = f.iter().zip(along_logarithms);
    along.map(|(&f, &g)| T::of(g.as_f64() * slope(f))).collect()
}

/// Products of the gradients along f with features, for a unit's nodes.
struct Products<'a, T> {
    phi: &'a [T],
    features: &'a [T],
    along_f: &'a [T],
    /// Which head of how many.
    heads: [usize; 2],
    inverse: T,
    along_phi: &'a mut [T],
    along_features: &'a mut [T],
}

impl<T: Real> Task for Products<'_, T> {
    #[inline(always)]
    fn run<A: Arithmetic>(self) {
        let [head, heads] = self.heads;
        let count = self.features.len() / 2;
        let rows = self
            .phi
            .chunks_exact(count)
            .zip(self.along_phi.chunks_exact_mut(count));
        for ((phi, along_phi), along_f) in rows.zip(self.along_f.chunks_exact(2 * heads)) {
            for class in 0..2 {
                let g = along_f[class * heads + head] * self.inverse;
                let features = class * count..(class + 1) * count;
                add_scaled::<T, A>(along_phi, g, &self.features[features.clone()]);
                add_scaled::<T, A>(&mut self.along_features[features], g, phi);
            }
        }
    }
}
