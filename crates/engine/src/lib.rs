//! Attention for any score, forward and backward, on plain arrays.
//!
//! Write a similarity of a query and a key as one function. The engine does the rest: blocks of pairs, threads, vector
//! instructions, masks, biases, sliding windows, packed sequences, grouped-query heads, sinks, dropout, a key-value
//! cache, and the gradient along everything that is learnt. No array of all pairs is ever stored. The engine knows no
//! framework: [`attend`] returns the output and what its backward pass needs, [`attend_vjp`] takes both and a cotangent.
//! Any tape can keep them.
//!
//! # Four ways to be a kernel
//!
//! | trait | you write | you get besides |
//! |---|---|---|
//! | [`Score`] | a function of the inner product or the squared distance of a pair, of its positions and of at most eight learnt numbers a head | slopes by dual numbers, fused into the blocks |
//! | [`PairKernel`] | operands of queries and keys, scores of a block, and their slopes | kernels with parameters of any size, such as spectral features |
//! | [`FeatureMap`] | features whose inner products are the weights, and their gradient | linear time, a cache of constant size |
//! | [`Scan`] | a step of a state, and its gradient | no pairs at all: moving averages, retention |
//!
//! A [`Normaliser`] turns the scores of a row into its weights: [`Softmax`] of logits, [`Sum`] and [`Unnormalised`] of
//! weights, or your own. [`Settings`] put kernel, normaliser, [`Mask`], [`Bias`], sink and dropout together. The papers'
//! mechanisms in `bochner-attention` are made of these public items and of nothing else.
//!
//! # Example
//!
//! ALiBi with learnt slopes: a kernel of your own, checked, trained through and decoded with.
//!
//! ```
//! use bochner_engine::conformance::{self, Trial};
//! use bochner_engine::ndarray::{Array2, Array4, array, s};
//! use bochner_engine::{
//!     Decoder, DecoderSize, Kind, Mask, Number, Pair, Raw, Score, Scored, Settings, Wanted, attend, attend_vjp,
//! };
//!
//! /// The logit q . k / sqrt(d) - s |i - j|, where s is learnt for each head.
//! #[derive(Clone, Debug)]
//! struct Alibi;
//!
//! impl Score for Alibi {
//!     const RAW: Raw = Raw::Product;
//!
//!     fn kind(&self) -> Kind {
//!         Kind::Logit
//!     }
//!
//!     fn parameters(&self) -> usize {
//!         1
//!     }
//!
//!     #[inline(always)]
//!     fn score<N: Number>(&self, product: N, pair: Pair<N>, slope: &[N]) -> N {
//!         let scale = (pair.width as f64).sqrt().recip();
//!         product * N::of(scale) - slope[0] * (pair.query - pair.key).abs()
//!     }
//! }
//!
//! fn settings(slopes: Array2<f64>, mask: &Mask) -> Settings<f64> {
//!     Settings::pairs(Scored::with_parameters(Alibi, slopes), mask)
//! }
//!
//! // Gradients, masks, grouped-query heads, dropout and decoding, tried in a second.
//! conformance::check(&Trial::with_learnt(vec![0.5, 0.1], |mask, slopes| {
//!     settings(Array2::from_shape_vec((2, 1), slopes.to_vec()).unwrap(), mask)
//! }))?;
//!
//! // One example, two heads, six positions of width 4.
//! let x = Array4::from_shape_fn((1, 2, 6, 4), |(_, m, t, n)| ((m + t * (n + 1)) as f64).sin());
//! let settings = settings(array![[0.5], [0.1]], &Mask::causal());
//! let (output, saved) = attend(&settings, x.view(), x.view(), x.view())?;
//! let (cotangent, wanted) = (&output - &x, Wanted { kernel: true, ..Wanted::default() });
//! let gradients = attend_vjp(&settings, &saved, x.view(), x.view(), x.view(), cotangent.view(), wanted)?;
//! assert_eq!(gradients.kernel.unwrap().shape(), [1, 2, 1]);
//!
//! // The same, one position at a time.
//! let mut decoder = Decoder::new(&settings, DecoderSize { batch: 1, heads: 2, width: 4, value_width: 4 })?;
//! for t in 0..6 {
//!     let x = x.slice(s![.., .., t..t + 1, ..]);
//!     let off = decoder.step(x, x, x)? - output.slice(s![.., .., t..t + 1, ..]);
//!     assert!(off.iter().all(|x| x.abs() < 1e-12));
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Nine more kernels are in the directory `examples`.
//!
//! # Conventions
//!
//! * **Shapes.** Queries are `[B, M, Tq, d]`, keys `[B, G, Tk, d]`, values `[B, G, Tk, dv]`, outputs `[B, M, Tq, dv]`:
//!   batch, heads, positions, width. G divides M (grouped-query attention). Views in any memory order are fine.
//! * **Masks.** `true` means *may attend*. Query i stands at key $i + T_k - T_q$, so that the last query sees the last
//!   key under causality. A row that sees no key has a zero output and zero gradients.
//! * **Range.** A number is visible if some query of the call attends to it or from it. Visible numbers may be as large as
//!   the fourth root of the type's largest, 4e9 in `f32` and 1e77 in `f64`; beyond, [`Error::OutOfRange`] names the array
//!   and the index. Numbers that no query sees may be anything, NaN too, and change no bit of any result.
//! * **Scores.** A score is finite, or hides its pair: minus infinity from a logit, 0 from a weight. Otherwise
//!   [`Error::Score`] names the head, the query and the key.
//! * **Threads.** Work runs on rayon's current pool. The bits depend neither on the number of threads nor on what else is
//!   in the batch. They differ by rounding between [instruction sets](bochner_numerics::instructions) and forms.
//!
//! # Map
//!
//! | items | hold |
//! |---|---|
//! | [`attend`], [`attend_vjp`], [`weights`] | the computations |
//! | [`Settings`], [`Form`], [`Blocks`] | what is computed, and in which form |
//! | [`Mask`], [`Bias`], [`KeyWeight`] | pairs that are hidden, logits that are added to, keys that count more |
//! | [`Score`], [`Scored`], [`PairKernel`], [`DotProduct`] | pairwise kernels |
//! | [`FeatureMap`], [`Scan`] | kernels of linear time |
//! | [`Normaliser`], [`Softmax`], [`Sum`], [`Unnormalised`] | from scores to weights |
//! | [`Decoder`], [`PositionCode`], [`Rotary`] | key-value caches, positions encoded into queries and keys |
//! | [`conformance`] | a check of your own kernel |

mod attend;
mod bias;
mod blocks;
mod call;
mod choice;
pub mod conformance;
mod decoder;
mod error;
mod feature_map;
mod features;
mod form;
mod gradients;
mod heads;
#[cfg(debug_assertions)]
mod instances;
mod kernel;
mod key_weight;
mod kind;
mod lanes;
mod linear;
mod mask;
mod normaliser;
mod pairwise;
mod paths;
mod position;
mod range;
mod scan;
mod score;
mod settings;
mod shape;
mod workspace;

pub use attend::{Output, Saved, attend, attend_vjp, weights};
pub use bias::{Bias, alibi_slopes};
pub use blocks::Blocks;
pub use bochner_numerics::{self as numerics, Number};
pub use call::{over_readers, shared_heads};
pub use decoder::{Decoder, DecoderSize};
pub use error::Error;
pub use feature_map::{FeatureForm, FeatureMap};
pub use form::{Form, check_floor};
pub use gradients::{Gradients, Wanted};
pub use kernel::{DotProduct, HeadRows, PairKernel, Side, Square, Tile};
pub use key_weight::KeyWeight;
pub use kind::{Kind, Raw};
pub use mask::{Mask, check_lengths};
pub use ndarray;
pub use normaliser::{Block, BlockGradients, Normaliser, Row, Softmax, Sum, Unnormalised};
pub use paths::Paths;
pub use position::{PositionCode, Rotary, RotaryPairing};
pub use scan::{Position, PositionGradients, Scan};
pub use score::{MOST_PARAMETERS, Pair, Score, Scored};
pub use settings::{Kernel, Settings};
pub use shape::Shape;
