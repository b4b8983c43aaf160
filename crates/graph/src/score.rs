//! The scores of edges.

use crate::Error;
use crate::error::{expect_presence, scorable};
use bochner_kernels::SpectralPoints;
use bochner_numerics::Real;
use bochner_numerics::argument::{at_least_one, in_range, not_empty, positive, shape};
use ndarray::{ArrayView2, Axis, Ix3, s};

/// The score of an edge $(j \to i)$, with one row of parameters for each head.
///
/// The variants use $x_i$ for the target's transformed features, $y_j$ for the source's (both of width $F$),
/// and $\mathrm{LeakyReLU}(u) = c(u) u$, where $c(u)$ is 1 if $u \ge 0$ and the slope otherwise.
#[derive(Clone, Copy, Debug)]
pub enum Score<'a, T> {
    /// $\mathrm{LeakyReLU}(u_{ij})$, $u_{ij} = a_1 \cdot x_i + a_2 \cdot y_j + t_{ij}$ (Veličković et
    /// al. 2018).
    Classic {
        /// $a_1$, and after it $a_2$: `[H, 2F]`.
        a: ArrayView2<'a, T>,
    },
    /// $a \cdot \mathrm{LeakyReLU}(x_i + y_j + W_e e_{ij})$, the slope taken coordinate by coordinate
    /// (Brody et al. 2022).
    Dynamic {
        /// $a$: `[H, F]`.
        a: ArrayView2<'a, T>,
    },
    /// $\log(f(q_i, c a)^2 + e) + \log(f(c a, k_j)^2 + e) + c^2 |a|\_p^2 +
    /// \tfrac12 (|q_i|\_p^2 + |k_j|\_p^2) + c t_{ij}$ in $\mathbb{R}^{2F}$.
    ///
    /// *where* $q_i = [x_i, 0]$, $k_j = [0, y_j]$ and $c = c(u_{ij})$ is that of the classic score,
    /// **for each edge**; in the gradient it is a constant. With $f_S$ sampled from
    /// $\mathcal{N}(0, \tfrac12 I)$, $p = 2$ and $e = 0$ it becomes the classic score as the number of
    /// points grows (Proposition 2).
    Kernel {
        /// $a$: `[H, 2F]`, as of the classic score.
        a: ArrayView2<'a, T>,
        /// The spectral points of $f$.
        points: Points<'a, T>,
        /// The exponent of the norms, above 0.
        p: f64,
        /// The floor $e$, from 0 to 1, which is the largest squared similarity.
        floor: f64,
    },
    /// $-\tfrac12 |q_i - c a|^2 - \tfrac12 |c a - k_j|^2 + c t_{ij}$ in $\mathbb{R}^{2F}$: the kernel
    /// score with exact Gaussian similarities, with the same $q_i$, $k_j$ and $c$, without magnitudes or
    /// with those of a p-norm, $c^2 |a|_p^2 + \tfrac12 (|q_i|_p^2 + |k_j|_p^2)$. With those of $p = 2$
    /// it is the classic score.
    Gaussian {
        /// $a$: `[H, 2F]`, as of the classic score.
        a: ArrayView2<'a, T>,
        /// The exponent of the norms, above 0; without, there are no magnitudes.
        p: Option<f64>,
    },
}

impl<T: Real> Score<'_, T> {
    /// The number of heads H.
    pub fn heads(&self) -> usize {
        self.a().nrows()
    }

    /// The width F of one head.
    pub fn width(&self) -> usize {
        match self {
            Self::Classic { a } | Self::Kernel { a, .. } | Self::Gaussian { a, .. } => {
                a.ncols() / 2
            }
            Self::Dynamic { a } => a.ncols(),
        }
    }

    fn a(&self) -> ArrayView2<'_, T> {
        match self {
            Self::Classic { a }
            | Self::Dynamic { a }
            | Self::Kernel { a, .. }
            | Self::Gaussian { a, .. } => a.view(),
        }
    }

    pub(crate) fn validate(&self) -> Result<(), Error> {
        let a = self.a();
        not_empty("a", a.shape())?;
        let whole = matches!(self, Self::Dynamic { .. }) || a.ncols().is_multiple_of(2);
        let range = "even: twice the width of a head";
        in_range(whole, "columns of a", a.ncols() as f64, range)?;
        scorable("a", a)?;
        match self {
            Self::Classic { .. } | Self::Dynamic { .. } => Ok(()),
            Self::Gaussian { p, .. } => Ok(p.map_or(Ok(()), |p| positive("p", p))?),
            Self::Kernel {
                points, p, floor, ..
            } => {
                positive("p", *p)?;
                in_range((0.0..=1.0).contains(floor), "floor", *floor, "from 0 to 1")?;
                points.validate(self.heads(), 2 * self.width())
            }
        }
    }
}

/// Spectral points of all heads, `[H, R, 2F]`.
pub type Points<'a, T> = SpectralPoints<'a, T, Ix3>;

/// Gradients along [`Points`], `[H, R, 2F]`.
pub type PointsGradients<T> = bochner_kernels::PointsGradients<T, Ix3>;

/// A half of the coordinates of $\mathbb{R}^{2F}$.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Half {
    /// The first, where targets have theirs.
    Target,
    /// The second half, which holds the features of the sources.
    Source,
}

/// Views of the points of all heads.
pub(crate) trait PointsOfHeads<'a, T> {
    /// The points of one head.
    fn head(&self, head: usize) -> SpectralPoints<'a, T>;

    /// Half of the coordinates of the points of one head.
    fn half(&self, head: usize, half: Half) -> SpectralPoints<'a, T>;

    /// `Ok` if the points fit the heads.
    fn validate(&self, heads: usize, width: usize) -> Result<(), Error>;
}

impl<'a, T: Real> PointsOfHeads<'a, T> for Points<'a, T> {
    fn head(&self, head: usize) -> SpectralPoints<'a, T> {
        self.map(|w| w.index_axis_move(Axis(0), head))
    }

    fn half(&self, head: usize, half: Half) -> SpectralPoints<'a, T> {
        let width = self.first().len_of(Axis(2)) / 2;
        let range = match half {
            Half::Target => 0..width,
            Half::Source => width..2 * width,
        };
        self.map(|w| {
            let head = w.index_axis_move(Axis(0), head);
            head.slice_move(s![.., range.clone()])
        })
    }

    fn validate(&self, heads: usize, width: usize) -> Result<(), Error> {
        let (first, second) = match *self {
            Self::Stationary { w } => (("w", w), None),
            Self::Nonstationary { w1, w2 } => (("w1", w1), Some(("w2", w2))),
        };
        let count = first.1.len_of(Axis(1));
        at_least_one("spectral points", count)?;
        for (name, w) in [Some(first), second].into_iter().flatten() {
            shape(name, &[heads, count, width], w.shape())?;
            scorable(name, w)?;
        }
        Ok(())
    }
}

/// The term that attributes of the edges add within their scores, for each head: the vector $W_e e_{ij}$ of the
/// dynamic score, and the number $t_{ij} = b \cdot W_e e_{ij}$ of all others.
#[derive(Clone, Copy, Debug)]
pub struct EdgeTerm<'a, T> {
    /// The attributes $e$, `[E, G]`, in the caller's order of the edges.
    pub attributes: ArrayView2<'a, T>,
    /// The weight $W_e$, `[G, H K]`: the columns of a head stand side by side. $K = F$ for the dynamic score.
    pub weight: ArrayView2<'a, T>,
    /// The vectors $b$, `[H, K]`. Must be `None` for the dynamic score, whose $a$ takes their place.
    pub b: Option<ArrayView2<'a, T>>,
}

/// Gradients along an [`EdgeTerm`], shaped as it was given.
#[derive(Clone, Debug, PartialEq)]
pub struct EdgeTermGradients<T> {
    /// The gradient along the attributes.
    pub attributes: ndarray::Array2<T>,
    /// The gradient along the weight.
    pub weight: ndarray::Array2<T>,
    /// The gradient along the vectors.
    pub b: Option<ndarray::Array2<T>>,
}

impl<T: Real> EdgeTerm<'_, T> {
    pub(crate) fn validate(&self, edges: usize, score: &Score<T>) -> Result<(), Error> {
        let dynamic = matches!(score, Score::Dynamic { .. });
        expect_presence("edges.b", !dynamic, self.b.is_some(), "the score")?;
        let (columns, heads) = (self.attributes.ncols(), score.heads());
        let width = self.b.map_or(score.width(), |b| b.ncols());
        let arrays = [
            ("edges.attributes", [edges, columns], self.attributes),
            ("edges.weight", [columns, heads * width], self.weight),
        ];
        let b = self.b.map(|b| ("edges.b", [heads, width], b));
        for (name, expected, x) in arrays.into_iter().chain(b) {
            shape(name, &expected, x.shape())?;
            scorable(name, x)?;
        }
        Ok(())
    }
}
