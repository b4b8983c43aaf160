//! Linear time: keys are summed up a block at a time, queries read the sums.
//!
//! Causal queries read the sums over the blocks before theirs, and meet the keys of their own block pair by pair.
//! The backward pass runs the same steps with queries and keys exchanged, the last block first, relative to the
//! references that each block of keys had. Blocks and parts depend on the lengths of the sequence alone.

use super::block::{Features, Pulled, Shift};
use super::pairs::{Factors, Given, Pairs, Row, Values};
use super::sums::Sums;
use crate::engine::linear_time::{BLOCK, Cut, aligned};
use crate::engine::{Rows, blocks, dot};
use bochner_numerics::operations::record;
use bochner_numerics::{Buffer, Mat, MatMut, Operations, Real, matmul_in, parallel};
use std::ops::Range;

/// One head.
#[derive(Clone, Copy)]
pub(super) struct Head<'a, T: Real> {
    pub(super) features: Features<'a, T>,
    pub(super) queries: Mat<'a, T>,
    /// Keys and values that are not padding.
    pub(super) keys: Mat<'a, T>,
    pub(super) values: Mat<'a, T>,
    pub(super) rows: Rows<'a>,
    /// Heads of an example, among which threads are shared out.
    pub(super) heads: usize,
}

/// Queries that read the sums so far, and keys that are added then; without causality, one or the other.
#[derive(Clone, Debug)]
struct Span {
    queries: Range<usize>,
    keys: Range<usize>,
}

/// The spans of a head, and where they are cut into parts.
struct Course {
    queries: Vec<Span>,
    keys: Vec<Span>,
    cut: Cut,
}

/// The gradients of one head: of queries, keys, values and, if they are wanted, frequencies.
pub(super) struct Gradients<T> {
    pub(super) q: Buffer<T>,
    pub(super) k: Buffer<T>,
    pub(super) v: Buffer<T>,
    pub(super) w: Vec<T>,
}

/// What a part leaves to the others: sums over its queries, and the references that its spans have read.
struct Left<T> {
    sums: Sums<T>,
    references: Vec<Buffer<T>>,
}

/// The gradients of the rows of a part.
struct Place<'a, T> {
    q: &'a mut [T],
    k: &'a mut [T],
    v: &'a mut [T],
}

impl<'a, T: Real> Head<'a, T> {
    fn course(&self) -> Course {
        let kept = self.keys.shape().0;
        let mut counting = kept.div_ceil(BLOCK);
        let span = |(queries, keys)| Span { queries, keys };
        let (queries, keys): (Vec<_>, Vec<_>) = match self.rows.mask.is_causal() {
            true => {
                let spans: Vec<_> = aligned(&self.rows, kept).map(span).collect();
                (spans.clone(), spans)
            }
            false => {
                counting = counting.max(self.rows.counting().div_ceil(BLOCK));
                let queries = blocks(0..self.rows.queries, BLOCK);
                let keys = blocks(0..kept, BLOCK);
                let queries = queries.map(|queries| span((queries, 0..0)));
                (
                    queries.collect(),
                    keys.map(|keys| span((0..0, keys))).collect(),
                )
            }
        };
        Course {
            cut: Cut::new(counting, queries.len().max(keys.len()), self.heads),
            queries,
            keys,
        }
    }

    fn width(&self) -> usize {
        self.values.shape().1
    }

    pub(super) fn zeros(&self) -> Sums<T> {
        Sums::zeros(self.features.count(), self.width(), self.features.numbers)
    }

    fn factors(&self, x: Mat<T>, rows: &Range<usize>) -> Factors<T> {
        let block = self.features.of(x.row_range(rows.clone()));
        Factors::new(block, &self.features)
    }

    fn pairs(&self, span: &Span) -> Pairs<'a, T> {
        Pairs {
            features: self.features,
            rows: self.rows,
            dropout: None,
            first: (span.queries.start, span.keys.start),
        }
    }

    /// What the parts start from; if not causal, one for all.
    pub(super) fn starts(&self) -> Vec<Sums<T>> {
        let (course, causal) = (self.course(), self.rows.mask.is_causal());
        let parts: Vec<_> = course.cut.parts(&course.keys).collect();
        // Nobody reads the sums of a causal sequence's last part.
        let read = parts.len() - usize::from(causal).min(parts.len());
        let parts = parallel::map(read, |p| {
            let mut sums = self.zeros();
            for span in parts[p] {
                self.add(&span.keys, &mut sums);
            }
            sums
        });
        let (mut sums, mut starts) = (self.zeros(), Vec::with_capacity(read + 1));
        for part in parts {
            if causal {
                starts.push(sums.clone());
            }
            sums.follow(part);
        }
        starts.push(sums);
        starts
    }

    fn add(&self, keys: &Range<usize>, sums: &mut Sums<T>) {
        let block = self.features.of(self.keys.row_range(keys.clone()));
        sums.add_keys(&block, self.values.row_range(keys.clone()), &self.features);
    }

    /// Outputs of all queries, zeros so far, and what becomes known of their rows.
    pub(super) fn read_all(&self, starts: &[Sums<T>], out: &mut [T], rows: &mut [Row<T>]) {
        let (course, width) = (self.course(), self.width());
        let parts: Vec<_> = course.cut.parts(&course.queries).collect();
        let first = |p: usize| {
            parts
                .get(p)
                .map_or(self.rows.queries, |part| part[0].queries.start)
        };
        let blind = first(0);
        rows[..blind].fill(Row::blind());
        parallel::for_each_piece(
            (&mut out[blind * width..], &mut rows[blind..]),
            parts.len(),
            |(out, rows), p, next| {
                let count = first(next) - first(p);
                let (out, more_out) = out.split_at_mut(count * width);
                let (rows, more_rows) = rows.split_at_mut(count);
                ((out, rows), (more_out, more_rows))
            },
            |p, (out, rows)| {
                let mut sums = starts.get(p).unwrap_or(&starts[0]).clone();
                self.read_part(parts[p], &mut sums, out, rows);
            },
        );
    }

    fn read_part(&self, part: &[Span], sums: &mut Sums<T>, out: &mut [T], rows: &mut [Row<T>]) {
        let (width, first) = (self.width(), part[0].queries.start);
        for span in part {
            let at = span.queries.start - first..span.queries.end - first;
            let out = &mut out[at.start * width..at.end * width];
            self.read(span, sums, out, &mut rows[at]);
        }
    }

    /// Outputs of a span's queries; then its keys are added to the sums.
    fn read(&self, span: &Span, sums: &mut Sums<T>, out: &mut [T], rows: &mut [Row<T>]) {
        let numbers = self.features.numbers;
        rows.fill(Row::blind());
        let q = self
            .features
            .of(self.queries.row_range(span.queries.clone()));
        if !sums.is_empty() && !rows.is_empty() {
            let levels = q.tops(Shift::Plus(&sums.references), numbers);
            let multiples = q.relative(Shift::Plus(&sums.references), &levels, numbers);
            let features = self.features.count();
            record(Operations::multiply_adds(multiples.len()));
            let each = rows.iter_mut().zip(multiples.chunks_exact(features));
            for ((row, multiples), &reference) in each.zip(levels.iter()) {
                let normaliser = dot(multiples, &sums.last);
                *row = Row {
                    reference,
                    normaliser,
                };
            }
            let multiples = Mat::new(&multiples, rows.len(), features);
            let target = MatMut::new(out, rows.len(), self.width());
            matmul_in(
                numbers,
                T::one(),
                multiples,
                sums.matrix(),
                T::zero(),
                target,
            );
        }
        if !span.keys.is_empty() {
            let k = self.factors(self.keys, &span.keys);
            let values = self.values.row_range(span.keys.clone());
            if !rows.is_empty() {
                let q = Factors::new(q, &self.features);
                (self.pairs(span)).meet((&q, &k), Values::new(values), rows, out);
            }
            sums.add_keys(&k.block, values, &self.features);
        }
        for (out, row) in out.chunks_exact_mut(self.width()).zip(rows) {
            let inverse = row.inverse();
            out.iter_mut().for_each(|x| *x *= inverse);
        }
    }

    /// Adds the positions of a causal sequence to sums over those before; with an output, attends from them.
    pub(super) fn follow(&self, sums: &mut Sums<T>, out: Option<&mut [T]>) {
        let mut rows = vec![Row::blind(); self.rows.queries];
        match out {
            Some(out) => self.read_part(&self.course().queries, sums, out, &mut rows),
            None => self
                .course()
                .keys
                .iter()
                .for_each(|span| self.add(&span.keys, sums)),
        }
    }

    /// Gradients of the head, given what its parts start from.
    pub(super) fn backward(
        &self,
        starts: &[Sums<T>],
        given: Given<T>,
        wanted: bool,
    ) -> Gradients<T> {
        let (course, causal) = (self.course(), self.rows.mask.is_causal());
        let numbers = self.features.numbers;
        let zeros = |x: Mat<T>| numbers.filled(x.data().len(), T::zero());
        let (mut q, mut k, mut v) = (zeros(self.queries), zeros(self.keys), zeros(self.values));
        let parts: Vec<_> = course.cut.parts(&course.queries).collect();
        let cuts = |parts: &[&[Span]], p: usize| match parts.get(p) {
            Some(part) => (part[0].queries.start, part[0].keys.start),
            None => (self.rows.queries, self.keys.shape().0),
        };
        let mut left: Vec<Option<(Left<T>, Vec<T>)>> = parts.iter().map(|_| None).collect();
        let (blind, _) = cuts(&parts, 0);
        let place = Place {
            q: &mut q[blind * self.queries.shape().1..],
            k: &mut k,
            v: &mut v,
        };
        parallel::for_each_piece(
            (place, &mut left[..]),
            parts.len(),
            |(place, left), p, next| {
                let (place, more_place) = self.split(place, cuts(&parts, p), cuts(&parts, next));
                let (left, more_left) = left.split_at_mut(next - p);
                ((place, left), (more_place, more_left))
            },
            |p, (mut place, left)| {
                let mut along = self.along_frequencies(wanted);
                let sums = starts.get(p).unwrap_or(&starts[0]).clone();
                let own = self.pull_queries(parts[p], sums, given, &mut place, &mut along);
                left[0] = Some((own, along));
            },
        );
        let mut w = self.along_frequencies(wanted);
        let (mut sums, mut ends, mut references) = (self.zeros(), Vec::new(), Vec::new());
        for (part, along) in left.into_iter().flatten().rev() {
            w.iter_mut().zip(along).for_each(|(sum, x)| *sum += x);
            ends.push(sums.clone());
            sums.lower(part.sums.references.clone());
            sums.join(&part.sums);
            references.push(part.references);
        }
        if !causal {
            ends = vec![sums];
        }
        ends.reverse();
        references.reverse();
        let parts: Vec<_> = course.cut.parts(&course.keys).collect();
        let mut along: Vec<Vec<T>> = parts.iter().map(|_| Vec::new()).collect();
        let place = Place {
            q: &mut [],
            k: &mut k,
            v: &mut v,
        };
        parallel::for_each_piece(
            (place, &mut along[..]),
            parts.len(),
            |(place, along), p, next| {
                let ((_, from), (_, to)) = (cuts(&parts, p), cuts(&parts, next));
                let (place, more_place) = self.split(place, (0, from), (0, to));
                let (along, more_along) = along.split_at_mut(next - p);
                ((place, along), (more_place, more_along))
            },
            |p, (mut place, along)| {
                along[0] = self.along_frequencies(wanted);
                let sums = ends.get(p).unwrap_or(&ends[0]).clone();
                let references = references
                    .get(p)
                    .filter(|_| causal)
                    .map_or(&[][..], |all| all);
                self.pull_keys(
                    (parts[p], references),
                    sums,
                    given,
                    &mut place,
                    &mut along[0],
                );
            },
        );
        for along in along {
            w.iter_mut().zip(along).for_each(|(sum, x)| *sum += x);
        }
        Gradients { q, k, v, w }
    }

    fn along_frequencies(&self, wanted: bool) -> Vec<T> {
        let count = self.features.frequencies.count() * self.features.frequencies.width();
        vec![T::zero(); if wanted { count } else { 0 }]
    }

    fn split<'b>(
        &self,
        place: Place<'b, T>,
        (q, k): (usize, usize),
        (next_q, next_k): (usize, usize),
    ) -> (Place<'b, T>, Place<'b, T>) {
        let (width, value_width) = (self.queries.shape().1, self.width());
        let (q, more_q) = place.q.split_at_mut((next_q - q) * width);
        let (v, more_v) = place.v.split_at_mut((next_k - k) * value_width);
        let (k, more_k) = place.k.split_at_mut((next_k - k) * width);
        let others = Place {
            q: more_q,
            k: more_k,
            v: more_v,
        };
        (Place { q, k, v }, others)
    }

    /// $[dO_i | -dO_i \cdot O_i] / Z_i$ of some queries.
    fn cotangents(&self, queries: &Range<usize>, given: Given<T>) -> (Buffer<T>, Buffer<T>) {
        let numbers = self.features.numbers;
        let mut wide = numbers.empty(queries.len() * self.width());
        let mut last = numbers.empty(queries.len());
        for i in queries.clone() {
            let inverse = given.rows[i].inverse();
            wide.extend(given.cotangent.row(i).iter().map(|&g| g * inverse));
            last.push(-given.deltas[i] * inverse);
        }
        (wide, last)
    }

    /// The cotangents of multiples of features, $S y_i$, given rows $y = [r | s]$.
    fn read_back(&self, sums: &Sums<T>, wide: Mat<T>, last: Option<&[T]>) -> Buffer<T> {
        let (numbers, rows, features) = (self.features.numbers, wide.shape().0, sums.last.len());
        let mut cotangent = numbers.empty(rows * features);
        for i in 0..rows {
            let last = last.map_or(T::one(), |last| last[i]);
            cotangent.extend(sums.last.iter().map(|&sum| sum * last));
        }
        let target = MatMut::new(&mut cotangent, rows, features);
        matmul_in(numbers, T::one(), wide, sums.matrix().t(), T::one(), target);
        cotangent
    }

    /// Writes the gradients of a part's queries, with what their own pairs add to those of its keys.
    fn pull_queries(
        &self,
        part: &[Span],
        mut sums: Sums<T>,
        given: Given<T>,
        place: &mut Place<T>,
        along: &mut [T],
    ) -> Left<T> {
        let (numbers, features) = (self.features.numbers, &self.features);
        let (width, value_width) = (self.queries.shape().1, self.width());
        let first = (part[0].queries.start, part[0].keys.start);
        let mut own = self.zeros();
        own.references.clone_from(&sums.references);
        let mut references = Vec::new();
        for span in part {
            references.push(sums.references.clone());
            let rows = &given.rows[span.queries.clone()];
            let mut q = features.of(self.queries.row_range(span.queries.clone()));
            let mut along_q = features.pulled(rows.len());
            if !sums.is_empty() && !rows.is_empty() {
                let levels: Vec<T> = rows.iter().map(|row| row.reference).collect();
                let (wide, last) = self.cotangents(&span.queries, given);
                let wide = Mat::new(&wide, rows.len(), value_width);
                let multiples = q.relative(Shift::Plus(&sums.references), &levels, numbers);
                let cotangent = self.read_back(&sums, wide, Some(&last));
                features.pull_back(&q, &multiples, &cotangent, &mut along_q);
                if !own.is_empty() {
                    let multiples = match own.references == sums.references {
                        true => multiples,
                        false => q.relative(Shift::Plus(&own.references), &levels, numbers),
                    };
                    own.add(&multiples, wide, Some(&last), numbers);
                }
            }
            if !span.keys.is_empty() {
                let mut k = self.factors(self.keys, &span.keys);
                let values = self.values.row_range(span.keys.clone());
                if !rows.is_empty() {
                    let mut along_k = features.pulled(span.keys.len());
                    let factors = Factors::new(q, features);
                    let of_span = Given {
                        rows,
                        cotangent: given.cotangent.row_range(span.queries.clone()),
                        deltas: &given.deltas[span.queries.clone()],
                    };
                    let at = span.keys.start - first.1..span.keys.end - first.1;
                    let dv = &mut place.v[at.start * value_width..at.end * value_width];
                    let both = (&mut along_q, &mut along_k);
                    let pairs = self.pairs(span);
                    pairs.pull_back((&factors, &k), Values::new(values), of_span, both, dv);
                    let dk = &mut place.k[at.start * width..at.end * width];
                    features.finish(&mut k.block, &mut along_k, dk, along);
                    q = factors.block;
                }
                sums.add_keys(&k.block, values, features);
            }
            let at = span.queries.start - first.0..span.queries.end - first.0;
            let dq = &mut place.q[at.start * width..at.end * width];
            features.finish(&mut q, &mut along_q, dq, along);
        }
        Left {
            sums: own,
            references,
        }
    }

    /// Adds what later queries make of a part's keys, given the references that its spans read, if causal.
    fn pull_keys(
        &self,
        (part, references): (&[Span], &[Buffer<T>]),
        mut sums: Sums<T>,
        given: Given<T>,
        place: &mut Place<T>,
        along: &mut [T],
    ) {
        let (numbers, features) = (self.features.numbers, &self.features);
        let (width, value_width) = (self.queries.shape().1, self.width());
        let first = part[0].keys.start;
        for (s, span) in part.iter().enumerate().rev() {
            if !span.keys.is_empty() && !sums.is_empty() {
                let mut k = features.of(self.keys.row_range(span.keys.clone()));
                let mut along_k: Pulled<T> = features.pulled(span.keys.len());
                let values = self.values.row_range(span.keys.clone());
                let multiples = k.relative(Shift::Minus(&sums.references), &[], numbers);
                let cotangent = self.read_back(&sums, values, None);
                features.pull_back(&k, &multiples, &cotangent, &mut along_k);
                let at = span.keys.start - first..span.keys.end - first;
                let multiples = Mat::new(&multiples, span.keys.len(), features.count());
                let dv = &mut place.v[at.start * value_width..at.end * value_width];
                let target = MatMut::new(dv, span.keys.len(), value_width);
                matmul_in(
                    numbers,
                    T::one(),
                    multiples,
                    sums.matrix(),
                    T::one(),
                    target,
                );
                let dk = &mut place.k[at.start * width..at.end * width];
                features.finish(&mut k, &mut along_k, dk, along);
            }
            if s > 0 && !span.queries.is_empty() {
                sums.lower(references[s].clone());
                if sums.is_empty() {
                    continue;
                }
                let q = features.of(self.queries.row_range(span.queries.clone()));
                let rows = &given.rows[span.queries.clone()];
                let levels: Vec<T> = rows.iter().map(|row| row.reference).collect();
                let multiples = q.relative(Shift::Plus(&sums.references), &levels, numbers);
                let (wide, last) = self.cotangents(&span.queries, given);
                let wide = Mat::new(&wide, rows.len(), value_width);
                sums.add(&multiples, wide, Some(&last), numbers);
            }
        }
    }
}
