//! BLEU looks at the sum of what lines hold, prefers its reference, and is resampled line by line.

use bochner_text::bleu::Pcg64;
use bochner_text::{
    BleuConfig, BleuStatistics, BootstrapConfig, Case, Error, Interval, Orders, Smoothing,
    Tokenisation, bootstrap, corpus_bleu, line_statistics, paired_bootstrap, sentence_bleu,
    tokenize_13a,
};
use proptest::prelude::*;

fn lines() -> impl Strategy<Value = (Vec<String>, Vec<String>)> {
    let line = || "[a-c]( [a-c]){0,8}";
    prop::collection::vec((line(), line()), 1..12).prop_map(|pairs| pairs.into_iter().unzip())
}

fn smoothing() -> impl Strategy<Value = Smoothing> {
    prop_oneof![
        Just(Smoothing::Exp),
        Just(Smoothing::None),
        (0.01..0.5).prop_map(|value| Smoothing::Floor { value }),
        (0.5..2.0).prop_map(|value| Smoothing::AddK { value }),
    ]
}

proptest! {
    #[test]
    fn the_score_is_that_of_the_summed_counts(
        (hypotheses, references) in lines(), smoothing in smoothing()
    ) {
        let config = BleuConfig { smoothing, ..Default::default() };
        let references = [references];
        let whole = corpus_bleu(&hypotheses, &references, &config).unwrap();
        let lines = line_statistics(&hypotheses, &references, &config).unwrap();
        prop_assert_eq!(&whole, &BleuStatistics::sum(lines.iter().rev()).score(&config).unwrap());
        prop_assert!((0.0..=100.0 + 1e-9).contains(&whole.score), "{}", whole.score);
        prop_assert!(whole.brevity_penalty > 0.0 && whole.brevity_penalty <= 1.0);
    }

    #[test]
    fn nothing_scores_higher_than_the_reference((hypotheses, references) in lines()) {
        let config = BleuConfig { orders: Orders::Effective, ..Default::default() };
        for (hypothesis, reference) in hypotheses.iter().zip(&references) {
            let own = sentence_bleu(reference, &[reference], &config).unwrap();
            prop_assert!((own.score - 100.0).abs() < 1e-9);
            let other = sentence_bleu(hypothesis, &[reference], &config).unwrap();
            prop_assert!(other.score <= own.score + 1e-9);
            // A further reference never takes a match away.
            let more = sentence_bleu(hypothesis, &[reference, hypothesis], &config).unwrap();
            prop_assert!(more.statistics.matches >= other.statistics.matches);
        }
    }

    #[test]
    fn an_interval_holds_resampled_means((hypotheses, references) in lines(), seed in any::<u64>()) {
        let bleu = BleuConfig::default();
        let lines = line_statistics(&hypotheses, &[references], &bleu).unwrap();
        let config = BootstrapConfig { samples: 80, seed };
        let found = bootstrap(&lines, &bleu, &config).unwrap();
        prop_assert!(found.low <= found.mean + 1e-9 && found.mean <= found.high + 1e-9);
        prop_assert_eq!(&found, &bootstrap(&lines, &bleu, &config).unwrap());
        let same = paired_bootstrap(&lines, std::slice::from_ref(&lines), &bleu, &config).unwrap();
        prop_assert_eq!(same.systems[0].interval, same.baseline);
        prop_assert_eq!(same.systems[0].p_value, 1.0 / 81.0);
        prop_assert_eq!(same.systems[0].reported_p_value(), 1.0);
    }
}

#[test]
fn draws_are_even() {
    let mut rng = Pcg64::new(3);
    let mut counts = [0; 7];
    (0..70_000).for_each(|_| counts[rng.below(7) as usize] += 1);
    // Five standard deviations of a count.
    assert!(
        counts.iter().all(|count| (9_537..10_463).contains(count)),
        "{counts:?}"
    );
}

#[test]
fn case_and_tokens_are_as_set() {
    let score = |config: &BleuConfig| {
        let (hypothesis, reference) = ("The dog, bit the man .", "the dog , bit the man.");
        corpus_bleu(&[hypothesis], &[vec![reference]], config)
            .unwrap()
            .score
    };
    let lower = BleuConfig {
        case: Case::Lower,
        ..Default::default()
    };
    assert!((score(&lower) - 100.0).abs() < 1e-9);
    assert!(score(&BleuConfig::default()) < 95.0);
    let plain = BleuConfig {
        tokenisation: Tokenisation::None,
        ..lower
    };
    assert!(score(&plain) < 50.0);
}

#[test]
fn arguments_that_do_not_fit_are_refused() {
    let config = BleuConfig::default();
    let none: [&str; 0] = [];
    let refused = |result: Result<_, Error>| matches!(result, Err(Error::Argument(_)));
    assert!(refused(corpus_bleu(&none, &[Vec::<&str>::new()], &config)));
    assert!(refused(corpus_bleu(&["a"], &[vec!["a"], vec![]], &config)));
    assert!(refused(corpus_bleu::<_, &str>(&["a"], &[], &config)));
    assert!(refused(sentence_bleu::<&str>("a", &[], &config)));
    let no_order = BleuConfig {
        max_order: 0,
        ..config.clone()
    };
    assert!(refused(corpus_bleu(&["a"], &[vec!["a"]], &no_order)));
    let statistics = BleuStatistics {
        hypothesis_length: 1,
        reference_length: 1,
        matches: vec![2, 0, 0, 0],
        totals: vec![1, 0, 0, 0],
    };
    assert!(refused(statistics.score(&config)));
    let lines = line_statistics(&["a", "b"], &[vec!["a", "b"]], &config).unwrap();
    let short = lines[..1].to_vec();
    let paired = paired_bootstrap(&lines, &[short], &config, &BootstrapConfig::default());
    assert!(matches!(paired, Err(Error::Argument(_))));
    let bigrams = BleuConfig {
        max_order: 2,
        ..config
    };
    let other = bootstrap(&lines, &bigrams, &BootstrapConfig::default());
    assert!(matches!(other, Err(Error::Argument(_))));
}

#[test]
fn scores_are_displayed_as_sacrebleu_prints_them() {
    // The example of sacrebleu's own documentation, and what is printed there.
    let hypotheses = [
        "The dog bit the man.",
        "It wasn't surprising.",
        "The man had just bitten him.",
    ];
    let references = [
        vec![
            "The dog bit the man.",
            "It was not unexpected.",
            "The man bit him first.",
        ],
        vec![
            "The dog had bit the man.",
            "No one was surprised.",
            "The man had bitten the dog.",
        ],
    ];
    let bleu = corpus_bleu(&hypotheses, &references, &BleuConfig::default()).unwrap();
    assert_eq!(
        bleu.to_string(),
        "BLEU = 48.53 82.4/50.0/45.5/37.5 (BP = 0.943 ratio = 0.944 hyp_len = 17 ref_len = 18)"
    );
    let nothing = corpus_bleu(&[""], &[vec![""]], &BleuConfig::default()).unwrap();
    assert_eq!(
        nothing.to_string(),
        "BLEU = 0.00 0.0/0.0/0.0/0.0 (BP = 1.000 ratio = 0.000 hyp_len = 0 ref_len = 0)"
    );
    for max_order in [1, 5] {
        let config = BleuConfig {
            max_order,
            ..BleuConfig::default()
        };
        let short = corpus_bleu(&["a b c d e"], &[vec!["a b c d e f"]], &config).unwrap();
        let precisions = vec!["100.0"; max_order].join("/");
        let parts = "(BP = 0.819 ratio = 0.833 hyp_len = 5 ref_len = 6)";
        assert_eq!(
            short.to_string(),
            format!("BLEU = 81.87 {precisions} {parts}")
        );
    }
    let interval = Interval {
        score: 48.53,
        mean: 47.0,
        low: 39.876,
        high: 55.0,
    };
    assert_eq!(interval.to_string(), "48.53 [39.88, 55.00]");
}

#[test]
fn punctuation_beside_digits_stays_there() {
    let of = |line| tokenize_13a(line).join(" ");
    assert_eq!(of("1,000.5 .5 5. a.b"), "1,000.5 . 5 5 . a . b");
    assert_eq!(
        of("2020-21 well-known -5 5-"),
        "2020 - 21 well-known -5 5 -"
    );
    assert_eq!(of("x.,y"), "x . , y");
    assert_eq!(of("&amp;lt; <skipped>&apos;s"), "< & apos ; s");
}

#[test]
fn white_space_is_pythons() {
    let plain = BleuConfig {
        tokenisation: Tokenisation::None,
        ..BleuConfig::default()
    };
    let text = "a\u{1c}b\u{85}c\u{3000}d\u{200b}e";
    let seen = corpus_bleu(&[text], &[vec!["a b c d\u{200b}e"]], &plain).unwrap();
    assert_eq!(seen.statistics.hypothesis_length, 4);
    assert!((seen.score - 100.0).abs() < 1e-9, "{seen}");
    assert_eq!(tokenize_13a("well-\nknown\nword"), ["wellknown", "word"]);
}
