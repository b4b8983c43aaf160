//! The page of an archive: its rows, judged by the rules of today.

use crate::archive::Archive;
use crate::document::Document;
use crate::judge::{Judged, judge};
use crate::plan::{Choices, Frame, OnRequest, Plan};
use crate::suite::{Card, Set};
use crate::{Account, Results, Scale, Unit};

/// A page, and what became of the claims on it.
#[derive(Clone, Debug)]
pub struct Page {
    /// The text, tables and pictures.
    pub document: Document,
    /// The part of the page that follows in Markdown, where its artefacts are not in the archive.
    pub appendix: Option<String>,
    /// The claims.
    pub claims: Vec<Judged>,
}

impl Page {
    /// The page as Markdown.
    pub fn to_markdown(&self) -> String {
        let page = self.document.to_markdown();
        match &self.appendix {
            Some(appendix) => format!("{page}\n{appendix}"),
            None => page,
        }
    }
}

/// The arms whose rows an archive has, on the sets that it has, with those that are not finished.
pub fn plan(card: &'static Card, scale: Scale, results: &Results) -> Plan {
    let has_rows = |set: &&Set| results.all().any(|row| row.unit.set == set.title);
    let sets: Vec<&'static Set> = card.sets.iter().filter(has_rows).collect();
    let frame = Frame {
        scale,
        epochs: None,
        on_request: OnRequest::Included,
    };
    let mut plan = Plan::new(card, &sets, frame, Choices::Of(results));
    plan.arms
        .retain(|arm| !results.of(arm).is_empty() || !card.is_on_request(arm.model));
    plan
}

/// The page of the rows of one scale of an experiment.
pub fn of_archive(card: &'static Card, scale: Scale, archive: &Archive) -> Page {
    let mut results = Results::new(card.metric.direction);
    let rows = archive.rows.iter().filter(|row| row.unit.scale == scale);
    results.extend(rows.cloned());
    let plan = plan(card, scale, &results);
    let claims = judge(card, &(card.claims)(), &plan, &results);
    let artefacts = |unit: &Unit| archive.artefacts.get(&results.row(unit)?.id).cloned();
    let account = Account {
        card,
        plan: &plan,
        results: &results,
        claims: &claims,
        checks: &[],
        skipped: &[],
        preface: archive.preface.as_deref(),
        epochs: None,
        notes: &[],
        artefacts: &artefacts,
    };
    Page {
        document: account.document(),
        appendix: archive.appendix.clone(),
        claims,
    }
}
