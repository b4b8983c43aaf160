//! The whole layer as one operation on the tape.

use super::config::{Cut, Layout};
use super::heads::{Code, Heads, Mapped, Maps, join};
use super::row_positions::{RowPositions, for_each_place};
use crate::{
    Bias, Mask, Mechanism, Pass,
    card::Stream,
    mechanism::{Cotangents, Forward},
};
use bochner_numerics::memory::zeros;
use bochner_numerics::{ArgumentError, Buffer, Buffers, Real, argument};
use bochner_ops::{BoxError, Operation, Slot, affine_vjp, slots};
use ndarray::{Array4, ArrayView3, ArrayViewD, Ix3, IxDyn};
use std::sync::Arc;

/// A [`MultiHead`](super::MultiHead) layer as an operation on its sequences (one, or queries and memory), the
/// weight and bias of each map, the one to the output last, the table of the position bias, if it is learnt, and
/// the mechanism's parameters, if it has any.
///
/// It has two outputs: the attended values and the penalty, summed over the batch.
///
/// Backwards the mechanism gives the gradients of its streams, its parameters and the position bias together; it
/// is not asked where nobody wants any of them, and no map is gone back through whose gradients nobody wants.
#[derive(Clone, Debug)]
pub struct MultiHeadOperation<T: Real> {
    pub(super) mechanism: Arc<dyn Mechanism<T>>,
    pub(super) layout: Layout,
    /// The code of positions in queries and keys.
    pub(super) code: Option<Code<T>>,
    pub(super) mask: Mask,
    pub(super) pass: Pass,
    /// One if a sequence attends to itself, otherwise two.
    pub(super) sequences: usize,
}

/// What the backward pass of [`MultiHeadOperation`] needs.
#[derive(Debug)]
pub struct SavedHeads<T> {
    heads: Mapped<T>,
    positions: RowPositions,
    forward: Forward<T>,
    bias: Option<Bias<T>>,
    /// The output of all heads, before the last map.
    joined: Buffer<T>,
}

impl<T: Real> MultiHeadOperation<T> {
    /// The sequences of the queries and of the memory, and the layer's parameters.
    fn cut<'a>(&self, inputs: &'a [ArrayViewD<'_, T>]) -> ([ArrayView3<'a, T>; 2], Vec<&'a [T]>) {
        let (sequences, parameters) = inputs.split_at(self.sequences);
        let sequences = [0, self.sequences - 1].map(|i| {
            let x = sequences[i].view().into_dimensionality::<Ix3>();
            x.expect("checked with the shapes")
        });
        let slice = |x: &'a ArrayViewD<'_, T>| x.as_slice().expect("a row-major array");
        (sequences, parameters.iter().map(slice).collect())
    }

    /// The cotangent of a stream before its positions are encoded.
    fn before_code(
        &self,
        mut cotangent: Array4<T>,
        stream: Stream,
        positions: &RowPositions,
    ) -> Array4<T> {
        if let (Some(code), Some(positions)) = (&self.code, positions.of(stream)) {
            let (shape, width) = (cotangent.dim().into(), cotangent.dim().3);
            cotangent = cotangent.as_standard_layout().into_owned();
            let rows = cotangent.as_slice_mut().expect("row-major");
            for_each_place(rows, shape, positions, |positions, rows| {
                code.encode_vjp(positions, width, rows);
            });
        }
        cotangent
    }
}

impl<T: Real> Operation<T> for MultiHeadOperation<T> {
    type Saved = SavedHeads<T>;

    fn output_shapes(&self, inputs: &[&[usize]]) -> Result<Vec<Vec<usize>>, ArgumentError> {
        let embed = self.layout.embed;
        let (sequences, parameters) = inputs.split_at(self.sequences.min(inputs.len()));
        for x in sequences {
            let [batch, time] = [0, 1].map(|axis| x.get(axis).copied().unwrap_or(0));
            argument::shape("the input", &[batch, time, embed], x)?;
        }
        let given = self.layout.cut(parameters.iter().copied());
        argument::shape("maps", &[self.layout.maps().count()], &[given.maps.len()])?;
        if let Some(table) = self.layout.position_bias.table(self.layout.heads) {
            argument::shape("position_bias", &table, given.table.unwrap_or_default())?;
        }
        for ((_, map), (weight, bias)) in self.layout.maps().zip(given.maps) {
            argument::shape("weight", &map, weight)?;
            argument::shape("bias", &map[..1], bias.unwrap_or(&map[..1]))?;
        }
        Ok(vec![inputs[0].to_vec(), Vec::new()])
    }

    fn forward(
        &self,
        inputs: &[ArrayViewD<'_, T>],
        outputs: Vec<Slot<'_, T>>,
    ) -> Result<Self::Saved, BoxError> {
        let ([output, penalty], buffers) = (slots(outputs), Buffers::default());
        let ([query, memory], parameters) = self.cut(inputs);
        let Cut {
            maps: parameters,
            table,
            kernel,
        } = self.layout.cut(parameters);
        let maps = Maps::new(self.layout, &parameters, table, self.code.clone())?;
        let mut positions = RowPositions::default();
        maps.place(
            &mut positions,
            &self.mask,
            [query, memory].map(|x| x.dim().1),
        );
        let heads = maps.heads(query, memory, &positions, &buffers);
        let streams = (self.layout).gather(&heads, query, &self.mask, maps.bias.as_ref());
        let (mechanism, kernel) = (&self.mechanism, kernel.unwrap_or_default());
        let forward = mechanism.forward(&streams, kernel, &self.pass)?;
        let mut values = zeros(output.len());
        let joined = maps.output(forward.output.view(), &buffers, &mut values)?;
        output.put(values);
        penalty.put(vec![forward.penalty.sum()]);
        Ok(SavedHeads {
            bias: maps.bias.clone(),
            heads,
            positions,
            forward,
            joined,
        })
    }

    fn backward(
        &self,
        inputs: &[ArrayViewD<'_, T>],
        saved: &Self::Saved,
        cotangents: &[ArrayViewD<'_, T>],
        mut gradients: Vec<Option<Slot<'_, T>>>,
    ) -> Result<(), BoxError> {
        let ([query, memory], parameters) = self.cut(inputs);
        let parameters = self.layout.cut(parameters);
        let of = self.layout.cut(gradients.split_off(self.sequences));
        let of_maps = of.maps.into_iter().map(|(w, b)| [w, b.flatten()]);
        let mut maps: Vec<_> = parameters.maps.into_iter().zip(of_maps).collect();
        let buffers = Buffers::default();
        let (table, kernel) = (of.table.flatten(), of.kernel.flatten());

        let ((weight, _), [dweight, dbias]) = maps.pop().expect("a map to the output");
        let is_wanted = {
            let of_maps = maps.iter().flat_map(|(_, places)| places);
            let places = gradients.iter().chain([&table, &kernel]);
            places.chain(of_maps).any(Option::is_some)
        };
        let dy = cotangents[0].as_slice().expect("a row-major array");
        let mut joined = buffers.empty(saved.joined.len());
        let place = is_wanted.then(|| Slot::new(&mut joined, saved.joined.len()));
        let places = [place, dweight, dbias];
        affine_vjp(&saved.joined, weight, dy, self.layout.embed, places);
        if !is_wanted {
            return Ok(());
        }
        let (batch, heads, time, width) = saved.forward.output.dim();
        let output = Heads::split(joined, [batch, time, heads, width], &buffers);
        let penalty = saved.forward.penalty.mapv(|_| cotangents[1][IxDyn(&[])]);
        let mut streams = self
            .layout
            .gather(&saved.heads, query, &self.mask, saved.bias.as_ref());
        if self.layout.position_bias.table(self.layout.heads).is_some() {
            streams = streams.with_bias_gradient();
        }
        let pulled = self.mechanism.backward(
            &streams,
            parameters.kernel.unwrap_or_default(),
            &self.pass,
            &saved.forward,
            Cotangents {
                output: output.view(),
                penalty: penalty.view(),
            },
        )?;

        let mut maps = maps.into_iter();
        for (gradient, &stream) in pulled.streams.into_iter().zip(self.layout.streams) {
            let (x, i) = match stream.is_of_queries() {
                true => (query, 0),
                false => (memory, self.sequences - 1),
            };
            let dx = gradients[i].as_mut().map(Slot::reborrow);
            let width = self.layout.width(stream);
            if stream != Stream::Input {
                let ((weight, _), [dweight, dbias]) = maps.next().expect("a map a stream");
                let places = [dx, dweight, dbias];
                if places.iter().any(Option::is_some) {
                    let gradient = self.before_code(gradient, stream, &saved.positions);
                    let (x, dy) = (
                        x.to_slice().expect("row-major"),
                        join(gradient.view(), &buffers),
                    );
                    affine_vjp(x, weight, &dy, self.layout.heads_of(stream) * width, places);
                }
            } else if let Some(dx) = dx {
                dx.put(join(gradient.view(), &buffers).to_vec());
            }
        }
        if let (Some(table), Some(bias)) = (table, pulled.bias) {
            table.put(bias.into_iter().collect());
        }
        if let Some(kernel) = kernel {
            kernel.put(pulled.parameters);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Card, Copula, Error, IkanDirect, Mikan, MultiHeadConfig, PositionBias, Posterior, Variant,
        mechanism::{Gradients, Streams},
    };
    use bochner_numerics::check::assert_gradient;
    use bochner_numerics::operations::count;
    use bochner_numerics::{Operations, Seed, standard_normal};
    use bochner_ops::{apply, apply_vjp};
    use bochner_spectral::{ParameterSpec, Size};
    use ndarray::{Array4, ArrayD, Axis};

    /// The sum of all values, or of the input, each times its score if there are scores.
    #[derive(Debug)]
    struct Sum(&'static [Stream]);

    /// Values, and scores, which are one if there are none.
    fn weighed(streams: &Streams<f64>) -> Result<[Array4<f64>; 2], Error> {
        if let Ok([scores, values]) = streams.get() {
            return Ok([values, scores].map(|x| x.to_owned()));
        }
        let [values] = streams.get()?;
        let (batch, heads, time, _) = values.dim();
        Ok([values.to_owned(), Array4::ones((batch, heads, time, 1))])
    }

    /// The sum over the positions, at every position.
    fn total(x: &Array4<f64>) -> Array4<f64> {
        let sum = x.sum_axis(Axis(2)).insert_axis(Axis(2));
        sum.broadcast(x.dim()).unwrap().to_owned()
    }

    impl Mechanism<f64> for Sum {
        fn card(&self) -> Card {
            Card {
                streams: self.0,
                ..Card::PAIRWISE
            }
        }

        fn forward(
            &self,
            streams: &Streams<f64>,
            flat: &[f64],
            pass: &Pass,
        ) -> Result<Forward<f64>, Error> {
            let [values, scores] = weighed(streams)?;
            let (of, output) = (streams.fingerprint(flat, pass), total(&(values * scores)));
            Ok(Forward::unpenalised(of, output, ()))
        }

        fn backward(
            &self,
            streams: &Streams<f64>,
            _: &[f64],
            _: &Pass,
            _: &Forward<f64>,
            cotangent: Cotangents<f64>,
        ) -> Result<Gradients<f64>, Error> {
            let ([values, scores], g) = (weighed(streams)?, total(&cotangent.output.to_owned()));
            let of_scores = (&values * &g).sum_axis(Axis(3)).insert_axis(Axis(3));
            let all = [of_scores, g * scores];
            let streams = all.into_iter().skip(2 - self.0.len()).collect();
            Ok(Gradients::new(streams, Vec::new()))
        }
    }

    const PASS: Pass = Pass::Evaluation { seed: Seed::new(1) };
    const EMBED: usize = 4;

    fn operation(
        mechanism: Arc<dyn Mechanism<f64>>,
        sequences: usize,
        config: &MultiHeadConfig,
    ) -> MultiHeadOperation<f64> {
        let layout = config.layout(EMBED, &mechanism.card()).unwrap();
        let mask = layout.mask(Mask::none().with_key_lengths(vec![2, 3]));
        MultiHeadOperation {
            mechanism,
            layout,
            code: config.rotary.map(|rotary| Arc::new(rotary) as Code<f64>),
            mask,
            pass: PASS,
            sequences,
        }
    }

    /// Standard normal arrays of the operation's inputs; `own` is the number of the mechanism's parameters.
    fn inputs(operation: &MultiHeadOperation<f64>, own: usize) -> Vec<ArrayD<f64>> {
        let mut shapes = vec![vec![2, 3, EMBED]; operation.sequences];
        for (_, map) in operation.layout.maps() {
            shapes.push(map.to_vec());
            shapes.extend(operation.layout.bias.then(|| map[..1].to_vec()));
        }
        let layout = operation.layout;
        shapes.extend(layout.position_bias.table(layout.heads).map(Vec::from));
        shapes.extend((own > 0).then(|| vec![own]));
        let mut stream = Seed::new(2).stream("inputs");
        let array = |shape| ArrayD::from_shape_simple_fn(shape, || standard_normal(&mut stream));
        shapes.into_iter().map(array).collect()
    }

    fn views(arrays: &[ArrayD<f64>]) -> Vec<ArrayViewD<'_, f64>> {
        arrays.iter().map(|x| x.view()).collect()
    }

    /// Fails unless all gradients of an operation are those of finite differences.
    fn check(operation: &MultiHeadOperation<f64>, own: usize) {
        let inputs = inputs(operation, own);
        let (outputs, saved) = apply(operation, &views(&inputs)).unwrap();
        let mut stream = Seed::new(3).stream("cotangents");
        let mut random = |y: &ArrayD<f64>| y.mapv(|_| standard_normal(&mut stream));
        let cotangents: Vec<_> = outputs.iter().map(&mut random).collect();
        let (all, along) = (vec![true; inputs.len()], views(&cotangents));
        let found = apply_vjp(operation, &views(&inputs), &saved, &along, &all).unwrap();
        for (i, gradient) in found.into_iter().enumerate() {
            assert_gradient(&gradient.unwrap(), &inputs[i], |at| {
                let mut inputs = views(&inputs);
                inputs[i] = at;
                let (outputs, _) = apply(operation, &inputs).unwrap();
                let pairs = outputs.into_iter().zip(&cotangents);
                pairs.map(|(y, c)| (y * c).sum()).sum()
            });
        }
    }

    /// The gradients of some inputs, and what they cost, given ones for the cotangents.
    fn wanted(
        operation: &MultiHeadOperation<f64>,
        inputs: &[ArrayD<f64>],
        is_wanted: impl Fn(usize) -> bool,
    ) -> (Vec<Option<ArrayD<f64>>>, Operations) {
        let inputs = views(inputs);
        let (outputs, saved) = apply(operation, &inputs).unwrap();
        let ones: Vec<_> = outputs.iter().map(|y| ArrayD::ones(y.raw_dim())).collect();
        let wanted: Vec<bool> = (0..inputs.len()).map(is_wanted).collect();
        let pull = || apply_vjp(operation, &inputs, &saved, &views(&ones), &wanted);
        let (gradients, cost) = count(pull);
        (gradients.unwrap(), cost)
    }

    /// Each gradient is what it is among all others, and where only those of the last map are wanted, nothing but
    /// their product is computed.
    #[test]
    fn gradients_that_nobody_wants_cost_nothing() {
        let points = IkanDirect {
            points: 2,
            ..Default::default()
        };
        let config = MultiHeadConfig {
            position_bias: PositionBias::Learned { reach: 1 },
            ..config()
        };
        let operation = operation(Arc::clone(Variant::from(points).shared().get()), 2, &config);
        let own = operation.mechanism.parameters(operation.layout.size());
        let inputs = inputs(&operation, own.iter().map(ParameterSpec::count).sum());
        let (all, whole) = wanted(&operation, &inputs, |_| true);
        for (i, own) in all.iter().enumerate() {
            let (one, _) = wanted(&operation, &inputs, |j| i == j);
            for (j, gradient) in one.iter().enumerate() {
                let want = if i == j { own } else { &None };
                assert_eq!(gradient, want, "{j}, given {i}");
            }
        }
        // Two sequences, three maps before.
        let (_, cost) = wanted(&operation, &inputs, |i| [8, 9].contains(&i));
        let product = 2 * 3 * EMBED * EMBED;
        assert_eq!(cost, Operations::multiply_adds(product));
        let (_, nothing) = wanted(&operation, &inputs, |_| false);
        assert_eq!(nothing, Operations::default());
        assert!(whole.multiply_adds > 10 * cost.multiply_adds);
    }

    fn config() -> MultiHeadConfig {
        MultiHeadConfig {
            heads: 2,
            ..Default::default()
        }
    }

    #[test]
    fn a_mechanism_is_given_the_streams_that_it_asks_for() {
        use Stream::{Input, Scores, Values};
        for streams in [&[Values][..], &[Scores, Values], &[Input]] {
            let value_width = streams.contains(&Values).then_some(3);
            for (bias, value_width) in [(true, None), (false, value_width)] {
                let config = MultiHeadConfig {
                    bias,
                    value_width,
                    ..config()
                };
                check(&operation(Arc::new(Sum(streams)), 1, &config), 0);
            }
        }
    }

    #[test]
    fn gradients_are_those_of_finite_differences() {
        let points = IkanDirect {
            points: 2,
            ..Default::default()
        };
        let variants: [Variant; 2] = [crate::RbfOnly {}.into(), points.into()];
        for variant in variants {
            let partial = bochner_engine::Rotary {
                width: Some(2),
                ..Default::default()
            };
            for (sequences, bias, key_width, value_width, kv_heads, rotary) in [
                (1, true, None, None, None, None),
                (2, false, Some(3), Some(1), None, None),
                (2, true, Some(2), Some(3), Some(1), Some(Default::default())),
                (1, false, Some(3), None, Some(1), Some(partial)),
            ] {
                let config = MultiHeadConfig {
                    kv_heads,
                    bias,
                    key_width,
                    value_width,
                    rotary,
                    ..config()
                };
                let operation = operation(Arc::clone(variant.shared().get()), sequences, &config);
                let own = operation.mechanism.parameters(operation.layout.size());
                check(&operation, own.iter().map(ParameterSpec::count).sum());
            }
        }
    }

    #[test]
    fn a_learnt_position_bias_has_gradients_too() {
        let points = IkanDirect {
            points: 2,
            ..Default::default()
        };
        for (variant, sequences) in [(crate::RbfOnly {}.into(), 2), (Variant::from(points), 1)] {
            let config = MultiHeadConfig {
                causal: sequences == 1,
                window: Some([1, 2]),
                position_bias: PositionBias::Learned { reach: 1 },
                ..config()
            };
            let operation = operation(Arc::clone(variant.shared().get()), sequences, &config);
            let own = operation.mechanism.parameters(operation.layout.size());
            check(&operation, own.iter().map(ParameterSpec::count).sum());
        }
    }

    #[test]
    fn the_second_output_is_the_sum_of_the_penalties() {
        let penalised = Mikan {
            points: 2,
            prior_std: 1.0,
            // A floor that finite differences can see across.
            floor: 1e-2,
            copula: Copula::Free,
            posterior: Posterior::Unconditional,
            ..Default::default()
        };
        let operation = operation(
            Arc::clone(Variant::from(penalised).shared().get()),
            1,
            &config(),
        );
        let own = operation.mechanism.parameters(operation.layout.size());
        check(&operation, own.iter().map(ParameterSpec::count).sum());
    }

    #[test]
    fn another_number_of_streams_is_refused() {
        let mask = Mask::none();
        for variant in crate::registry() {
            let mechanism = variant.mechanism::<f64>();
            let wanted = variant.card().streams.len();
            let size = Size { heads: 2, width: 2 };
            let initial = mechanism.initial(size, &mut Seed::new(1).stream("initial values"));
            let initial = initial.unwrap();
            for given in (1..=3).filter(|&given| given != wanted) {
                let values = vec![Array4::ones((2, 2, 3, 2)); given];
                let streams = Streams::new(values.iter().map(|x| x.view()), &mask);
                match mechanism.forward(&streams, &initial, &PASS) {
                    Err(Error::StreamCount { expected, got }) => {
                        assert_eq!((expected, got), (wanted, given), "{variant:?}");
                    }
                    other => panic!("{variant:?}: {other:?}"),
                }
            }
        }
    }
}
