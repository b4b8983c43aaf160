//! The layer's parameters by name.

use super::GraphAttention;
use bochner_nn::{Element, Parameters};

impl<E: Element> Parameters<E> for GraphAttention<E> {
    bochner_nn::visit_fields!(E: weight, weight_bias, source_weight, source_weight_bias, a, edge_weight, edge_a, bias, residual, kernel);
}
