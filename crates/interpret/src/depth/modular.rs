//! Arithmetic modulo a prime, on whole rows.

use bochner_numerics::parallel;

/// The largest modulus: a product of two remainders and four of them summed fit into 64 bits.
pub(super) const LARGEST: u64 = (1 << 31) - 1;

pub(super) fn is_prime(n: u64) -> bool {
    n >= 2
        && (2..)
            .take_while(|d| d * d <= n)
            .all(|d| !n.is_multiple_of(d))
}

/// $\sum_i x_i y_i$ of remainders.
#[inline]
pub(super) fn dot(x: &[u64], y: &[u64], prime: u64) -> u64 {
    let limit = limit(prime);
    let mut total = 0;
    for (&x, &y) in x.iter().zip(y) {
        total += x * y;
        if total >= limit {
            total -= limit;
        }
    }
    total % prime
}

/// The inverse of a remainder other than 0, by Fermat's little theorem.
fn inverse(x: u64, prime: u64) -> u64 {
    let (mut base, mut exponent, mut power) = (x, prime - 2, 1);
    while exponent > 0 {
        if exponent & 1 == 1 {
            power = power * base % prime;
        }
        base = base * base % prime;
        exponent >>= 1;
    }
    power
}

/// The rank of a matrix of remainders, given by its rows.
///
/// Gaussian elimination. A row below the pivot gains a multiple of the pivot's row; its entries are sums that are
/// reduced when they are read, and in between only brought below [`limit`], which costs no division.
pub(super) fn rank(mut rows: Vec<Vec<u64>>, prime: u64) -> usize {
    let columns = rows.first().map_or(0, Vec::len);
    let limit = limit(prime);
    let mut rank = 0;
    for column in 0..columns {
        rows[rank..].iter_mut().for_each(|row| row[column] %= prime);
        let Some(found) = (rank..rows.len()).find(|&i| rows[i][column] != 0) else {
            continue;
        };
        rows.swap(rank, found);
        let (above, below) = rows.split_at_mut(rank + 1);
        let pivot = &mut above[rank][column..];
        let scale = inverse(pivot[0], prime);
        for x in &mut *pivot {
            *x = *x % prime * scale % prime;
        }
        let pivot = &*pivot;
        let size = below.len().div_ceil(PIECES).max(1);
        parallel::for_each_chunk(below, size, |_, rows| {
            for row in rows {
                let row = &mut row[column..];
                match row[0] {
                    0 => {}
                    factor => add_multiple(row, prime - factor, pivot, limit),
                }
            }
        });
        rank += 1;
        if rank == rows.len() {
            break;
        }
    }
    rank
}

/// Pieces that the rows below a pivot are split into.
const PIECES: usize = 4;

/// The largest multiple of the prime's square to which one more product of remainders can be added.
fn limit(prime: u64) -> u64 {
    let square = prime * prime;
    (u64::MAX / square - 1) * square
}

/// Adds a multiple of remainders to sums below `limit`, which stay below it.
#[inline]
fn add_multiple(row: &mut [u64], factor: u64, pivot: &[u64], limit: u64) {
    for (x, &y) in row.iter_mut().zip(pivot) {
        let sum = *x + factor * y;
        *x = if sum >= limit { sum - limit } else { sum };
    }
}
