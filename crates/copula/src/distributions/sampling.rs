//! Draws from the Gaussian copula, with and without some coordinates given.

use crate::Error;
use crate::distributions::gaussian::GaussianCopula;
use crate::distributions::normal::inside;
use crate::distributions::reordered::reordered;
use crate::triangular::solve_columns;
use bochner_numerics::elementary::normal_cdf_in_place;
use bochner_numerics::normal;
use bochner_numerics::{Mat, MatMut, Seed, argument, fill_standard_normal, matmul, parallel};
use ndarray::{Array1, Array2, ArrayView2, Axis, aview1, s};
use rand::RngCore;

impl GaussianCopula {
    /// Independent draws of uniform scores.
    ///
    /// $$u_m = \Phi(x_m), \qquad x = \hat L \epsilon, \quad \epsilon \sim \mathcal N(0, I)$$
    ///
    /// # Shapes
    /// `[n, M]`, strictly between 0 and 1.
    ///
    /// # Numerics
    /// One word of `rng` opens a stream for every block of rows, so that the draws do not depend on the
    /// number of threads. The normal numbers are those of [`fill_standard_normal`].
    pub fn sample(&self, n: usize, rng: &mut (impl RngCore + ?Sized)) -> Array2<f64> {
        Draws::new(self.factor(), &[], n, rng).rows(to_uniform)
    }

    /// Independent draws with some coordinates held at given uniform scores.
    ///
    /// With the coordinates given first, the factor's upper left block $L_{gg}$ gives their
    /// innovations, and the others follow from these and fresh ones:
    ///
    /// $$x_a = L_{ag} L_{gg}^{-1} x_g + L_{aa} \epsilon$$
    ///
    /// # Shapes
    /// `given`: pairs of a coordinate below `M` and its uniform score, in any order, to `[n, M]`;
    /// the coordinates given hold their scores.
    ///
    /// # Errors
    /// [`Error::Argument`] for a coordinate that does not exist and for a score not strictly between 0 and 1,
    /// [`Error::Repeated`] for a coordinate that is given twice.
    ///
    /// # Example
    ///
    /// ```
    /// use bochner_copula::GaussianCopula;
    /// use bochner_copula::ndarray::array;
    /// use bochner_numerics::Seed;
    ///
    /// let copula = GaussianCopula::from_correlation(array![[1.0, 0.9], [0.9, 1.0]].view())?;
    /// let mut rng = Seed::new(1).stream("scores");
    /// let u = copula.conditional_sample(&[(1, 0.99)], 500, &mut rng)?;
    /// assert!(u.column(1).iter().all(|&u| u == 0.99));
    /// assert!(u.column(0).mean().unwrap() > 0.9);
    /// # Ok::<(), bochner_copula::Error>(())
    /// ```
    pub fn conditional_sample(
        &self,
        given: &[(usize, f64)],
        n: usize,
        rng: &mut (impl RngCore + ?Sized),
    ) -> Result<Array2<f64>, Error> {
        for &(coordinate, u) in given {
            let name = format!("coordinate {coordinate} of given");
            argument::in_range(u > 0.0 && u < 1.0, name, u, "strictly between 0 and 1")?;
        }
        let scores: Vec<_> = given
            .iter()
            .map(|&(m, u)| (m, normal::quantile(u)))
            .collect();
        let mut u = self.conditional_draws(&scores, n, rng)?.0.rows(to_uniform);
        for &(m, given) in given {
            u.column_mut(m).fill(given);
        }
        Ok(u)
    }

    /// Draws of normal scores.
    pub(crate) fn sample_scores(&self, n: usize, rng: &mut (impl RngCore + ?Sized)) -> Array2<f64> {
        Draws::new(self.factor(), &[], n, rng).rows(|_| ())
    }

    /// Draws of normal scores with some given.
    pub(crate) fn conditional_scores(
        &self,
        given: &[(usize, f64)],
        n: usize,
        rng: &mut (impl RngCore + ?Sized),
    ) -> Result<Array2<f64>, Error> {
        let mut scores = self.conditional_draws(given, n, rng)?.0.rows(|_| ());
        for &(m, x) in given {
            scores.column_mut(m).fill(x);
        }
        Ok(scores)
    }

    /// The draws, and the innovations of the scores given.
    pub(crate) fn conditional_draws(
        &self,
        given: &[(usize, f64)],
        n: usize,
        rng: &mut (impl RngCore + ?Sized),
    ) -> Result<(Draws, Vec<f64>), Error> {
        let order = given_first(given, self.dimension())?;
        let factor = reordered(self.factor(), &order);
        let mut innovations: Vec<f64> = given.iter().map(|&(_, x)| x).collect();
        let known = given.len();
        solve_columns(factor.slice(s![..known, ..known]), &mut innovations);
        innovations.iter_mut().for_each(|e| *e = bounded(*e));
        let mut place: Vec<usize> = (0..order.len()).collect();
        place.sort_by_key(|&i| order[i]);
        let factor = factor.select(Axis(0), &place);
        let draws = Draws::new(factor.view(), &innovations, n, rng);
        Ok((draws, innovations))
    }
}

/// The number of rows that share a stream: enough to keep a thread busy, few enough for the cache.
const ROWS: usize = 512;

/// Rows of `mean + scale weights e`, with independent normal numbers `e`.
pub(crate) struct Draws {
    n: usize,
    seed: Seed,
    mean: Array1<f64>,
    weights: Array2<f64>,
    /// A factor of each row, 1 without one.
    scales: Option<Vec<f64>>,
}

impl Draws {
    /// Rows of `L e` whose first innovations `e` are known.
    fn new(
        factor: ArrayView2<f64>,
        known: &[f64],
        n: usize,
        rng: &mut (impl RngCore + ?Sized),
    ) -> Self {
        let (of_known, of_new) = factor.split_at(Axis(1), known.len());
        Self {
            n,
            seed: Seed::new(rng.next_u64()),
            mean: of_known.dot(&aview1(known)),
            weights: of_new.as_standard_layout().into_owned(),
            scales: None,
        }
    }

    /// These draws with the noise of each row multiplied by a factor.
    pub(crate) fn scaled(self, scales: Vec<f64>) -> Self {
        let scales = Some(scales);
        Self { scales, ..self }
    }

    /// The draws; `finish` is called on each block of rows.
    pub(crate) fn rows(&self, finish: impl Fn(&mut [f64]) + Send + Sync) -> Array2<f64> {
        let (width, fresh) = self.weights.dim();
        let weights = self.weights.as_slice().expect("brought to row-major order");
        let weights = Mat::new(weights, width, fresh).t();
        let mean = self.mean.as_slice().expect("in one piece");
        let mut draws = vec![0.0; self.n * width];
        parallel::for_each_chunk(&mut draws, ROWS * width, |block, draws| {
            let rows = draws.len() / width;
            let mut innovations = vec![0.0; rows * fresh];
            let mut stream = self.seed.nth(block as u64).stream("innovations");
            fill_standard_normal(&mut stream, &mut innovations);
            if let Some(scales) = &self.scales {
                let scales = &scales[block * ROWS..];
                let rows = innovations.chunks_exact_mut(fresh.max(1)).zip(scales);
                rows.for_each(|(row, scale)| row.iter_mut().for_each(|e| *e *= scale));
            }
            draws
                .chunks_exact_mut(width)
                .for_each(|x| x.copy_from_slice(mean));
            let innovations = Mat::new(&innovations, rows, fresh);
            matmul(
                1.0,
                innovations,
                weights,
                1.0,
                MatMut::new(draws, rows, width),
            );
            finish(draws);
        });
        Array2::from_shape_vec((self.n, width), draws).expect("allocated with this shape")
    }
}

fn to_uniform(scores: &mut [f64]) {
    normal_cdf_in_place(scores);
    scores.iter_mut().for_each(|u| *u = inside(*u));
}

/// All coordinates, with those given first.
fn given_first(given: &[(usize, f64)], dimension: usize) -> Result<Vec<usize>, Error> {
    let mut order: Vec<usize> = Vec::with_capacity(dimension);
    for &(coordinate, _) in given {
        argument::index("given", coordinate, dimension)?;
        if order.contains(&coordinate) {
            return Err(Error::Repeated { coordinate });
        }
        order.push(coordinate);
    }
    let rest: Vec<_> = (0..dimension).filter(|m| !order.contains(m)).collect();
    order.extend(rest);
    Ok(order)
}

/// The innovation, bounded so that sums of it do not overflow: values that contradict an almost
/// degenerate factor lead to huge ones.
fn bounded(e: f64) -> f64 {
    if e.is_nan() {
        0.0
    } else {
        e.clamp(-1e100, 1e100)
    }
}
