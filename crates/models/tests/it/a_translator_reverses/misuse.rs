//! Arguments that a translator and its trainer refuse, and the state that survives a refusal.

use super::*;
use bochner_attention::{Copula, Mikan, Posterior};

#[test]
fn what_does_not_fit_is_refused() {
    let of = |encoder: Variant, itself: Variant, memory: Variant| {
        let config = config([encoder, itself, memory], 8);
        Translator::<f32>::try_new(&Cpu::default(), &config, Seed::new(1))
    };
    let softmax_alone = || Variant::from(Softmax::default());
    let primal = || Variant::from(Primal::default());
    assert!(matches!(
        of(softmax_alone(), primal(), softmax_alone()),
        Err(Error::Attention(_))
    ));
    let unconditional = Mikan {
        posterior: Posterior::Unconditional,
        copula: Copula::Independent,
        ..Mikan::default()
    };
    let unlike = of(primal(), unconditional.into(), softmax_alone());
    let unlike = unlike.map(|_| ()).unwrap_err().to_string();
    assert!(
        unlike.contains("penalties are of different kinds"),
        "{unlike}"
    );

    let with = |change: fn(&mut TranslatorConfig), pairs: Vec<Pair>| {
        let mut config = config(softmax(), 8);
        change(&mut config);
        trainer(&config, pairs).map(|_| ())
    };
    let flat = with(|c| c.encoder.layer.width = 0, pairs(3, "train"));
    let flat = flat.unwrap_err().to_string();
    assert!(flat.starts_with("`width` is 0"), "{flat}");
    let pair = |source: Vec<usize>, target: Vec<usize>| vec![Pair { source, target }];
    assert!(matches!(with(|_| (), vec![]), Err(Error::Argument(_))));
    assert!(matches!(
        with(|c| c.end = 10, pairs(3, "train")),
        Err(Error::Argument(_))
    ));
    let unknown = with(|_| (), pair(vec![4, 10], vec![4]))
        .unwrap_err()
        .to_string();
    assert!(unknown.contains("source of pair 0"), "{unknown}");
    let long = with(|_| (), pair(vec![4], vec![4; LONGEST]));
    assert!(matches!(
        long,
        Err(Error::PairTooLong {
            pair: 0,
            side: "target",
            got: 11,
            longest: LONGEST
        })
    ));

    // A source may have a token at every position, and a target at every one but that of its mark.
    let full = pair(vec![4; LONGEST], vec![4; LONGEST - 1]);
    let mut full = trainer(&config(softmax(), 8), full).unwrap();
    full.epoch().unwrap();
    let found = full.translate(&[vec![4; LONGEST]], &beam(2)).unwrap();
    assert!(found[0].is_ok());

    let trained = trainer(&config(softmax(), 8), pairs(3, "train")).unwrap();
    let sources = [vec![4, 5]];
    assert!(matches!(
        trained.translate(&sources, &beam(0)),
        Err(Error::Text(_))
    ));
    let far = BeamConfig {
        max_length: LONGEST + 1,
        ..beam(2)
    };
    assert!(matches!(
        trained.translate(&sources, &far),
        Err(Error::Argument(error)) if error.name() == "max_length"
    ));
    for dropout in [0.0, 0.1] {
        let pass = Pass::Training {
            seed: Seed::new(1),
            dropout,
        };
        let got = trained.model().translate(&sources, &beam(2), pass);
        assert!(matches!(got, Err(Error::Unsupported { .. })), "{dropout}");
    }
    // The settings are wrong whatever the sources are.
    assert!(trained.translate(&[], &beam(0)).is_err());
}

/// A translator that ends every translation at once. Its numbers overflow where a source has the token 5.
fn overflowing(encoder: Variant) -> Translator<f64> {
    let [_, itself, memory] = softmax();
    let config = config([encoder, itself, memory], 16);
    let mut model = Translator::try_new(&Cpu::default(), &config, Seed::new(3)).unwrap();
    change(&mut model, |name, values| match name {
        "embedding.weight" => {
            values[END * 16] = 100.0;
            values[5 * 16..6 * 16].fill(0.0);
            // No hypothesis goes on with it.
            values[5 * 16] = -1000.0;
            values[5 * 16 + 1] = f64::MAX;
        }
        // Whatever the decoder has found out, its output is the first unit vector.
        "decoder.norm.gamma" => values.fill(0.0),
        "decoder.norm.beta" => values[0] = 1.0,
        _ => {}
    });
    model
}

#[test]
fn a_source_that_cannot_be_translated_leaves_the_others_their_translations() {
    let model = Translator::<f64>::try_new(&Cpu::default(), &config(softmax(), 16), Seed::new(3));
    let model = model.unwrap();
    let sources = [
        vec![4, 5],
        vec![4; LONGEST + 1],
        vec![6, 99],
        vec![],
        vec![7, 8, 9],
    ];
    for width in [1, 3] {
        let found = model.translate(&sources, &beam(width), PASS).unwrap();
        let [first, long, unknown, empty, last] = <[_; 5]>::try_from(found).unwrap();
        let long = long.unwrap_err();
        assert!(matches!(
            long,
            Error::TooLong {
                got: 11,
                longest: LONGEST
            }
        ));
        assert_eq!(
            unknown.unwrap_err().to_string(),
            "`source` holds the index 99, but must stay below 10: indices count from 0"
        );
        for (found, source) in [(first, 0), (empty, 3), (last, 4)] {
            let (found, alone) = (found.unwrap(), translated(&model, &sources[source], width));
            assert_eq!(found.tokens, alone.tokens);
            assert!((found.log_prob - alone.log_prob).abs() < 1e-9);
        }
    }
}

/// Attention refuses the whole batch, of which each source is then translated alone.
#[test]
fn a_source_whose_numbers_overflow_leaves_the_others_their_translations() {
    let sources = [vec![4, 6], vec![5, 6], vec![7, 8]];
    let [encoder, ..] = softmax();
    for encoder in [encoder, Mikan::default().into()] {
        let model = overflowing(encoder);
        for width in [1, 3] {
            let found = model.translate(&sources, &beam(width), PASS).unwrap();
            let [first, overflown, last] = <[_; 3]>::try_from(found).unwrap();
            match overflown.unwrap_err() {
                Error::Attention(_) => {}
                error => panic!("{error}"),
            }
            assert!(first.unwrap().tokens.is_empty() && last.unwrap().tokens.is_empty());
        }
    }
}

#[test]
fn messages_say_what_is_wrong_and_what_to_do() {
    let long = trainer(
        &config(softmax(), 8),
        vec![Pair {
            source: vec![4; 12],
            target: vec![4],
        }],
    );
    assert_eq!(
        long.unwrap_err().to_string(),
        "the source of pair 0 has 12 positions, but the model's table has 10: leave such pairs out, or make the model \
         with `longest` at least 12"
    );
    let trained = trainer(&config(softmax(), 8), pairs(3, "train")).unwrap();
    let far = trained
        .translate(&[vec![4, 5]], &BeamConfig::default())
        .unwrap_err()
        .to_string();
    assert_eq!(
        far,
        "`max_length` is 200, but must be at most 10, the model's number of positions; `Translator::search` gives \
         settings that fit"
    );
    let fitting = trained.model().search();
    assert!(trained.translate(&[vec![4, 5]], &fitting).is_ok());

    let vocabulary = |words: &[&str], marks| {
        Vocabulary::from_words(words.iter().map(|word| (*word).to_owned()), marks).unwrap()
    };
    let own = vocabulary(&["a", "b", "c"], Marks::StartAndEnd);
    let encoder = config(softmax(), 8).encoder;
    let made =
        TranslatorConfig::transformer(&own, LONGEST, encoder.clone(), Softmax::default().into());
    let made = made.unwrap();
    assert_eq!((made.tokens, made.start, made.end), (7, START, END));
    assert!(made.expect(&own).is_ok());
    let other = made.expect(&vocabulary(&["a", "b", "d"], Marks::StartAndEnd));
    let other = other.unwrap_err().to_string();
    assert!(
        other.contains("load the vocabulary that was saved with the model"),
        "{other}"
    );
    let markless = vocabulary(&["a", "b", "c"], Marks::None);
    let markless =
        TranslatorConfig::transformer(&markless, LONGEST, encoder, Softmax::default().into());
    assert!(
        markless
            .unwrap_err()
            .to_string()
            .contains("Marks::StartAndEnd")
    );
}
