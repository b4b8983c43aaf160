//! The trainable multi-head layer on the tape of dfdx.

mod bipolar;
mod config;
mod decoder;
mod heads;
mod inspection;
mod learnable_query;
mod module;
mod multi_head;
mod operation;
mod packed;
mod position;
mod position_code;
mod projection;
mod readers;
mod row_positions;
mod torch_names;
mod tree;

pub use bipolar::{BipolarLayer, BipolarLayerConfig};
pub use config::{MultiHeadConfig, StaticConfig};
pub use decoder::{MultiHeadCrossDecoder, MultiHeadDecoder};
pub use learnable_query::LearnableQueryLayer;
pub use multi_head::{Attention, MultiHead};
pub use operation::{MultiHeadOperation, SavedHeads};
pub use packed::PackedMultiHead;
pub use position::PositionBias;
pub use projection::Projection;
