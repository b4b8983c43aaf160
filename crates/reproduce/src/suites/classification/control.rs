//! Naive Bayes as a control beside the paper's best numbers.

use super::BAYES;
use bochner_report::document::Document;
use bochner_report::{Account, Number};

/// A model of one epoch that nothing is learnt from but its rank: on which sets it lies above the paper's best number.
/// Writes nothing while no set has both.
pub(super) fn control(account: &Account<'_>, document: &mut Document) {
    let (card, plan, metric) = (account.card, account.plan, account.card.metric);
    let mut above = Vec::new();
    let rows = account.sets().into_iter().filter_map(|set| {
        let set = set.title;
        let (mean, deviation) = account
            .results
            .spread(plan.claimed(set, BAYES)?, Number::R)?;
        let lines = card.published.iter();
        let printed = lines.filter_map(|line| Some((line.model, card.published(line.model, set)?)));
        let loss = |value: f64| metric.gain(1.0) * value;
        let (best, published) = printed.min_by(|a, b| loss(a.1.mean).total_cmp(&loss(b.1.mean)))?;
        let own = metric.show(mean);
        if loss(own) < loss(published.mean) {
            above.push(set);
        }
        Some(vec![
            set.to_owned(),
            metric.spread(own, metric.factor() * deviation),
            format!("{:.1$} ({best})", published.mean, metric.digits),
            format!("{:+.1$}", own - published.mean, metric.digits),
        ])
    });
    let rows: Vec<Vec<String>> = rows.collect();
    if rows.is_empty() {
        return;
    }
    document.heading(format!("The control: {BAYES}"));
    let above = match above.is_empty() {
        true => "no set".to_owned(),
        false => format!(
            "{} of {} sets ({})",
            above.len(),
            rows.len(),
            above.join(", ")
        ),
    };
    document.text(format!(
        "The control, {BAYES}, is better than the paper's best number on **{above}**. All are R-numbers. The control has one \
         epoch, so that nothing chose it and its R-number is its V-number; the paper's are optimistic."
    ));
    let head = ["set", BAYES, "the paper's best", "difference"];
    document.table(&head, rows);
}
