//! Linear time: keys are summed up a block at a time, queries read the sums.
//!
//! Causal queries read the sums over the blocks before theirs, and meet the keys of their own block pair by pair.
//! The backward pass runs the same steps with queries and keys exchanged, the last block first; it recomputes the
//! causal sums block by block from those kept at the start of each task, because kept at every block they would take
//! more memory than the sequence itself.
//!
//! What sums are and how they are read is the kernel's own ([`PrefixSums`]). Tasks are cut by the lengths of a sequence
//! alone, padding aside, and joined in order, so the bits depend neither on the number of threads nor on what else
//! is in the batch.

use super::course::{Course, Part, Span};
use crate::pairwise::{Cotangent, GradientRows, HeadGradients, OutputRows};
use bochner_numerics::{Real, parallel};
use std::borrow::Cow;
use std::ops::Range;

/// Sums over positions, relative to references that rise over keys and fall over queries.
pub(crate) trait RunningSums: Clone + Send + Sync {
    type Reference: Send + Sync;

    /// Whether nothing has been summed up.
    fn is_empty(&self) -> bool;

    fn reference(&self) -> Self::Reference;

    /// Adds sums over later keys, which may be changed on the way.
    fn follow(&mut self, later: &mut Self);

    /// Makes sums over queries, whose weights fall with the references, relative to ones that are not above the
    /// present ones.
    fn lower(&mut self, reference: &Self::Reference);

    /// Adds sums relative to the same references.
    fn join(&mut self, other: &Self);
}

/// One head whose weights are inner products of finitely many features.
pub(crate) trait PrefixSums<T: Real>: Sync {
    type Sums: RunningSums;
    /// State that a task carries from one span of the sequence to the next.
    type Task: Send;

    fn course(&self) -> &Course;

    fn task(&self) -> Self::Task;

    /// Sums over no positions.
    fn zeros(&self) -> Self::Sums;

    /// Sums over no positions, which a task adds keys to up to this span.
    fn zeros_before(&self, _last: &Span) -> Self::Sums {
        self.zeros()
    }

    /// Adds a span's keys.
    fn add(&self, task: &mut Self::Task, span: &Span, sums: &mut Self::Sums);

    /// Writes the results of a span's queries, given the sums over the keys before it.
    fn read(&self, task: &mut Self::Task, span: &Span, sums: &Self::Sums, out: OutputRows<'_, T>);

    /// Adds the gradients of a span's queries, and of its keys as far as these queries see them, given the sums over
    /// the keys before it; adds the queries to the second sums, unless these are empty.
    fn pull_queries(
        &self,
        task: &mut Self::Task,
        span: &Span,
        sums: (&Self::Sums, &mut Self::Sums),
        given: &Cotangent<'_, T>,
        gradients: &mut GradientRows<T>,
    );

    /// Adds queries to sums over later queries.
    fn add_queries(
        &self,
        task: &mut Self::Task,
        queries: &Range<usize>,
        given: &Cotangent<'_, T>,
        sums: &mut Self::Sums,
    );

    /// Adds the gradients of keys, given the sums over the queries that see all of them.
    fn pull_keys(
        &self,
        task: &mut Self::Task,
        keys: &Range<usize>,
        sums: &Self::Sums,
        gradients: &mut GradientRows<T>,
    );
}

/// Returns the sums that each part of a head starts from. Without causality there is one, which all parts share.
pub(crate) fn starts<T: Real, H: PrefixSums<T>>(head: &H) -> Vec<H::Sums> {
    let course = head.course();
    // The sums of a causal sequence's last part are never read.
    let parts = course.key_parts().count();
    let count = parts - usize::from(course.causal).min(parts);
    let mut parts = Vec::with_capacity(count + 1);
    let sum = |p| {
        let part = nth(course.key_parts(), p);
        let (mut task, mut sums) = (head.task(), head.zeros_before(&part[part.len() - 1]));
        let spans = part.iter().filter(|span| !span.keys.is_empty());
        spans.for_each(|span| head.add(&mut task, span, &mut sums));
        sums
    };
    parallel::map_into(count, sum, &mut parts);
    let mut sums = head.zeros();
    for part in parts.iter_mut() {
        let before = course.causal.then(|| sums.clone());
        sums.follow(part);
        if let Some(before) = before {
            *part = before;
        }
    }
    if !course.causal {
        parts.clear();
    }
    parts.push(sums);
    parts
}

/// The results of all queries, given what the parts start from.
pub(crate) fn read_all<T: Real, H: PrefixSums<T>>(
    head: &H,
    starts: &[H::Sums],
    out: OutputRows<'_, T>,
) {
    let course = head.course();
    let first = |p| match course.query_parts().nth(p) {
        Some(part) => part[0].queries.start,
        None => course.rows,
    };
    let (blind, rows) = out.split_at(first(0));
    blind.clear();
    parallel::for_each_piece(
        rows,
        course.query_parts().count(),
        |rows, p, next| rows.split_at(first(next) - first(p)),
        |p, mut out| {
            let part = nth(course.query_parts(), p);
            let (mut task, mut sums) = (head.task(), Cow::Borrowed(start(starts, p)));
            for (s, span) in part.iter().enumerate() {
                let (own, others) = out.split_at(span.queries.len());
                head.read(&mut task, span, &sums, own);
                out = others;
                step(head, &mut task, (part, s), &mut sums);
            }
        },
    );
}

/// Adds the last positions of a causal sequence to the sums over those before; with an output, attends from them to
/// all so far.
pub(crate) fn follow<T: Real, H: PrefixSums<T>>(
    head: &H,
    sums: &mut H::Sums,
    mut out: Option<OutputRows<'_, T>>,
) {
    let mut task = head.task();
    for span in head.course().query_parts().flatten() {
        if let Some(rows) = out {
            let (own, others) = rows.split_at(span.queries.len());
            head.read(&mut task, span, sums, own);
            out = Some(others);
        }
        if !span.keys.is_empty() {
            head.add(&mut task, span, sums);
        }
    }
}

/// Adds the gradients of a head, given what its parts start from; what the tasks have kept, in a fixed order.
pub(crate) fn backward<T: Real, H: PrefixSums<T>>(
    head: &H,
    starts: &[H::Sums],
    given: &Cotangent<'_, T>,
    gradients: &mut HeadGradients<T>,
) -> Vec<H::Task> {
    let course = head.course();
    let count = course.query_parts().count();
    let mut left: Vec<Option<Left<T, H>>> = (0..count).map(|_| None).collect();
    parallel::for_each_piece(
        (gradients.rows(), &mut left[..]),
        count,
        |(rows, left), p, next| {
            let (rows, more_rows) = split_before(rows, nth(course.query_parts(), next));
            let (left, more_left) = left.split_at_mut(next - p);
            ((rows, left), (more_rows, more_left))
        },
        |p, (mut rows, left)| {
            let part = nth(course.query_parts(), p);
            left[0] = Some(pull_queries(head, part, start(starts, p), given, &mut rows));
        },
    );
    let (mut tasks, mut ends, mut references) = (Vec::new(), Vec::new(), Vec::new());
    let mut sums = head.zeros();
    for part in left.into_iter().flatten().rev() {
        ends.push(sums.clone());
        sums.lower(&part.sums.reference());
        sums.join(&part.sums);
        references.push(part.references);
        tasks.push(part.task);
    }
    if !course.causal {
        ends = vec![sums];
    }
    ends.reverse();
    references.reverse();
    let count = course.key_parts().count();
    let mut of_keys: Vec<Option<H::Task>> = (0..count).map(|_| None).collect();
    parallel::for_each_piece(
        (gradients.rows(), &mut of_keys[..]),
        count,
        |(rows, tasks), p, next| {
            let (rows, more_rows) = split_before(rows, nth(course.key_parts(), next));
            let (tasks, more_tasks) = tasks.split_at_mut(next - p);
            ((rows, tasks), (more_rows, more_tasks))
        },
        |p, (mut rows, task)| {
            let references = references.get(p).map_or(&[][..], Vec::as_slice);
            let part = (nth(course.key_parts(), p), references);
            task[0] = Some(pull_keys(head, part, start(&ends, p), given, &mut rows));
        },
    );
    tasks.extend(of_keys.into_iter().flatten());
    tasks
}

/// The results of a part's queries that the other parts need.
struct Left<T: Real, H: PrefixSums<T>> {
    /// Gradient sums over the part's queries, relative to the reference that its first query read.
    sums: H::Sums,
    /// The references that each span read.
    references: Vec<<H::Sums as RunningSums>::Reference>,
    task: H::Task,
}

/// Adds the gradients of a part's queries with what its own pairs add to those of its keys.
fn pull_queries<T: Real, H: PrefixSums<T>>(
    head: &H,
    part: &Part,
    start: &H::Sums,
    given: &Cotangent<'_, T>,
    gradients: &mut GradientRows<T>,
) -> Left<T, H> {
    let (mut task, mut sums, mut own) = (head.task(), Cow::Borrowed(start), head.zeros());
    own.lower(&start.reference());
    let mut references = Vec::with_capacity(part.len());
    for (s, span) in part.iter().enumerate() {
        references.push(sums.reference());
        head.pull_queries(&mut task, span, (&sums, &mut own), given, gradients);
        step(head, &mut task, (part, s), &mut sums);
    }
    Left {
        sums: own,
        references,
        task,
    }
}

/// Adds the gradients of a part's keys as far as later queries see them, given the references of what its spans read.
fn pull_keys<T: Real, H: PrefixSums<T>>(
    head: &H,
    (part, references): (&Part, &[<H::Sums as RunningSums>::Reference]),
    end: &H::Sums,
    given: &Cotangent<'_, T>,
    gradients: &mut GradientRows<T>,
) -> H::Task {
    let (mut task, mut sums) = (head.task(), Cow::Borrowed(end));
    for (s, span) in part.iter().enumerate().rev() {
        if !span.keys.is_empty() && !sums.is_empty() {
            head.pull_keys(&mut task, &span.keys, &sums, gradients);
        }
        if s > 0 && !span.queries.is_empty() {
            let sums = sums.to_mut();
            sums.lower(&references[s]);
            if !sums.is_empty() {
                head.add_queries(&mut task, &span.queries, given, sums);
            }
        }
    }
    task
}

/// Takes the sums that the queries of a part's span read to those that the queries of the next span read.
fn step<T: Real, H: PrefixSums<T>>(
    head: &H,
    task: &mut H::Task,
    (part, s): (&Part, usize),
    sums: &mut Cow<H::Sums>,
) {
    if s + 1 < part.len() && !part[s].keys.is_empty() {
        head.add(task, &part[s], sums.to_mut());
    }
}

/// Part `p`'s start: its own, or that of all.
fn start<S>(starts: &[S], p: usize) -> &S {
    debug_assert!(starts.len() == 1 || p < starts.len(), "another course");
    starts.get(p).unwrap_or(&starts[0])
}

fn nth<'a>(mut parts: impl Iterator<Item = &'a Part>, p: usize) -> &'a Part {
    parts.nth(p).expect("one of them")
}

/// The rows before those of a part, and the others.
fn split_before<'a, T: Real>(
    rows: GradientRows<'a, T>,
    part: &Part,
) -> (GradientRows<'a, T>, GradientRows<'a, T>) {
    rows.split_at(part[0].queries.start, part[0].keys.start)
}
