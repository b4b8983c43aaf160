//! Five mechanisms of another crate, one of each kind.

use bochner_attention::engine::numerics::Real;
use bochner_attention::engine::{
    FeatureMap, HeadRows, Kind, Number, Pair, Position, PositionGradients, Raw, Scan, Score,
    Scored, Unnormalised, Wanted,
};
use bochner_attention::mechanism::{CustomMechanism, Mechanism, Pass, ScoreMechanism, Streams};
use bochner_attention::{
    Card, Error, Settings,
    card::Rows,
    mechanism::{ParameterSpec, Size},
};
use bochner_numerics::argument;
use ndarray::{Array1, Array2};
use rand::RngCore;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// A weight by the distance, with a learnt number for each head.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct RationalQuadratic {}

impl Score for RationalQuadratic {
    const RAW: Raw = Raw::SquaredDistance;

    fn kind(&self) -> Kind {
        Kind::Weight
    }

    fn parameters(&self) -> usize {
        1
    }

    fn uses_positions(&self) -> bool {
        false
    }

    #[inline(always)]
    fn score<N: Number>(&self, raw: N, pair: Pair<N>, parameters: &[N]) -> N {
        let (alpha, root) = (parameters[0].exp(), (pair.width as f64).sqrt());
        (N::of(1.0) + raw / (alpha * N::of(2.0 * root))).powf(-alpha)
    }
}

impl ScoreMechanism for RationalQuadratic {
    const NAME: &'static str = "test/rational-quadratic";

    fn initial_parameters(&self, head: usize, heads: usize) -> Vec<f64> {
        vec![0.5 + head as f64 / heads as f64]
    }
}

/// A logit with a setting.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct SoftCap {
    pub(crate) cap: f64,
}

impl Default for SoftCap {
    fn default() -> Self {
        Self { cap: 2.0 }
    }
}

impl Score for SoftCap {
    const RAW: Raw = Raw::Product;

    fn kind(&self) -> Kind {
        Kind::Logit
    }

    #[inline(always)]
    fn score<N: Number>(&self, raw: N, pair: Pair<N>, _: &[N]) -> N {
        let scale = 1.0 / (self.cap * (pair.width as f64).sqrt());
        N::of(self.cap) * (raw * N::of(scale)).tanh()
    }
}

impl ScoreMechanism for SoftCap {
    const NAME: &'static str = "test/soft-cap";

    fn validate(&self) -> Result<(), Error> {
        Ok(argument::positive("cap", self.cap)?)
    }
}

/// A weight without a normaliser.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Sigmoid {}

impl Score for Sigmoid {
    const RAW: Raw = Raw::Product;

    fn kind(&self) -> Kind {
        Kind::Weight
    }

    #[inline(always)]
    fn score<N: Number>(&self, raw: N, pair: Pair<N>, _: &[N]) -> N {
        let scale = 1.0 / (pair.width as f64).sqrt();
        N::of(1.0) / (N::of(1.0) + (-raw * N::of(scale)).exp())
    }
}

impl ScoreMechanism for Sigmoid {
    const NAME: &'static str = "test/sigmoid";

    fn with_settings<T: Real>(&self, settings: Settings<T>) -> Settings<T> {
        Settings {
            normaliser: Arc::new(Unnormalised),
            ..settings
        }
    }
}

/// Weights by the distance with a learnt sink: learnt numbers of two kinds for each head.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Sink {}

impl CustomMechanism for Sink {
    const NAME: &'static str = "test/sink";
}

impl<T: Real> Mechanism<T> for Sink {
    fn card(&self) -> Card {
        Card {
            title: "a sum of weights with a learnt sink",
            rows: Rows::Free,
            ..Card::SCORE
        }
    }

    fn parameters(&self, size: Size) -> Vec<ParameterSpec> {
        ["score", "sink"]
            .map(|name| ParameterSpec::new(name, &[size.heads]))
            .into()
    }

    fn initial(&self, size: Size, _: &mut dyn RngCore) -> Result<Vec<T>, Error> {
        Ok((0..2 * size.heads)
            .map(|n| T::of(0.5 - 0.3 * n as f64))
            .collect())
    }

    fn kernel(&self, inputs: &Streams<T>, learnt: &[T], _: &Pass) -> Result<Settings<T>, Error> {
        let (score, sink) = learnt.split_at(inputs.size().heads);
        let score = Array2::from_shape_vec((score.len(), 1), score.to_vec()).expect("one a head");
        let sink = Some(Arc::new(Array1::from(sink.to_vec())));
        Ok(Settings {
            sink,
            ..Settings::pairs(
                Scored::with_parameters(RationalQuadratic {}, score),
                inputs.mask,
            )
        })
    }

    fn wanted(&self, _: Size) -> Wanted {
        Wanted {
            kernel: true,
            sink: true,
            ..Wanted::default()
        }
    }
}

/// Linear attention with the features elu + 1.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Elu {}

impl CustomMechanism for Elu {
    const NAME: &'static str = "test/elu";
}

impl<T: Real> Mechanism<T> for Elu {
    fn card(&self) -> Card {
        Card {
            title: "features elu + 1",
            ..Card::FEATURES
        }
    }

    fn kernel(&self, inputs: &Streams<T>, _: &[T], _: &Pass) -> Result<Settings<T>, Error> {
        let width = inputs.size().width;
        Ok(Settings::features(EluMap { width }, inputs.mask))
    }
}

#[derive(Debug)]
struct EluMap {
    width: usize,
}

impl<T: Real> FeatureMap<T> for EluMap {
    fn features(&self) -> usize {
        self.width
    }

    fn map(&self, rows: HeadRows<T>, values: &mut [T], _: &mut [T]) {
        let elu = |x: T| if x > T::zero() { x + T::one() } else { x.exp() };
        values
            .iter_mut()
            .zip(rows.x.data())
            .for_each(|(f, &x)| *f = elu(x));
    }

    fn pull(&self, _: HeadRows<T>, values: &[T], gradient: &[T], out: &mut [T], _: &mut [T]) {
        let all = out.iter_mut().zip(values).zip(gradient);
        all.for_each(|((d, &f), &g)| *d += g * f.min(T::one()));
    }
}

/// A moving average with a learnt decay for each head.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Decay {}

impl CustomMechanism for Decay {
    const NAME: &'static str = "test/decay";
}

impl<T: Real> Mechanism<T> for Decay {
    fn card(&self) -> Card {
        Card {
            title: "a moving average",
            ..Card::SCAN
        }
    }

    fn parameters(&self, size: Size) -> Vec<ParameterSpec> {
        vec![ParameterSpec::new("decay", &[size.heads])]
    }

    fn initial(&self, size: Size, _: &mut dyn RngCore) -> Result<Vec<T>, Error> {
        Ok((0..size.heads)
            .map(|head| T::of(0.5 + 0.1 * head as f64))
            .collect())
    }

    fn kernel(&self, inputs: &Streams<T>, decays: &[T], _: &Pass) -> Result<Settings<T>, Error> {
        Ok(Settings::scan(DecayScan(decays.to_vec()), inputs.mask))
    }
}

#[derive(Debug)]
struct DecayScan<T>(Vec<T>);

impl<T: Real> Scan<T> for DecayScan<T> {
    fn state(&self, _: usize, value_width: usize) -> usize {
        value_width
    }

    fn parameters(&self) -> usize {
        1
    }

    fn step(&self, at: Position<T>, state: &mut [T], out: &mut [T]) {
        for ((s, &v), out) in state.iter_mut().zip(at.v).zip(out) {
            *s = self.0[at.head] * *s + v;
            *out = *s;
        }
    }

    fn pull(
        &self,
        at: Position<T>,
        before: &[T],
        cotangent: &[T],
        state: &mut [T],
        gradients: PositionGradients<T>,
    ) {
        let all = state.iter_mut().zip(cotangent).zip(before).zip(gradients.v);
        for (((s, &c), &before), v) in all {
            let along = *s + c;
            *v += along;
            gradients.parameters[0] += along * before;
            *s = self.0[at.head] * along;
        }
    }
}
