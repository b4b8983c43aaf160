//! The layer's parameters by their names in PyTorch Geometric.

use super::{AttentionKind, Bias, GraphAttention, Residual};
use crate::LayerError;
use bochner_nn::{Element, NameTable, Place, Reshape};

impl<E: Element> GraphAttention<E> {
    /// The names of the layer's parameters in PyTorch Geometric, to read its weights and to write them: those of
    /// `GATConv` for [`AttentionKind::Classic`] and of `GATv2Conv` for [`AttentionKind::Dynamic`].
    ///
    /// | here | `GATConv` | `GATv2Conv` |
    /// |---|---|---|
    /// | `weight` | `lin.weight`, or `lin_dst.weight` if sources have their own | `lin_r.weight` |
    /// | `source_weight` | `lin_src.weight` | `lin_l.weight` |
    /// | `weight_bias`, `source_weight_bias` | | `lin_r.bias`, `lin_l.bias` |
    /// | `a` | `att_dst` and `att_src` | `att` |
    /// | `edge_weight`, `edge_a` | `lin_edge.weight`, `att_edge` | `lin_edge.weight` |
    /// | `bias` | `bias` | `bias` |
    /// | `residual` | `res.weight` | `res.weight` |
    ///
    /// A layer of GATv2 without `source_weight` is one of `share_weights=True`; the file has the same tensor under
    /// both names then. `(sources, targets)` are the two input widths in PyTorch Geometric. The file does not
    /// hold the rest: the slope, the dropout (there is one rate there, of the weights), the activation, and self loops,
    /// which PyTorch Geometric adds by default ([`Graph::with_self_loops`](crate::Graph::with_self_loops)).
    ///
    /// # Errors
    /// [`LayerError::Unsupported`] for a layer that PyTorch Geometric does not have: the kernel form, GAT with a
    /// [`weight_bias`](crate::GraphAttentionConfig::weight_bias), GATv2 with one of the biases alone, and a residual
    /// without a map.
    ///
    /// ```
    /// use bochner_graph::dfdx::tensor::Cpu;
    /// use bochner_graph::{GraphAttention, GraphAttentionConfig};
    /// use bochner_nn::StateDict;
    /// use bochner_numerics::Seed;
    ///
    /// # let bytes = include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/layer/pyg-f32.safetensors"));
    /// // `bytes` of a file that `safetensors.torch.save_file` has written of `GATv2Conv(4, 3, heads=2)`.
    /// let config = GraphAttentionConfig::gatv2(4, 2, 3);
    /// let mut layer: GraphAttention<f32> =
    ///     GraphAttention::try_new(&Cpu::default(), &config, Seed::new(1))?;
    /// let state = StateDict::from_safetensors(bytes, "gatv2.layer")?;
    /// let names = layer.pyg_names()?;
    /// names.load(&state, &mut layer)?;
    /// let bytes = names.save(&layer)?.to_safetensors();
    /// # assert_eq!(StateDict::from_safetensors(&bytes, "")?.tensors, state.tensors);
    /// # Ok::<(), bochner_graph::LayerError>(())
    /// ```
    #[doc(alias = "load_state_dict")]
    #[doc(alias = "state_dict")]
    pub fn pyg_names(&self) -> Result<NameTable, LayerError> {
        let config = self.config();
        let unsupported = |what, instead| Err(LayerError::Unsupported { what, instead });
        if config.residual == Residual::Added && self.residual.is_none() {
            return unsupported(
                "the exchange of weights with PyTorch Geometric for a residual without a map",
                "inputs that are not as wide as the output",
            );
        }
        let names = match config.kind {
            AttentionKind::Classic if config.weight_bias == Bias::None => self.gat_names(),
            AttentionKind::Dynamic if config.weight_bias == config.bias => self.gatv2_names(),
            _ => {
                return unsupported(
                    "the exchange of weights with PyTorch Geometric for this layer",
                    "GAT without `weight_bias`, or GATv2 with `bias` and `weight_bias` both or neither",
                );
            }
        };
        let others = [
            (
                self.edge_weight.is_some(),
                "edge_weight",
                "lin_edge.weight",
                Reshape::Transposed,
            ),
            (
                self.edge_a.is_some(),
                "edge_a",
                "att_edge",
                Reshape::LeadingOne,
            ),
            (self.bias.is_some(), "bias", "bias", Reshape::Same),
            (
                self.residual.is_some(),
                "residual",
                "res.weight",
                Reshape::Transposed,
            ),
        ];
        let there = others.into_iter().filter(|&(is_there, ..)| is_there);
        Ok(there.fold(names, |names, (_, own, other, reshape)| {
            names.row(own, other, reshape)
        }))
    }

    fn gat_names(&self) -> NameTable {
        let names = NameTable::new()
            .row(Place::part("a", 1, 0, 2), "att_dst", Reshape::LeadingOne)
            .row(Place::part("a", 1, 1, 2), "att_src", Reshape::LeadingOne);
        match self.source_weight {
            None => names.row("weight", "lin.weight", Reshape::Transposed),
            Some(_) => names
                .row("weight", "lin_dst.weight", Reshape::Transposed)
                .row("source_weight", "lin_src.weight", Reshape::Transposed),
        }
    }

    fn gatv2_names(&self) -> NameTable {
        let sources = match self.source_weight {
            Some(_) => ["source_weight", "source_weight_bias"],
            None => ["weight", "weight_bias"],
        };
        let mut names = NameTable::new().row("a", "att", Reshape::LeadingOne);
        for ([weight, bias], there) in [(["weight", "weight_bias"], "lin_r"), (sources, "lin_l")] {
            names = names.row(weight, &*format!("{there}.weight"), Reshape::Transposed);
            if self.weight_bias.is_some() {
                names = names.row(bias, &*format!("{there}.bias"), Reshape::Same);
            }
        }
        names
    }
}
