//! The properties of a mechanism as data: its origin, its inputs and its abilities.

use crate::{Error, Form, Mask, Pass, mechanism::Streams};
use std::fmt;

/// The description of a mechanism under given settings: where it comes from and what it can do.
///
/// The conformance tests hold a mechanism to each claim, and to each claim that it does not make:
/// what is missing is an [`Error::Unsupported`] that names the alternative.
///
/// ```
/// use bochner_attention::{Copula, Mikan, Support, Variant, find, registry};
///
/// let card = find("ika-ns").unwrap().card();
/// assert_eq!(card.paper, "Song et al. 2021");
/// assert!(matches!(card.causal, Support::No { .. }));
///
/// // The settings decide.
/// let independent = Mikan { copula: Copula::Independent, ..Mikan::default() };
/// assert_eq!(Variant::from(independent).card(), card);
///
/// let mut linear = registry().into_iter().filter(|variant| variant.card().linear_form.is_yes());
/// assert!(linear.any(|variant| variant.name() == "performer"));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Card {
    /// The name that the settings go by, as written in results and on the command line.
    pub name: &'static str,
    /// The mechanism in one sentence, without its full stop.
    pub title: &'static str,
    /// The paper that defines it.
    pub paper: &'static str,
    /// The equation in that paper, if it has a number.
    pub equation: Option<&'static str>,
    /// The streams that a layer has to project its input to.
    pub streams: &'static [Stream],
    /// The masks that it takes, apart from causality.
    pub masks: Masks,
    /// Support for a causal mask.
    pub causal: Support,
    /// Support for keys from another sequence than the queries. Without it, an example has as many queries as keys, and
    /// the rows beyond its length are zero, in the output and in the weights.
    pub cross: Support,
    /// Support for fewer heads of keys and values than of queries (grouped-query attention).
    pub shared_keys: Support,
    /// Support for a [bias](crate::Bias) of the logits.
    pub bias: Support,
    /// Support for a form in linear time, in a pass without dropout.
    pub linear_form: Support,
    /// Support for dropout on the weights of pairs in training. Without it, 0 is the only rate.
    pub dropout: Support,
    /// Support for a decoder whose state does not grow with the sequence.
    pub constant_state: Support,
    /// Support for showing the weights.
    pub weights: Support,
    /// The sum of a row of weights.
    pub rows: Rows,
    /// The reorderings of the positions that the output follows, or does not depend on.
    pub symmetry: Symmetry,
    /// The random draws of a pass, apart from the dropout on the weights.
    pub draws: Draws,
    /// The term that a forward pass adds to the loss.
    pub penalty: Penalty,
    /// The width of a head's output if there are no values to have one, and if it is not the width of the queries.
    pub output_width: Option<usize>,
    /// The number R of its spectral points, or m of its random frequencies, if it has any.
    pub points: Option<usize>,
    /// The cost that Table 1 of Song et al. 2021 states, if the mechanism is in it.
    pub cost: Option<Cost>,
}

impl Card {
    /// The card of attention that weighs every pair by itself. Other cards name the differences from it.
    pub const PAIRWISE: Self = Self {
        name: "",
        title: "",
        paper: "",
        equation: None,
        streams: &[Stream::Queries, Stream::Keys, Stream::Values],
        masks: Masks::Any,
        causal: Support::Yes,
        cross: Support::Yes,
        shared_keys: Support::No {
            instead: "as many heads of keys and values as of queries",
        },
        bias: Support::No {
            instead: "a mechanism that adds something to the logits of pairs, such as softmax attention",
        },
        linear_form: Support::No {
            instead: "a form that goes pair by pair",
        },
        dropout: Support::Yes,
        constant_state: Support::No {
            instead: "a decoder that keeps keys and values",
        },
        weights: Support::Yes,
        rows: Rows::One,
        symmetry: Symmetry::Permutations,
        draws: Draws::Nothing,
        penalty: Penalty::None,
        output_width: None,
        points: None,
        cost: None,
    };

    /// The card of a score of pairs: of a mechanism whose settings are those of a
    /// [`Score`](bochner_engine::Score) or a [`PairKernel`](bochner_engine::PairKernel).
    pub const SCORE: Self = Self {
        shared_keys: Support::Yes,
        bias: Support::Yes,
        ..Self::PAIRWISE
    };

    /// The card of features that are not negative: of a mechanism whose settings are those of a
    /// [`FeatureMap`](bochner_engine::FeatureMap).
    pub const FEATURES: Self = Self {
        shared_keys: Support::Yes,
        linear_form: Support::Yes,
        constant_state: Support::Yes,
        ..Self::PAIRWISE
    };

    /// The card of a mechanism whose settings are those of a [`Scan`](bochner_engine::Scan). Its masks are causal.
    pub const SCAN: Self = Self {
        masks: Masks::Sequences,
        cross: Support::No {
            instead: "attention of a sequence to itself",
        },
        shared_keys: Support::Yes,
        bias: Support::No {
            instead: "a pairwise mechanism",
        },
        linear_form: Support::Yes,
        dropout: Support::No {
            instead: "dropout on the output",
        },
        constant_state: Support::Yes,
        weights: Support::No {
            instead: "a pairwise mechanism",
        },
        rows: Rows::Free,
        symmetry: Symmetry::None,
        ..Self::PAIRWISE
    };

    /// Whether the mechanism takes such a mask.
    pub fn takes(&self, mask: &Mask) -> bool {
        self.admit_mask(mask).is_ok()
    }

    /// Returns the card of the mechanism in a form. Sums over the keys leave no pairs to hide, to bias or to drop, so that
    /// a mechanism whose settings ask for [`Form::LinearTime`] claims less.
    pub fn in_form(self, form: Form) -> Self {
        const PAIRS: Support = Support::No {
            instead: "the form `pairwise` or `automatic`",
        };
        match form {
            Form::LinearTime => Self {
                masks: Masks::Lengths,
                bias: PAIRS,
                dropout: PAIRS,
                ..self
            },
            _ => self,
        }
    }

    /// Checks that the mechanism takes such a mask, and such sequences.
    ///
    /// # Errors
    /// [`Error::StreamCount`] for another number of streams, [`Error::Unsupported`] for what the card does
    /// not claim.
    pub fn admit<T>(&self, inputs: &Streams<T>) -> Result<(), Error> {
        inputs.expect(self.streams.len())?;
        self.admit_mask(inputs.mask)?;
        if inputs.bias.is_some() {
            self.bias.required("a bias with this mechanism")?;
        }
        if !inputs.is_of_one_length() {
            let what = "attention to another sequence with this mechanism";
            self.cross.required(what)?;
        }
        if !inputs.are_of_as_many_heads() {
            let what = "heads that share keys and values with this mechanism";
            self.shared_keys.required(what)?;
        }
        Ok(())
    }

    /// Checks that the mechanism takes the pass's dropout.
    ///
    /// # Errors
    /// [`Error::Argument`] unless the rate lies in `0..1`, [`Error::Unsupported`] for what the card does not claim.
    pub fn admit_pass(&self, pass: &Pass) -> Result<(), Error> {
        match pass.weight_dropout()? {
            Some(_) => self
                .dropout
                .required("dropout on the weights with this mechanism"),
            None => Ok(()),
        }
    }

    /// Checks that the mechanism takes such a mask.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for what the card does not claim.
    pub(crate) fn admit_mask(&self, mask: &Mask) -> Result<(), Error> {
        self.masks.check(mask)?;
        match mask.is_causal() {
            true => self.causal.required("a causal mask with this mechanism"),
            false => Ok(()),
        }
    }
}

/// The answer to whether a mechanism can do something, with an alternative if it cannot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Support {
    /// The mechanism can.
    Yes,
    /// The mechanism cannot.
    No {
        /// The alternative to use.
        instead: &'static str,
    },
}

impl Support {
    /// Whether it can.
    pub fn is_yes(self) -> bool {
        self == Self::Yes
    }

    /// `Ok` if it can.
    ///
    /// # Errors
    /// [`Error::Unsupported`] with what was asked for and what there is instead.
    pub fn required(self, what: &'static str) -> Result<(), Error> {
        match self {
            Self::Yes => Ok(()),
            Self::No { .. } => Err(self.refusal(what)),
        }
    }

    /// The error for a caller that asks for `what`.
    pub(crate) fn refusal(self, what: &'static str) -> Error {
        let instead = match self {
            Self::Yes => "the forward pass",
            Self::No { instead } => instead,
        };
        Error::Unsupported { what, instead }
    }
}

/// The masks that a mechanism takes, causality aside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Masks {
    /// Every mask.
    Any,
    /// Lengths of the sequences and packed sequences, but nothing that hides single pairs: a matrix, a window.
    Sequences,
    /// Lengths of the sequences, but neither packed sequences nor anything that hides single pairs.
    Lengths,
}

impl Masks {
    fn check(self, mask: &Mask) -> Result<(), Error> {
        let unsupported = |what, instead| Err(Error::Unsupported { what, instead });
        match self {
            _ if !mask.needs_pairs() => Ok(()),
            Self::Any => Ok(()),
            Self::Sequences if mask.is_only_packed() => Ok(()),
            Self::Sequences => unsupported(
                "a mask by a matrix or a window with this mechanism",
                "key lengths or packed sequences, and causality where the card has it",
            ),
            Self::Lengths => unsupported(
                "a mask by a matrix, a window or packed sequences with this mechanism",
                "key lengths, and causality where the card has it",
            ),
        }
    }
}

/// The sum of the weights of a row that sees a key. A card makes the strongest claim that holds for all rows; a
/// mechanism that shows no weights is [`Rows::Free`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rows {
    /// The weights are not negative, and sum to 1.
    One,
    /// The weights sum to 1, and may have either sign.
    OneOfEitherSign,
    /// The weights sum to more than 1/2 and to at most 1.
    HalfToOne,
    /// The weights may sum to any number, and may have either sign.
    Free,
}

/// The reorderings of the positions under which a mechanism's output stays the same, or is reordered along with them. A
/// card names the first of these that holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Symmetry {
    /// The output stays where keys and values are permuted alike, and follows a permutation of the
    /// queries.
    Permutations,
    /// The output follows a permutation of queries, keys and values together.
    JointPermutations,
    /// The output follows a cyclic shift of queries, keys and values together.
    CyclicShifts,
    /// The output follows a cyclic shift of the values alone.
    CyclicShiftsOfValues,
    /// The output depends on the order of the positions.
    None,
}

impl Symmetry {
    /// Whether attention of a sequence to itself sees the order of its positions. If not, a permutation of them permutes
    /// the output, and the positions may be the rows of a table.
    pub fn sees_order(self) -> bool {
        !matches!(self, Self::Permutations | Self::JointPermutations)
    }
}

/// The random draws of a pass, apart from the dropout on the weights.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Draws {
    /// No draws. Without dropout, training and evaluation are the same, whatever their seeds.
    Nothing,
    /// Draws in training, but not in evaluation.
    InTraining,
    /// Draws in every pass. Evaluations are meant to share one seed.
    InEveryPass,
    /// Draws in every pass. Each evaluation is meant to take its own seed, as in the released code.
    InEveryPassAnew,
}

/// The term that a forward pass adds to the loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Penalty {
    /// No penalty.
    None,
    /// One number per example, which depends on that example alone: a divergence. The objective divides it by the
    /// number of all examples to train on.
    PerExample,
    /// One number per example, which depends on that example alone: a loss. A batch takes the mean.
    LossPerExample,
    /// A loss of the whole batch, repeated for each of its examples.
    PerBatch,
}

impl Penalty {
    /// The factor of the penalties' sum over a batch in an objective, given the number of examples in the batch and
    /// of those to train on. `part` is the batch's weight in the step's mean over its batches, 1 for a single batch:
    /// divergences are divided by it, so that they add up over the step.
    pub fn share(self, batch: usize, part: f64, examples: usize) -> f64 {
        match self {
            Self::None | Self::PerExample => 1.0 / part / examples as f64,
            Self::LossPerExample | Self::PerBatch => 1.0 / batch as f64,
        }
    }
}

/// A projection of a layer's input that a mechanism takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stream {
    /// Queries, `[B, M, Tq, d]`.
    Queries,
    /// Keys, `[B, M, Tk, d]`.
    Keys,
    /// Values, `[B, M, Tk, dv]`.
    Values,
    /// One score for each position, `[B, M, Tk, 1]`.
    Scores,
    /// The input itself, a slice for each head, `[B, M, T, Embed / M]`.
    Input,
}

/// Powers of T, d, R and M whose sum bounds the number of operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cost(pub &'static [[usize; 4]]);

impl fmt::Display for Cost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let written = |term: &[usize; 4]| {
            let factors = ["T", "d", "R", "M"].iter().zip(term);
            let factors = factors.filter_map(|(name, power)| match power {
                0 => None,
                1 => Some((*name).to_owned()),
                _ => Some(format!("{name}^{power}")),
            });
            factors.collect::<Vec<_>>().join(" ")
        };
        let terms: Vec<String> = self.0.iter().map(written).collect();
        f.write_str(&terms.join(" + "))
    }
}
