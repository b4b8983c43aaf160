//! The standard normal distribution function and its inverse.

use super::arithmetic::{Arithmetic, polynomial};
use super::block::{BLOCK, Blockwise, MapInPlace};
use super::exponential::exponential;
use super::instruction_set::InstructionSet;
use super::lane::Lane;
use super::logarithm::natural_logarithm;
use crate::Real;
use crate::operations::{Operations, record};

/// $x_i \leftarrow \Phi(x_i)$, the standard normal distribution function.
///
/// $$\Phi(x) = \frac{1}{\sqrt{2 \pi}} \int_{-\infty}^x e^{-s^2 / 2} ds$$
///
/// # Numerics
/// The error is below 5 ulp as far as the result is a normal number; below that it is rounded, not
/// flushed to zero. Zero from -38.5 in `f64` and -14.2 in `f32` downwards; for the upper tail take
/// $\Phi(-x)$. NaN stays NaN.
///
/// ```
/// let mut x = [f64::NEG_INFINITY, -1.0, 40.0];
/// bochner_numerics::elementary::normal_cdf_in_place(&mut x);
/// assert_eq!(x[0], 0.0);
/// assert!((x[1] - 0.15865525393145707).abs() < 1e-16);
/// assert_eq!(x[2], 1.0);
/// ```
pub fn normal_cdf_in_place<T: Real>(x: &mut [T]) {
    record(Operations::exponentials(x.len()));
    InstructionSet::fastest().run(MapInPlace {
        function: NormalCdf,
        x,
    });
}

/// $u_i \leftarrow \Phi^{-1}(u_i)$, the inverse of [`normal_cdf_in_place`].
///
/// # Numerics
/// The error is below 4 ulp. $\Phi^{-1}(\tfrac12)$ is exactly 0, and the function exactly odd around
/// it; minus infinity at 0, infinite at 1, NaN outside of $[0, 1]$. Finite in between, subnormal
/// numbers included. Near 1 the argument itself has few digits left: where $1 - u$ is known, take
/// $-\Phi^{-1}(1 - u)$.
///
/// ```
/// let mut u = [0.0, 0.5, 0.975];
/// bochner_numerics::elementary::normal_quantile_in_place(&mut u);
/// assert_eq!(u[..2], [f64::NEG_INFINITY, 0.0]);
/// assert!((u[2] - 1.959963984540054).abs() < 1e-15);
/// ```
pub fn normal_quantile_in_place<T: Real>(u: &mut [T]) {
    record(Operations::powers(u.len()));
    InstructionSet::fastest().run(MapInPlace {
        function: NormalQuantile,
        x: u,
    });
}

/// Numbers of the normal distribution.
#[derive(Debug)]
pub struct Constants<T: 'static> {
    /// The argument from which downwards the distribution function is zero.
    lowest: T,
    /// The $c$ of $t = (a - c) / (a + c)$.
    ratio_center: T,
    /// $(1 + a) e^{a^2 / 2} \Phi(-a)$ in $t$: the tail without what makes it fall.
    ratio: &'static [T],
    /// $\Phi^{-1}(\tfrac12 + q) / q$ in $q^2$, down to a tail of `outer_below`.
    central: &'static [T],
    outer_below: T,
    /// $-\Phi^{-1}(p) / r$ with $r = \sqrt{-2 \ln p}$, in $(r - c) / (r + c)$ with $c$ first.
    outer: (T, &'static [T]),
    /// The polynomial for tails below `far_below`, which are too rare to be computed everywhere.
    far_below: T,
    far: (T, &'static [T]),
}

pub(super) const SINGLE: Constants<f32> = Constants {
    lowest: -14.5,
    ratio_center: 4.0,
    ratio: &[
        0.4720532,
        -0.09670347,
        0.013999596,
        0.02859998,
        -0.03219727,
        0.017940203,
        -0.0050043836,
        -0.00030376186,
        0.0006928602,
        -6.0554245e-5,
        -7.161031e-5,
    ],
    central: &[
        2.5066283, 2.6249166, 5.776338, 15.365799, 58.883457, -106.24452, 3_636.13, -19244.533,
        68628.875,
    ],
    outer_below: 0.15,
    outer: (
        2.0,
        &[
            0.5507598, 1.3875416, -2.0303316, 2.3065698, -2.49584, 2.597502, -2.5471327, 2.1809611,
            -1.4523711, 0.6356433, -0.1332741,
        ],
    ),
    far_below: 0.0,
    far: (1.0, &[]),
};

pub(super) const DOUBLE: Constants<f64> = Constants {
    lowest: -38.6,
    ratio_center: 5.0,
    ratio: &[
        0.46151582985003775,
        -0.09155228183400885,
        0.031030368425963847,
        0.010002352385208349,
        -0.026401042966326532,
        0.024536963244356315,
        -0.015170415401868328,
        0.006522000657803306,
        -0.0016760723549067089,
        7.791677888062067e-06,
        0.00018233423601438954,
        -5.3607968165527516e-05,
        -9.896578280936403e-06,
        9.060971376788282e-06,
        -6.874967233402534e-08,
        -1.3095077305748614e-06,
        1.2451688004048544e-07,
        1.9830086641130675e-07,
        -2.1933920655258806e-08,
        -3.159541908735487e-08,
        4.6387498867141214e-10,
        3.8815989166839335e-09,
        7.059785669796302e-10,
    ],
    central: &[
        2.5066282746310007,
        2.6249349909538457,
        5.772533538495809,
        15.66760901217045,
        47.03577659145951,
        149.83127661391407,
        496.13998756172714,
        1698.3368537844426,
        5482.410133911995,
        34285.5598207781,
        -281982.5059554398,
        7473135.747874374,
        -111573162.70073275,
        1359404977.593054,
        -12477468594.50158,
        86558994530.93803,
        -436685791230.3252,
        1524181172298.342,
        -3296054705936.056,
        3393061823522.444,
    ],
    outer_below: 0.15,
    outer: (
        2.0,
        &[
            0.5507598142493751,
            1.387541643777062,
            -2.0303420958095244,
            2.3069375611137275,
            -2.5011887815462326,
            2.6399294130352997,
            -2.7541800024091456,
            2.8459160163584962,
            -2.925092415414785,
            2.991713442572414,
            -3.0445312935717843,
            3.0645026377603353,
            -3.0019541824114757,
            2.7656843833706257,
            -2.271875188885603,
            1.5494816261486895,
            -0.800712261083364,
            0.2732289682209597,
            -0.04575098244986781,
        ],
    ),
    // 2^-54: nothing above one half is that close to 1.
    far_below: 5.551115123125783e-17,
    far: (
        8.0,
        &[
            0.9525249781569907,
            0.16019727499098046,
            -0.2626616974109635,
            0.32982568687146196,
            -0.3821453584105095,
            0.423290253475113,
            -0.45707527359480415,
            0.48486916860936474,
            -0.5073178425877515,
            0.5217523878918315,
            -0.5199655618782593,
            0.48670657940941725,
            -0.4076688875248243,
            0.2868952335575314,
            -0.15710705819012133,
            0.0604510357801832,
            -0.013825027636892235,
            0.001258855774129341,
        ],
    ),
};

#[derive(Clone, Copy)]
pub(super) struct NormalCdf;

impl<T: Lane> Blockwise<T, 1> for NormalCdf {
    #[inline(always)]
    fn block<A: Arithmetic>(&self, x: &[T; BLOCK]) -> [[T; BLOCK]; 1] {
        let mut values = *x;
        for x in &mut values {
            *x = distribution::<T, A>(*x);
        }
        [values]
    }
}

/// $\Phi(x)$.
#[inline(always)]
pub(crate) fn distribution<T: Lane, A: Arithmetic>(x: T) -> T {
    let tail = lower_tail::<T, A>(-x.abs());
    if x > T::zero() { T::one() - tail } else { tail }
}

/// $\Phi(x)$ for $x \le 0$: $e^{-x^2 / 2}$ times what varies slowly.
#[inline(always)]
fn lower_tail<T: Lane, A: Arithmetic>(x: T) -> T {
    let k = &T::NORMAL;
    let a = -if x < k.lowest { k.lowest } else { x };
    let t = (a - k.ratio_center) / (a + k.ratio_center);
    let ratio = polynomial::<T, A>(k.ratio, t) / (T::one() + a);
    let (square, lost) = A::product(a, a);
    exponential::<T, A>(-half::<T>() * square, -half::<T>() * lost) * ratio
}

#[derive(Clone, Copy)]
pub(super) struct NormalQuantile;

impl<T: Lane> Blockwise<T, 1> for NormalQuantile {
    #[inline(always)]
    fn block<A: Arithmetic>(&self, u: &[T; BLOCK]) -> [[T; BLOCK]; 1] {
        let k = &T::NORMAL;
        let mut tails = *u;
        let mut values = *u;
        for i in 0..BLOCK {
            let p = lesser_tail(u[i]);
            values[i] = near::<T, A>(p);
            tails[i] = p;
        }
        if tails.iter().fold(false, |any, &p| any | (p < k.far_below)) {
            for (value, &p) in values.iter_mut().zip(&tails) {
                let far = outer::<T, A>(&k.far, p);
                *value = if p < k.far_below { far } else { *value };
            }
        }
        for i in 0..BLOCK {
            values[i] = with_ends(u[i], tails[i], values[i]);
        }
        [values]
    }
}

/// $\Phi^{-1}(u)$.
#[inline(always)]
pub(crate) fn inverse<T: Lane, A: Arithmetic>(u: T) -> T {
    let (k, p) = (&T::NORMAL, lesser_tail(u));
    let value = if p < k.far_below {
        outer::<T, A>(&k.far, p)
    } else {
        near::<T, A>(p)
    };
    with_ends(u, p, value)
}

/// $-\Phi^{-1}(p)$ where `p` is at least `far_below`.
#[inline(always)]
fn near<T: Lane, A: Arithmetic>(p: T) -> T {
    let k = &T::NORMAL;
    let q = half::<T>() - p;
    let central = q * polynomial::<T, A>(k.central, q * q);
    let outer = outer::<T, A>(&k.outer, p);
    if p < k.outer_below { outer } else { central }
}

/// $\Phi^{-1}(u)$ from its absolute value, for any `u`, whose lesser tail is `p`.
#[inline(always)]
fn with_ends<T: Lane>(u: T, p: T, value: T) -> T {
    let x = if p == T::zero() { T::infinity() } else { value };
    let x = if p >= T::zero() { x } else { T::nan() };
    if u < half() { -x } else { x }
}

/// The smaller one of $u$ and $1 - u$, which is exact.
#[inline(always)]
fn lesser_tail<T: Lane>(u: T) -> T {
    if u > half() { T::one() - u } else { u }
}

/// $-\Phi^{-1}(p)$ by one of the polynomials in $\sqrt{-2 \ln p}$.
#[inline(always)]
fn outer<T: Lane, A: Arithmetic>(&(center, coefficients): &(T, &[T]), p: T) -> T {
    let logarithm = natural_logarithm::<T, A>(p);
    let r = (-(logarithm + logarithm)).sqrt();
    r * polynomial::<T, A>(coefficients, (r - center) / (r + center))
}

#[inline(always)]
fn half<T: Lane>() -> T {
    T::one() / (T::one() + T::one())
}
