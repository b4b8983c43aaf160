//! Translations: against each other on resampled lines, and some of them beside their references.

use crate::trial::translation::bleu;
use bochner_report::document::Document;
use bochner_report::plan::Arm;
use bochner_report::{Account, Unit};
use bochner_text::{BleuStatistics, BootstrapConfig, paired_bootstrap};

/// The first test lines of a unit.
struct Lines {
    sources: Vec<String>,
    references: Vec<String>,
    translations: Vec<String>,
}

fn lines(account: &Account<'_>, unit: &Unit) -> Option<Lines> {
    let found = (account.artefacts)(unit)?;
    Some(Lines {
        sources: found.get("sources")?,
        references: found.get("references")?,
        translations: found.get("translations")?,
    })
}

/// Each model against the baseline of its seed on the same resampled test lines. Nothing is written without
/// translations.
pub(super) fn resampled(account: &Account<'_>, document: &mut Document) {
    let arms = account.plan.compared();
    let rows = arms.flat_map(|arm| rows(account, arm).unwrap_or_default());
    let rows: Vec<Vec<String>> = rows.collect();
    if rows.is_empty() {
        return;
    }
    let ([config, _], of) = (bleu(), BootstrapConfig::default());
    document.heading("On resampled lines");
    document.text(format!(
        "Each model against the {} of its seed, in the epochs of the V-numbers, on the same {} resampled test parts: BLEU with \
         its 95 % interval, the difference, and sacrebleu's p-value, which counts deviations to one side. This says \
         how much the choice of test lines matters, not that of the seed. Signature: `{}`.",
        account.card.baseline,
        of.samples,
        config.signature(1),
    ));
    document.table(&["set", "model", "seed", "BLEU", "d", "p-value"], rows);
}

fn rows(account: &Account<'_>, arm: &Arm) -> Option<Vec<Vec<String>>> {
    let baseline = account.plan.beside(arm, account.card.baseline)?;
    let pairs = arm.units.iter().zip(&baseline.units);
    let rows = pairs
        .filter(|(own, other)| own != other)
        .filter_map(|(own, other)| row(account, arm, own, other));
    Some(rows.collect())
}

fn row(account: &Account<'_>, arm: &Arm, own: &Unit, other: &Unit) -> Option<Vec<String>> {
    let [config, _] = bleu();
    let counted =
        |unit| -> Option<Vec<BleuStatistics>> { (account.artefacts)(unit)?.get("counts") };
    let (own_lines, other_lines) = (counted(own)?, counted(other)?);
    let of = BootstrapConfig::default();
    let found = paired_bootstrap(&other_lines, &[own_lines], &config, &of).ok()?;
    let system = found.systems.first()?;
    let (interval, digits) = (system.interval, account.card.metric.digits);
    Some(vec![
        arm.set.to_owned(),
        arm.label(),
        own.seed.to_string(),
        format!(
            "{:.digits$} ({:.digits$} to {:.digits$})",
            interval.score, interval.low, interval.high
        ),
        format!("{:+.digits$}", system.difference),
        format!("{:.3}", system.reported_p_value()),
    ])
}

/// The first test lines of each set with their references and the translations of each model's first seed.
pub(super) fn sample(account: &Account<'_>, document: &mut Document) {
    for set in account.sets() {
        let arms = account.plan.compared().filter(|arm| arm.set == set.title);
        let found = arms.filter_map(|arm| Some((arm, lines(account, arm.units.first()?)?)));
        let found: Vec<(&Arm, Lines)> = found.collect();
        let Some((_, first)) = found.first() else {
            continue;
        };
        document.heading(format!("Some translations of {}", set.title));
        let shown = 0..first.sources.len();
        let rows = shown.flat_map(|line| {
            let given = [
                ("source", &first.sources[line]),
                ("reference", &first.references[line]),
            ];
            let given = given.map(|(name, text)| (name.to_owned(), text.clone()));
            let ours = found.iter().filter_map(move |(arm, own)| {
                Some((arm.label(), own.translations.get(line)?.clone()))
            });
            let lines = given.into_iter().chain(ours);
            let row = move |(name, text)| vec![(line + 1).to_string(), name, text];
            lines.map(row).collect::<Vec<_>>()
        });
        document.table(&["line", "of", "text"], rows.collect());
    }
}
