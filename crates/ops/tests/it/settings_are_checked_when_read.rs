//! Every settings type reads back as it was written, and refuses what its functions refuse.

use bochner_ops::{Activation, AdamConfig, Schedule, Sgd, SpikingNeuron, WeightDecay};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fmt::Debug;

fn survives<S: Serialize + DeserializeOwned + PartialEq + Debug>(settings: S) {
    let text = serde_json::to_string(&settings).unwrap();
    assert_eq!(serde_json::from_str::<S>(&text).unwrap(), settings);
}

fn refused<S: DeserializeOwned + Debug>(text: &str, start: &str) {
    let error = serde_json::from_str::<S>(text).unwrap_err().to_string();
    assert!(error.starts_with(start), "{error}");
}

#[test]
fn of_every_type() {
    survives(AdamConfig::adamw());
    refused::<AdamConfig>(r#"{"learning-rate": -1}"#, "`learning_rate` is -1");
    refused::<AdamConfig>(r#"{"betas": [0.9, 1]}"#, "`betas[1]` is 1");
    refused::<AdamConfig>(r#"{"epsilon": 0}"#, "`epsilon` is 0");
    survives(WeightDecay::L2(0.1));
    refused::<WeightDecay>(r#"{"l2": -1}"#, "`weight_decay` is -1");
    survives(Sgd::default());
    refused::<Sgd>(r#"{"momentum": 1}"#, "`momentum` is 1");
    refused::<Sgd>(r#"{"learning-rate": -1}"#, "`learning_rate` is -1");
    survives(Activation::LeakyRelu { slope: 0.2 });
    refused::<Activation>(r#"{"leaky-relu": {"slope": 1e300}}"#, "`slope` is 1e300");
    survives(SpikingNeuron::default());
    refused::<SpikingNeuron>(r#"{"decay": 7}"#, "`decay` is 7");
    refused::<SpikingNeuron>(r#"{"threshold": -1}"#, "`threshold` is -1");
    // Every schedule is a schedule.
    survives(Schedule::InverseSquareRoot { warmup: 0 });
}
