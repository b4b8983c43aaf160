//! Settings: one kind of attention, put together from its parts.

use crate::feature_map::FeatureMap;
use crate::kernel::{DotProduct, PairKernel};
use crate::key_weight::KeyWeight;
use crate::normaliser::{Normaliser, Softmax, Sum, Unnormalised};
use crate::scan::Scan;
use crate::score::{Score, Scored};
use crate::{Bias, Error, Form, Kind, Mask, Shape};
use bochner_numerics::{DropoutMask, Real, argument};
use ndarray::Array1;
use std::sync::Arc;

/// The source of the weights.
#[derive(Clone, Debug)]
pub enum Kernel<T> {
    /// A score of each pair.
    Pairs(Arc<dyn PairKernel<T>>),
    /// Features whose inner products are the weights: linear time.
    Features(Arc<dyn FeatureMap<T>>),
    /// A state that positions update one after the other: no pairs.
    Scan(Arc<dyn Scan<T>>),
}

/// One kind of attention, with everything but the queries, keys and values.
///
/// Checked where it is used. A clone shares all arrays.
///
/// ```
/// use bochner_engine::{Mask, Settings, attend};
/// use bochner_engine::ndarray::Array4;
///
/// let x = Array4::from_shape_fn((1, 2, 5, 4), |(_, m, t, n)| ((m + 2 * t + n) as f32).sin());
/// let settings = Settings::softmax(&Mask::causal());
/// let (output, _) = attend(&settings, x.view(), x.view(), x.view())?;
/// assert_eq!(output.shape(), x.shape());
/// # Ok::<(), bochner_engine::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Settings<T> {
    /// The source of the weights.
    pub kernel: Kernel<T>,
    /// The normaliser of pairwise weights; features divide by the sum, and scans by nothing.
    pub normaliser: Arc<dyn Normaliser<T>>,
    /// A score of each head, `[M]`, that joins the scores of every row without a value. Defaults to `None`.
    #[doc(alias = "attention_sink")]
    #[doc(alias = "softmax_off_by_one")]
    pub sink: Option<Arc<Array1<T>>>,
    /// A factor of each key's weights. Defaults to `None`.
    pub key_weight: Option<Arc<dyn KeyWeight<T>>>,
    /// The keys that queries attend to.
    pub mask: Mask,
    /// A number for each pair, added to its logit. Defaults to `None`.
    pub bias: Option<Bias<T>>,
    /// Dropout on the normalised weights. Defaults to `None`.
    pub dropout: Option<DropoutMask>,
    /// The form of the computation. Defaults to the faster one.
    pub form: Form,
}

impl<T: Real> Settings<T> {
    fn with_normaliser(kernel: Kernel<T>, normaliser: Arc<dyn Normaliser<T>>, mask: &Mask) -> Self {
        Self {
            kernel,
            normaliser,
            sink: None,
            key_weight: None,
            mask: mask.clone(),
            bias: None,
            dropout: None,
            form: Form::Automatic,
        }
    }

    /// Returns attention by a pairwise kernel, with the softmax for logits and the sum for weights.
    pub fn pairs(kernel: impl PairKernel<T>, mask: &Mask) -> Self {
        let normaliser: Arc<dyn Normaliser<T>> = match kernel.kind() {
            Kind::Logit => Arc::new(Softmax),
            Kind::Weight => Arc::new(Sum),
        };
        Self::with_normaliser(Kernel::Pairs(Arc::new(kernel)), normaliser, mask)
    }

    /// Returns attention by a score without learnt numbers, with the softmax for logits and the sum for weights.
    pub fn score(score: impl Score, mask: &Mask) -> Self {
        Self::pairs(Scored::new(score), mask)
    }

    /// Returns softmax attention, $a_{ij} = \exp(q_i \cdot k_j / \sqrt d)$.
    #[doc(alias = "sdpa")]
    #[doc(alias = "scaled_dot_product_attention")]
    pub fn softmax(mask: &Mask) -> Self {
        Self::pairs(DotProduct::default(), mask)
    }

    /// Returns attention by features.
    pub fn features(map: impl FeatureMap<T>, mask: &Mask) -> Self {
        Self::with_normaliser(Kernel::Features(Arc::new(map)), Arc::new(Sum), mask)
    }

    /// Returns attention by a scan.
    pub fn scan(scan: impl Scan<T>, mask: &Mask) -> Self {
        Self::with_normaliser(Kernel::Scan(Arc::new(scan)), Arc::new(Unnormalised), mask)
    }

    /// Multiplies the weights of keys by factors.
    pub fn with_key_weight(self, weight: impl KeyWeight<T>) -> Self {
        Self {
            key_weight: Some(Arc::new(weight)),
            ..self
        }
    }

    /// The pairwise kernel, if there is one.
    pub(crate) fn pair_kernel(&self) -> Option<&dyn PairKernel<T>> {
        match &self.kernel {
            Kernel::Pairs(kernel) => Some(kernel.as_ref()),
            _ => None,
        }
    }

    /// Checks the settings against the sizes of a call, lengths of sequences aside.
    pub(crate) fn check(&self, shape: &Shape) -> Result<(), Error> {
        if let Some(weight) = &self.key_weight {
            weight.check()?;
        }
        if let Some(sink) = &self.sink {
            argument::shape("sink", &[shape.heads], sink.shape())?;
            argument::finite("sink", sink.shape(), sink.iter())?;
        }
        let width = match &self.kernel {
            Kernel::Pairs(kernel) => {
                self.check_normaliser(kernel.kind())?;
                kernel.check(shape)?;
                kernel.operand_width(shape.width)
            }
            Kernel::Features(map) => {
                self.check_without_logits()?;
                map.check(shape)?;
                map.features()
            }
            Kernel::Scan(scan) => {
                self.check_without_logits()?;
                self.check_scan()?;
                scan.check(shape)?;
                scan.state(shape.width, shape.value_width)
            }
        };
        let widest = width.max(shape.width).max(shape.value_width);
        let sizes = [shape.batch, shape.heads, shape.queries.max(shape.keys)];
        let count = sizes.into_iter().try_fold(widest, usize::checked_mul);
        let most = isize::MAX as usize / size_of::<T>();
        Ok(argument::in_range(
            count.is_some_and(|count| count <= most),
            "widest of the widths of queries, values, operands, features and states",
            widest as f64,
            "small enough for all examples, heads and positions in one array",
        )?)
    }

    fn check_normaliser(&self, got: Kind) -> Result<(), Error> {
        let expected = self.normaliser.kind();
        if got != expected {
            let normaliser = format!("{:?}", self.normaliser);
            return Err(Error::Kind {
                normaliser,
                expected,
                got,
            });
        }
        if self.sink.is_some() && !self.normaliser.takes_sink() {
            return Err(Error::Unsupported {
                what: "a sink with a normaliser that has none",
                instead: "the softmax or the sum, or no sink",
            });
        }
        Ok(())
    }

    /// Refuses what is added to logits where there are none.
    fn check_without_logits(&self) -> Result<(), Error> {
        if self.key_weight.is_none() && self.bias.is_none() && self.sink.is_none() {
            return Ok(());
        }
        Err(Error::Unsupported {
            what: "a weight of keys, a bias or a sink with features or a scan, which have no logits",
            instead: "a pairwise kernel, or none of them",
        })
    }

    fn check_scan(&self) -> Result<(), Error> {
        let mask = &self.mask;
        let fits = mask.is_causal() && (!mask.needs_pairs() || mask.is_only_packed());
        if !fits || self.dropout.is_some() {
            return Err(Error::Unsupported {
                what: "a scan without causality, with another mask of single pairs, or with dropout of pairs",
                instead: "a causal mask with lengths or packed sequences, and no dropout",
            });
        }
        if self.form != Form::Automatic && self.form != Form::LinearTime {
            return Err(Error::Unsupported {
                what: "the pairwise form of a scan",
                instead: "Form::Automatic",
            });
        }
        Ok(())
    }

    /// Gives example `b` the kernel's parameters of the former example `indices[b]`, if it has any of its own.
    pub(crate) fn reorder(&mut self, indices: &[usize]) {
        if let Kernel::Pairs(kernel) = &self.kernel
            && let Some(kernel) = kernel.reordered(indices)
        {
            self.kernel = Kernel::Pairs(kernel);
        }
    }
}
