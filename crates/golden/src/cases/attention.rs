//! `attention`: every mechanism over every mask.

use super::{features_random, is_stationary};
use crate::case_file::CaseFile;
use crate::comparison::Computed;
use crate::error::Fault;
use bochner_attention::engine::{Gradients, Wanted};
use bochner_attention::kernels::points_gradients;
use bochner_attention::{
    Form, Magnitude, Mask, Mechanism, Pass, Settings, Variant, attend, attend_vjp,
    card::Stream,
    engine::{Blocks, Decoder, DecoderSize},
    find,
    kernels::{self, Points, Trained},
    mechanism::{Cotangents, Streams},
    weights,
};
use bochner_numerics::{Real, Seed};
use ndarray::{Array3, Array4, ArrayView4, Axis, Ix3, Ix4, s};

/// Outputs, weights and gradients of one mechanism.
pub(super) fn attention<T: Real>(file: &CaseFile) -> Result<Computed, Fault> {
    let variant = mechanism(file)?.ok_or_else(|| file.wrong("variant", "a mechanism"))?;
    let streams = variant.card().streams.iter();
    let arrays: Result<Vec<Array4<T>>, _> = streams.map(|&one| file.array(name(one))).collect();
    let (arrays, mask) = (arrays?, &mask(file)?);
    let inputs = Streams::new(arrays.iter().map(|array| array.view()), mask);
    if variant.card().points.is_none() {
        return without_points(file, variant.mechanism(), &inputs);
    }
    let [q, k, v] = inputs.get().map_err(Fault::refused)?;
    // The files of random features hold frequencies where those of other mechanisms hold spectral points.
    if file.tensor("in.w").is_ok() {
        return random_features(file, &inputs);
    }
    let points = GivenPoints::read(file)?;
    let settings = points.settings(file.number("floor")?, mask);
    let settings = settings.with_key_weight(magnitude(file)?);
    let mut computed = Computed::default();
    if file.asks_for("weights") {
        let weights = weights(&settings, q, k).map_err(Fault::refused)?;
        computed.output("weights", &weights);
    }
    // The error of the linear-time form is absolute in the similarity, and some of these cases have rows that are like
    // none of their keys: in single precision `quadratic_vs_linear` has the cases of that form.
    let has_floor = file.number("floor")? > 0.0;
    let in_linear_time = T::NAME == f64::NAME && has_floor && has_sums(file)?;
    let forms = PAIR_BY_PAIR.into_iter();
    let forms = forms.chain(in_linear_time.then_some(Form::LinearTime));
    let all = (&settings, [q, k, v]);
    in_forms(file, forms, all, &mut computed, |g, computed| {
        record(g, &points, computed);
    })?;
    Ok(computed)
}

/// The forms of everything that goes pair by pair, the second in blocks of which the cases fill several.
const PAIR_BY_PAIR: [Form; 2] = [
    Form::Pairwise,
    Form::Blocked(Blocks {
        queries: 3,
        keys: 2,
    }),
];

/// Whether the mask of a case lets the linear-time form take its sums over keys.
fn has_sums(file: &CaseFile) -> Result<bool, Fault> {
    Ok(file.word("mask")? != "matrix")
}

/// Outputs and gradients in each of the forms; under causality alone, outputs of a decoder in that form too.
pub(super) fn in_forms<T: Real>(
    file: &CaseFile,
    forms: impl Iterator<Item = Form>,
    (settings, [q, k, v]): (&Settings<T>, [ArrayView4<T>; 3]),
    computed: &mut Computed,
    mut record: impl FnMut(&Gradients<T>, &mut Computed),
) -> Result<(), Fault> {
    let cotangent = file.ranked_cotangent::<T, Ix4>()?;
    for form in forms {
        let settings = Settings {
            form,
            ..settings.clone()
        };
        let (output, saved) = attend(&settings, q, k, v).map_err(Fault::refused)?;
        computed.output("output", &output);
        if let Some(g) = &cotangent {
            let wanted = Wanted {
                kernel: true,
                ..Wanted::default()
            };
            let g = attend_vjp(&settings, &saved, q, k, v, g.view(), wanted);
            let g = g.map_err(Fault::refused)?;
            record(&g, computed);
        }
        if file.word("mask")? == "causal" {
            let decoded = decode(&settings, [q, k, v]).map_err(Fault::refused)?;
            computed.output("output", &decoded);
        }
    }
    Ok(())
}

/// The output of a decoder that takes one query after the other; keys before the first query's are remembered first.
fn decode<T: Real>(
    settings: &Settings<T>,
    [q, k, v]: [ArrayView4<T>; 3],
) -> Result<Array4<T>, bochner_attention::engine::Error> {
    let (batch, heads, queries, width) = q.dim();
    let (_, _, keys, value_width) = v.dim();
    let size = DecoderSize {
        batch,
        heads,
        width,
        value_width,
    };
    let mut decoder = Decoder::new(settings, size)?;
    let before = keys - queries;
    if before > 0 {
        let first = s![.., .., ..before, ..];
        decoder.push(k.slice(first), v.slice(first))?;
    }
    let mut output = Array4::zeros((batch, heads, queries, value_width));
    for i in 0..queries {
        let (query, key) = (
            s![.., .., i..=i, ..],
            s![.., .., before + i..=before + i, ..],
        );
        let row = decoder.step(q.slice(query), k.slice(key), v.slice(key))?;
        output.slice_mut(query).assign(&row);
    }
    Ok(output)
}

/// A mechanism that needs nothing but the sequences.
pub(super) fn without_points<T: Real>(
    file: &CaseFile,
    mechanism: &dyn Mechanism<T>,
    inputs: &Streams<T>,
) -> Result<Computed, Fault> {
    let pass = &Pass::Evaluation { seed: Seed::new(0) };
    let forward = mechanism
        .forward(inputs, &[], pass)
        .map_err(Fault::refused)?;
    let mut computed = Computed::default();
    computed.output("output", &forward.output);
    if file.asks_for("weights") {
        let shown = mechanism
            .inspect(inputs, &[], pass)
            .map_err(Fault::refused)?;
        computed.output("weights", &shown.weights);
    }
    if let Some(g) = file.ranked_cotangent::<T, Ix4>()? {
        let cotangents = Cotangents {
            output: g.view(),
            penalty: forward.penalty.view(),
        };
        let g = mechanism.backward(inputs, &[], pass, &forward, cotangents);
        let g = g.map_err(Fault::refused)?;
        for (&stream, g) in mechanism.card().streams.iter().zip(&g.streams) {
            computed.gradient(name(stream), g);
        }
    }
    // What is attention by settings has forms.
    if let Ok(settings) = mechanism.settings(inputs, &[], pass) {
        let all = (&settings, inputs.get().map_err(Fault::refused)?);
        in_forms(
            file,
            PAIR_BY_PAIR.into_iter(),
            all,
            &mut computed,
            record_streams,
        )?;
    }
    Ok(computed)
}

/// What the files call a stream.
fn name(stream: Stream) -> &'static str {
    match stream {
        Stream::Queries => "q",
        Stream::Keys => "k",
        Stream::Values => "v",
        Stream::Scores => "scores",
        Stream::Input => "x",
    }
}

/// Performer with the frequencies of the file, in every form that the mask allows.
fn random_features<T: Real>(file: &CaseFile, inputs: &Streams<T>) -> Result<Computed, Fault> {
    let w: Array3<T> = file.array("w")?;
    let [q, k, v] = inputs.get().map_err(Fault::refused)?;
    let map = features_random::map(file)?;
    let settings = kernels::random_features(w.view(), map, Trained::Yes, inputs.mask);
    let mut computed = Computed::default();
    if file.asks_for("weights") {
        let weights = weights(&settings, q, k).map_err(Fault::refused)?;
        computed.output("weights", &weights);
    }
    let forms = PAIR_BY_PAIR.into_iter();
    let forms = forms.chain(has_sums(file)?.then_some(Form::LinearTime));
    let all = (&settings, [q, k, v]);
    in_forms(file, forms, all, &mut computed, |g, computed| {
        record_streams(g, computed);
        let along = g.kernel.as_ref().expect("trained frequencies");
        let (_, count, width) = w.dim();
        let points = points_gradients(along, count, width);
        computed.gradient("w", &points.w1.index_axis(Axis(0), 0).to_owned());
    })?;
    Ok(computed)
}

/// The mechanism that the entry `variant` names, if the registry has it.
pub(super) fn mechanism(file: &CaseFile) -> Result<Option<Variant>, Fault> {
    Ok(find(&file.word("variant")?.replace('_', "-")))
}

/// Records the gradients along queries, keys and values.
fn record_streams<T: Real>(g: &Gradients<T>, computed: &mut Computed) {
    computed.gradient("q", &g.q);
    computed.gradient("k", &g.k);
    computed.gradient("v", &g.v);
}

/// Records the gradients of attention.
pub(super) fn record<T: Real>(g: &Gradients<T>, points: &GivenPoints<T>, computed: &mut Computed) {
    record_streams(g, computed);
    if let Some(g) = &g.kernel {
        points.gradients(g, computed);
    }
}

/// The magnitude that the entry `p` asks for.
pub(super) fn magnitude(file: &CaseFile) -> Result<Magnitude, Fault> {
    Ok(match file.number_or_none("p")? {
        None => Magnitude::None,
        Some(p) => Magnitude::Norm { p },
    })
}

/// The mask that the entries `mask` and `causal` and the inputs ask for.
pub(super) fn mask(file: &CaseFile) -> Result<Mask, Fault> {
    let kinds = ["none", "lengths", "causal", "matrix", "lengths_causal"];
    let kind = file.choice("mask", &kinds)?;
    let causal = kind.ends_with("causal");
    if (file.choice("causal", &["true", "false"])? == "true") != causal {
        return Err(file.wrong("causal", "what `mask` implies"));
    }
    let mut mask = Mask::none();
    if kind.starts_with("lengths") {
        mask = mask.with_key_lengths(file.lengths("lengths")?);
    }
    if kind == "matrix" {
        mask = mask.with_matrix(file.mask("mask")?.view());
    }
    Ok(if causal { mask.with_causality() } else { mask })
}

/// The spectral points, `[1 or B, M, R, d]`.
pub(super) struct GivenPoints<T> {
    w1: Array4<T>,
    w2: Option<Array4<T>>,
    shared: bool,
}

impl<T: Real> GivenPoints<T> {
    pub(super) fn read(file: &CaseFile) -> Result<Self, Fault> {
        let shared = file.choice("points", &["shared", "per_example"])? == "shared";
        let read = |name| -> Result<Array4<T>, Fault> {
            if shared {
                Ok(file.array::<T, Ix3>(name)?.insert_axis(Axis(0)))
            } else {
                file.array(name)
            }
        };
        let stationary = is_stationary(file)?;
        Ok(Self {
            w1: read("w1")?,
            w2: (!stationary).then(|| read("w2")).transpose()?,
            shared,
        })
    }

    pub(super) fn points(&self) -> Points<'_, T> {
        let w1 = self.w1.view();
        match &self.w2 {
            None => Points::Stationary { w: w1 },
            Some(w2) => Points::Nonstationary { w1, w2: w2.view() },
        }
    }

    pub(super) fn settings(&self, floor: f64, mask: &Mask) -> Settings<T> {
        kernels::squared(self.points(), floor, mask)
    }

    fn gradients(&self, kernel: &Array3<T>, computed: &mut Computed) {
        let (_, _, count, width) = self.w1.dim();
        let gradients = points_gradients(kernel, count, width);
        let mut record = |name, gradient: &Array4<T>| {
            if self.shared {
                computed.gradient(name, &gradient.index_axis(Axis(0), 0).to_owned());
            } else {
                computed.gradient(name, gradient);
            }
        };
        record("w1", &gradients.w1);
        if let Some(w2) = &gradients.w2 {
            record("w2", w2);
        }
    }
}
