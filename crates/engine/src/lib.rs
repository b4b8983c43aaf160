//! Attention for any score, forward and backward, on plain arrays.

mod attend;
mod bias;
mod blocks;
mod call;
pub mod conformance;
mod decoder;
mod error;
mod features;
mod form;
#[cfg(all(debug_assertions, not(test)))]
mod instances;
mod kernel;
mod key_weight;
mod lanes;
mod linear;
mod mask;
mod normaliser;
mod pairwise;
mod position;
mod range;
mod scan;
mod score;
mod settings;
mod workspace;

pub use attend::{Gradients, Output, Saved, Wanted, attend, attend_into, attend_vjp, weights};
pub use bias::{Bias, alibi_slopes};
pub use blocks::Blocks;
pub use bochner_numerics::{self as numerics, Number};
pub use call::{Paths, over_readers, shared_heads};
pub use decoder::{Decoder, DecoderSize};
pub use error::Error;
pub use features::{FeatureForm, FeatureMap};
pub use form::{Form, check_floor};
pub use kernel::{DotProduct, HeadRows, PairKernel, ParameterGradients, Side, Square, Tile};
pub use key_weight::KeyWeight;
pub use linear::squares::{LinearTimeState, linear_time_state};
pub use mask::{Mask, check_lengths};
pub use ndarray;
pub use normaliser::{Block, BlockGradients, Normaliser, Row, Softmax, Sum, Unnormalised};
pub use position::{PositionCode, Rotary, RotaryPairing};
pub use scan::{Position, PositionGradients, Scan};
pub use score::{Kind, MOST_PARAMETERS, Pair, Raw, Score, Scored};
pub use settings::{Kernel, Settings, Shape};
pub use workspace::Workspace;
