//! The layer's parameters by name.

use super::GraphAttention;
use bochner_nn::{Element, Parameter, ParameterMut, Parameters, join};

impl<E: Element> Parameters<E> for GraphAttention<E> {
    fn for_each(&self, prefix: &str, f: &mut dyn FnMut(&str, &dyn Parameter<E>)) {
        self.weight.for_each(&join(prefix, "weight"), f);
        (self.source_weight).for_each(&join(prefix, "source_weight"), f);
        self.a.for_each(&join(prefix, "a"), f);
        self.edge_weight.for_each(&join(prefix, "edge_weight"), f);
        self.edge_a.for_each(&join(prefix, "edge_a"), f);
        self.bias.for_each(&join(prefix, "bias"), f);
        self.residual.for_each(&join(prefix, "residual"), f);
        self.kernel.for_each(&join(prefix, "kernel"), f);
    }

    fn for_each_mut(&mut self, prefix: &str, f: &mut dyn FnMut(&str, &mut dyn ParameterMut<E>)) {
        self.weight.for_each_mut(&join(prefix, "weight"), f);
        (self.source_weight).for_each_mut(&join(prefix, "source_weight"), f);
        self.a.for_each_mut(&join(prefix, "a"), f);
        (self.edge_weight).for_each_mut(&join(prefix, "edge_weight"), f);
        self.edge_a.for_each_mut(&join(prefix, "edge_a"), f);
        self.bias.for_each_mut(&join(prefix, "bias"), f);
        self.residual.for_each_mut(&join(prefix, "residual"), f);
        self.kernel.for_each_mut(&join(prefix, "kernel"), f);
    }
}
