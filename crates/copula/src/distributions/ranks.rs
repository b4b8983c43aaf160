//! Statistics of ranks: uniform scores and Kendall's tau.

use crate::Error;
use bochner_numerics::argument;
use ndarray::{Array2, ArrayView1, ArrayView2, Axis};

/// The uniform scores of observations: their ranks over `n + 1`, ties sharing their mean rank.
///
/// $$u_{im} = \frac{\mathrm{rank}\_m(x_{im})}{n + 1}$$
///
/// # Shapes
/// `x: [n, M]`, one observation a row, to `[n, M]`, strictly between 0 and 1.
///
/// # Errors
/// [`Error::Argument`] for observations without entries or that are not finite.
///
/// # Reference
/// Genest, Ghoudi, Rivest, *A semiparametric estimation procedure of dependence parameters in
/// multivariate families of distributions*, Biometrika 1995.
///
/// # Example
///
/// ```
/// use bochner_copula::ndarray::array;
/// use bochner_copula::pseudo_observations;
///
/// let u = pseudo_observations(array![[9.0], [-1.0], [9.0]].view())?;
/// assert_eq!(u, array![[2.5 / 4.0], [0.25], [2.5 / 4.0]]);
/// # Ok::<(), bochner_copula::Error>(())
/// ```
pub fn pseudo_observations(x: ArrayView2<f64>) -> Result<Array2<f64>, Error> {
    argument::not_empty("x", x.shape())?;
    argument::finite("x", x.shape(), x)?;
    let mut u = Array2::zeros(x.dim());
    for (x, mut u) in x.axis_iter(Axis(1)).zip(u.axis_iter_mut(Axis(1))) {
        let order = sorted(x.len(), |i| x[i]);
        for tied in order.chunk_by(|&i, &j| x[i] == x[j]) {
            let before = order.partition_point(|&i| x[i] < x[tied[0]]);
            let rank = before as f64 + 0.5 * (tied.len() + 1) as f64;
            tied.iter()
                .for_each(|&i| u[i] = rank / (x.len() + 1) as f64);
        }
    }
    Ok(u)
}

/// Kendall's tau-b of paired observations: the balance of concordant pairs, corrected for ties.
///
/// $$\tau_b = \frac{n_c - n_d}{\sqrt{(n_0 - n_x)(n_0 - n_y)}}, \qquad n_0 = \tfrac12 n (n - 1)$$
///
/// *where* $n_c$ and $n_d$ count the concordant and the discordant pairs, $n_x$ and $n_y$ those
/// tied in one of the two.
///
/// # Shapes
/// `x` and `y`: `[n]`.
///
/// # Errors
/// [`Error::Argument`] if the lengths differ or a value is not finite, [`Error::TooFew`] below two
/// observations, [`Error::Constant`] (column 0 for `x`, 1 for `y`).
///
/// # Numerics
/// The pairs are counted in integers, in `n log n` steps: the discordant pairs are the exchanges of a
/// merge sort.
///
/// # Reference
/// Knight, *A computer method for calculating Kendall's tau with ungrouped data*, JASA 1966.
pub fn kendall_tau_b(x: ArrayView1<f64>, y: ArrayView1<f64>) -> Result<f64, Error> {
    argument::shape("y", x.shape(), y.shape())?;
    argument::finite("x", x.shape(), x)?;
    argument::finite("y", y.shape(), y)?;
    let n = x.len();
    if n < 2 {
        return Err(Error::TooFew { got: n });
    }
    let order = sorted(n, |i| (x[i], y[i]));
    let ties_x = tied_pairs(&order, |i| x[i]);
    let ties_both = tied_pairs(&order, |i| (x[i], y[i]));
    let mut along: Vec<f64> = order.iter().map(|&i| y[i]).collect();
    let discordant = exchanges(&mut along);
    let ties_y = tied_pairs(&along, |y| y);
    let pairs = n as u64 * (n as u64 - 1) / 2;
    for (column, ties) in [ties_x, ties_y].into_iter().enumerate() {
        if ties == pairs {
            return Err(Error::Constant { column });
        }
    }
    let untied = (pairs + ties_both - ties_x - ties_y) as f64;
    let balance = untied - 2.0 * discordant as f64;
    let (by_x, by_y) = ((pairs - ties_x) as f64, (pairs - ties_y) as f64);
    Ok((balance / by_x.sqrt() / by_y.sqrt()).clamp(-1.0, 1.0))
}

/// The indices in ascending order of finite keys.
fn sorted<K: PartialOrd>(n: usize, key: impl Fn(usize) -> K) -> Vec<usize> {
    let mut order: Vec<usize> = (0..n).collect();
    order.sort_by(|&i, &j| key(i).partial_cmp(&key(j)).expect("checked to be finite"));
    order
}

/// The number of pairs with equal keys; elements with equal keys must be neighbours.
fn tied_pairs<T: Copy, K: PartialEq>(elements: &[T], key: impl Fn(T) -> K) -> u64 {
    let groups = elements.chunk_by(|&i, &j| key(i) == key(j));
    groups
        .map(|group| group.len() as u64 * (group.len() as u64 - 1) / 2)
        .sum()
}

/// Sorts `y` and returns the number of pairs that stood in descending order.
fn exchanges(y: &mut [f64]) -> u64 {
    if y.len() < 2 {
        return 0;
    }
    let middle = y.len() / 2;
    let mut count = exchanges(&mut y[..middle]) + exchanges(&mut y[middle..]);
    let (mut left, mut right) = (0, middle);
    let mut merged = Vec::with_capacity(y.len());
    while left < middle && right < y.len() {
        if y[left] <= y[right] {
            merged.push(y[left]);
            left += 1;
        } else {
            merged.push(y[right]);
            right += 1;
            count += (middle - left) as u64;
        }
    }
    merged.extend_from_slice(&y[left..middle]);
    let length = merged.len();
    // The rest of the right half stands in its place already.
    y[..length].copy_from_slice(&merged);
    count
}

#[cfg(test)]
mod tests {
    use super::*;
    use bochner_numerics::Seed;
    use ndarray::{Array1, array, aview1};
    use rand::Rng;

    /// The definition, pair by pair.
    fn by_definition(x: &[f64], y: &[f64]) -> f64 {
        let sign = |a: f64, b: f64| f64::from(i8::from(a > b) - i8::from(a < b));
        let (mut balance, mut by_x, mut by_y) = (0.0, 0.0, 0.0);
        for i in 0..x.len() {
            for j in 0..i {
                let (a, b) = (sign(x[i], x[j]), sign(y[i], y[j]));
                balance += a * b;
                by_x += a * a;
                by_y += b * b;
            }
        }
        balance / f64::sqrt(by_x * by_y)
    }

    #[test]
    fn the_quick_count_is_the_definition() {
        let mut rng = Seed::new(4).stream("ties");
        for (n, values) in [(2, 50), (3, 4), (17, 3), (60, 8), (61, 1000)] {
            let mut draw = || -> Vec<f64> {
                (0..n)
                    .map(|_| f64::from(rng.gen_range(0..values)))
                    .collect()
            };
            let (x, y) = (draw(), draw());
            let is_constant = |x: &[f64]| x.iter().all(|&value| value == x[0]);
            match kendall_tau_b(aview1(&x), aview1(&y)) {
                Ok(got) => assert!((got - by_definition(&x, &y)).abs() < 1e-14, "{n} {values}"),
                Err(error) => assert!(is_constant(&x) || is_constant(&y), "{error}"),
            }
        }
    }

    #[test]
    fn monotone_pairs_have_the_extreme_values() {
        let x = Array1::from_iter((0..9).map(f64::from));
        let cube = x.mapv(|x| x.powi(3));
        assert!((kendall_tau_b(x.view(), cube.view()).unwrap() - 1.0).abs() < 1e-15);
        assert!((kendall_tau_b(x.view(), (-cube).view()).unwrap() + 1.0).abs() < 1e-15);
    }

    #[test]
    fn ranks_do_not_see_monotone_transformations() {
        let x = array![[0.3, -4.0], [2.0, 8.0], [-1.0, 8.0], [0.0, 0.5]];
        let y = x.mapv(|x: f64| x.exp());
        let u = pseudo_observations(x.view()).unwrap();
        assert_eq!(u, pseudo_observations(y.view()).unwrap());
        assert_eq!(u.column(0).to_vec(), [0.6, 0.8, 0.2, 0.4]);
        assert_eq!(u.column(1).to_vec(), [0.2, 0.7, 0.7, 0.4]);
    }

    #[test]
    fn what_has_no_ranks_is_refused() {
        let nan = array![[1.0], [f64::NAN]];
        let got = pseudo_observations(nan.view());
        assert!(
            got.unwrap_err()
                .to_string()
                .starts_with("`x` is NaN at [1, 0]")
        );
        let none = pseudo_observations(Array2::zeros((0, 2)).view());
        assert!(none.unwrap_err().to_string().contains("no elements"));
        let tau = |x: &[f64], y: &[f64]| kendall_tau_b(aview1(x), aview1(y)).unwrap_err();
        assert_eq!(tau(&[1.0], &[1.0]), Error::TooFew { got: 1 });
        assert_eq!(tau(&[1.0, 2.0], &[3.0, 3.0]), Error::Constant { column: 1 });
        let short = tau(&[1.0, 2.0], &[3.0]).to_string();
        assert!(short.starts_with("`y` has length 1, but must have length 2"));
        let nan = tau(&[1.0, f64::NAN], &[3.0, 1.0]).to_string();
        assert!(nan.starts_with("`x` is NaN at [1]"));
    }
}
