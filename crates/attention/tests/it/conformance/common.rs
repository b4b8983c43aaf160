//! Small examples, every mechanism with its settings, and every kind of mask.

pub(crate) use crate::conformance::case::Case;
pub(crate) use crate::conformance::examples::examples;
use bochner_attention::{
    Card, Form, IkanDirect, Mask, Pass, Variant,
    card::Stream,
    mechanism::{Forward, Gradients, Size, Streams},
};
pub(crate) use bochner_numerics::check::random;
use bochner_numerics::{Real, Seed, relative_error};
use ndarray::{Array1, Array2, Array4, ArrayBase, Data, Dimension, s};

pub(crate) const BATCH: usize = 2;
pub(crate) const HEADS: usize = 2;
pub(crate) const WIDTH: usize = 3;
pub(crate) const VALUE_WIDTH: usize = 4;

pub(crate) const EVALUATION: Pass = Pass::Evaluation { seed: Seed::new(5) };
pub(crate) const TRAINING: Pass = Pass::Training {
    seed: Seed::new(6),
    dropout: 0.3,
};

pub(crate) fn size() -> Size {
    Size {
        heads: HEADS,
        width: WIDTH,
    }
}

/// Queries, keys and values, none of them near zero, where norms have kinks.
#[derive(Clone)]
pub(crate) struct Example<T> {
    pub(crate) q: Array4<T>,
    pub(crate) k: Array4<T>,
    pub(crate) v: Array4<T>,
}

impl<T: Real> Example<T> {
    pub(crate) fn new(queries: usize, keys: usize) -> Self {
        let away = |x: T| x.signum() * (T::of(0.2) + x.abs() * T::of(0.8));
        let array = |time, width, purpose| {
            random::<T, _>((BATCH, HEADS, time, width), purpose).mapv_into(away)
        };
        Self {
            q: array(queries, WIDTH, "q"),
            k: array(keys, WIDTH, "k"),
            v: array(keys, VALUE_WIDTH, "v"),
        }
    }

    /// Queries, keys and values.
    pub(crate) fn inputs<'a>(&'a self, mask: &'a Mask) -> Streams<'a, T> {
        self.streams(&Card::PAIRWISE, mask)
    }

    /// Returns the streams that a mechanism with this card takes.
    pub(crate) fn streams<'a>(&'a self, card: &Card, mask: &'a Mask) -> Streams<'a, T> {
        let all = [&self.q, &self.k, &self.v].map(|x| x.view());
        Streams::asked_by(card, all, mask)
    }

    /// Gradients along queries, keys and values, of which those that a mechanism does not ask for have
    /// none.
    pub(crate) fn gradients(&self, card: &Card, own: Gradients<T>) -> Gradients<T> {
        assert_eq!(own.streams.len(), card.streams.len(), "{}", card.name);
        let mut all = [&self.q, &self.k, &self.v].map(|x| Array4::zeros(x.raw_dim()));
        for (stream, own) in card.streams.iter().zip(own.streams.clone()) {
            match stream {
                Stream::Input => all[2].slice_mut(s![.., .., .., ..own.dim().3]).assign(&own),
                Stream::Queries => all[0] = own,
                Stream::Keys => all[1] = own,
                Stream::Values => all[2] = own,
                // Scores are the keys' first coordinate.
                Stream::Scores => all[1].slice_mut(s![.., .., .., ..1]).assign(&own),
            }
        }
        Gradients {
            streams: all.into(),
            ..own
        }
    }
}

/// Cotangents of outputs and penalties, in general position.
pub(crate) fn cotangents<T: Real>(forward: &Forward<T>) -> (Array4<T>, Array1<T>) {
    (
        random(forward.output.raw_dim(), "output cotangent"),
        random(forward.penalty.raw_dim(), "penalty cotangent"),
    )
}

/// The loss whose gradients [`Case::gradients`] returns.
pub(crate) fn loss(forward: &Forward<f64>) -> f64 {
    let (output, penalty) = cotangents(forward);
    (&forward.output * &output).sum() + (&forward.penalty * &penalty).sum()
}

/// Every mechanism of the registry with the settings that it names.
pub(crate) fn cases<T: Real>() -> Vec<Case<T>> {
    examples().into_iter().map(Case::of).collect()
}

/// One case for each different card.
pub(crate) fn few_cases<T: Real>() -> Vec<Case<T>> {
    let mut few: Vec<Case<T>> = Vec::new();
    for case in cases() {
        if few.iter().all(|other: &Case<T>| other.card != case.card) {
            few.push(case);
        }
    }
    few
}

/// One mask for a case across blocks: causality or lengths, as far as its card goes.
pub(crate) fn long_mask(case: &Case<impl Real>, keys: usize) -> Mask {
    let lengths = Mask::none().with_key_lengths(vec![keys, keys - keys / 3]);
    let all = [lengths.clone().with_causality(), lengths, Mask::none()];
    let mut all = all.into_iter();
    let taken = all.find(|mask| case.card.takes(mask));
    taken.expect("no mask at all is always taken")
}

/// A squared kernel in linear time, with a floor that finite differences can see across.
pub(crate) fn linear_time() -> Variant {
    let usual = IkanDirect {
        points: 3,
        floor: 1e-2,
        p: 1.5,
        ..IkanDirect::default()
    };
    Variant::from(usual).with_form(Form::LinearTime).unwrap()
}

/// Key lengths of which one is zero.
pub(crate) fn lengths(keys: usize) -> Vec<usize> {
    vec![keys - keys / 3, 0]
}

/// A matrix without the row `1` and without the column `2`.
pub(crate) fn matrix(queries: usize, keys: usize) -> Array2<bool> {
    Array2::from_shape_fn((queries, keys), |(i, j)| {
        i != 1 && j != 2 && (7 * i + 3 * j) % 4 != 1
    })
}

/// Every kind of mask.
pub(crate) fn masks(queries: usize, keys: usize) -> Vec<(&'static str, Mask)> {
    let matrix = matrix(queries, keys);
    let with_lengths = || Mask::none().with_key_lengths(lengths(keys));
    vec![
        ("none", Mask::none()),
        ("lengths", with_lengths()),
        ("causal", Mask::none().with_causality()),
        ("lengths and causal", with_lengths().with_causality()),
        (
            "pairs: lengths and matrix",
            with_lengths().with_matrix(matrix.view()),
        ),
        (
            "pairs: matrices",
            Mask::none().with_matrices(matrices(queries, keys).view()),
        ),
        (
            "pairs: window, lengths",
            with_lengths().with_window(1, 2).unwrap(),
        ),
        (
            "pairs: window to the left",
            Mask::none().with_window(2, 0).unwrap(),
        ),
        (
            "pairs: window, causal after a prefix",
            (Mask::none().with_causality_after(2))
                .with_window(2, 1)
                .unwrap(),
        ),
    ]
}

/// A matrix for each example and head.
pub(crate) fn matrices(queries: usize, keys: usize) -> Array4<bool> {
    let shape = (BATCH, HEADS, queries, keys);
    Array4::from_shape_fn(shape, |(b, m, i, j)| {
        i != 1 && (5 * b + 2 * m + 7 * i + 3 * j) % 4 != 1
    })
}

pub(crate) fn assert_close<D: Dimension>(
    got: &ArrayBase<impl Data<Elem = f64>, D>,
    want: &ArrayBase<impl Data<Elem = f64>, D>,
    label: &str,
) {
    assert_eq!(got.shape(), want.shape(), "{label}");
    let [got, want] = [got.iter(), want.iter()].map(|x| x.copied().collect::<Vec<_>>());
    let error = relative_error(&got, &want);
    // Norms with p = .5 make large exponents, whose rounding was seen to reach 1.3e-12.
    assert!(error < 1e-11, "{label}: {error:e}");
}

pub(crate) fn assert_same_gradients(got: &Gradients<f64>, want: &Gradients<f64>, label: &str) {
    assert_close(&got.streams[0], &want.streams[0], &format!("{label}: q"));
    assert_close(&got.streams[1], &want.streams[1], &format!("{label}: k"));
    assert_close(&got.streams[2], &want.streams[2], &format!("{label}: v"));
    let parameters = |g: &Gradients<f64>| Array1::from_vec(g.parameters.clone());
    let label = format!("{label}: parameters");
    assert_close(&parameters(got), &parameters(want), &label);
}
