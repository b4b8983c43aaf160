//! The layer's parameters by their names in PyTorch.

use super::MultiHead;
use crate::{Error, PositionBias, Softmax, card::Stream};
use bochner_nn::{Element, NameTable, Place, Reshape};
use dfdx::shapes::Dim;
use dfdx::tensor::Cpu;

impl<Embed: Dim, E: Element, Count: Dim, S, Wide: Dim> MultiHead<Embed, E, Cpu, Count, S, Wide> {
    /// The names of the layer's parameters in PyTorch's `nn.MultiheadAttention`, to read its weights and to write them.
    ///
    /// | here | there |
    /// |---|---|
    /// | `query.weight`, `key.weight`, `value.weight` | thirds of `in_proj_weight`; with a [memory width](crate::MultiHeadConfig::memory_width) `q_proj_weight`, `k_proj_weight`, `v_proj_weight` (`kdim` and `vdim` of one size) |
    /// | `query.bias`, `key.bias`, `value.bias` | thirds of `in_proj_bias` |
    /// | `output.weight`, `output.bias` | `out_proj.weight`, `out_proj.bias` |
    ///
    /// PyTorch's file does not hold the number of heads. It is written by this table as `num_heads` among the
    /// [sizes](bochner_nn::StateDict::sizes), and compared if it is there. The layer takes batches as with
    /// `batch_first=True`. PyTorch's masks mark what is hidden, [`Mask`](crate::Mask) marks what is visible.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for a layer that PyTorch does not have: another mechanism than [`Softmax`] at its usual
    /// scale, other widths of heads than the layer's divided by their number, fewer key-value heads, rotary positions
    /// or a position bias. Loading refuses `bias_k` and `bias_v` (`add_bias_kv=True`).
    ///
    /// ```
    /// use bochner_attention::{Mask, MultiHead, MultiHeadConfig, Pass};
    /// use bochner_attention::prelude::*;
    /// use bochner_nn::StateDict;
    /// use bochner_numerics::Seed;
    ///
    /// # let bytes = include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/layer/torch-f32.safetensors"));
    /// // `bytes` of a file that `safetensors.torch.save_file` has written: two heads of width 4.
    /// let config = MultiHeadConfig { heads: 2, ..Default::default() };
    /// let mut rng = Seed::new(1).stream("initial values");
    /// let mut layer: MultiHead<usize, f32> = MultiHead::try_new(&Cpu::default(), 8, config, &mut rng)?;
    /// let state = StateDict::from_safetensors(bytes, "self.layer")?;
    /// let names = layer.torch_names()?;
    /// names.load(&state, &mut layer)?;
    /// // And back, for `layer.load_state_dict(safetensors.torch.load_file(path))`.
    /// let bytes = names.save(&layer)?.to_safetensors();
    /// # assert_eq!(StateDict::from_safetensors(&bytes, "")?.tensors, state.tensors);
    /// # Ok::<(), bochner_attention::Error>(())
    /// ```
    #[doc(alias = "load_state_dict")]
    #[doc(alias = "state_dict")]
    pub fn torch_names(&self) -> Result<NameTable, Error> {
        let (config, layout) = (&self.config, &self.layout);
        let narrow = layout.embed / layout.heads;
        let all_widths = [Stream::Queries, Stream::Keys, Stream::Values]
            .iter()
            .all(|&stream| {
                layout.width(stream) == narrow && layout.heads_of(stream) == layout.heads
            });
        let plain = config.variant == Softmax::default().into()
            && config.position_bias == PositionBias::None
            && config.rotary.is_none()
            && self.code.is_none();
        if !plain || !all_widths || narrow * layout.heads != layout.embed {
            return Err(Error::Unsupported {
                what: "the exchange of weights with PyTorch for this layer",
                instead: "softmax attention at its usual scale, whose heads share the layer's width equally, without \
                          positions and with a key-value head for each head",
            });
        }
        let mut names = NameTable::new().size("num_heads", layout.heads);
        let maps = ["query", "key", "value"];
        for (third, map) in maps.into_iter().enumerate() {
            let own = &*format!("{map}.weight");
            names = match layout.memory == layout.embed {
                true => {
                    let there = Place::part("in_proj_weight", 0, third, maps.len());
                    names.row(own, there, Reshape::Same)
                }
                false => {
                    let there = ["q_proj_weight", "k_proj_weight", "v_proj_weight"][third];
                    names.row(own, there, Reshape::Same)
                }
            };
        }
        if layout.bias {
            for (third, map) in maps.into_iter().enumerate() {
                let there = Place::part("in_proj_bias", 0, third, maps.len());
                names = names.row(&*format!("{map}.bias"), there, Reshape::Same);
            }
            names = names.row("output.bias", "out_proj.bias", Reshape::Same);
        }
        let reason = "it is one more key and value (`add_bias_kv=True`), which this layer does not have; train the \
                      other layer without";
        Ok(names
            .row("output.weight", "out_proj.weight", Reshape::Same)
            .refusing("bias_k", reason)
            .refusing("bias_v", reason))
    }
}
