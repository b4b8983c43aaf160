//! Attention as the authors' released code trains it: dropout falls on the sum of a query's and a key's
//! magnitude.
//!
//! $$\alpha_{ij} \propto (f_{ij}^2 + e) \exp(\delta_{ij} (m_i + m_j)), \qquad
//! m = |x|_p^2 / (2 d^{1/4})$$
//!
//! Such an exponent belongs to a pair, not to a key, and has no place in the engine. This file follows
//! the formula in double precision, with `[Tq, Tk]` arrays of one head at a time. Without dropout the
//! query's magnitude cancels, and the engine serves ([`Magnitude::Released`]).

use crate::attend::AttentionGradients;
use crate::engine::{Arguments, Attend, HeadAt, Memory, State, log2_largest, slab, without_masked};
use crate::normaliser::finite_inverse;
use crate::score::{LinearForm, PairKernel, Squared};
use crate::{Error, Form, Magnitude};
use bochner_kernels::{SpectralPoints, feature_map, feature_map_vjp};
use bochner_numerics::elementary::SquaredNorms;
use bochner_numerics::memory::Unwritten;
use bochner_numerics::scaling::multiplied;
use bochner_numerics::{Buffers, DropoutMask, Mat, Real, argument, parallel};
use ndarray::{Array1, Array2, Array4, ArrayView2, ArrayView4, Axis, s};
use std::any::Any;
use std::ops::Range;
use std::sync::Arc;

/// The kernel of one training pass. A decoder is refused, as for every dropout on pairs.
#[derive(Clone, Debug)]
pub(crate) struct Released<T> {
    /// $f^2 + e$.
    pub(crate) kernel: Squared<T>,
    /// The exponent of the magnitude's norm.
    pub(crate) p: f64,
    /// $\delta$, one factor for each pair of `[B, M, Tq, Tk]`.
    pub(crate) on_magnitudes: DropoutMask,
}

impl<T: Real> Attend<T> for Released<T> {
    fn any(&self) -> &dyn Any {
        self
    }

    fn validate(&self, batch: usize, heads: usize, width: usize) -> Result<(), Error> {
        argument::positive("p", self.p)?;
        self.kernel.validate(batch, heads, width)
    }

    fn linear_form(&self) -> Option<LinearForm> {
        PairKernel::<T>::linear_form(&self.kernel)
    }

    fn has_logits(&self) -> bool {
        false
    }

    fn has_dropout(&self) -> bool {
        true
    }

    fn attend_once(&self, call: &Arguments<T>, output: Unwritten<T>) {
        let width = call.value_width;
        let size = call.queries * width;
        parallel::for_each_chunk(output.zeros(), size, |h, output| {
            let at = call.at(h);
            let (v, unit) = scaled(rows(at.values()));
            let mut sums = Array2::<f64>::zeros((call.queries, width));
            for pair in &self.pairs(&at, call).kept {
                let weight = pair.weight * pair.on_weight;
                add(&mut sums, pair.i, weight, &v, pair.j);
            }
            for (y, sum) in output.iter_mut().zip(&sums) {
                *y = multiplied(*sum, unit);
            }
        });
    }

    /// Nothing is kept: the backward pass computes the pairs again.
    fn attend(&self, call: &Arguments<T>, output: Unwritten<T>) -> State {
        self.attend_once(call, output);
        Box::new(())
    }

    fn weights(&self, call: &Arguments<T>) -> Array4<T> {
        let mut weights = Array4::zeros(call.shape(call.queries, call.keys));
        for h in 0..call.all_heads() {
            let at = call.at(h);
            for pair in &self.pairs(&at, call).kept {
                weights[[at.example(), at.head(), pair.i, pair.j]] = T::of(pair.weight);
            }
        }
        weights
    }

    fn pull_back(
        &self,
        call: &Arguments<T>,
        _: &State,
        _: ArrayView4<T>,
        cotangent: ArrayView4<T>,
    ) -> AttentionGradients<T> {
        let cotangent = cotangent.as_standard_layout();
        let parts = parallel::map(call.all_heads(), |h| {
            self.head_vjp(&call.at(h), call, rows(slab(cotangent.view(), h)))
        });
        let mut points = self.kernel.all().zero_gradients();
        let (mut q, mut k, mut v) = (Vec::new(), Vec::new(), Vec::new());
        for (h, part) in parts.into_iter().enumerate() {
            let at = call.at(h);
            let set = at.example().min(points.w1.len_of(Axis(0)) - 1);
            let arrays = [Some(&mut points.w1), points.w2.as_mut()];
            for (sum, more) in arrays.into_iter().flatten().zip(&part.points) {
                sum.slice_mut(s![set, at.head(), .., ..])
                    .zip_mut_with(more, |sum, x| {
                        *sum = multiplied(sum.as_f64() + x.as_f64(), 0)
                    });
            }
            q.extend(part.q);
            // Padding has no gradient.
            for (all, part) in [(&mut k, part.k), (&mut v, part.v)] {
                let size = call.keys * part.ncols();
                let end = all.len() + size;
                all.extend(part);
                all.resize(end, T::zero());
            }
        }
        AttentionGradients {
            q: call.array(call.queries, call.width, q),
            k: call.shared_array(call.width, k),
            v: call.shared_array(call.value_width, v),
            points: Some(points),
            bias: None,
        }
    }

    fn memory(&self, _: usize, _: Form) -> Box<dyn Memory<T>> {
        unreachable!("decoding with dropout is refused");
    }

    fn decode(
        &self,
        _: &Arguments<T>,
        _: Range<usize>,
        _: &mut dyn Memory<T>,
        _: Option<&mut [T]>,
    ) {
        unreachable!("decoding with dropout is refused");
    }

    fn reordered(&self, _: &[usize]) -> Option<Arc<dyn Attend<T>>> {
        None
    }
}

/// What both passes need of the pairs of one head.
struct Pairs {
    /// Features of queries and keys.
    phi: [Array2<f64>; 2],
    kept: Vec<Pair>,
}

/// A kept pair of a query and a key.
struct Pair {
    i: usize,
    j: usize,
    /// The normalised weight.
    weight: f64,
    /// The derivative of the weight along f, at a fixed normaliser.
    slope: f64,
    /// $\delta$.
    on_magnitude: f64,
    /// What dropout multiplies the weight with.
    on_weight: f64,
}

impl<T: Real> Released<T> {
    /// $m$ of each row.
    fn magnitudes(&self, x: ArrayView2<T>) -> Vec<f64> {
        let divisor = self.divisor(x.ncols());
        let data: Vec<T> = x.iter().copied().collect();
        let logarithms = SquaredNorms::new(&data, x.ncols(), self.p).logarithms();
        (logarithms.into_iter())
            .map(|log| log.exp() / divisor)
            .collect()
    }

    fn divisor(&self, width: usize) -> f64 {
        Magnitude::Released { p: self.p }.divisor(width)
    }

    /// The pairs of a head.
    fn pairs(&self, at: &HeadAt<T>, call: &Arguments<T>) -> Pairs {
        let points = self.kernel.of_head(at);
        let (q, k) = (rows(at.queries()), rows(at.keys()));
        let phi = [q, k].map(|x| {
            let mut phi = Array2::zeros((x.nrows(), points.features()));
            let made = feature_map(x, &points, phi.view_mut(), &Buffers::default());
            made.expect("checked with the settings");
            phi.mapv(T::as_f64)
        });
        let [of_queries, of_keys] = [q, k].map(|x| self.magnitudes(x));
        let (example, head, sizes) = (at.example(), at.head(), [call.queries, call.keys]);
        let h = example * call.heads + head;
        let mut all = Vec::new();
        for (i, of_query) in of_queries.into_iter().enumerate() {
            let keeps = |&j: &usize| call.mask.keeps([example, head, i, j], sizes);
            let kept = (0..k.nrows()).filter(keeps);
            let row = kept.map(|j| {
                let pair = ((h * call.queries + i) * call.keys + j) as u64;
                let f = phi[0].row(i).dot(&phi[1].row(j)) / points.normaliser().as_f64();
                let on_magnitude: f64 = self.on_magnitudes.factor(pair);
                // What is dropped is zero, whatever it was.
                let exponent = match on_magnitude {
                    0.0 => 0.0,
                    factor => factor * (of_query + of_keys[j]),
                };
                let on_weight = call.settings.dropout.map_or(1.0, |mask| mask.factor(pair));
                (j, f, exponent, on_magnitude, on_weight)
            });
            all.extend(normalised::<T>(i, row.collect(), self.kernel.floor));
        }
        Pairs { phi, kept: all }
    }

    fn head_vjp(
        &self,
        at: &HeadAt<T>,
        call: &Arguments<T>,
        cotangent: ArrayView2<T>,
    ) -> HeadGradients<T> {
        let [q, k, v] = [at.queries(), at.keys(), at.values()].map(rows);
        let points = self.kernel.of_head(at);
        let Pairs { phi, kept } = self.pairs(at, call);
        let ((v, v_unit), (cotangent, unit)) = (scaled(v), scaled(cotangent));
        // dO . O of each query, in these units.
        let mut delta = Array1::<f64>::zeros(cotangent.nrows());
        for pair in &kept {
            if pair.weight != 0.0 {
                let product = cotangent.row(pair.i).dot(&v.row(pair.j));
                delta[pair.i] += pair.weight * pair.on_weight * product;
            }
        }
        let mut dv = Array2::<f64>::zeros(v.raw_dim());
        let mut dphi = phi
            .each_ref()
            .map(|phi| Array2::<f64>::zeros(phi.raw_dim()));
        let mut dm = phi.each_ref().map(|phi| vec![0.0; phi.nrows()]);
        let normaliser = points.normaliser().as_f64();
        for pair in &kept {
            let (i, j) = (pair.i, pair.j);
            add(&mut dv, j, pair.weight * pair.on_weight, &cotangent, i);
            let product = match (pair.weight, pair.slope) {
                (0.0, 0.0) => continue,
                _ => cotangent.row(i).dot(&v.row(j)),
            };
            let along_weight = product * pair.on_weight - delta[i];
            let along_exponent = pair.on_magnitude * pair.weight * along_weight;
            dm[0][i] += along_exponent;
            dm[1][j] += along_exponent;
            let along_f = pair.slope * along_weight / normaliser;
            add(&mut dphi[0], i, along_f, &phi[1], j);
            add(&mut dphi[1], j, along_f, &phi[0], i);
        }
        let both = v_unit + unit;
        let [(q, along_q), (k, along_k)] = [(q, &dphi[0], &dm[0]), (k, &dphi[1], &dm[1])]
            .map(|(x, dphi, dm)| self.pull_rows(x, &points, dphi, dm, both));
        let sum = |(q, k): (&Array2<T>, &Array2<T>)| {
            let mut sum = q.mapv(|x| x.as_f64());
            sum.zip_mut_with(k, |sum, x| *sum += x.as_f64());
            sum.mapv(|x| multiplied(x, both))
        };
        HeadGradients {
            q,
            k,
            v: dv.mapv(|x| multiplied(x, unit)),
            points: along_q.iter().zip(&along_k).map(sum).collect(),
        }
    }

    /// From gradients of features and magnitudes to those of queries or keys, and of the points in units
    /// of their own.
    fn pull_rows(
        &self,
        x: ArrayView2<T>,
        points: &SpectralPoints<T>,
        dphi: &Array2<f64>,
        dm: &[f64],
        unit: i32,
    ) -> (Array2<T>, Vec<Array2<T>>) {
        let cotangent: Array2<T> = dphi.mapv(|x| multiplied(x, 0));
        let x = x.as_standard_layout();
        let clean = without_masked(x.view(), cotangent.view());
        let pulled = feature_map_vjp(clean.view(), points, cotangent.view(), &Buffers::default());
        let pulled = pulled.expect("checked with the settings");
        let (data, divisor) = (x.as_slice().expect("row-major"), self.divisor(x.ncols()));
        let cotangents: Vec<f64> = dm.iter().map(|c| c / divisor).collect();
        let norms = SquaredNorms::new(data, x.ncols(), self.p).pull_back(data, &cotangents);
        let sums = pulled.x.iter().zip(norms);
        let along_x = sums
            .map(|(x, more)| multiplied(x.as_f64() + more, unit))
            .collect();
        let along_x = Array2::from_shape_vec(x.raw_dim(), along_x).expect("as many as before");
        let along_points = [Some(pulled.points.w1), pulled.points.w2];
        (along_x, along_points.into_iter().flatten().collect())
    }
}

/// The gradients of one head.
struct HeadGradients<T> {
    q: Array2<T>,
    k: Array2<T>,
    v: Array2<T>,
    /// Along each array of points.
    points: Vec<Array2<T>>,
}

/// The kept pairs of row `i`, given key, f, exponent and both dropout factors of each.
fn normalised<T: Real>(i: usize, row: Vec<(usize, f64, f64, f64, f64)>, floor: f64) -> Vec<Pair> {
    let loudest = row
        .iter()
        .fold(f64::NEG_INFINITY, |most, pair| most.max(pair.2));
    // Beyond 1e308 any difference that f64 can tell is astronomical.
    let loudness = |exponent: f64| match loudest.is_finite() {
        true => (exponent - loudest).exp(),
        false if exponent >= loudest => 1.0,
        false => 0.0,
    };
    let total = |weight: &dyn Fn(f64, f64) -> f64| -> f64 {
        row.iter()
            .map(|pair| weight(pair.1, loudness(pair.2)))
            .sum()
    };
    let squared = |f: f64, g: f64| (f * f + floor) * g;
    let (sum, level) = match total(&squared) {
        // Where all similarities vanish the magnitudes alone decide.
        0.0 => (total(&|_, g| g), true),
        sum => (sum, false),
    };
    let (inverse, steepest) = (finite_inverse(sum), T::max_value().as_f64().powf(0.25));
    let pair = |(j, f, exponent, on_magnitude, on_weight)| {
        let g = loudness(exponent);
        Pair {
            i,
            j,
            weight: if level { g } else { squared(f, g) } * inverse,
            slope: match level {
                true => 0.0,
                false => (2.0 * f * g * inverse).clamp(-steepest, steepest),
            },
            on_magnitude,
            on_weight,
        }
    };
    row.iter().copied().map(pair).collect()
}

/// Adds a multiple of row `from` of `x` to row `to` of a sum; zero times anything is nothing.
fn add(sum: &mut Array2<f64>, to: usize, factor: f64, x: &Array2<f64>, from: usize) {
    if factor != 0.0 {
        sum.row_mut(to).scaled_add(factor, &x.row(from));
    }
}

/// Rows in double precision, divided by a power of two that brings the largest number near one.
fn scaled<T: Real>(x: ArrayView2<T>) -> (Array2<f64>, i32) {
    let largest = log2_largest(x);
    let unit = if largest.is_finite() {
        largest.ceil() as i32
    } else {
        0
    };
    (x.mapv(|x| libm::scalbn(x.as_f64(), -unit)), unit)
}

/// The rows of a row-major matrix.
fn rows<T>(x: Mat<'_, T>) -> ArrayView2<'_, T> {
    ArrayView2::from_shape(x.shape(), x.data()).expect("row-major")
}
