use bochner_attention::{
    Copula, IkanDirect, Mask, Mikan, MultiHead, MultiHeadConfig, Pass, Performer, Softmax,
    StaticConfig, card::Penalty, mechanism::Redraw,
};
use bochner_nn::{Checkpoint, CheckpointError};
use bochner_numerics::Seed;
use dfdx::nn::{LoadFromSafetensors, SaveToSafetensors};
use dfdx::optim::{Sgd, SgdConfig};
use dfdx::prelude::*;

const EMBED: usize = 6;

macro_rules! settings {
    ($name:ident, $variant:expr) => {
        #[derive(Clone, Debug)]
        struct $name;

        impl StaticConfig for $name {
            fn config() -> MultiHeadConfig {
                MultiHeadConfig {
                    heads: 2,
                    variant: $variant.into(),
                    dropout: 0.1,
                    seed: Seed::new(17),
                    bias: stringify!($name) != "Unbiased",
                    ..Default::default()
                }
            }
        }
    };
}

settings!(Plain, Softmax::default());
settings!(Unbiased, Softmax::default());
settings!(
    Direct,
    IkanDirect {
        p: 1.5,
        points: 2,
        ..Default::default()
    }
);
settings!(
    Latent,
    Mikan {
        points: 2,
        copula: Copula::Free,
        ..Default::default()
    }
);

type PlainLayer = MultiHead<Const<EMBED>, f32, Cpu, Const<0>, Plain>;
type UnbiasedLayer = MultiHead<Const<EMBED>, f32, Cpu, Const<0>, Unbiased>;
/// Two sets of two heads, two points, three numbers.
type DirectLayer = MultiHead<Const<EMBED>, f32, Cpu, Const<24>, Direct>;
/// Three networks of 3 x 3 and 3, the first with 3 x 6, and a factor of each of three dimensions.
type LatentLayer = MultiHead<Const<EMBED>, f32, Cpu, Const<129>, Latent>;
type Sequence = Tensor<Rank3<2, 4, EMBED>, f32, Cpu>;

fn sequence(device: &Cpu) -> Sequence {
    let values = (0..48).map(|i| (i as f32 * 0.7).sin()).collect();
    device.tensor_from_vec(values, Default::default())
}

macro_rules! check_round_trip {
    ($layer:ty) => {{
        let device = Cpu::default();
        let layer = <$layer>::build(&device);
        let mut other = <$layer>::build(&device);
        let x = sequence(&device);
        let want = layer.forward(x.clone()).array();
        assert_ne!(other.forward(x.clone()).array(), want);
        let file = tempfile::NamedTempFile::new().unwrap();
        layer.save_safetensors(file.path()).unwrap();
        other.load_safetensors(file.path()).unwrap();
        assert_eq!(other.forward(x).array(), want);
    }};
}

#[test]
fn settings_survive_a_change_of_the_type() {
    let config = MultiHeadConfig {
        dropout: 0.4,
        seed: Seed::new(3),
        ..Direct::config()
    };
    let mut rng = Seed::new(1).stream("initial values");
    let layer = DirectLayer::try_new(&Cpu::default(), Const, config.clone(), &mut rng).unwrap();
    assert_eq!(layer.to_dtype::<f64>().config(), &config);
}

#[test]
fn biases_are_there_or_not_whatever_is_done_to_the_layer() {
    let device = Cpu::default();
    let (mut with, mut without) = (PlainLayer::build(&device), UnbiasedLayer::build(&device));
    // 4 maps of 6 x 6, and 4 biases.
    assert_eq!(with.num_trainable_params(), 4 * 36 + 4 * 6);
    assert_eq!(without.num_trainable_params(), 4 * 36);
    let before = without.maps[1].weight.array();
    without.reset_params();
    with.reset_params();
    assert_ne!(without.maps[1].weight.array(), before);
    assert!(with.maps[1].bias.as_ref().unwrap().array() != [0.0; EMBED]);
    let (with, without) = (with.to_dtype::<f64>(), without.to_dtype::<f64>());
    assert!(with.output.bias.is_some() && without.output.bias.is_none());
    assert!(without.to_device(&device).maps[2].bias.is_none());
}

#[test]
fn it_saves_to_safetensors_and_loads_again() {
    check_round_trip!(PlainLayer);
    check_round_trip!(UnbiasedLayer);
    check_round_trip!(DirectLayer);
    check_round_trip!(LatentLayer);
}

/// A step of dfdx's own optimiser moves every tensor, and lowers the loss.
macro_rules! check_training {
    ($layer:ty) => {{
        let device = Cpu::default();
        let mut layer = <$layer>::build(&device);
        let before = layer.clone();
        let x = sequence(&device);
        let pass = Pass::Evaluation { seed: Seed::new(1) };
        let loss = |layer: &$layer| {
            let attended = layer
                .attend_self(x.leaky_trace(), &Mask::none(), pass)
                .unwrap();
            (attended.output - 1.0).square().mean::<Rank0, _>() + attended.penalty * 0.01
        };
        let config = SgdConfig {
            lr: 0.02,
            ..Default::default()
        };
        let mut optimiser = Sgd::new(&layer, config);
        let start = loss(&layer).array();
        for _ in 0..10 {
            let gradients = loss(&layer).backward();
            optimiser.update(&mut layer, &gradients).unwrap();
        }
        assert!(loss(&layer).array() < start);
        assert_ne!(layer.kernel.as_vec(), before.kernel.as_vec());
        assert_ne!(layer.maps[0].weight.array(), before.maps[0].weight.array());
        let bias = |layer: &$layer| layer.output.bias.as_ref().unwrap().array();
        assert_ne!(bias(&layer), bias(&before));
    }};
}

#[test]
fn it_trains_with_an_optimiser_of_dfdx() {
    check_training!(DirectLayer);
    check_training!(LatentLayer);
}

#[test]
fn training_passes_draw_anew_and_evaluation_does_not() {
    let device = Cpu::default();
    let mut layer = DirectLayer::build(&device);
    let x = sequence(&device);
    let evaluated = layer.forward(x.clone()).array();
    assert_eq!(layer.forward(x.clone()).array(), evaluated);
    let first = layer.forward_mut(x.clone()).array();
    assert_ne!(first, evaluated);
    assert_ne!(layer.forward_mut(x).array(), first);
}

#[test]
fn a_penalty_is_never_dropped_in_silence() {
    let device = Cpu::default();
    let x = sequence(&device);
    let mut layer = LatentLayer::build(&device);
    for refused in [
        layer.try_forward(x.leaky_trace()).err(),
        layer.try_forward_mut(x.leaky_trace()).err(),
    ] {
        let message = refused
            .expect("the loss would miss the penalty")
            .to_string();
        assert!(message.contains("attend_self"), "{message}");
    }
    // Without a tape there is no loss, and without a penalty nothing is lost.
    assert!(layer.try_forward(x.clone()).is_ok() && layer.try_forward_mut(x.clone()).is_ok());
    assert!(
        DirectLayer::build(&device)
            .try_forward(x.leaky_trace())
            .is_ok()
    );
}

/// One that counts for each example or for the whole batch.
#[test]
fn every_mechanism_with_a_penalty_is_refused() {
    for variant in super::variants() {
        let (penalty, layer) = (variant.card().penalty, super::layer(variant));
        let passed = layer.try_forward(super::sequence(2, 4).leaky_trace());
        assert_eq!(passed.is_ok(), penalty == Penalty::None, "{layer:?}");
    }
}

settings!(
    Redrawn,
    Performer {
        points: 4,
        redraw: Redraw::Every { steps: 2 },
        ..Default::default()
    }
);

/// Dropout and redrawn features go on where they were, in training and in evaluation.
#[test]
fn a_loaded_layer_goes_on_at_its_step() {
    type Layer = MultiHead<Const<EMBED>, f32, Cpu, Const<0>, Redrawn>;
    let device = Cpu::default();
    let (mut layer, x) = (Layer::build(&device), sequence(&device));
    let first = layer.clone().forward_mut(x.clone()).array();
    (0..3).for_each(|_| drop(layer.forward_mut(x.clone())));
    assert_eq!(layer.step(), 3);
    let file = tempfile::NamedTempFile::new().unwrap();
    layer.save_safetensors(file.path()).unwrap();
    let mut loaded = Layer::build(&device);
    loaded.load_safetensors(file.path()).unwrap();
    let mut restored = Layer::build(&device);
    Checkpoint::of("", &layer)
        .restore("", &mut restored)
        .unwrap();
    restored.go_to_step(layer.step());
    for other in [&mut loaded, &mut restored] {
        let mut layer = layer.clone();
        let evaluated = layer.forward(x.clone()).array();
        assert_eq!(other.forward(x.clone()).array(), evaluated);
        let trained = layer.forward_mut(x.clone()).array();
        assert_eq!(other.forward_mut(x.clone()).array(), trained);
        assert_ne!(trained, first);
    }
}

/// Heads of other widths in maps of the same shapes are another layer.
#[test]
fn a_checkpoint_knows_the_number_of_heads() {
    let config = |heads| MultiHeadConfig {
        heads,
        ..super::two_heads(Softmax::default().into())
    };
    let [two, mut three] = [2, 3].map(|heads| super::build::<f32>(config(heads)));
    let before = three.maps[0].weight.as_vec();
    let file = tempfile::NamedTempFile::new().unwrap();
    Checkpoint::of("", &two).write(file.path()).unwrap();
    let saved = Checkpoint::<f32>::read(file.path()).unwrap();
    let error = saved.restore("", &mut three).unwrap_err();
    let named = matches!(&error, CheckpointError::OtherSize { name, expected: 3, got: 2 } if name == "heads");
    assert!(named, "{error}");
    assert_eq!(three.maps[0].weight.as_vec(), before);
    saved
        .restore("", &mut super::build::<f32>(config(2)))
        .unwrap();
    // Inside of models too.
    let error = Checkpoint::of("", &vec![two]).restore("", &mut vec![three]);
    assert!(matches!(error, Err(CheckpointError::OtherSize { name, .. }) if name == "0.heads"));
}
