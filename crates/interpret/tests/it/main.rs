//! The properties of read-outs of attention.

mod agrees_with_causality_lab;
mod causal;
mod depth;
mod effective_rank;
mod entropy;
mod every_mechanism_is_read;
mod flow;
mod gaussianity;
mod guided_mask;
mod heads;
mod rollout;
mod trace;
