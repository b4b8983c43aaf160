//! The gradient of the kernel score: through both similarities and the magnitudes.

use super::similarities::inputs;
use super::{Kernel, Parameters, Side, Similarity, gaussian};
use crate::compressed::filled;
use crate::engine::edge_sums::{by_source, by_target, map_nodes};
use crate::engine::forward::arriving;
use crate::engine::preactivation::Preactivation;
use crate::engine::rows::row;
use crate::engine::{Call, PIECE, Parts, backward, elements};
use crate::error::largest;
use crate::score::{Half, PointsGradients, PointsOfHeads};
use crate::sums::{RowSum, sum_of};
use crate::{Error, Points};
use bochner_kernels::{feature_map_vjp, feature_map_with_vjp};
use bochner_numerics::elementary::SquaredNorms;
use bochner_numerics::instructions::{Arithmetic, Task, run};
use bochner_numerics::scaling::bounded;
use bochner_numerics::{Buffers, Real};
use ndarray::{Array2, Array3, Axis, s};
use std::ops::Range;

/// Gradients that are summed up over nodes.
struct Sums<T> {
    points: PointsGradients<T>,
    /// The gradients along the features of $a$ and of the slope times $a$, `[2, 2R]` for each head.
    features: Vec<Array2<T>>,
}

impl<T: Real> Sums<T> {
    fn add(&mut self, other: &Self) {
        self.points.add(&other.points);
        for (features, other) in self.features.iter_mut().zip(&other.features) {
            *features += other;
        }
    }
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
        let mut targets = vec![T::zero(); call.targets.len()];
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
                        buffers: Buffers::default(),
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
        if call.settings.edges.is_some() {
            backward::scale_by_leak(call, &self.own.u, &mut along_scores);
        }
        Ok(Parts {
            targets,
            sources,
            a: a.into_raw_vec_and_offset().0,
            points,
            edges: call.pull_back_edges(&along_scores),
        })
    }

    /// Adds the gradients through the Gaussian similarities of the two sides.
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
        let (rows, heads) = (&call.graph.by_target, self.heads);
        let pieces = rows.pieces(PIECE);
        let arriving = pieces.iter().map(|piece| rows.entries_of(piece.clone()));
        filled(
            arriving.map(|places| places.len()),
            2 * heads,
            |i, classes| {
                run(ByClass {
                    call,
                    u: &self.own.u,
                    targets: pieces[i].clone(),
                    along_scores,
                    classes,
                });
            },
        )
    }

    /// Adds the gradients through $\tfrac12 |k_j|_p^2$ and $c^2 |a|_p^2$. The magnitude of the query is the same for
    /// all edges of a target, along which the gradients of the scores add up to zero.
    fn through_magnitudes(
        &self,
        call: &Call<T>,
        p: f64,
        along_sources: &[T],
        along_keys: &mut [T],
        along_a: &mut Array2<T>,
    ) {
        let (heads, columns) = (self.heads, call.shape.columns());
        let squares = map_nodes(along_keys, columns, |nodes, along_keys| {
            let mut squares = vec![0.0; heads];
            let mut halves = Vec::with_capacity(nodes.len() * heads);
            let along_nodes = &along_sources[nodes.start * 2 * heads..nodes.end * 2 * heads];
            for along in along_nodes.chunks_exact(2 * heads) {
                for (head, square) in squares.iter_mut().enumerate() {
                    let [one, slope] = [along[head], along[heads + head]].map(T::as_f64);
                    halves.push(0.5 * (one + slope));
                    *square += one + self.slope * self.slope * slope;
                }
            }
            let keys = &call.sources[nodes.start * columns..nodes.end * columns];
            add_norms(keys, self.width, p, &halves, along_keys);
            squares
        });
        let squares = sum_of(squares, heads);
        let Parameters { a, .. } = &self.parameters;
        let a = &elements(*a);
        let along_a = along_a
            .as_slice_mut()
            .expect("allocated in row-major order");
        add_norms(a, 2 * self.width, p, &squares, along_a);
    }
}

/// Puts gradients along scores where the class of their edge and head has its place.
struct ByClass<'a, 'b, T: Real> {
    call: &'a Call<'a, 'b, T>,
    u: &'a Preactivation<T>,
    targets: Range<usize>,
    along_scores: &'a [T],
    classes: &'a mut [T],
}

impl<T: Real> Task for ByClass<'_, '_, T> {
    #[inline(always)]
    fn run<A: Arithmetic>(self, _: A) {
        let heads = self.call.shape.heads;
        let mut own_u = vec![T::zero(); heads];
        let mut rest = self.classes.chunks_exact_mut(2 * heads);
        for edges in arriving(self.call, self.targets) {
            let ends = edges.sources.iter().zip(edges.places);
            for ((&source, place), classes) in ends.zip(&mut rest) {
                self.u
                    .write(edges.target, source as usize, place, &mut own_u);
                let (one, slope) = classes.split_at_mut(heads);
                let along = row(self.along_scores, place, heads).iter().zip(&own_u);
                for ((one, slope), (&g, &u)) in one.iter_mut().zip(slope).zip(along) {
                    let is_one = u >= T::zero();
                    *one = if is_one { g } else { T::zero() };
                    *slope = if is_one { T::zero() } else { g };
                }
            }
        }
    }
}

/// The similarities of a squared kernel.
struct Squared<'k, 'a, 'b, T> {
    kernel: &'k Kernel<'a, 'b, T>,
    points: Points<'b, T>,
    floor: f64,
    buffers: Buffers<T>,
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
        let mut sums = self.zero_sums();
        let [along_targets, along_sources] = along_inputs;
        let (half, side) = (Half::Target, &own.targets);
        self.through_nodes(call, half, side, sides[0], along_targets, &mut sums)?;
        let (half, side) = (Half::Source, &own.sources);
        self.through_nodes(call, half, side, sides[1], along_sources, &mut sums)?;
        self.through_features_of_a(call, &mut sums, along_a)?;
        Ok(sums.points)
    }

    fn zero_sums(&self) -> Sums<T> {
        let features = self.kernel.own.features.iter();
        Sums {
            points: self.points.zero_gradients(),
            features: features.map(|x| Array2::zeros(x.dim())).collect(),
        }
    }

    /// Adds the gradients through the similarities of one side.
    fn through_nodes(
        &self,
        call: &Call<T>,
        half: Half,
        side: &Side<T>,
        along_scores: &[T],
        along_inputs: &mut [T],
        sums: &mut Sums<T>,
    ) -> Result<(), Error> {
        let (heads, columns) = (self.kernel.heads, call.shape.columns());
        let parts = map_nodes(along_inputs, columns, |nodes, along_inputs| {
            let rows = nodes.start * 2 * heads..nodes.end * 2 * heads;
            let (f, along) = (&side.f[rows.clone()], &along_scores[rows]);
            let along_f = along_similarities(f, along, self.floor);
            let mut sums = self.zero_sums();
            for head in 0..heads {
                let x = inputs(call, half, head, nodes.clone());
                let along_x = self.of_head(half, head, &x, &along_f, &mut sums)?;
                let rows = along_inputs.chunks_exact_mut(columns);
                for (row, own) in rows.zip(along_x.rows()) {
                    let row = row[head * self.kernel.width..].iter_mut();
                    row.zip(own).for_each(|(x, &own)| *x += own);
                }
            }
            Ok::<_, Error>(sums)
        });
        for part in parts {
            sums.add(&part?);
        }
        Ok(())
    }

    /// The gradient along some nodes' features `x` in one head; adds those that are summed up.
    fn of_head(
        &self,
        half: Half,
        head: usize,
        x: &Array2<T>,
        along_f: &[T],
        sums: &mut Sums<T>,
    ) -> Result<Array2<T>, Error> {
        let (points, heads) = (self.points.half(head, half), self.kernel.heads);
        let features = self.kernel.own.features[head].as_slice();
        let along_features = sums.features[head].as_slice_mut();
        let features = features.expect("allocated in row-major order");
        let along_features = along_features.expect("allocated in row-major order");
        let cotangent = |rows: Range<usize>, phi: &[T], along_phi: &mut [T]| {
            run(Products {
                phi,
                features,
                along_f: &along_f[rows.start * 2 * heads..rows.end * 2 * heads],
                heads: [head, heads],
                inverse: points.normaliser().recip(),
                along_phi,
                along_features,
            });
        };
        let own = feature_map_with_vjp(x.view(), &points, cotangent, &self.buffers)?;
        let width = self.kernel.width;
        let place = match half {
            Half::Target => 0..width,
            Half::Source => width..2 * width,
        };
        let add = |target: &mut Array3<T>, own: &Array2<T>| {
            let mut target = target.slice_mut(s![head, .., place.clone()]);
            target += own;
        };
        add(&mut sums.points.w1, &own.points.w1);
        if let (Some(w2), Some(own)) = (&mut sums.points.w2, &own.points.w2) {
            add(w2, own);
        }
        Ok(own.x)
    }

    /// Adds the gradients along $a$ and the points, from those along the features of $a$ and of the slope
    /// times $a$.
    fn through_features_of_a(
        &self,
        call: &Call<T>,
        sums: &mut Sums<T>,
        along_a: &mut Array2<T>,
    ) -> Result<(), Error> {
        let slope = call.slope();
        for (head, cotangent) in sums.features.iter().enumerate() {
            let points = self.points.head(head);
            let directions = self.kernel.parameters.directions(head, slope);
            let own = feature_map_vjp(directions.view(), &points, cotangent.view(), &self.buffers)?;
            let mut a = along_a.row_mut(head);
            a += &own.x.row(0);
            a.scaled_add(slope, &own.x.row(1));
            let mut w1 = sums.points.w1.index_axis_mut(Axis(0), head);
            w1 += &own.points.w1;
            if let (Some(w2), Some(own)) = (&mut sums.points.w2, &own.points.w2) {
                let mut w2 = w2.index_axis_mut(Axis(0), head);
                w2 += own;
            }
        }
        Ok(())
    }
}

/// Adds the gradients of squared norms of rows.
fn add_norms<T: Real>(x: &[T], width: usize, p: f64, cotangents: &[f64], out: &mut [T]) {
    let gradient = SquaredNorms::new(x, width, p).pull_back(x, cotangents);
    for (out, gradient) in out.iter_mut().zip(gradient) {
        *out = bounded(*out + bounded(T::of(gradient)));
    }
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

/// Products of the gradients along f with features, for the nodes of a piece of work.
struct Products<'a, T> {
    phi: &'a [T],
    features: &'a [T],
    along_f: &'a [T],
    /// The head, and the number of all heads.
    heads: [usize; 2],
    inverse: T,
    along_phi: &'a mut [T],
    along_features: &'a mut [T],
}

impl<T: Real> Task for Products<'_, T> {
    #[inline(always)]
    fn run<A: Arithmetic>(self, _: A) {
        let ([head, heads], count) = (self.heads, self.features.len() / 2);
        let (one, slope) = self.features.split_at(count);
        let mut sum = RowSum::new(2 * count);
        let rows = self.phi.chunks_exact(count);
        let rows = rows.zip(self.along_phi.chunks_exact_mut(count));
        for ((phi, along_phi), along_f) in rows.zip(self.along_f.chunks_exact(2 * heads)) {
            let g_one = along_f[head] * self.inverse;
            let g_slope = along_f[heads + head] * self.inverse;
            let features = one.iter().zip(slope);
            let (along_one, along_slope) = sum.next().split_at_mut(count);
            let along_features = along_one.iter_mut().zip(along_slope);
            let all = phi.iter().zip(along_phi).zip(features.zip(along_features));
            for ((&phi, along_phi), ((&one, &slope), (along_one, along_slope))) in all {
                *along_phi = A::mul_add(g_slope, slope, A::mul_add(g_one, one, *along_phi));
                *along_one = A::mul_add(g_one, phi, *along_one);
                *along_slope = A::mul_add(g_slope, phi, *along_slope);
            }
        }
        sum.add_to(self.along_features);
    }
}
