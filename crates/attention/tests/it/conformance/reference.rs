//! The formula of every mechanism written plainly, pair by pair, in double precision.

use bochner_attention::{
    Cat, Error, IkanDirect, Mikan, Pass, Performer, Preset, Primal, Variant,
    kernels::RandomFeatureMap,
    mechanism::{CatForm, PrimalReduction, PrimalTrace, PrimalWeights, Streams},
};
use bochner_numerics::DropoutMask;
use bochner_spectral::{Implicit, Source};
use ndarray::{Array1, Array2, Array3, Array4, ArrayView1, ArrayView2, Axis, s};
use std::f64::consts::{PI, TAU};

/// The expected result of a forward pass.
#[derive(Clone, Debug)]
pub(crate) struct Reference {
    /// The attended values, `[B, M, Tq, dv]`.
    pub(crate) output: Array4<f64>,
    /// The weights before dropout, `[B, M, Tq, Tk]`, if there are weights.
    pub(crate) weights: Option<Array4<f64>>,
    /// The term that is added to the loss, `[B]`.
    pub(crate) penalty: Array1<f64>,
}

/// The forward pass straight from the formula.
pub(crate) fn reference(
    variant: &Variant,
    inputs: &Streams<f64>,
    parameters: &[f64],
    pass: &Pass,
) -> Result<Reference, Error> {
    let by_weight = |weight: &dyn Fn(Pair) -> f64| by_weight(inputs, pass, weight, |row| row.sum());
    match variant {
        Variant::Softmax(own) => by_weight(&|pair| {
            let scale = own.scale.unwrap_or(pair.root().recip());
            (pair.q.dot(&pair.k) * scale).exp()
        }),
        Variant::RbfOnly(_) => {
            by_weight(&|pair| (-pair.square_distance() / (2.0 * pair.root())).exp())
        }
        Variant::Expsin(own) => by_weight(&|pair| {
            let angle = PI * pair.square_distance().sqrt() / own.period;
            (-2.0 * angle.sin().powi(2) / pair.root() + pair.magnitude(2.0)).exp()
        }),
        Variant::Linear(_) => by_weight(&|pair| {
            (pair.q.dot(&pair.k) / pair.root()).powi(2) * pair.magnitude(2.0).exp()
        }),
        Variant::Bipolar(own) => {
            let spike =
                |x: f64| x.signum() * f64::from(u8::from(x != 0.0 && x.abs() >= own.threshold));
            let weight = |pair: Pair| {
                let products = pair.q.iter().zip(pair.k);
                let score: f64 = products.map(|(&q, &k)| spike(q) * spike(k)).sum();
                score.exp2()
            };
            self::by_weight(inputs, pass, &weight, power_above)
        }
        Variant::Performer(own) => {
            let w = own.frequencies(0, inputs.size())?;
            by_weight(&|pair| {
                let (w, root) = (w.index_axis(Axis(0), pair.m), pair.root().sqrt());
                let phi = |x: ArrayView1<f64>| random_features(own, (&x / root).view(), w);
                let products = phi(pair.q).into_iter().zip(phi(pair.k));
                products.map(|(q, k)| q * k).sum()
            })
        }
        Variant::IkanDirect(own) => {
            let sets = parameters.chunks(inputs.size().heads * own.points * inputs.size().width);
            let shape = (1, inputs.size().heads, own.points, inputs.size().width);
            let set = |w: &[f64]| Array4::from_shape_vec(shape, w.to_vec()).unwrap();
            let IkanDirect {
                p, floor, preset, ..
            } = *own;
            squared(
                inputs,
                pass,
                &sets.map(set).collect::<Vec<_>>(),
                (p, floor, preset),
            )
        }
        Variant::Mikan(own) => mikan(own, inputs, parameters, pass),
        Variant::Cat(own) => cat(own, inputs, pass),
        Variant::Primal(own) => primal(own, inputs, parameters),
        other => panic!("no plain formula of {other:?}"),
    }
}

/// A query and a key.
#[derive(Clone, Copy)]
struct Pair<'a> {
    b: usize,
    m: usize,
    q: ArrayView1<'a, f64>,
    k: ArrayView1<'a, f64>,
    /// The number of the pair, in row-major order.
    index: u64,
}

impl Pair<'_> {
    /// The square root of the width.
    fn root(&self) -> f64 {
        (self.q.len() as f64).sqrt()
    }

    fn square_distance(&self) -> f64 {
        let pairs = self.q.iter().zip(self.k);
        pairs.map(|(q, k)| (q - k).powi(2)).sum()
    }

    /// The magnitude of the key, $|k|_p^2 / (2 \sqrt d)$.
    fn magnitude(&self, p: f64) -> f64 {
        norm_square(self.k, p) / (2.0 * self.root())
    }

    /// The kernel by its spectral points, one set or two of `[1 or B, M, R, d]`: $f_S$ or $f_{NS}$.
    fn kernel(&self, sets: &[Array4<f64>]) -> f64 {
        let of = |w: &'_ Array4<f64>| {
            w.slice(s![self.b.min(w.dim().0 - 1), self.m, .., ..])
                .to_owned()
        };
        let sets: Vec<Array2<f64>> = sets.iter().map(of).collect();
        let pairs = sets.iter().flat_map(|a| sets.iter().map(move |b| (a, b)));
        let cosines = pairs.flat_map(|(a, b)| (a.dot(&self.q) - b.dot(&self.k)).mapv(f64::cos));
        let cosines: Array1<f64> = cosines.collect();
        cosines.mean().expect("spectral points")
    }
}

/// $|x|_p^2$.
fn norm_square(x: ArrayView1<f64>, p: f64) -> f64 {
    x.iter().map(|x| x.abs().powf(p)).sum::<f64>().powf(2.0 / p)
}

/// Attention by the weight of each pair, and by what the weights of a row are divided by.
fn by_weight(
    inputs: &Streams<f64>,
    pass: &Pass,
    weight: &dyn Fn(Pair) -> f64,
    denominator: impl Fn(ArrayView1<f64>) -> f64,
) -> Result<Reference, Error> {
    let (batch, heads, queries, _) = inputs.q().dim();
    let keys = inputs.k().dim().2;
    let mut weights = Array4::zeros((batch, heads, queries, keys));
    let rows = ndarray::indices((batch, heads, queries)).into_iter();
    for (number, ((b, m, i), mut row)) in rows.zip(weights.rows_mut()).enumerate() {
        for j in (0..keys).filter(|&j| inputs.mask.keeps([b, m, i, j], [queries, keys])) {
            row[j] = weight(Pair {
                b,
                m,
                q: inputs.q().slice(s![b, m, i, ..]),
                k: inputs.k().slice(s![b, m, j, ..]),
                index: (number * keys + j) as u64,
            });
            if let Some(bias) = inputs.bias {
                row[j] *= bias.at([b, m, i, j], heads, [queries, keys]).exp();
            }
        }
        let total = denominator(row.view());
        if total != 0.0 {
            row /= total;
        }
    }
    let dropout = pass.weight_dropout()?;
    let factor = |index: usize| dropout.map_or(1.0, |dropout| dropout.factor(index as u64));
    let mut output = Array4::zeros((batch, heads, queries, inputs.v().dim().3));
    for (index, ((b, m, i, j), &w)) in weights.indexed_iter().enumerate() {
        if w != 0.0 {
            let mut row = output.slice_mut(s![b, m, i, ..]);
            row.scaled_add(w * factor(index), &inputs.v().slice(s![b, m, j, ..]));
        }
    }
    Ok(Reference {
        output,
        weights: Some(weights),
        penalty: Array1::zeros(batch),
    })
}

/// The smallest power of two that is no less than the sum of a row. In units of the smallest weight the sum is a whole
/// number: 128 bits hold it for widths up to 59.
fn power_above(row: ArrayView1<f64>) -> f64 {
    let kept = || row.iter().copied().filter(|&w| w > 0.0);
    let smallest = kept().fold(f64::INFINITY, f64::min);
    match kept().map(|w| (w / smallest) as u128).sum::<u128>() {
        0 => 0.0,
        sum => smallest * sum.next_power_of_two() as f64,
    }
}

fn random_features(own: &Performer, x: ArrayView1<f64>, w: ArrayView2<f64>) -> Vec<f64> {
    let (u, half) = (w.dot(&x), x.dot(&x) / 2.0);
    let exponentials = |sign: f64| u.mapv(|u| (sign * u - half).exp()).to_vec();
    match own.features {
        RandomFeatureMap::Positive => exponentials(1.0),
        RandomFeatureMap::Hyperbolic => [exponentials(1.0), exponentials(-1.0)].concat(),
        RandomFeatureMap::Trigonometric => {
            let [cos, sin] = [f64::cos, f64::sin].map(|f| u.mapv(|u| half.exp() * f(u)).to_vec());
            [cos, sin].concat()
        }
        RandomFeatureMap::Relu { epsilon } => u.mapv(|u| u.max(0.0) + epsilon).to_vec(),
    }
}

/// $(f^2 + e) e^{m_j}$. The released code multiplies frequencies by $2 \pi$, adds the query's magnitude, divides by another
/// root, and drops some of the sums.
fn squared(
    inputs: &Streams<f64>,
    pass: &Pass,
    points: &[Array4<f64>],
    (p, floor, preset): (f64, f64, Preset),
) -> Result<Reference, Error> {
    let scale = match preset {
        Preset::Paper => 1.0,
        Preset::Released => TAU,
    };
    let points: Vec<_> = points.iter().map(|w| w * scale).collect();
    let seed = pass.seed().child("magnitude dropout");
    let dropout = matches!(pass, Pass::Training { .. }).then(|| DropoutMask::new(0.1, seed));
    let dropout = dropout.transpose()?;
    let weight = |pair: Pair| {
        let exponent = match preset {
            Preset::Paper => pair.magnitude(p),
            Preset::Released => {
                let kept: f64 = dropout.map_or(1.0, |dropout| dropout.factor(pair.index));
                let sum = norm_square(pair.q, p) + norm_square(pair.k, p);
                kept * sum / (2.0 * pair.root().sqrt())
            }
        };
        (pair.kernel(&points).powi(2) + floor) * exponent.exp()
    };
    by_weight(inputs, pass, &weight, |row| row.sum())
}

/// Attention by the draw; what is drawn from the noise is the subject of the tests of `bochner-spectral`.
fn mikan(
    own: &Mikan,
    inputs: &Streams<f64>,
    parameters: &[f64],
    pass: &Pass,
) -> Result<Reference, Error> {
    let source = Implicit {
        points: own.points,
        prior_std: own.prior_std,
        slope: own.slope,
        copula: own.copula,
        preset: own.preset,
        stationarity: own.stationarity,
        posterior: own.posterior,
    };
    let batch = inputs.q().dim().0;
    let examples = match pass {
        Pass::Training { .. } => batch,
        Pass::Evaluation { .. } => 1,
    };
    let mut stream = pass.seed().stream("spectral noise");
    let noise: Array4<f64> = source.noise(examples, inputs.size(), &mut stream);
    let each: Vec<usize> = (0..batch).map(|b| b % examples).collect();
    let forward = own.forward_with(inputs, parameters, pass, noise.select(Axis(0), &each))?;
    let drawn = own.draw_of(&forward)?;
    let attended = squared(inputs, pass, &drawn.points, (own.p, own.floor, own.preset))?;
    let entropy = drawn.latent.as_ref().and_then(|latent| latent.entropy());
    let mut penalty = &drawn.kl * own.beta;
    entropy.into_iter().for_each(|entropy| penalty += entropy);
    Ok(Reference {
        penalty,
        ..attended
    })
}

/// The scores `[B, M, T]`, and the values.
fn cat_scores(form: CatForm, inputs: &Streams<f64>) -> Result<(Array3<f64>, Array4<f64>), Error> {
    if form != CatForm::AveragedKey {
        let [scores, v] = inputs.get()?;
        return Ok((scores.index_axis_move(Axis(3), 0).to_owned(), v.to_owned()));
    }
    let [q, k, v] = inputs.get()?;
    let (batch, heads, time, width) = q.dim();
    let score = |(b, m, i)| {
        let n = inputs.mask.key_limit(b, time);
        let keys = k.slice(s![b, m, ..n, ..]);
        let mean = keys.mean_axis(Axis(0))?;
        let product = (&q.slice(s![b, m, i, ..]) * &mean).sum();
        Some(product / (width as f64).sqrt())
    };
    let scores = Array3::from_shape_fn((batch, heads, time), |at| score(at).unwrap_or(0.0));
    Ok((scores, v.to_owned()))
}

fn cat(own: &Cat, inputs: &Streams<f64>, pass: &Pass) -> Result<Reference, Error> {
    let (scores, v) = cat_scores(own.form, inputs)?;
    let (batch, heads, time, width) = v.dim();
    let dropout = pass.weight_dropout()?;
    let mut weights = Array4::zeros((batch, heads, time, time));
    let mut output = Array4::zeros((batch, heads, time, width));
    for (b, m, i) in ndarray::indices((batch, heads, time)) {
        let n = inputs.mask.key_limit(b, time);
        if i >= n {
            continue;
        }
        let seen = match own.form {
            CatForm::Causal => i + 1,
            _ => n,
        };
        let z = scores.slice(s![b, m, ..seen]);
        let highest = z.fold(f64::NEG_INFINITY, |a, &b| a.max(b));
        let relative = z.mapv(|z| (z - highest).exp());
        let total = relative.sum();
        for (l, w) in relative.iter().enumerate() {
            let j = match own.form {
                CatForm::Correlation | CatForm::AveragedKey => (i + l) % n,
                CatForm::Convolution | CatForm::Causal => (i + n - l) % n,
            };
            let w = w / total;
            weights[[b, m, i, j]] = w;
            let index = ((b * heads + m) * time + l) as u64;
            let kept = dropout.map_or(1.0, |dropout| dropout.factor(index));
            let mut row = output.slice_mut(s![b, m, i, ..]);
            row.scaled_add(w * kept, &v.slice(s![b, m, j, ..]));
        }
    }
    Ok(Reference {
        output,
        weights: Some(weights),
        penalty: Array1::zeros(batch),
    })
}

fn primal(own: &Primal, inputs: &Streams<f64>, flat: &[f64]) -> Result<Reference, Error> {
    let (batch, heads, time, d) = inputs.q().dim();
    let (s, n, dv) = (
        own.rank,
        match own.weights {
            PrimalWeights::Data { rows, .. } => rows,
            PrimalWeights::Parameters => d,
        },
        own.value_width.unwrap_or(d),
    );
    let matrix = |start: usize, m: usize, [rows, columns]: [usize; 2]| {
        let count = rows * columns;
        let values = flat[start + m * count..][..count].to_vec();
        Array2::from_shape_vec((rows, columns), values).expect("as many")
    };
    let starts = [0, heads * n * s];
    let of_lambda = 2 * heads * n * s;
    let lengths: Vec<usize> = (0..batch)
        .map(|b| {
            (0..time)
                .filter(|&j| inputs.mask.keeps([b, 0, time - 1, j], [time, time]))
                .count()
        })
        .collect();
    let direction = |x: ArrayView2<f64>| {
        let mean = |i: usize| match inputs.mask.is_causal() {
            false => x.row(i).to_owned(),
            true => x.slice(s![..=i, ..]).mean_axis(Axis(0)).expect("a row"),
        };
        let unit = |u: Array1<f64>| match u.dot(&u).sqrt() {
            0.0 => u,
            norm => u / norm,
        };
        let rows: Vec<_> = (0..x.nrows()).map(|i| unit(mean(i))).collect();
        let rows: Vec<_> = rows.iter().map(|row| row.view()).collect();
        ndarray::stack(Axis(0), &rows).expect("rows of one width")
    };
    let mut output = Array4::zeros((batch, heads, time, dv));
    let mut halves = Array2::<f64>::zeros((batch, heads));
    let mut traces = halves.clone();
    for b in (0..batch).filter(|&b| lengths[b] > 0) {
        let length = lengths[b];
        for m in 0..heads {
            let weights = starts.map(|start| matrix(start, m, [n, s]));
            let projections = match own.weights {
                PrimalWeights::Parameters => weights.clone(),
                PrimalWeights::Data { rows, .. } => weights.clone().map(|weight| {
                    let [_, _, x] = inputs.get().expect("checked before");
                    let row = |r| r * (length - 1) / (rows - 1).max(1);
                    let rows: Vec<usize> = (0..rows).map(row).collect();
                    x.slice(s![b, m, .., ..])
                        .select(Axis(0), &rows)
                        .t()
                        .dot(&weight)
                }),
            };
            let sides = [inputs.q(), inputs.k()];
            let [e, r] = [0, 1].map(|side| {
                let x = sides[side].slice_move(s![b, m, ..length, ..]);
                direction(x).dot(&projections[side])
            });
            let lambda = matrix(of_lambda, m, [1, s]);
            let wc = matrix(of_lambda + heads * s, m, [dv, 2 * s]);
            let joined = ndarray::concatenate(Axis(1), &[e.view(), r.view()]).expect("rows");
            let rows = s![b, m, ..length, ..];
            output.slice_mut(rows).assign(&joined.dot(&wc.t()));
            let half = |x: Array2<f64>| 0.5 * (x * &lambda).mapv(|x| x * x).sum();
            halves[[b, m]] = half(e) + half(r);
            let [we, wr] = match own.weights {
                PrimalWeights::Data {
                    trace: PrimalTrace::Parameters,
                    ..
                } => weights,
                _ => projections,
            };
            traces[[b, m]] = we.t().dot(&wr).diag().sum();
        }
    }
    let kept: Vec<usize> = (0..batch).filter(|&b| lengths[b] > 0).collect();
    let loss = |examples: &[usize]| {
        let [halves, traces] = [&halves, &traces].map(|x| x.select(Axis(0), examples));
        let positions: usize = examples.iter().map(|&b| lengths[b]).sum();
        let h = halves.sum() / (heads * positions) as f64;
        let tau = traces.mean().expect("an example");
        own.eta * (h - tau).powi(2)
    };
    let mut penalty = Array1::zeros(batch);
    for &b in &kept {
        penalty[b] = match own.reduction {
            PrimalReduction::Batch => loss(&kept),
            PrimalReduction::Example => loss(&[b]),
        };
    }
    Ok(Reference {
        output,
        weights: None,
        penalty,
    })
}
