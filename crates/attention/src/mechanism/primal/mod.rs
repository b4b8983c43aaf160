//! Primal-Attention: projections of queries and keys onto the directions of an asymmetric kernel SVD.

mod backward;
mod call;
mod features;
mod forward;
mod loss;

use crate::error::Error;
use crate::mechanism::{Cotangents, Forward, Gradients, Mechanism, Pass, Streams};
use crate::{
    Card, Support,
    card::{Masks, Penalty, Rows, Stream, Symmetry},
};
use bochner_kernels::orthonormal_rows;
use bochner_numerics::{Real, argument, parallel};
use bochner_spectral::{MOST_POINTS, ParameterSpec, Size};
use call::Call;
use loss::Loss;
use ndarray::Array4;
use rand::{Rng, RngCore};
use serde::{Deserialize, Serialize};

const NAME: &str = "primal";

/// Primal-Attention: a row of the output is a linear map of its query's and its key's projections.
///
/// $$o_i = W_c [e_i; r_i], \qquad e_i = W_e^\top \varphi(q_i), \quad r_i = W_r^\top \varphi(k_i),
/// \quad \varphi(u) = u / |u|_2$$
///
/// where
/// * $W_e, W_r$: `we` and `wr`, `[M, d, s]`; data-dependent ones are $f(X)^\top W$ with `[M, n, s]`
///   parameters $W$ and $f(X)$ the n rows of the layer's input that [`PrimalWeights::Data`] samples
/// * $W_c$: `wc`, `[M, dv, 2 s]`
/// * $s$: `rank`
///
/// There are no values and no pairs: time and memory are linear in the length. The penalty pulls the
/// projections towards those of the singular vectors of the kernel matrix
/// $\langle \varphi(q_i), \varphi(k_j) \rangle$, at which it is zero:
///
/// $$\eta (h - \tau)^2, \qquad h = \frac1{M N} \sum_{m, i} \tfrac12 |\lambda_m \odot e_{mi}|^2 +
/// \tfrac12 |\lambda_m \odot r_{mi}|^2, \qquad \tau = \frac1M \sum_m \operatorname{tr} W_e^\top W_r$$
///
/// where $\lambda$, `lambda`, is `[M, s]` and N the number of positions that are not padding, of the batch
/// or of the example ([`PrimalReduction`]). The paper's $\Lambda$ is $\lambda^2 / N$. A penalty of zero is
/// necessary for a solution, not sufficient: it is zero along the whole ray of multiples of one, and the
/// objective itself has no minimum, which is why its square is minimised.
///
/// Under a causal mask queries and keys are replaced by their running means, and the weights have to be
/// parameters.
///
/// # Numerics
/// O(T d s + n d s) time for a head, each on one thread. A penalty or a gradient that overflows is an error
/// ([`Error::Overflow`]). A zero row has zero features and a zero gradient. Padded rows have a zero output
/// and enter neither $f(X)$ nor the penalty; an example without positions has the penalty zero, so that the mean of
/// the penalties over the other examples is $\eta$ times the paper's loss. The layer's penalty is their sum, to be
/// divided by the number of sequences in the batch ([`Penalty::share`]). There are no weights of pairs, so that a pass
/// with a rate of dropout on them is refused ([`Pass::for_card`] takes the rate out).
///
/// # Reference
/// Chen, Tao, Tonin, Suykens 2023, with the choices of the official code; the lengths are ours.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(
    default,
    deny_unknown_fields,
    rename_all = "kebab-case",
    remote = "Self"
)]
pub struct Primal {
    /// The number s of directions.
    pub rank: usize,
    /// The source of the projections.
    pub weights: PrimalWeights,
    /// The positions to average over before the objective is squared.
    pub reduction: PrimalReduction,
    /// The weight $\eta$ of the penalty, at least 0.
    pub eta: f64,
    /// The width dv of the output of a head; `None` for that of the queries.
    pub value_width: Option<usize>,
}

/// The source of the projections of [`Primal`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub enum PrimalWeights {
    /// Parameters combine rows of the layer's input, head by head.
    ///
    /// Row r of the sample is row $\lfloor r (L - 1) / (n - 1) \rfloor$ of the L that are not padding, the
    /// first one if n is 1; fewer rows than n repeat.
    Data {
        /// The number n of rows. The official code takes 5 or 10 times the rank.
        rows: usize,
        /// The matrices whose trace enters the penalty.
        trace: PrimalTrace,
    },
    /// The projections are parameters themselves.
    Parameters,
}

/// The matrices in the trace of a penalty of data-dependent weights.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PrimalTrace {
    /// The projections themselves, $f(X)^\top W$.
    #[default]
    Data,
    /// The parameters $W$.
    Parameters,
}

/// The positions that the penalty of [`Primal`] averages over before it squares.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PrimalReduction {
    /// All positions of the batch: one number, which is the penalty of each example.
    #[default]
    Batch,
    /// The positions of each example.
    Example,
}

impl Default for Primal {
    fn default() -> Self {
        Self {
            rank: 30,
            weights: PrimalWeights::Data {
                rows: 300,
                trace: PrimalTrace::Data,
            },
            reduction: PrimalReduction::Batch,
            eta: 0.1,
            value_width: None,
        }
    }
}

/// The projections of a forward pass of [`Primal`].
#[derive(Clone, Debug, PartialEq)]
pub struct PrimalScores<T> {
    /// $e$, of the queries, `[B, M, T, s]`.
    pub e: Array4<T>,
    /// $r$, of the keys, `[B, M, T, s]`.
    pub r: Array4<T>,
}

/// The values that the backward pass needs.
struct Saved<T> {
    scores: PrimalScores<T>,
    /// The projections of queries and keys, `[1 or B, M, d, s]`.
    projections: [Vec<T>; 2],
    loss: Loss,
}

impl Primal {
    /// The projections behind a forward pass.
    ///
    /// # Errors
    /// [`Error::ForeignForward`] if it is another mechanism's.
    pub fn scores_of<'f, T: Real>(
        &self,
        forward: &'f Forward<T>,
    ) -> Result<&'f PrimalScores<T>, Error> {
        Ok(&forward.saved::<Saved<T>>(NAME)?.scores)
    }

    /// Whether the projections are made of the layer's input.
    fn is_data_dependent(&self) -> bool {
        matches!(self.weights, PrimalWeights::Data { .. })
    }

    /// Whether the trace is that of the weights, not of what they make of the data.
    fn traces_weights(&self) -> bool {
        match self.weights {
            PrimalWeights::Data { trace, .. } => trace == PrimalTrace::Parameters,
            PrimalWeights::Parameters => true,
        }
    }

    /// The number of rows of a matrix of weights.
    fn rows(&self, width: usize) -> usize {
        match self.weights {
            PrimalWeights::Data { rows, .. } => rows,
            PrimalWeights::Parameters => width,
        }
    }
}

impl<T: Real> Mechanism<T> for Primal {
    fn card(&self) -> Card {
        let (streams, causal, symmetry): (&[Stream], _, _) = match self.weights {
            PrimalWeights::Data { .. } => (
                &[Stream::Queries, Stream::Keys, Stream::Input],
                Support::No {
                    instead: "weights that are parameters (PrimalWeights::Parameters)",
                },
                Symmetry::None,
            ),
            PrimalWeights::Parameters => (
                &[Stream::Queries, Stream::Keys],
                Support::Yes,
                Symmetry::JointPermutations,
            ),
        };
        Card {
            name: NAME,
            title: "projections of queries and keys onto the directions of an asymmetric kernel SVD",
            paper: "Chen et al. 2023",
            streams,
            masks: Masks::Lengths,
            causal,
            dropout: Support::No {
                instead: "a rate of 0 (`Pass::for_card`)",
            },
            cross: Support::No {
                instead: "attention of a sequence to itself",
            },
            linear_form: Support::No {
                instead: "its only form, which is linear in the length",
            },
            constant_state: Support::No {
                instead: "the forward pass of the whole sequence",
            },
            weights: Support::No {
                instead: "the scores of its forward pass, or kernel attention",
            },
            rows: Rows::Free,
            symmetry,
            penalty: match self.reduction {
                _ if self.eta == 0.0 => Penalty::None,
                PrimalReduction::Batch => Penalty::PerBatch,
                PrimalReduction::Example => Penalty::LossPerExample,
            },
            output_width: self.value_width,
            ..Card::PAIRWISE
        }
    }

    fn validate(&self) -> Result<(), Error> {
        argument::at_most("rank", self.rank, MOST_POINTS)?;
        if let PrimalWeights::Data { rows, .. } = self.weights {
            argument::at_most("rows", rows, MOST_POINTS)?;
        }
        argument::at_most("value_width", self.value_width.unwrap_or(1), MOST_POINTS)?;
        Ok(argument::non_negative("eta", self.eta)?)
    }

    fn parameters(&self, Size { heads, width }: Size) -> Vec<ParameterSpec> {
        let (s, rows) = (self.rank, self.rows(width));
        let values = self.value_width.unwrap_or(width);
        [
            ("we", &[heads, rows, s][..]),
            ("wr", &[heads, rows, s]),
            ("lambda", &[heads, s]),
            ("wc", &[heads, values, 2 * s]),
        ]
        .map(|(name, shape)| ParameterSpec::new(name, shape))
        .into()
    }

    /// The start is the official code's: the weights of all heads, a row each, are orthonormal; $\lambda$ is uniform
    /// from 0 to 1, $W_c$ within $1 / \sqrt{2 s}$.
    fn initial(&self, size: Size, rng: &mut dyn RngCore) -> Result<Vec<T>, Error> {
        Mechanism::<T>::validate(self)?;
        argument::at_least_one("heads", size.heads)?;
        argument::at_least_one("width", size.width)?;
        let mut values = Vec::new();
        for spec in Mechanism::<T>::parameters(self, size) {
            let bound = match spec.name.as_str() {
                "lambda" => 0.0..1.0,
                "wc" => {
                    let bound = (2.0 * self.rank as f64).sqrt().recip();
                    -bound..bound
                }
                _ => {
                    let rows = orthonormal_rows(spec.count() / size.heads, size.heads, rng);
                    values.extend(rows.into_iter().flatten().map(T::of));
                    continue;
                }
            };
            values.extend((0..spec.count()).map(|_| T::of(rng.gen_range(bound.clone()))));
        }
        Ok(values)
    }

    fn forward(&self, inputs: &Streams<T>, flat: &[T], pass: &Pass) -> Result<Forward<T>, Error> {
        Mechanism::<T>::card(self).admit_pass(pass)?;
        let call = Call::new(self, inputs, flat)?;
        let projections = call.projections();
        let (output, scores, squares) = call.attend(&projections);
        let loss = call.loss(&projections, squares);
        let penalty = loss.penalty(call.batch);
        no_overflow(
            "penalty or output",
            [penalty.as_slice().expect("one axis"), row_major(&output)],
        )?;
        let saved = Saved {
            scores,
            projections,
            loss,
        };
        Ok(Forward::new(output, penalty, saved))
    }

    fn backward(
        &self,
        inputs: &Streams<T>,
        flat: &[T],
        _: &Pass,
        forward: &Forward<T>,
        cotangent: Cotangents<T>,
    ) -> Result<Gradients<T>, Error> {
        let call = Call::new(self, inputs, flat)?;
        let saved = forward.saved::<Saved<T>>(NAME)?;
        let shape = [call.batch, call.heads, call.time, call.value_width];
        argument::shape("the forward pass", &shape, forward.output.shape())?;
        argument::shape("output cotangent", &shape, cotangent.output.shape())?;
        argument::shape(
            "penalty cotangent",
            &[call.batch],
            cotangent.penalty.shape(),
        )?;
        let pulled = call.pull_back(saved, cotangent);
        let streams = pulled.streams.iter().map(row_major);
        let overflow = no_overflow("gradient", streams.chain([&pulled.parameters[..]]));
        let is_finite = |x: &T| x.is_finite();
        // A loss that overflows is told by its gradients.
        if overflow.is_err()
            && cotangent.penalty.iter().all(is_finite)
            && cotangent.output.iter().all(is_finite)
        {
            overflow?;
        }
        Ok(pulled)
    }
}

fn row_major<T: Real>(x: &Array4<T>) -> &[T] {
    x.as_slice().expect("row-major")
}

/// Refuses numbers that are not finite.
fn no_overflow<'a, T: Real>(
    what: &'static str,
    numbers: impl IntoIterator<Item = &'a [T]>,
) -> Result<(), Error> {
    let mut arrays = numbers.into_iter();
    match arrays.all(|x| parallel::max_norm(x).is_finite()) {
        true => Ok(()),
        false => Err(Error::Overflow { what }),
    }
}
