//! The parameters of encoders by their names in PyTorch.

use super::{Encoder, EncoderLayer};
use crate::Error;
use bochner_nn::{Element, NameTable, Reshape};
use bochner_ops::Activation;

/// The places of the parameters that are whole tensors in both libraries.
const WHOLE: [[&str; 2]; 8] = [
    ["feed_forward.first.weight", "linear1.weight"],
    ["feed_forward.first.bias", "linear1.bias"],
    ["feed_forward.second.weight", "linear2.weight"],
    ["feed_forward.second.bias", "linear2.bias"],
    ["attention_norm.gamma", "norm1.weight"],
    ["attention_norm.beta", "norm1.bias"],
    ["feed_forward_norm.gamma", "norm2.weight"],
    ["feed_forward_norm.beta", "norm2.bias"],
];

impl<E: Element> EncoderLayer<E> {
    /// The names of the layer's parameters in PyTorch's `nn.TransformerEncoderLayer`, to read its weights and to write
    /// them.
    ///
    /// | here | there |
    /// |---|---|
    /// | `attention` | `self_attn`, see [`MultiHead::torch_names`](bochner_attention::MultiHead::torch_names) |
    /// | `feed_forward.first`, `feed_forward.second` | `linear1`, `linear2` |
    /// | `attention_norm`, `feed_forward_norm` | `norm1`, `norm2` |
    ///
    /// PyTorch's file does not hold the settings. Give the layer those of the other one:
    ///
    /// | [`EncoderLayerConfig`](super::EncoderLayerConfig) | `nn.TransformerEncoderLayer` |
    /// |---|---|
    /// | `norm`: `Post`, `Pre` | `norm_first`: `False`, `True` |
    /// | `activation`: `Relu`, `Gelu`, `GeluTanh` | `"relu"`, `"gelu"`, a function with `approximate="tanh"` |
    /// | `epsilon` | `layer_norm_eps` |
    /// | `width`, `heads`, `hidden` | `d_model`, `nhead`, `dim_feedforward` |
    ///
    /// PyTorch's layers without biases (`bias=False`) have no counterpart: loading names the biases that are missing.
    ///
    /// # Errors
    /// [`Error::Attention`] for an attention that PyTorch does not have.
    #[doc(alias = "load_state_dict")]
    #[doc(alias = "state_dict")]
    pub fn torch_names(&self) -> Result<NameTable, Error> {
        if self.feed_forward.config.activation != Activation::Identity {
            return Err(Error::Unsupported {
                what: "the exchange of weights with PyTorch for a layer with an activation behind its feed-forward part",
                instead: "`Activation::Identity` there",
            });
        }
        let mut names =
            NameTable::new().nested("attention", "self_attn", &self.attention.torch_names()?);
        for [own, other] in WHOLE {
            names = names.row(own, other, Reshape::Same);
        }
        Ok(names)
    }
}

impl<E: Element> Encoder<E> {
    /// The names of the parameters in PyTorch's `nn.TransformerEncoder`, to read its weights and to write them.
    ///
    /// Layer `i` is `layers.i`, with the names of [`EncoderLayer::torch_names`]; the norm behind the last layer
    /// ([`EncoderConfig::final_norm`](super::EncoderConfig::final_norm)) is `norm`.
    ///
    /// # Errors
    /// The errors of [`EncoderLayer::torch_names`].
    ///
    /// ```
    /// use bochner_attention::{Mask, Pass};
    /// use bochner_models::encoder::{Encoder, EncoderConfig, EncoderLayerConfig, NormPlacement};
    /// use bochner_models::prelude::*;
    /// use bochner_nn::StateDict;
    /// use bochner_numerics::Seed;
    ///
    /// # let bytes = include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/torch-f32.safetensors"));
    /// // `bytes` of a file that `safetensors.torch.save_file` has written.
    /// let norm = NormPlacement::Pre;
    /// let layer = EncoderLayerConfig { width: 8, heads: 2, hidden: 12, norm, ..Default::default() };
    /// let config = EncoderConfig::new(2, layer);
    /// let mut encoder: Encoder<f32> = Encoder::try_new(&Cpu::default(), &config, Seed::new(1))?;
    /// let state = StateDict::from_safetensors(bytes, "stack-pre.layer")?;
    /// let names = encoder.torch_names()?;
    /// names.load(&state, &mut encoder)?;
    /// let bytes = names.save(&encoder)?.to_safetensors();
    /// # assert_eq!(StateDict::from_safetensors(&bytes, "")?.tensors, state.tensors);
    /// # Ok::<(), bochner_models::Error>(())
    /// ```
    #[doc(alias = "load_state_dict")]
    #[doc(alias = "state_dict")]
    pub fn torch_names(&self) -> Result<NameTable, Error> {
        let mut names = NameTable::new();
        for (i, layer) in self.layers.iter().enumerate() {
            names = names.nested(
                &i.to_string(),
                &format!("layers.{i}"),
                &layer.torch_names()?,
            );
        }
        if self.norm.is_some() {
            names = names.row("norm.gamma", "norm.weight", Reshape::Same).row(
                "norm.beta",
                "norm.bias",
                Reshape::Same,
            );
        }
        Ok(names)
    }
}
