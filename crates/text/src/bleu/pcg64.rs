//! The generator of numpy, with which sacrebleu draws.

/// The permuted congruential generator that `numpy.random.default_rng` uses: PCG64 with a 128-bit state.
///
/// With the same seed it draws the lines that sacrebleu draws. Intervals and p-values agree, except for sacrebleu's
/// divisions in single precision.
///
/// ```
/// use bochner_text::bleu::Pcg64;
///
/// // numpy.random.default_rng(12345).choice(200, size=4)
/// let mut rng = Pcg64::new(12345);
/// assert_eq!([(); 4].map(|()| rng.below(200)), [139, 45, 157, 63]);
/// ```
///
/// # Reference
/// M. E. O'Neill, *PCG: a family of simple fast space-efficient statistically good algorithms for random
/// number generation*, 2014; D. Lemire, *Fast random integer generation in an interval*, 2019.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pcg64 {
    state: u128,
    increment: u128,
    /// The high half of the last output, if only its low half was used.
    half: Option<u32>,
}

const MULTIPLIER: u128 = 0x2360_ED05_1FC6_5DA4_4385_DF64_9FCC_F645;

impl Pcg64 {
    /// The generator of a seed.
    pub fn new(seed: u64) -> Self {
        let words = SeedSequence::of(seed).words();
        let wide = |at: usize| {
            let word = |at: usize| u128::from(words[at]);
            // The first 64 bits are the high half; of these, the first 32 are the low half.
            (word(at + 1) << 96) | (word(at) << 64) | (word(at + 3) << 32) | word(at + 2)
        };
        let increment = (wide(4) << 1) | 1;
        let state = increment.wrapping_add(wide(0));
        let mut rng = Self::from_state(state, increment);
        rng.step();
        rng
    }

    /// The generator in a state, as numpy reports it.
    pub fn from_state(state: u128, increment: u128) -> Self {
        Self {
            state,
            increment,
            half: None,
        }
    }

    /// The state and the increment.
    pub fn state(&self) -> (u128, u128) {
        (self.state, self.increment)
    }

    fn step(&mut self) {
        let state = self.state.wrapping_mul(MULTIPLIER);
        self.state = state.wrapping_add(self.increment);
    }

    /// The next 64 bits.
    pub fn next_u64(&mut self) -> u64 {
        self.step();
        let folded = (self.state >> 64) as u64 ^ self.state as u64;
        folded.rotate_right((self.state >> 122) as u32)
    }

    /// The next 32 bits: the low half of an output, then its high half.
    pub fn next_u32(&mut self) -> u32 {
        self.half.take().unwrap_or_else(|| {
            let word = self.next_u64();
            self.half = Some((word >> 32) as u32);
            word as u32
        })
    }

    /// A number below `n`, each with the same probability. One number is left for `n` of 0 or 1: zero,
    /// for which nothing is drawn.
    pub fn below(&mut self, n: u32) -> u32 {
        if n <= 1 {
            return 0;
        }
        let smallest = n.wrapping_neg() % n;
        loop {
            let product = u64::from(self.next_u32()) * u64::from(n);
            if product as u32 >= smallest {
                return (product >> 32) as u32;
            }
        }
    }
}

/// The words that numpy makes of a seed.
struct SeedSequence {
    pool: [u32; 4],
}

/// Multiplies and mixes words, with a constant that changes from word to word.
struct Mixer {
    constant: u32,
    factor: u32,
}

impl Mixer {
    fn mix(&mut self, word: u32) -> u32 {
        let word = word ^ self.constant;
        self.constant = self.constant.wrapping_mul(self.factor);
        let word = word.wrapping_mul(self.constant);
        word ^ (word >> 16)
    }
}

fn combine(x: u32, y: u32) -> u32 {
    let mixed = x
        .wrapping_mul(0xCA01_F9DD)
        .wrapping_sub(y.wrapping_mul(0x4973_F715));
    mixed ^ (mixed >> 16)
}

impl SeedSequence {
    fn of(seed: u64) -> Self {
        let mut mixer = Mixer {
            constant: 0x43B0_D7E5,
            factor: 0x931E_8875,
        };
        let mut pool = [seed as u32, (seed >> 32) as u32, 0, 0].map(|word| mixer.mix(word));
        for source in 0..pool.len() {
            for target in (0..pool.len()).filter(|&target| target != source) {
                pool[target] = combine(pool[target], mixer.mix(pool[source]));
            }
        }
        Self { pool }
    }

    fn words(&self) -> [u32; 8] {
        let mut mixer = Mixer {
            constant: 0x8B51_F9DD,
            factor: 0x58F3_8DED,
        };
        std::array::from_fn(|at| mixer.mix(self.pool[at % self.pool.len()]))
    }
}
