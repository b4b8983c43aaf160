//! The square of an inner product, as sums that can be taken before the other factor is known.

use super::spread_columns::{self, Columns};
use super::sums::Augmented;
use super::symmetric_features::{self as features, SymmetricFeatures};
use bochner_numerics::{Buffers, Mat, Real};

/// The two factors of $x_a x_b y_n$ that are multiplied first. Their product with the third factor, summed up over
/// positions, is a matrix product.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// Two columns of x: less work for wide values.
    Features,
    /// A column of x and one of y: less memory traffic for narrow values.
    Columns,
}

/// Values of fewer numbers are narrow.
const WIDE: usize = 16;

impl Order {
    /// The order that is faster for values of some width.
    pub(super) fn for_values(width: usize) -> Self {
        if width < WIDE {
            Self::Columns
        } else {
            Self::Features
        }
    }

    /// The numbers in S for each column of y.
    pub(super) fn count(self, width: usize) -> usize {
        match self {
            Self::Features => features::count(width),
            Self::Columns => spread_columns::count(width),
        }
    }
}

/// Rows x of which $(x \cdot y)^2$ is wanted: the squared kernel never writes all of its features
/// down.
pub(crate) enum Squares<T> {
    Features(SymmetricFeatures<T>),
    Columns(Columns<T>),
}

impl<T: Real> Squares<T> {
    pub(crate) fn new(order: Order, buffers: &Buffers<T>, width: usize, scale: T) -> Self {
        match order {
            Order::Features => Self::Features(SymmetricFeatures::new(buffers, width, scale)),
            Order::Columns => Self::Columns(Columns::new(buffers, width, scale)),
        }
    }

    pub(crate) fn of(&mut self, phi: Mat<T>) -> &mut Self {
        match self {
            Self::Features(psi) => drop(psi.of(phi)),
            Self::Columns(x) => drop(x.of(phi)),
        }
        self
    }

    pub(crate) fn add_to(&mut self, y: &Augmented<T>, moments: &mut Augmented<T>) {
        match self {
            Self::Features(psi) => psi.add_to(y, moments),
            Self::Columns(x) => x.add_to(y, moments),
        }
    }

    pub(crate) fn read(&mut self, moments: &Augmented<T>, buffers: &Buffers<T>) -> Augmented<T> {
        match self {
            Self::Features(psi) => psi.read(moments, buffers),
            Self::Columns(x) => x.read(moments),
        }
    }

    pub(crate) fn pull_back(
        &mut self,
        moments: &Augmented<T>,
        y: &Augmented<T>,
        gradient: &mut [T],
    ) {
        match self {
            Self::Features(psi) => psi.pull_back(moments, y, gradient),
            Self::Columns(x) => drop(x.pull_back(moments, y, gradient)),
        }
    }

    pub(crate) fn read_and_pull_back(
        &mut self,
        moments: &Augmented<T>,
        y: &Augmented<T>,
        gradient: &mut [T],
        buffers: &Buffers<T>,
    ) -> Augmented<T> {
        match self {
            Self::Features(psi) => {
                psi.pull_back(moments, y, gradient);
                psi.read(moments, buffers)
            }
            Self::Columns(x) => x.pull_back(moments, y, gradient),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bochner_numerics::{Seed, finite_difference, relative_error, standard_normal};

    const ROWS: usize = 3;
    const VALUES: usize = 2;
    const SCALE: f64 = 0.7;
    const ORDERS: [Order; 2] = [Order::Features, Order::Columns];
    /// Less than a group of columns, one and a part of another, and two.
    const WIDTHS: [usize; 3] = [4, 11, 16];

    fn random(n: usize, purpose: &str) -> Vec<f64> {
        let mut stream = Seed::new(1).stream(purpose);
        (0..n).map(|_| standard_normal(&mut stream)).collect()
    }

    fn augmented(rows: usize, purpose: &str) -> Augmented<f64> {
        Augmented {
            wide: random(rows * VALUES, purpose).into(),
            last: random(rows, &[purpose, "last"].concat()).into(),
        }
    }

    fn squares(order: Order, width: usize, x: &[f64]) -> Squares<f64> {
        let mut squares = Squares::new(order, &Buffers::default(), width, SCALE);
        squares.of(Mat::new(x, x.len() / width, width));
        squares
    }

    fn dot(a: &[f64], b: &[f64]) -> f64 {
        a.iter().zip(b).map(|(a, b)| a * b).sum()
    }

    fn pairing(a: &Augmented<f64>, b: &Augmented<f64>) -> f64 {
        dot(&a.wide, &b.wide) + dot(&a.last, &b.last)
    }

    fn moments(order: Order, width: usize) -> Augmented<f64> {
        augmented(order.count(width), "moments")
    }

    fn read(order: Order, width: usize, x: &[f64]) -> Augmented<f64> {
        squares(order, width, x).read(&moments(order, width), &Buffers::default())
    }

    #[test]
    fn what_is_added_is_read_as_squares_of_products() {
        for (order, width) in ORDERS.into_iter().flat_map(|o| WIDTHS.map(|w| (o, w))) {
            let (keys, queries) = (random(ROWS * width, "keys"), random(2 * width, "queries"));
            let y = augmented(ROWS, "y");
            let mut moments = Augmented::zeros(&Buffers::default(), order.count(width), VALUES);
            squares(order, width, &keys).add_to(&y, &mut moments);
            let got = squares(order, width, &queries).read(&moments, &Buffers::default());
            for (i, query) in queries.chunks(width).enumerate() {
                let square = |key| (SCALE * SCALE * dot(query, key)).powi(2);
                let squares: Vec<f64> = keys.chunks(width).map(square).collect();
                for n in 0..VALUES {
                    let column = y.wide.iter().skip(n).step_by(VALUES).copied();
                    let want = dot(&squares, &column.collect::<Vec<_>>());
                    assert!((got.wide[i * VALUES + n] - want).abs() < 1e-12 * (1.0 + want.abs()));
                }
                let want = dot(&squares, &y.last);
                assert!((got.last[i] - want).abs() < 1e-12 * (1.0 + want.abs()));
            }
        }
    }

    #[test]
    fn the_gradient_agrees_with_finite_differences() {
        for (order, width) in ORDERS.into_iter().flat_map(|o| WIDTHS.map(|w| (o, w))) {
            let (x, y) = (random(ROWS * width, "x"), augmented(ROWS, "y"));
            let want = finite_difference(&x, |x| pairing(&read(order, width, x), &y));
            let (mut got, mut again) = (vec![0.0; x.len()], vec![1.0; x.len()]);
            let moments = moments(order, width);
            let mut squares = squares(order, width, &x);
            squares.pull_back(&moments, &y, &mut got);
            assert!(relative_error(&got, &want) < 1e-6);
            let found = squares.read_and_pull_back(&moments, &y, &mut again, &Buffers::default());
            assert!(
                again
                    .iter()
                    .zip(&got)
                    .all(|(a, b)| (a - b - 1.0).abs() < 1e-12)
            );
            assert_eq!(found.wide[..], read(order, width, &x).wide[..]);
        }
    }
}
