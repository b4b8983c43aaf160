//! Samples of neighbours and blocks of nodes.

use super::*;
use bochner_graph::NeighbourSampler;
use bochner_models::Error;
use bochner_models::node_classifier::Batch;
use bochner_models::training::Task as _;

fn some() -> Vec<FanOut> {
    vec![FanOut::AtMost(2); 2]
}

#[test]
fn a_whole_neighbourhood_says_what_the_whole_graph_does() {
    for name in ["classic", "direct", "unconditional"] {
        let mut trainer = learning(name, [0.0, 0.0, 0.02], rings(24));
        for _ in 0..5 {
            trainer.epoch().unwrap();
        }
        let (graph, features) = (trainer.task().graph(), trainer.task().features());
        let whole = trainer.predict().unwrap();
        let targets = [20, 3, 7];
        let mut sampler = NeighbourSampler::new(graph).unwrap();
        let mut sample = |fan_outs: [FanOut; 2]| {
            let drawn = sampler.sample(&targets, &fan_outs, Seed::new(1)).unwrap();
            let (model, mode) = (trainer.model(), Mode::Evaluation);
            let seen = model.apply_sampled(&drawn, None, features, NoneTape, mode);
            Array2::from_shape_vec((3, 2), seen.unwrap().output.as_vec()).unwrap()
        };
        let all = sample([FanOut::All; 2]);
        assert!(close(&all, &whole.select(Axis(0), &targets)), "{name}");
        let some = sample([FanOut::All, FanOut::AtMost(1)]);
        assert!(!close(&some, &all), "{name}");
    }
}

#[test]
fn what_depends_on_the_whole_graph_is_refused_on_parts_of_it() {
    for name in ["mikan", "convolution"] {
        let trainer = learning(name, [0.0, 0.0, 0.02], rings(24));
        let (graph, features) = (trainer.task().graph(), trainer.task().features());
        let found = trainer.model().infer_in_blocks(graph, features, number(9));
        assert!(matches!(found, Err(Error::Unsupported { .. })), "{name}");
    }
    let task = rings(24).sampled(sampling(2, some()));
    let mut trainer = learning("convolution", [0.0, 0.0, 0.02], task);
    let refused = trainer.epoch();
    assert!(matches!(refused, Err(Error::Unsupported { .. })));
    assert!(trainer.predict().is_ok());
}

#[test]
fn samples_teach_what_the_whole_graph_does() {
    for name in ["classic", "direct", "mikan"] {
        let task = rings(24).sampled(sampling(3, some()));
        let mut trainer = learning(name, [0.2, 0.0, 0.02], task);
        let first = trainer.epoch().unwrap();
        assert_eq!(trainer.steps_done(), 2);
        let parts = first.error + first.penalty / 4.0;
        let off = (first.loss - parts).abs();
        assert!(off < 1e-5 * parts, "{name}: {first:?}");
        for _ in 0..60 {
            trainer.epoch().unwrap();
        }
        let logits = trainer.predict().unwrap();
        let seen = trainer.task().assess(logits.view(), &labelled()).unwrap();
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
    let task = rings(24).sampled(sampling(1, some()));
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
    // No step is so large that the second batch would tell from the logits before the first.
    let seen = |task| learning("classic", [0.0, 0.0, f64::MIN_POSITIVE], task).epoch();
    let sampled = seen(rings(24).sampled(sampling(3, vec![FanOut::All; 2]))).unwrap();
    let whole = seen(rings(24)).unwrap();
    assert!((sampled.error - whole.error).abs() < 1e-6);
    assert!((sampled.loss - whole.loss).abs() < 1e-6);
}

#[test]
fn training_nodes_come_once_and_in_random_order() {
    let task = rings(24).sampled(sampling(3, some()));
    let order = |seed| {
        let batches = task.batches(&mut || Seed::new(seed)).unwrap();
        let nodes = batches.into_iter().flat_map(|batch| match batch {
            Batch::Sampled(nodes) => nodes,
            Batch::Whole => panic!("a batch of all nodes"),
        });
        nodes.map(|(node, _)| node).collect::<Vec<_>>()
    };
    let orders: Vec<_> = (0..6).map(order).collect();
    assert!(orders.iter().any(|other| *other != orders[0]));
    for mut order in orders {
        order.sort_unstable();
        assert_eq!(order, [0, 1, 12, 13]);
    }
}
