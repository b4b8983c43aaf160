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

#[cfg(test)]
mod tests {
    use super::*;
    use bochner_numerics::Seed;
    use rand::Rng;

    fn random(rows: usize, columns: usize, prime: u64, purpose: &str) -> Vec<Vec<u64>> {
        let mut stream = Seed::new(5).stream(purpose);
        let mut row = || (0..columns).map(|_| stream.gen_range(0..prime)).collect();
        (0..rows).map(|_| row()).collect()
    }

    #[test]
    fn products_of_thin_matrices_have_the_rank_of_their_middle() {
        for prime in [2, 3, 101, 1_000_003, LARGEST] {
            for middle in [1, 3, 7] {
                let left = random(20, middle, prime, "left");
                let right = random(30, middle, prime, "right");
                let product = |row: &Vec<u64>| {
                    let column = |column: &Vec<u64>| dot(row, column, prime);
                    right.iter().map(column).collect()
                };
                let rows = left.iter().map(product).collect();
                let got = rank(rows, prime);
                // Modulo a small prime, random factors often have a smaller rank themselves.
                let want = rank(left, prime).min(rank(right, prime));
                assert!(
                    if prime < 1000 {
                        got <= want
                    } else {
                        got == middle
                    },
                    "{prime}"
                );
            }
        }
    }

    #[test]
    fn ranks_worked_out_by_hand() {
        let rows = vec![vec![0, 2, 1], vec![0, 1, 3], vec![0, 3, 4]];
        assert_eq!(rank(rows.clone(), 7), 2);
        assert_eq!(rank(rows, 5), 1); // 2 * (0, 1, 3) = (0, 2, 1) modulo 5.
        assert_eq!(rank(vec![vec![0; 3]; 2], 7), 0);
        assert_eq!(rank(Vec::new(), 7), 0);
    }

    #[test]
    fn sums_of_the_largest_remainders_do_not_overflow() {
        let most = [LARGEST - 1; 1000];
        assert_eq!(dot(&most, &most, LARGEST), 1000); // (-1)^2, a thousand times.
    }

    #[test]
    fn primes_are_told_from_other_numbers() {
        let primes: Vec<u64> = (0..30).filter(|&n| is_prime(n)).collect();
        assert_eq!(primes, [2, 3, 5, 7, 11, 13, 17, 19, 23, 29]);
        assert!(is_prime(1_000_003) && is_prime(LARGEST) && !is_prime(LARGEST - 2));
    }
}
