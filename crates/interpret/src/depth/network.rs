//! Exact separation ranks of deep linear self-attention, modulo a prime.

use super::modular::{LARGEST, dot, is_prime, rank};
use crate::Error;
use bochner_numerics::{Seed, argument, parallel};
use ndarray::{Array2, Array3, Array4, ArrayView1, ArrayView2, ArrayView3, ArrayView4, s};
use rand::Rng;

/// Self-attention without softmax, activations, norms and residual stream, with whole numbers modulo a prime.
///
/// $$y_i = \sum_h W^O_h \sum_j \langle W^Q_h x_i, W^K_h x_j \rangle W^V_h x_j$$
///
/// *where* $j$ runs over all tokens, $i$ included; heads are summed, and nothing is divided by $\sqrt d$. $L$ such
/// layers are a polynomial, homogeneous of degree $3^L$ in the tokens.
///
/// # Reference
/// Levine et al., *Limits to depth efficiencies of self-attention*, NeurIPS 2020; sums over all tokens,
/// the token itself included, and the arithmetic modulo a prime are ours.
#[derive(Clone, Debug, PartialEq)]
pub struct ModularNetwork {
    prime: u64,
    width: usize,
    layers: Vec<Vec<Head>>,
}

/// The maps of one head, as the sums need them: $y_i = \sum_j \langle R x_i, x_j \rangle P x_j$.
#[derive(Clone, Debug, PartialEq)]
struct Head {
    /// $R = (W^K)^\top W^Q$, `[d, d]` by rows.
    score: Vec<u64>,
    /// $P = W^O W^V$, `[d, d]` by rows.
    value: Vec<u64>,
}

/// The number that is read out: one component of one token after the last layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Readout {
    /// The token; those of the first part come first.
    pub token: usize,
    /// The component.
    pub component: usize,
}

/// The rank of a network's values on a grid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SeparationRank {
    /// The rank of the grid.
    pub rank: usize,
    /// The settings of the first and of the second part.
    pub grid: [usize; 2],
}

impl SeparationRank {
    /// Whether the grid is too small to tell: the rank of the function is at least `rank`.
    pub fn is_lower_bound(&self) -> bool {
        self.rank >= self.grid[0].min(self.grid[1])
    }
}

/// The separation rank of a random network of `heads` heads and `depth` layers, for three tokens on either side.
///
/// The least $R$ with $y = \sum_{r \le R} g_r(x_A) g'_r(x_B)$ is the rank of the matrix of the values of $y$ at
/// `grid` random settings of $x_A$ times `grid` random ones of $x_B$, if the grid is larger: see
/// [`SeparationRank::is_lower_bound`]. Modulo a large prime, chance lowers a rank with a probability of about
/// the degree over the prime.
///
/// # Errors
/// The errors of [`ModularNetwork::random`]; [`Error::Argument`] for a grid of 0.
///
/// # Numerics
/// Exact, modulo 1,000,003. $O(G^2 L H T d^2)$ for the grid and $O(G^2 R)$ for the rank.
///
/// # Reference
/// Levine et al. 2020 for the rank; exact ranks by elimination modulo a prime are ours.
///
/// ```
/// use bochner_interpret::separation_rank;
/// use bochner_numerics::Seed;
///
/// // One layer, one head: the width plus one.
/// let seen = separation_rank([3, 1, 1], 8, Seed::new(1))?;
/// assert!(seen.rank == 4 && !seen.is_lower_bound());
/// # Ok::<(), bochner_interpret::Error>(())
/// ```
pub fn separation_rank(
    [width, heads, depth]: [usize; 3],
    grid: usize,
    seed: Seed,
) -> Result<SeparationRank, Error> {
    const PRIME: u64 = 1_000_003;
    argument::at_least_one("grid", grid)?;
    let network = ModularNetwork::random([width, heads, depth], PRIME, seed)?;
    let mut stream = seed.stream("inputs");
    let mut inputs =
        || Array3::from_shape_simple_fn((grid, 3, width), || stream.gen_range(0..PRIME as i64));
    let (a, b) = (inputs(), inputs());
    let read = Readout {
        token: 0,
        component: 0,
    };
    network.separation_rank(a.view(), b.view(), read)
}

impl ModularNetwork {
    /// A network with these maps; numbers are taken modulo the prime.
    ///
    /// # Shapes
    /// `q, k, v: [L, H, d/H, d]`, `o: [L, H, d, d/H]`.
    ///
    /// # Errors
    /// [`Error::Argument`] for a modulus that is not prime or not below $2^{31}$, no elements, or shapes that do not
    /// fit each other.
    pub fn new(
        prime: u64,
        [q, k, v]: [ArrayView4<i64>; 3],
        o: ArrayView4<i64>,
    ) -> Result<Self, Error> {
        check_prime(prime)?;
        argument::not_empty("wq", q.shape())?;
        let (depth, heads, inner, width) = q.dim();
        argument::shape("wk", q.shape(), k.shape())?;
        argument::shape("wv", q.shape(), v.shape())?;
        argument::shape("wo", &[depth, heads, width, inner], o.shape())?;
        let product = |left: Array2<u64>, right: Array2<u64>| -> Vec<u64> {
            let columns: Vec<Vec<u64>> = right.columns().into_iter().map(|x| x.to_vec()).collect();
            let row = |row: ArrayView1<u64>| {
                let row = row.to_vec();
                let products = columns.iter().map(|column| dot(&row, column, prime));
                products.collect::<Vec<_>>()
            };
            left.outer_iter().flat_map(row).collect()
        };
        let head = |l: usize, h: usize| {
            let of = |w: &ArrayView4<i64>| w.slice(s![l, h, .., ..]).mapv(|x| remainder(x, prime));
            Head {
                score: product(of(&k).reversed_axes(), of(&q)),
                value: product(of(&o), of(&v)),
            }
        };
        let layer = |l| (0..heads).map(|h| head(l, h)).collect();
        Ok(Self {
            prime,
            width,
            layers: (0..depth).map(layer).collect(),
        })
    }

    /// A network with random maps.
    ///
    /// # Errors
    /// [`Error::Argument`] for a width, a number of heads or a depth of 0, heads that do not divide the width, or
    /// a wrong prime.
    pub fn random(
        [width, heads, depth]: [usize; 3],
        prime: u64,
        seed: Seed,
    ) -> Result<Self, Error> {
        argument::at_least_one("width", width)?;
        argument::at_least_one("depth", depth)?;
        argument::heads(heads, width)?;
        check_prime(prime)?;
        let mut stream = seed.stream("maps");
        let mut map = |rows, columns| {
            let shape = (depth, heads, rows, columns);
            Array4::from_shape_simple_fn(shape, || stream.gen_range(0..prime as i64))
        };
        let inner = width / heads;
        let [q, k, v] = [(); 3].map(|()| map(inner, width));
        let o = map(width, inner);
        Self::new(prime, [q.view(), k.view(), v.view()], o.view())
    }

    /// The number that is read out, for every setting of the first part with every one of the second, `[Ga, Gb]`.
    ///
    /// # Shapes
    /// `a: [Ga, Ta, d]`, the first tokens, `b: [Gb, Tb, d]`, the last.
    ///
    /// # Errors
    /// [`Error::Argument`] for another width, no elements, or a token or a component that does not exist.
    pub fn grid(
        &self,
        a: ArrayView3<i64>,
        b: ArrayView3<i64>,
        read: Readout,
    ) -> Result<Array2<u64>, Error> {
        for (name, x) in [("xa", a), ("xb", b)] {
            argument::not_empty(name, x.shape())?;
            argument::shape(name, &[x.dim().0, x.dim().1, self.width], x.shape())?;
        }
        argument::index("token", read.token, a.dim().1 + b.dim().1)?;
        argument::index("component", read.component, self.width)?;
        let settings = |x: ArrayView3<i64>| -> Vec<Vec<u64>> {
            let setting =
                |x: ArrayView2<i64>| x.iter().map(|&x| remainder(x, self.prime)).collect();
            x.outer_iter().map(setting).collect()
        };
        let (first, second) = (settings(a), settings(b));
        let row = |i: usize| -> Vec<u64> {
            let value = |b: &Vec<u64>| self.value([&first[i][..], b].concat(), read);
            second.iter().map(value).collect()
        };
        let rows = parallel::map(first.len(), row).concat();
        Ok(Array2::from_shape_vec((first.len(), second.len()), rows).expect("a row each"))
    }

    /// The rank of the [`grid`](Self::grid).
    ///
    /// # Errors
    /// The errors of [`grid`](Self::grid).
    pub fn separation_rank(
        &self,
        a: ArrayView3<i64>,
        b: ArrayView3<i64>,
        read: Readout,
    ) -> Result<SeparationRank, Error> {
        let grid = self.grid(a, b, read)?;
        let rows = grid.outer_iter().map(|row| row.to_vec()).collect();
        Ok(SeparationRank {
            rank: rank(rows, self.prime),
            grid: grid.dim().into(),
        })
    }

    /// One component of one token after all layers, from the tokens one after the other.
    fn value(&self, mut tokens: Vec<u64>, read: Readout) -> u64 {
        let (width, prime) = (self.width, self.prime);
        let (last, before) = self.layers.split_last().expect("at least one layer");
        for heads in before {
            tokens = self.layer(heads, &tokens);
        }
        // The last layer is computed for the one number that is read out.
        let seed = &tokens[read.token * width..][..width];
        let of_head = |head: &Head| {
            let score = self.mapped(&head.score, seed);
            let value = &head.value[read.component * width..][..width];
            let pairs = tokens.chunks_exact(width);
            let pairs = pairs.map(|x| dot(&score, x, prime) * dot(value, x, prime) % prime);
            pairs.sum::<u64>() % prime
        };
        last.iter().map(of_head).sum::<u64>() % prime
    }

    fn layer(&self, heads: &[Head], tokens: &[u64]) -> Vec<u64> {
        let (width, prime) = (self.width, self.prime);
        let mut outputs = vec![0; tokens.len()];
        for head in heads {
            let values = tokens
                .chunks_exact(width)
                .map(|x| self.mapped(&head.value, x));
            let values: Vec<Vec<u64>> = values.collect();
            let pairs = tokens
                .chunks_exact(width)
                .zip(outputs.chunks_exact_mut(width));
            for (x, y) in pairs {
                let score = self.mapped(&head.score, x);
                for (key, value) in tokens.chunks_exact(width).zip(&values) {
                    let weight = dot(&score, key, prime);
                    for (y, v) in y.iter_mut().zip(value) {
                        *y = (*y + weight * v) % prime;
                    }
                }
            }
        }
        outputs
    }

    fn mapped(&self, map: &[u64], x: &[u64]) -> Vec<u64> {
        let rows = map.chunks_exact(self.width);
        rows.map(|row| dot(row, x, self.prime)).collect()
    }
}

fn check_prime(prime: u64) -> Result<(), Error> {
    let fits = prime <= LARGEST && is_prime(prime);
    Ok(argument::in_range(
        fits,
        "prime",
        prime as f64,
        "a prime below 2^31",
    )?)
}

fn remainder(x: i64, prime: u64) -> u64 {
    x.rem_euclid(prime as i64) as u64
}
