//! Promises of every trainer: a resumed run and another number of threads change no bit, and a checkpoint of another task or
//! seed is refused.

use crate::common::{assert_resumes, change, layer, message, mikan, on_threads, parameters, place};
use crate::tiny;
use crate::{graph_classifiers, node_classifiers, translators};
use bochner_attention::{Copula, Mikan, Posterior, Softmax, Variant};
use bochner_graph::{AttentionKind, FanOut, Graph, Pooling, SparseFeatures};
use bochner_models::classifier::TextClassifierConfig;
use bochner_models::datapoints::{Between, Column, Masking, NptConfig};
use bochner_models::encoder::{EncoderConfig, NormPlacement};
use bochner_models::language_model::LanguageModelConfig;
use bochner_models::next_event::{NextEventConfig, TimeSense};
use bochner_models::node_classifier::{self, Architecture, Sampling};
use bochner_models::training::{Task, Trainer, TrainingConfig};
use bochner_numerics::{Seed, standard_normal};
use ndarray::{Array2, Axis};
use std::collections::BTreeSet;
use std::num::NonZeroUsize;

/// Checks the promises for a model and the first of some tasks, no two of which are the same. Steps are of two batches, each
/// in two parts where it can be cut.
fn check<T: Task + Clone>(config: &T::Config, tasks: &[T])
where
    T::Config: Sync,
{
    let two = NonZeroUsize::new(2).unwrap();
    let batches = tasks[0].batches(&mut || Seed::new(1)).unwrap();
    let parts = tasks[0]
        .cut(&batches[0], two)
        .map_or(NonZeroUsize::MIN, |_| two);
    let fresh = |task: &T, seed| {
        let training = TrainingConfig {
            parts,
            accumulate: two,
            ..TrainingConfig::default()
        };
        Trainer::new(config, &training, task.clone(), Seed::new(seed)).unwrap()
    };
    assert_resumes(|| fresh(&tasks[0], 1));
    let run = |threads| {
        on_threads(threads, || {
            let mut trainer = fresh(&tasks[0], 1);
            let reports = [(); 2].map(|()| trainer.epoch().unwrap());
            (reports, parameters(trainer.model()))
        })
    };
    assert!(run(1) == run(3), "{}", T::MODEL);

    let hashes: BTreeSet<String> = tasks.iter().map(Task::fingerprint).collect();
    assert_eq!(hashes.len(), tasks.len(), "{}", T::MODEL);
    assert_eq!(tasks[0].clone().fingerprint(), tasks[0].fingerprint());
    let (_directory, path) = place();
    fresh(&tasks[0], 1).save(&path).unwrap();
    for (mut other, named) in [
        (fresh(&tasks[1], 1), "task is \""),
        (fresh(&tasks[0], 2), "seed is 1, here it is 2"),
    ] {
        let before = parameters(other.model());
        let said = message(other.resume(&path));
        assert!(said.contains(named), "{}: {said}", T::MODEL);
        assert_eq!(parameters(other.model()), before);
    }
}

/// Checks that a step in parts has the loss of the step and, where nothing is drawn, its gradients: examples and the
/// penalties of all parts have their share.
fn parts_are_the_batch<T: Task + Clone>(config: impl Fn(Variant) -> T::Config, task: &T) {
    let diverging = Mikan {
        points: 4,
        beta: 1e3,
        posterior: Posterior::Unconditional,
        copula: Copula::Independent,
        ..Default::default()
    };
    for (attention, draws) in [(Softmax::default().into(), false), (diverging.into(), true)] {
        let step = |parts: usize| {
            let training = TrainingConfig {
                parts: parts.try_into().unwrap(),
                clip_norm: Some(1.0),
                ..TrainingConfig::default()
            };
            let (config, seed) = (config(Variant::clone(&attention)), Seed::new(1));
            let mut model = task.model(&config, seed).unwrap();
            let mut stream = Seed::new(5).stream("parameters");
            change(&mut model, |_, values: &mut [f32]| {
                let moved = |x: &mut f32| *x += 0.3 * standard_normal::<f32>(&mut stream);
                values.iter_mut().for_each(moved);
            });
            let trainer = Trainer::from_model(&model, &config, &training, task.clone(), seed);
            trainer.unwrap().epoch().unwrap()
        };
        let [one, several] = [1, 2].map(step);
        assert!(
            !draws || one.loss > 10.0 * one.error,
            "{}: {one:?}",
            T::MODEL
        );
        let bound = if draws { 1e-2 } else { 1e-4 };
        let norms = (several.gradient_norm, one.gradient_norm);
        let pairs = [(several.loss, one.loss)].into_iter();
        for (several, one) in pairs.chain((!draws).then_some(norms)) {
            let off = (several - one).abs();
            assert!(off < bound * one, "{}: {several} and {one}", T::MODEL);
        }
    }
}

#[test]
fn steps_in_parts_are_whole_steps() {
    let still = |attention| EncoderConfig::new(2, layer(attention, NormPlacement::Pre, 0.0));
    let classifier = |attention| TextClassifierConfig::transformer(10, 2, 9, still(attention));
    parts_are_the_batch(classifier, &tiny::sentences([0, 1, 0]));
    let text = |attention| LanguageModelConfig::transformer(5, still(attention));
    parts_are_the_batch(text, &tiny::text(17));
    let events = |attention| NextEventConfig {
        kinds: 4,
        encoder: still(attention),
        time: vec![],
    };
    parts_are_the_batch(events, &tiny::events(1.0));
    let softmax = || Softmax::default().into();
    let pairs = |itself| translators::config([softmax(), itself, softmax()], 8, [12, 7]);
    parts_are_the_batch(pairs, &tiny::pairs(9));
}

/// A mechanism that draws nothing, and one that does.
fn variants() -> [Variant; 2] {
    [Softmax::default().into(), mikan()]
}

fn encoder(attention: Variant) -> EncoderConfig {
    EncoderConfig::new(2, layer(attention, NormPlacement::Pre, 0.1))
}

#[test]
fn classifiers_of_sentences() {
    let tasks = [
        tiny::sentences([0, 1, 0]),
        tiny::sentences([0, 1, 1]),
        tiny::sentences([0, 1, 0]).with_word_dropout(0.1).unwrap(),
    ];
    for attention in variants() {
        let config = TextClassifierConfig::transformer(10, 2, 9, encoder(attention));
        check(&config, &tasks);
    }
}

#[test]
fn language_models() {
    let config = LanguageModelConfig::transformer(5, encoder(Softmax::default().into()));
    check(&config, &[tiny::text(30), tiny::text(31)]);
}

#[test]
fn next_events() {
    let sense = TimeSense::Mercer {
        bases: 1,
        degree: 1,
        periods: [5.0, 30.0],
    };
    let config = NextEventConfig {
        kinds: 4,
        encoder: encoder(Softmax::default().into()),
        time: vec![sense],
    };
    check(&config, &[tiny::events(1.0), tiny::events(1.25)]);
}

#[test]
fn translators_of_tokens() {
    let tasks = [
        tiny::pairs(9),
        tiny::pairs(8),
        tiny::pairs(9).with_label_smoothing(0.1).unwrap(),
    ];
    for attention in variants() {
        let softmax = || Softmax::default().into();
        let mut config = translators::config([attention, softmax(), softmax()], 8, [12, 7]);
        config.encoder.layer.dropout = 0.1;
        config.decoder.layer.dropout = 0.1;
        check(&config, &tasks);
    }
}

#[test]
fn regressors() {
    for attention in variants() {
        let config = tiny::regressor(attention, 0.1);
        check(
            &config,
            &[tiny::rows([0, 2, 3, 5]), tiny::rows([0, 2, 3, 4])],
        );
    }
}

#[test]
fn tables() {
    let masking = || Masking {
        targets: vec![1],
        target_rate: 0.5,
        feature_rate: 0.3,
        feature_weight: 0.8,
        steps: 8,
    };
    let changes: [fn(&mut Masking); 5] = [
        |masking| masking.targets = vec![0],
        |masking| masking.target_rate = 0.4,
        |masking| masking.feature_rate = 0.2,
        |masking| masking.feature_weight = 0.7,
        |masking| masking.steps = 9,
    ];
    let mut tasks = vec![tiny::table(4.0, masking()), tiny::table(4.5, masking())];
    for change in changes {
        let mut others = masking();
        change(&mut others);
        tasks.push(tiny::table(4.0, others));
    }
    for attention in [None, Some(mikan())] {
        let blocks = [Between::Datapoints, Between::Attributes];
        let config = NptConfig {
            dropout: 0.1,
            ..tiny::npt(&[Column::Number; 2], &blocks, attention)
        };
        check(&config, &tasks);
    }
}

/// Tasks that differ from the first in one part each.
fn nodes() -> Vec<node_classifier::Task> {
    let (graph, x, labels) = tiny::ring_parts(24);
    let train = [0, 1, 12, 13];
    let made = |graph: &Graph, x: &SparseFeatures<f32>, labels: &[Option<usize>], train: [_; 4]| {
        let (graph, labels) = (graph.clone(), labels.to_vec());
        node_classifier::Task::new(graph, x.clone(), labels, 2, train.to_vec()).unwrap()
    };
    let mut edges = graph.edges();
    edges.swap(0, 1);
    let swapped = Graph::from_edges(24, edges.clone()).unwrap();
    edges[0] = (edges[0].0, (edges[0].1 + 1) % 24);
    let others = Graph::from_edges(24, edges).unwrap();
    let mut relabelled = labels.clone();
    relabelled[20] = Some(0);
    let dense = |change: fn(&mut Array2<f32>)| {
        let mut values = x.to_dense();
        change(&mut values);
        SparseFeatures::from_dense(values.view()).unwrap()
    };
    let doubled = dense(|x| *x *= 2.0);
    let moved = dense(|x| x.invert_axis(Axis(1)));
    let three = (graph.clone(), x.clone(), labels.clone(), 3, train.to_vec());
    vec![
        made(&graph, &x, &labels, train),
        made(&others, &x, &labels, train),
        made(&swapped, &x, &labels, train),
        made(&graph, &doubled, &labels, train),
        made(&graph, &moved, &labels, train),
        made(&graph, &x, &relabelled, train),
        made(&graph, &x, &labels, [0, 1, 12, 14]),
        node_classifier::Task::new(three.0, three.1, three.2, three.3, three.4).unwrap(),
    ]
}

#[test]
fn classifiers_of_nodes() {
    for name in ["classic", "direct", "mikan", "convolution"] {
        check(&node_classifiers::config(name, 0.3), &nodes());
    }
    let attributed = |x| {
        let [task, ..] = <[_; 8]>::try_from(nodes()).unwrap();
        let edges = task.graph().edge_count();
        let attributes = Array2::from_elem((edges, 1), x);
        task.with_attributes(attributes).unwrap().fingerprint()
    };
    let hashes = [attributed(1.0), attributed(2.0), nodes()[0].fingerprint()];
    assert_eq!(BTreeSet::from(hashes).len(), 3);
}

#[test]
fn classifiers_of_nodes_from_samples() {
    let sampled = |fan_out| {
        let sampling = Sampling {
            batch: 2.try_into().unwrap(),
            fan_outs: vec![fan_out; 2],
        };
        nodes()[0].clone().sampled(sampling)
    };
    let tasks = [FanOut::AtMost(2), FanOut::AtMost(3), FanOut::All].map(sampled);
    check(&node_classifiers::config("direct", 0.3), &tasks);
}

#[test]
fn classifiers_of_graphs() {
    let attention = Architecture::attention(AttentionKind::Classic);
    let config = graph_classifiers::config(attention, Pooling::Mean);
    check(&config, &[8, 4].map(graph_classifiers::task));
}
