//! The smallest power of two that a sum of powers of two does not exceed.

/// The exponent of the smallest power of two that some positive numbers do not sum above. What rounding takes from
/// the sum is added up beside it.
pub(crate) fn power_above(terms: impl Iterator<Item = f64>) -> f64 {
    let (sum, lost) = terms.fold((0.0_f64, 0.0), |(sum, lost), term| {
        let (large, small) = (sum.max(term), sum.min(term));
        let next = large + small;
        (next, lost + (small - (next - large)))
    });
    let whole = sum + lost;
    let (fraction, power) = libm::frexp(whole);
    let is_power = fraction == 0.5 && lost - (whole - sum) <= 0.0;
    f64::from(power - i32::from(is_power))
}

/// The distinct values in ascending order, with how many there are of each: by counting where they lie close
/// together, otherwise by sorting.
pub(crate) fn levels(values: impl Iterator<Item = i64>) -> Vec<(i64, u64)> {
    let mut values: Vec<i64> = values.collect();
    let (Some(&lowest), Some(&highest)) = (values.iter().min(), values.iter().max()) else {
        return Vec::new();
    };
    let range = highest.abs_diff(lowest) as usize;
    if range < 2 * values.len() + 256 {
        let mut counts = vec![0; range + 1];
        values
            .iter()
            .for_each(|x| counts[(x - lowest) as usize] += 1);
        let levels = (lowest..).zip(counts);
        return levels.filter(|&(_, count)| count > 0).collect();
    }
    values.sort_unstable();
    let runs = values.chunk_by(|a, b| a == b);
    runs.map(|run| (run[0], run.len() as u64)).collect()
}

/// The smallest whole $\gamma$ with $\sum_j 2^{x_j} \le 2^\gamma$, given the distinct values of x in ascending order
/// and how many there are of each; `None` if there is none.
///
/// Going upwards, `sum` counts whole units of $2^{\text{value}}$, and `has_part` says whether a fraction of a unit
/// remains.
pub(crate) fn gamma(levels: impl IntoIterator<Item = (i64, u64)>) -> Option<i64> {
    let mut levels = levels.into_iter();
    let (mut value, mut sum) = levels.next()?;
    let mut has_part = false;
    for (next, count) in levels {
        let gap = next.abs_diff(value).min(64) as u32;
        let whole = sum.checked_shr(gap).unwrap_or(0);
        has_part |= whole.checked_shl(gap).unwrap_or(0) != sum;
        (value, sum) = (next, whole + count);
    }
    let over = sum - 1 + u64::from(has_part);
    Some(value + i64::from(u64::BITS - over.leading_zeros()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(values: &[i64]) -> Option<i64> {
        gamma(levels(values.iter().copied()))
    }

    #[test]
    fn gamma_is_the_smallest_power_that_bounds_the_sum() {
        let mut state = 1_u64;
        let mut random = |n: u64| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 33) % n
        };
        for _ in 0..2000 {
            let n = 1 + random(20) as usize;
            let range = [3, 20, 100][random(3) as usize];
            let values: Vec<i64> = (0..n).map(|_| random(range) as i64 - 50).collect();
            let lowest = *values.iter().min().unwrap();
            let sum: u128 = values.iter().map(|x| 1_u128 << (x - lowest)).sum();
            let bits = u128::BITS - (sum - 1).leading_zeros();
            assert_eq!(of(&values), Some(lowest + i64::from(bits)), "{values:?}");
        }
    }

    #[test]
    fn no_term_is_too_small_to_count() {
        assert_eq!(of(&[]), None);
        assert_eq!(of(&[-7]), Some(-7));
        assert_eq!(of(&[0, -60]), Some(1));
        assert_eq!(of(&[0, -5_000]), Some(1));
        // A carry through a hundred places.
        let carry: Vec<i64> = (-100..0).chain([-100]).collect();
        assert_eq!(of(&carry), Some(0));
        assert_eq!(of(&[&carry[..], &[-100]].concat()), Some(1));
    }

    #[test]
    fn what_rounding_takes_lifts_a_sum_above_a_power() {
        let of = |terms: &[f64]| power_above(terms.iter().copied());
        assert_eq!(of(&[1.0]), 0.0);
        assert_eq!(of(&[1.0, 1e-300]), 1.0);
        assert_eq!(of(&[1e-300, 1.0]), 1.0);
        assert_eq!(of(&[0.5, 1e-20, 0.5]), 1.0);
        assert_eq!(of(&[0.5, 0.25, 0.25]), 0.0);
        assert_eq!(of(&[1.0 - 1e-16, 0.4e-16]), 0.0);
        assert_eq!(of(&[3.0, 0.5]), 2.0);
    }
}
