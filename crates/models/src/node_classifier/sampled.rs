//! Graphs that are too large to be classified at once.

use super::{Classified, NodeClassifier, Task};
use crate::Error;
use crate::training::device_error;
use bochner_graph::{
    AttributedGraph, FanOut, Features, GraphAttention, LayerError, NeighbourSampler, Neighbourhood,
    Nodes, SparseFeatures,
};
use bochner_nn::Element;
use bochner_numerics::{Seed, argument};
use bochner_ops::Mode;
use dfdx::tensor::{Cpu, Merge, PutTape, SplitTape, Tape};
use ndarray::{Array2, ArrayView2, Axis, s};
use serde::{Deserialize, Serialize};
use std::num::NonZeroUsize;

/// Neighbourhood sampling for large graphs. A step reads some training nodes, some of the nodes that they attend to,
/// some of the nodes that these attend to, and so on, a layer at a time.
///
/// # Reference
/// Hamilton, Ying and Leskovec 2017, *Inductive representation learning on large graphs*.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Sampling {
    /// Training nodes of a step.
    pub batch: NonZeroUsize,
    /// The edges that are kept into a node, in each layer from the first on.
    #[serde(alias = "fan_outs")]
    pub fan_outs: Vec<FanOut>,
}

impl<E: Element> NodeClassifier<E> {
    /// Returns the logits of the targets of the last neighbourhood, `[n, classes]`, and the layers' penalties, given
    /// a neighbourhood for each layer, and the attributes of the edges and the features of the whole graph. Requires
    /// attention.
    ///
    /// With [`FanOut::All`] and without dropout, the logits equal those of [`apply`](Self::apply), except with
    /// mechanisms that infer their spectral points from the nodes: those see the nodes of the sample.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for convolution, whose weights are those of the whole graph; [`Error::Argument`] unless
    /// there is a neighbourhood for each layer; the errors of [`apply`](Self::apply).
    pub fn apply_sampled<T: Tape<E, Cpu> + Merge<T>>(
        &self,
        neighbourhoods: &[Neighbourhood],
        attributes: Option<ArrayView2<E>>,
        features: &SparseFeatures<E>,
        tape: T,
        mode: Mode,
    ) -> Result<Classified<E, T>, Error> {
        let layers = self.attention_layers()?;
        argument::shape("neighbourhoods", &[layers.len()], &[neighbourhoods.len()])?;
        let mode_of = |layer| mode.child(&super::name(layer));
        let mut pairs = layers.iter().zip(neighbourhoods);
        let (first, near) = pairs.next().expect("at least one layer");
        let [targets, sources] = ends(near, features)?;
        let (nodes, own) = (apart(&targets, &sources), attributes_of(near, attributes));
        let mut last = first.apply_features(attributed(near, &own), nodes, tape, mode_of(0))?;
        for (layer, (attention, near)) in (1..).zip(pairs) {
            let (sources, tape) = last.output.split_tape();
            let targets = sources.clone().put_tape(T::default());
            let targets = targets
                .try_slice((..near.targets().len(), ..))
                .map_err(device_error)?;
            let sources = sources.put_tape(tape);
            let own = attributes_of(near, attributes);
            let graph = attributed(near, &own);
            let next = attention.apply_bipartite(graph, targets, sources, mode_of(layer))?;
            last = super::with_penalty(next, last.penalty)?;
        }
        Ok(last)
    }

    /// The logits of all nodes in evaluation, `[N, classes]`: those of [`infer`](Self::infer), a layer
    /// after the other, some targets at a time with all that they attend to. Memory is that of the
    /// nodes' hidden features and of a block.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for convolution, and for mechanisms that draw spectral points given all
    /// nodes; the errors of [`apply`](Self::apply).
    pub fn infer_in_blocks<'g>(
        &self,
        graph: impl Into<AttributedGraph<'g, E>>,
        features: &SparseFeatures<E>,
        block: NonZeroUsize,
    ) -> Result<Array2<E>, Error> {
        let (layers, graph) = (self.attention_layers()?, graph.into());
        let (first, others) = layers.split_first().expect("at least one layer");
        let mut hidden = in_blocks(first, graph, block, |near, graph| {
            let [targets, sources] = ends(near, features)?;
            first.infer(graph, apart(&targets, &sources))
        })?;
        for layer in others {
            hidden = in_blocks(layer, graph, block, |near, graph| {
                let sources = hidden.select(Axis(0), &near.nodes);
                let targets = sources.slice(s![..near.targets().len(), ..]);
                let nodes = Nodes::Apart {
                    targets: Features::Dense(targets),
                    sources: Features::Dense(sources.view()),
                };
                layer.infer(graph, nodes)
            })?;
        }
        Ok(hidden)
    }

    fn attention_layers(&self) -> Result<&[GraphAttention<E>], Error> {
        self.attention().ok_or(Error::Unsupported {
            what: "graph convolution on parts of a graph",
            instead: "attention, or the whole graph",
        })
    }
}

/// The attributes of the edges of a neighbourhood, from those of the whole graph.
fn attributes_of<E: Element>(
    near: &Neighbourhood,
    attributes: Option<ArrayView2<E>>,
) -> Option<Array2<E>> {
    attributes.map(|attributes| attributes.select(Axis(0), &near.edges))
}

fn attributed<'a, E>(
    near: &'a Neighbourhood,
    attributes: &'a Option<Array2<E>>,
) -> AttributedGraph<'a, E> {
    AttributedGraph {
        graph: &near.graph,
        attributes: attributes.as_ref().map(|attributes| attributes.view()),
    }
}

/// The output of a layer for all nodes, computed for a block of targets at a time.
fn in_blocks<E: Element>(
    layer: &GraphAttention<E>,
    AttributedGraph { graph, attributes }: AttributedGraph<E>,
    block: NonZeroUsize,
    f: impl Fn(&Neighbourhood, AttributedGraph<E>) -> Result<Array2<E>, LayerError>,
) -> Result<Array2<E>, Error> {
    if layer.config().infers_points() {
        return Err(Error::Unsupported {
            what: "inference in blocks with spectral points drawn given all nodes",
            instead: "the whole graph, ikan-direct, or an unconditional posterior",
        });
    }
    let mut sampler = NeighbourSampler::new(graph).map_err(LayerError::from)?;
    let mut all = Array2::zeros((graph.targets(), layer.config().outputs()));
    let nodes: Vec<usize> = (0..graph.targets()).collect();
    let rows = all.axis_chunks_iter_mut(Axis(0), block.get());
    for (targets, mut rows) in nodes.chunks(block.get()).zip(rows) {
        // Nothing is drawn.
        let layers = sampler.sample(targets, &[FanOut::All], Seed::new(0));
        let near = &layers.map_err(LayerError::from)?[0];
        let own = attributes_of(near, attributes);
        rows.assign(&f(near, attributed(near, &own))?);
    }
    Ok(all)
}

/// The features of a neighbourhood's targets and sources.
fn ends<E: Element>(
    neighbourhood: &Neighbourhood,
    features: &SparseFeatures<E>,
) -> Result<[SparseFeatures<E>; 2], LayerError> {
    let targets = features.select(neighbourhood.targets())?;
    Ok([targets, features.select(&neighbourhood.nodes)?])
}

fn apart<'a, E: Element>(
    targets: &'a SparseFeatures<E>,
    sources: &'a SparseFeatures<E>,
) -> Nodes<'a, E> {
    Nodes::Apart {
        targets: Features::Sparse(targets),
        sources: Features::Sparse(sources),
    }
}

impl Task {
    /// A sample of the graph around some nodes, in which they are the first.
    pub(super) fn neighbourhoods(
        &self,
        targets: &[usize],
        seed: Seed,
    ) -> Result<Vec<Neighbourhood>, Error> {
        let sampling = self.sampling().expect("a task that is sampled");
        let mut sampler = NeighbourSampler::new(self.graph()).map_err(LayerError::from)?;
        let drawn = sampler.sample(targets, &sampling.fan_outs, seed);
        Ok(drawn.map_err(LayerError::from)?)
    }
}

#[cfg(test)]
mod tests {
    use super::super::task::tests::rings;
    use super::super::trainer::Trainer;
    use super::super::trainer::tests::{config, learning, trainer_with};
    use super::*;
    use crate::assessment::array;
    use crate::training::{TrainingConfig, of_seed};
    use dfdx::tensor::NoneTape;

    const ATTENTION: [&str; 3] = ["classic", "direct", "mikan"];

    fn number(n: usize) -> NonZeroUsize {
        NonZeroUsize::new(n).unwrap()
    }

    fn trained(name: &str) -> Trainer {
        let mut trainer = trainer_with(name, 0.0, 0.0);
        for _ in 0..5 {
            trainer.epoch().unwrap();
        }
        trainer
    }

    fn close(a: &Array2<f32>, b: &Array2<f32>) -> bool {
        a.dim() == b.dim() && a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-5)
    }

    #[test]
    fn a_whole_neighbourhood_says_what_the_whole_graph_does() {
        for name in ["classic", "direct", "unconditional"] {
            let trainer = trained(name);
            let (graph, features) = (trainer.task().graph(), trainer.task().features());
            let whole = trainer.predict().unwrap();
            let targets = [20, 3, 7];
            let mut sampler = NeighbourSampler::new(graph).unwrap();
            let sample = |fan_outs: [FanOut; 2], sampler: &mut NeighbourSampler| {
                let drawn = sampler.sample(&targets, &fan_outs, Seed::new(1)).unwrap();
                let (model, mode) = (trainer.model(), Mode::Evaluation);
                let seen = model.apply_sampled(&drawn, None, features, NoneTape, mode);
                array(&seen.unwrap().output)
            };
            let all = sample([FanOut::All; 2], &mut sampler);
            assert!(close(&all, &whole.select(Axis(0), &targets)), "{name}");
            let some = sample([FanOut::All, FanOut::AtMost(1)], &mut sampler);
            assert!(!close(&some, &all), "{name}");
        }
    }

    #[test]
    fn blocks_change_nothing() {
        for name in ["classic", "direct"] {
            let trainer = trained(name);
            let (graph, features) = (trainer.task().graph(), trainer.task().features());
            let whole = trainer.predict().unwrap();
            for block in [1, 5, 24, 100] {
                let found = trainer
                    .model()
                    .infer_in_blocks(graph, features, number(block));
                assert!(close(&found.unwrap(), &whole), "{name}, {block}");
            }
        }
    }

    #[test]
    fn what_depends_on_the_whole_graph_is_refused_on_parts_of_it() {
        let unsupported = |result| matches!(result, Err(Error::Unsupported { .. }));
        for name in ["mikan", "convolution"] {
            let trainer = trainer_with(name, 0.0, 0.0);
            let (graph, features) = (trainer.task().graph(), trainer.task().features());
            let found = trainer.model().infer_in_blocks(graph, features, number(9));
            assert!(unsupported(found), "{name}");
        }
        let task = rings(24).sampled(sampling(2));
        let mut trainer = learning("convolution", [0.0, 0.0, 0.02], task);
        assert!(unsupported(trainer.epoch().map(|_| Array2::zeros((0, 0)))));
        assert!(trainer.predict().is_ok());
    }

    fn sampling(batch: usize) -> Sampling {
        Sampling {
            batch: number(batch),
            fan_outs: vec![FanOut::AtMost(2); 2],
        }
    }

    #[test]
    fn samples_teach_what_the_whole_graph_does() {
        for name in ATTENTION {
            let task = rings(24).sampled(sampling(3));
            let mut trainer = learning(name, [0.2, 0.0, 0.02], task);
            let first = trainer.epoch().unwrap();
            assert_eq!(trainer.steps_done(), 2);
            let parts = first.error + first.penalty / 4.0;
            assert!(
                (first.loss - parts).abs() < 1e-5 * parts,
                "{name}: {first:?}"
            );
            for _ in 0..60 {
                trainer.epoch().unwrap();
            }
            let others: Vec<usize> = (0..24).filter(|node| *node != 3).collect();
            let logits = trainer.predict().unwrap();
            let seen = trainer.task().assess(logits.view(), &others).unwrap();
            assert!(seen.error < 0.2, "{name}: {seen:?}");
            assert!(seen.cross_entropy < 0.9 * first.error, "{name}");
        }
    }

    /// The four training nodes share their samples' divergences out, whatever the number of batches in a step.
    #[test]
    fn divergences_of_accumulated_samples_are_summed() {
        let training = TrainingConfig {
            accumulate: number(4),
            ..TrainingConfig::default()
        };
        let task = rings(24).sampled(sampling(1));
        let config = config("mikan", 0.0);
        let mut trainer = Trainer::new(&config, &training, task, Seed::new(5)).unwrap();
        let report = trainer.epoch().unwrap();
        assert_eq!(trainer.steps_done(), 1);
        let parts = report.error + report.penalty;
        assert!((report.loss - parts).abs() < 1e-5 * parts, "{report:?}");
        assert!(report.penalty > 1e-3 * parts, "{report:?}");
    }

    #[test]
    fn the_means_are_over_nodes_and_all_of_them_are_seen() {
        let full = Sampling {
            batch: number(3),
            fan_outs: vec![FanOut::All; 2],
        };
        // No step is so large that the second batch would tell from the logits before the first.
        let seen = |task| learning("classic", [0.0, 0.0, f64::MIN_POSITIVE], task).epoch();
        let sampled = seen(rings(24).sampled(full)).unwrap();
        let whole = seen(rings(24)).unwrap();
        assert!((sampled.error - whole.error).abs() < 1e-6);
        assert!((sampled.loss - whole.loss).abs() < 1e-6);
    }

    #[test]
    fn training_nodes_come_in_random_order() {
        let after = |seed| {
            let one_by_one = Sampling {
                batch: number(1),
                fan_outs: vec![FanOut::All; 2],
            };
            let task = rings(24).sampled(one_by_one);
            let mut trainer = learning("classic", [0.0, 0.0, 0.02], task);
            trainer.descent = of_seed(seed, 0.01);
            trainer.epoch().unwrap();
            trainer.predict().unwrap()
        };
        let first = after(0);
        assert!((1..6).any(|seed| after(seed) != first));
    }

    #[test]
    fn runs_repeat_to_the_bit() {
        let run = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads);
            pool.build().unwrap().install(|| {
                let task = rings(24).sampled(sampling(2));
                let mut trainer = learning("direct", [0.3, 5e-4, 0.02], task);
                for _ in 0..4 {
                    trainer.epoch().unwrap();
                }
                trainer.predict().unwrap()
            })
        };
        assert_eq!(run(1), run(3));
    }
}
