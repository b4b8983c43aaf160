//! Every way in which a file can be wrong has its own error, and leaves the model as it was.

use bochner_nn::{Adam, Checkpoint, CheckpointError, Integrity, Linear, Parameters, Progress};
use bochner_numerics::Seed;
use bochner_ops::AdamConfig;
use dfdx::prelude::*;
use std::path::{Path, PathBuf};

type Layer = Linear<usize, usize, f32>;

fn layer(inputs: usize, outputs: usize) -> Layer {
    let mut rng = Seed::new(1).stream("initial values");
    Linear::try_new(&Cpu::default(), inputs, outputs, &mut rng).unwrap()
}

fn saved(directory: &Path) -> PathBuf {
    let path = directory.join("model.safetensors");
    let mut model = layer(3, 2);
    let mut adam = Adam::new(AdamConfig::default()).unwrap();
    adam.step(&mut model, &mut Gradients::leaky()).unwrap();
    let checkpoint = Checkpoint::of("model", &model).with_adam(&adam);
    checkpoint.write(&path).unwrap();
    path
}

fn read(path: &Path) -> CheckpointError {
    Checkpoint::<f32>::read(path).unwrap_err()
}

#[test]
fn a_file_cut_off_anywhere_is_truncated() {
    let directory = tempfile::tempdir().unwrap();
    let path = saved(directory.path());
    let bytes = std::fs::read(&path).unwrap();
    for length in [0, 5, 8, 100, bytes.len() / 2, bytes.len() - 1] {
        std::fs::write(&path, &bytes[..length]).unwrap();
        let error = read(&path);
        let CheckpointError::Truncated { expected, got, .. } = error else {
            panic!("{length}: {error}");
        };
        assert_eq!(got, length as u64);
        assert!(expected > got);
    }
}

#[test]
fn other_files_are_no_checkpoints() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("file");
    let foreign = |error| matches!(error, CheckpointError::NotACheckpoint { .. });
    std::fs::write(&path, "Not a checkpoint at all, but text.").unwrap();
    assert!(foreign(read(&path)));
    // A safetensors file of somebody else.
    std::fs::write(&path, b"\x02\0\0\0\0\0\0\0{}").unwrap();
    assert!(foreign(read(&path)));
    let missing = read(&directory.path().join("missing"));
    assert!(matches!(missing, CheckpointError::Io { doing: "read", .. }));
    assert!(!missing.to_string().contains("free space"));
}

#[test]
fn other_versions_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = saved(directory.path());
    let mut bytes = std::fs::read(&path).unwrap();
    let key = br#"\"version\":1"#;
    let at = bytes.windows(key.len()).position(|w| w == key).unwrap();
    bytes[at + key.len() - 1] = b'7';
    std::fs::write(&path, &bytes).unwrap();
    assert!(matches!(
        read(&path),
        CheckpointError::OtherVersion {
            expected: 1,
            got: 7,
            ..
        }
    ));
}

#[test]
fn other_types_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let error = Checkpoint::<f64>::read(saved(directory.path())).unwrap_err();
    assert!(
        matches!(error, CheckpointError::OtherType { expected: "f64", ref got, .. } if got == "f32")
    );
}

/// Restoring fails, says why, and changes nothing.
fn refused<M: Parameters<f32>>(description: &str, mut model: M) -> CheckpointError {
    let directory = tempfile::tempdir().unwrap();
    let checkpoint = Checkpoint::<f32>::read(saved(directory.path())).unwrap();
    let before = Checkpoint::of("", &model);
    let error = checkpoint.restore(description, &mut model).unwrap_err();
    assert!(before == Checkpoint::of("", &model));
    error
}

#[test]
fn other_models_are_refused_untouched() {
    let error = refused("another", layer(3, 2));
    assert!(matches!(error, CheckpointError::OtherDescription { .. }));

    assert!(error.to_string().contains("build the same model"));

    let error = refused("model", layer(3, 5));
    let CheckpointError::OtherShape {
        name,
        expected,
        got,
    } = error
    else {
        panic!("{error}");
    };
    assert_eq!((&*name, expected, got), ("weight", vec![5, 3], vec![2, 3]));

    let error = refused("model", vec![layer(3, 2)]);
    assert!(matches!(error, CheckpointError::MissingParameter { name } if name == "0.weight"));

    let error = refused("model", None::<Layer>);
    assert!(matches!(error, CheckpointError::UnknownParameter { name } if name == "bias"));
}

#[test]
fn a_second_model_in_a_checkpoint_is_called_one() {
    let restored = |names: &[&'static str]| {
        let all = names.iter().map(|&name| (name, layer(3, 2))).collect();
        let mut alone = Named(vec![("a", layer(3, 2)), ("b", layer(3, 2))]);
        Checkpoint::of("", &Named(all)).restore("", &mut alone)
    };
    assert!(restored(&["a", "b"]).is_ok());
    let error = restored(&["a", "b", "best.a", "best.b"]).unwrap_err();
    assert!(error.to_string().contains("`best.`"), "{error}");
    assert!(matches!(error, CheckpointError::SecondModel { prefix } if prefix == "best"));
    for others in [["a", "b", "best.a", "c"], ["a", "b", "best.a", "other.b"]] {
        let error = restored(&others).unwrap_err();
        assert!(
            matches!(&error, CheckpointError::UnknownParameter { name } if name == "best.a.bias"),
            "{error}"
        );
    }
    let error = restored(&["a", "b", "best.a"]).unwrap_err();
    assert!(matches!(error, CheckpointError::UnknownParameter { .. }));
    // The second layer of a stack is no second model.
    let mut one = Named(vec![("0", layer(3, 2))]);
    let error = Checkpoint::of("", &Named(vec![("0", layer(3, 2)), ("1", layer(3, 2))]));
    let error = error.restore("", &mut one).unwrap_err();
    assert!(matches!(error, CheckpointError::UnknownParameter { name } if name == "1.bias"));
}

#[test]
fn two_models_of_one_file_are_told_apart() {
    let names = ["a", "b", "best.a", "best.b", "bester.a"];
    let mut rng = Seed::new(3).stream("initial values");
    let mut other = || Linear::try_new(&Cpu::default(), 3, 2, &mut rng).unwrap();
    let both = Named(names.map(|name| (name, other())).to_vec());
    let progress = Progress {
        step: 7,
        streams: [("data".to_string(), Seed::new(5).stream("data").state())].into(),
        extra: serde_json::json!({"epoch": 3}),
    };
    let saved = Checkpoint::of("run", &both).with_progress(progress.clone());
    let [own, best] = saved.split("best");
    assert_eq!([own.progress(), best.progress()], [&progress; 2]);
    let restored = |from: &Checkpoint<f32>, names: &[&'static str]| {
        let mut model = Named(names.iter().map(|&name| (name, layer(3, 2))).collect());
        from.restore("run", &mut model).unwrap();
        let weights = model.0.iter().map(|(_, layer)| layer.weight.as_vec());
        weights.collect::<Vec<_>>()
    };
    let weight = |at: usize| both.0[at].1.weight.as_vec();
    assert_eq!(restored(&best, &["a", "b"]), [weight(2), weight(3)]);
    assert_eq!(
        restored(&own, &["a", "b", "bester.a"]),
        [0, 1, 4].map(weight)
    );
}

#[test]
fn the_first_difference_of_two_descriptions_is_named() {
    let message = |expected: &str, got: &str| {
        let checkpoint = Checkpoint::of(got, &layer(1, 1));
        let refused = checkpoint.restore(expected, &mut layer(1, 1));
        refused.unwrap_err().to_string()
    };
    let run = |rate: f64, seed: u64| {
        format!(r#"{{"model":"linear","training":{{"clip":1,"rate":{rate}}},"seed":{seed}}}"#)
    };
    let of_seed = message(&run(0.5, 1), &run(0.5, 2));
    assert!(of_seed.starts_with("in the checkpoint seed is 2, here it is 1;"));
    let of_rate = message(&run(0.5, 1), &run(0.25, 1));
    assert!(of_rate.starts_with("in the checkpoint training.rate is 0.25, here it is 0.5;"));
    let of_less = message(&run(0.5, 1), r#"{"model":"linear"}"#);
    assert!(of_less.starts_with("in the checkpoint seed is absent, here it is 1;"));
    let of_more = message(r#"{"model":"linear"}"#, r#"{"model":"linear","bias":true}"#);
    assert!(of_more.starts_with("in the checkpoint bias is true, here it is absent;"));
}

#[test]
fn a_place_that_cannot_be_written_is_an_error_and_leaves_nothing_behind() {
    let directory = tempfile::tempdir().unwrap();
    let checkpoint = Checkpoint::of("model", &layer(3, 2));
    let nowhere = directory.path().join("missing").join("file");
    let error = checkpoint.write(&nowhere).unwrap_err();
    assert!(matches!(error, CheckpointError::Io { doing: "write", .. }));
    assert!(error.to_string().contains("free space"));
    assert!(error.to_string().contains("missing"), "{error}");

    // The name is taken by a directory: the new file is complete, but cannot take its place.
    let taken = directory.path().join("taken");
    std::fs::create_dir_all(taken.join("inside")).unwrap();
    assert!(checkpoint.write(&taken).is_err());
    let left: Vec<_> = std::fs::read_dir(directory.path()).unwrap().collect();
    assert_eq!(left.len(), 1);

    // The file beside it, which the new bytes go to first, cannot be made: the old one stays.
    let path = saved(directory.path());
    let before = std::fs::read(&path).unwrap();
    let partial = format!("model.safetensors.{}.partial", std::process::id());
    std::fs::create_dir(path.with_file_name(partial)).unwrap();
    assert!(checkpoint.write(&path).is_err());
    assert_eq!(std::fs::read(&path).unwrap(), before);
}

#[test]
fn names_that_clash_are_refused() {
    let twice = [("a", layer(1, 1)), ("a", layer(1, 1))];
    let path = Path::new("never written");
    let error = Checkpoint::of("", &Named(twice.into()))
        .write(path)
        .unwrap_err();
    assert!(matches!(error, CheckpointError::UnusableName { .. }));
    let reserved = [("optimizer", layer(1, 1))];
    let error = Checkpoint::of("", &Named(reserved.into()))
        .write(path)
        .unwrap_err();
    assert!(matches!(error, CheckpointError::UnusableName { .. }));
    assert!(!path.exists());
}

struct Named(Vec<(&'static str, Layer)>);

impl Parameters<f32> for Named {
    fn for_each(&self, _: &str, f: &mut dyn FnMut(&str, &dyn bochner_nn::Parameter<f32>)) {
        self.0
            .iter()
            .for_each(|(name, layer)| layer.for_each(name, f));
    }

    fn for_each_mut(
        &mut self,
        _: &str,
        f: &mut dyn FnMut(&str, &mut dyn bochner_nn::ParameterMut<f32>),
    ) {
        self.0
            .iter_mut()
            .for_each(|(name, layer)| layer.for_each_mut(name, f));
    }
}

/// The file without its checksum, as older versions wrote it.
fn without_checksum(bytes: &[u8]) -> Vec<u8> {
    let start = 8 + u64::from_le_bytes(*bytes.first_chunk().unwrap()) as usize;
    let header = String::from_utf8(bytes[8..start].to_vec()).unwrap();
    let (before, after) = header.split_once(r#"\"checksum\":\""#).unwrap();
    // The digits, the quote that ends them and the comma behind it; blanks keep the length.
    let cut = format!("{before}{}", &after[16 + 3..]);
    let padded = format!("{cut:len$}", len = header.len());
    [&bytes[..8], padded.as_bytes(), &bytes[start..]].concat()
}

#[test]
fn every_flipped_bit_of_the_data_is_noticed() {
    let directory = tempfile::tempdir().unwrap();
    let path = saved(directory.path());
    let checkpoint = Checkpoint::<f32>::read(&path).unwrap();
    assert_eq!(checkpoint.integrity(), Integrity::Verified);
    let bytes = std::fs::read(&path).unwrap();
    let data = 8 + u64::from_le_bytes(*bytes.first_chunk().unwrap()) as usize;
    assert!(bytes.len() - data > 90);
    for at in (data..bytes.len()).step_by(5) {
        let mut damaged = bytes.clone();
        damaged[at] ^= 1 << (at % 8);
        std::fs::write(&path, &damaged).unwrap();
        let error = read(&path);
        assert!(matches!(error, CheckpointError::Damaged { .. }), "{error}");
    }
    // In the header too, where a flip in the key of the checksum must not make the file an older one.
    for at in 0..data {
        let mut damaged = bytes.clone();
        damaged[at] ^= 1 << (at % 7);
        std::fs::write(&path, &damaged).unwrap();
        assert!(Checkpoint::<f32>::read(&path).is_err(), "byte {at}");
    }
    std::fs::write(&path, without_checksum(&bytes)).unwrap();
    let old = Checkpoint::<f32>::read(&path).unwrap();
    assert_eq!(old.integrity(), Integrity::Unverified);
    old.restore("model", &mut layer(3, 2)).unwrap();
}

#[test]
fn tensors_are_those_that_the_header_announces() {
    let directory = tempfile::tempdir().unwrap();
    let path = saved(directory.path());
    let bytes = without_checksum(&std::fs::read(&path).unwrap());
    let list = br#"\"weight\",\"bias\"]"#;
    let at = bytes.windows(list.len()).position(|w| w == list).unwrap();
    // A parameter less, and another name; blanks keep the length.
    let less = format!(r#"{:len$}"#, r#"\"weight\"]"#, len = list.len());
    let other = r#"\"weight\",\"mass\"]"#.to_owned();
    for (announced, message) in [
        (less, "the tensor bias is not announced"),
        (other, "the tensor mass is announced but missing"),
    ] {
        let mut damaged = bytes.clone();
        damaged[at..at + list.len()].copy_from_slice(announced.as_bytes());
        std::fs::write(&path, &damaged).unwrap();
        let error = read(&path);
        assert!(
            matches!(error, CheckpointError::NotACheckpoint { .. }),
            "{error}"
        );
        assert!(error.to_string().contains(message), "{error}");
    }
}

#[test]
fn values_that_no_training_comes_to_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = saved(directory.path());
    let bytes = without_checksum(&std::fs::read(&path).unwrap());
    let start = 8 + u64::from_le_bytes(*bytes.first_chunk().unwrap()) as usize;
    let first_of = |name: &str| {
        let header: serde_json::Value = serde_json::from_slice(&bytes[8..start]).unwrap();
        start + header[name]["data_offsets"][0].as_u64().unwrap() as usize
    };
    let finite = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY];
    for (name, message, wrong) in [
        ("weight", "`weight` is ", &finite[..]),
        ("optimizer.m.bias", "`first moment of bias` is ", &finite),
        ("optimizer.v.bias", "`second moment of bias` is ", &finite),
        ("optimizer.v.bias", "`second moment of bias` is -1", &[-1.0]),
    ] {
        for value in wrong {
            let (mut damaged, at) = (bytes.clone(), first_of(name));
            damaged[at..at + 4].copy_from_slice(&value.to_le_bytes());
            std::fs::write(&path, &damaged).unwrap();
            let error = read(&path);
            assert!(matches!(error, CheckpointError::Impossible(_)), "{error}");
            assert!(error.to_string().contains(message), "{error}");
        }
    }
    let mut diverged = layer(3, 2);
    diverged.bias.copy_from(&[0.0, f32::NAN]);
    let checkpoint = Checkpoint::of("model", &diverged);
    let restored = checkpoint.restore("model", &mut layer(3, 2));
    for refused in [restored, checkpoint.write(&path)] {
        assert!(matches!(refused, Err(CheckpointError::Impossible(_))));
    }
}

/// A safetensors tensor of other elements than its shape says would be a panic.
#[test]
fn moments_of_another_model_are_refused_when_written() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("model.safetensors");
    let mut other = layer(4, 2);
    let mut adam = Adam::new(AdamConfig::default()).unwrap();
    adam.step(&mut other, &mut Gradients::leaky()).unwrap();
    let error = Checkpoint::of("model", &layer(3, 2))
        .with_adam(&adam)
        .write(&path);
    let error = error.unwrap_err();
    assert!(matches!(error, CheckpointError::Impossible(_)), "{error}");
    assert!(error.to_string().contains("moment of weight"), "{error}");
    assert!(!path.exists());
}
