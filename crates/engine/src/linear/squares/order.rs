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
