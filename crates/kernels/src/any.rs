//! A kernel as data: every kernel and composition of this crate in one type that serde reads and writes.

use crate::kernel::{Along, GramGradients, Kernel, Parameter};
use crate::{
    Columns, Constant, Error, Expsin, Linear, Matern, Polynomial, Product, RationalQuadratic, Rbf,
    Scale, SpectralMixture, Sum, White,
};
use bochner_numerics::Real;
use ndarray::{Array1, Array2, ArrayView1, ArrayView2};
use serde::{Deserialize, Serialize};
use std::ops::{Add, Mul};

/// Any kernel: one of this crate, a composition of them, or one of the caller's.
///
/// A kernel turns into it by `into()`. The operators `+` and `*` add and multiply kernels; [`Scale`] takes
/// a multiple, and [`Columns`] some columns of the inputs.
///
/// # Files
/// It is written as its name in kebab case with its settings, such as `{"rbf": {"lengthscale": 2.0}}`, and
/// compositions hold their parts: `{"sum": [{"rbf": ..}, {"white": ..}]}`. Reading refuses the settings that
/// building refuses. A kernel that this version does not know is an error that lists the known ones.
/// [`Custom`](Self::Custom) has no name in a file, so that writing it is an error.
///
/// # Example
/// ```
/// use bochner_kernels::{AnyKernel, ExpsinConfig, Kernel, Lengthscale, RbfConfig, WhiteConfig};
///
/// let rbf = |lengthscale| RbfConfig { lengthscale: Lengthscale::Shared(lengthscale) }.build();
/// let season = ExpsinConfig { period: 1.0, lengthscale: Lengthscale::Shared(1.3) }.build()?;
/// let kernel: AnyKernel<f64> = rbf(50.0)? + rbf(90.0)? * season + WhiteConfig { variance: 0.1 }.build()?;
///
/// let text = serde_json::to_string(&kernel)?;
/// let read: AnyKernel<f64> = serde_json::from_str(&text)?;
/// assert_eq!(read.parameters(), kernel.parameters());
///
/// let unknown = serde_json::from_str::<AnyKernel<f64>>(r#"{"wavelet": {}}"#).unwrap_err();
/// assert!(unknown.to_string().contains("`rational-quadratic`"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[serde(bound(
    serialize = "T: Real + Serialize",
    deserialize = "T: Real + Deserialize<'de>"
))]
#[non_exhaustive]
pub enum AnyKernel<T: Real> {
    /// The radial basis function.
    Rbf(Rbf<T>),
    /// A Matérn kernel.
    Matern(Matern<T>),
    /// The rational quadratic kernel.
    RationalQuadratic(RationalQuadratic<T>),
    /// The periodic kernel.
    Expsin(Expsin<T>),
    /// The spectral mixture.
    SpectralMixture(SpectralMixture<T>),
    /// The linear kernel.
    Linear(Linear<T>),
    /// The polynomial kernel.
    Polynomial(Polynomial<T>),
    /// The constant kernel.
    Constant(Constant<T>),
    /// White noise.
    White(White<T>),
    /// A sum of kernels.
    Sum(Sum<T>),
    /// A product of kernels.
    Product(Product<T>),
    /// A multiple of a kernel.
    Scale(Box<Scale<T>>),
    /// A kernel of some columns.
    Columns(Box<Columns<T>>),
    /// A kernel from outside this crate, which cannot be written to a file.
    #[serde(skip)]
    Custom(Box<dyn Kernel<T>>),
}

impl<T: Real> AnyKernel<T> {
    /// The names of the kernels in files.
    pub const NAMES: [&str; 13] = [
        "rbf",
        "matern",
        "rational-quadratic",
        "expsin",
        "spectral-mixture",
        "linear",
        "polynomial",
        "constant",
        "white",
        "sum",
        "product",
        "scale",
        "columns",
    ];

    fn inner(&self) -> &dyn Kernel<T> {
        match self {
            Self::Rbf(kernel) => kernel,
            Self::Matern(kernel) => kernel,
            Self::RationalQuadratic(kernel) => kernel,
            Self::Expsin(kernel) => kernel,
            Self::SpectralMixture(kernel) => kernel,
            Self::Linear(kernel) => kernel,
            Self::Polynomial(kernel) => kernel,
            Self::Constant(kernel) => kernel,
            Self::White(kernel) => kernel,
            Self::Sum(kernel) => kernel,
            Self::Product(kernel) => kernel,
            Self::Scale(kernel) => kernel.as_ref(),
            Self::Columns(kernel) => kernel.as_ref(),
            Self::Custom(kernel) => kernel.as_ref(),
        }
    }

    fn inner_mut(&mut self) -> &mut dyn Kernel<T> {
        match self {
            Self::Rbf(kernel) => kernel,
            Self::Matern(kernel) => kernel,
            Self::RationalQuadratic(kernel) => kernel,
            Self::Expsin(kernel) => kernel,
            Self::SpectralMixture(kernel) => kernel,
            Self::Linear(kernel) => kernel,
            Self::Polynomial(kernel) => kernel,
            Self::Constant(kernel) => kernel,
            Self::White(kernel) => kernel,
            Self::Sum(kernel) => kernel,
            Self::Product(kernel) => kernel,
            Self::Scale(kernel) => kernel.as_mut(),
            Self::Columns(kernel) => kernel.as_mut(),
            Self::Custom(kernel) => kernel.as_mut(),
        }
    }
}

impl<T: Real> Kernel<T> for AnyKernel<T> {
    fn gram(&self, x: ArrayView2<T>, y: ArrayView2<T>) -> Result<Array2<T>, Error> {
        self.inner().gram(x, y)
    }

    fn gram_vjp_along(
        &self,
        along: Along,
        x: ArrayView2<T>,
        y: ArrayView2<T>,
        cotangent: ArrayView2<T>,
    ) -> Result<GramGradients<T>, Error> {
        self.inner().gram_vjp_along(along, x, y, cotangent)
    }

    fn diagonal(&self, x: ArrayView2<T>) -> Result<Array1<T>, Error> {
        self.inner().diagonal(x)
    }

    fn diagonal_vjp(&self, x: ArrayView2<T>, cotangent: ArrayView1<T>) -> Result<Vec<T>, Error> {
        self.inner().diagonal_vjp(x, cotangent)
    }

    fn check_positive_semi_definite(&self, width: usize) -> Result<(), Error> {
        self.inner().check_positive_semi_definite(width)
    }

    fn parameters(&self) -> Vec<Parameter<T>> {
        self.inner().parameters()
    }

    fn set_parameters(&mut self, values: &[T]) -> Result<(), Error> {
        self.inner_mut().set_parameters(values)
    }
}

/// The parts of a sum or product, or the kernel itself as the one part.
macro_rules! parts {
    ($kernel:expr, $composition:ident) => {
        match $kernel {
            AnyKernel::$composition(composed) => composed.parts().to_vec(),
            other => vec![other],
        }
    };
}

/// Conversion into [`AnyKernel`], and the operators.
macro_rules! composable {
    ($($kernel:ident $(in $holder:ident)?),*) => {$(
        impl<T: Real> From<$kernel<T>> for AnyKernel<T> {
            fn from(kernel: $kernel<T>) -> Self {
                Self::$kernel($($holder::new)?(kernel))
            }
        }

        composable!(@operators $kernel);
    )*};
    (@operators $kernel:ident) => {
        /// The sum of two kernels; the parts of sums become parts of one sum.
        impl<T: Real, K: Into<AnyKernel<T>>> Add<K> for $kernel<T> {
            type Output = AnyKernel<T>;

            fn add(self, other: K) -> AnyKernel<T> {
                let mut parts = parts!(self.into(), Sum);
                parts.extend(parts!(other.into(), Sum));
                AnyKernel::Sum(Sum::new(parts).expect("two kernels"))
            }
        }

        /// The product of two kernels; the factors of products become factors of one product.
        impl<T: Real, K: Into<AnyKernel<T>>> Mul<K> for $kernel<T> {
            type Output = AnyKernel<T>;

            fn mul(self, other: K) -> AnyKernel<T> {
                let mut parts = parts!(self.into(), Product);
                parts.extend(parts!(other.into(), Product));
                AnyKernel::Product(Product::new(parts).expect("two kernels"))
            }
        }
    };
}

composable!(
    Rbf, Matern, RationalQuadratic, Expsin, SpectralMixture, Linear, Polynomial, Constant, White,
    Sum, Product, Scale in Box, Columns in Box
);
composable!(@operators AnyKernel);
