//! The properties, one function each.

use super::*;

/// Numbers of an array whose gradients are compared with finite differences.
pub(super) const PROBES: usize = 12;

pub(super) fn check_gradients<T: Real>(
    arrays: &Arrays<T>,
    learnt: &[T],
    make: &dyn Fn(&[T]) -> Settings<T>,
    pull: &dyn Fn(&Gradients<T>) -> Vec<T>,
) -> Result<(), Failure> {
    if T::NAME != "f64" {
        return Ok(());
    }
    let loss = |arrays: &Arrays<T>, learnt: &[T]| {
        let [q, k, v] = arrays.views();
        let output = attend(&make(learnt), q, k, v).map(|(output, _)| output);
        output.map_or(f64::NAN, |output| {
            (&output * &arrays.cotangent).sum().as_f64()
        })
    };
    let results = run_with(&make(learnt), arrays, !learnt.is_empty(), pull)?;
    for (which, (name, got)) in results.parts().enumerate().skip(1) {
        let [q, k, v] = arrays.views().map(|x| x.to_slice().expect("owned"));
        let numbers = [q, k, v, learnt][which - 1];
        if got.len() != numbers.len() {
            return Err(Failure::new(
                "all numbers have a gradient",
                format!("the {name}"),
                got.len(),
                numbers.len(),
            ));
        }
        let largest = got
            .iter()
            .fold(1e-3, |most: f64, x| most.max(x.as_f64().abs()));
        // An odd step meets every column.
        for n in (0..got.len()).step_by(got.len().div_ceil(PROBES) | 1) {
            let (mut moved, mut moved_learnt) = (arrays.clone(), learnt.to_vec());
            let mut loss_at = |x: f64| {
                let [q, k, v] = [&mut moved.q, &mut moved.k, &mut moved.v]
                    .map(|x| x.as_slice_mut().expect("owned"));
                [q, k, v, &mut moved_learnt][which - 1][n] = T::of(x);
                loss(&moved, &moved_learnt)
            };
            let want = finite_difference(&[numbers[n].as_f64()], |x| loss_at(x[0]))[0];
            if !is_near(got[n].as_f64(), want, 1e-6 * largest) {
                let place = format!("number {n} of the {name}");
                return Err(Failure::new(
                    "gradients are those of finite differences",
                    place,
                    got[n],
                    want,
                ));
            }
        }
    }
    Ok(())
}

pub(super) fn dropout() -> DropoutMask {
    DropoutMask::new(0.3, Seed::new(5)).expect("a rate")
}

/// Checks that the output is made of the weights, with and without dropout.
pub(super) fn check_weights<T: Real>(
    case: &Case,
    settings: &Settings<T>,
    arrays: &Arrays<T>,
    sums_to_one: bool,
) -> Result<(), Failure> {
    let [q, k, v] = arrays.views();
    let (all, heads, tolerance) = (
        weights(settings, q, k)?,
        q.dim().1,
        Tolerance::outputs::<T>(),
    );
    for (b, m, i) in ndarray::indices((case.batch, heads, case.queries)) {
        let sees = (0..case.keys).any(|j| case.sees(settings, [b, m, i, j], heads));
        let (sum, want) = (
            all.slice(s![b, m, i, ..]).sum(),
            T::of(f64::from(u8::from(sees))),
        );
        if sums_to_one || !sees {
            let name = format!("sums of row {i}, head {m} and example {b}");
            compare(
                "weights of visible keys sum to one",
                &name,
                (&[sum], &[want]),
                Some(tolerance),
            )?;
        }
    }
    for dropout in [settings.dropout, Some(dropout())] {
        let settings = Settings {
            dropout,
            ..settings.clone()
        };
        let (mut got, mut want) = (Vec::new(), Vec::new());
        if accepts(&settings, arrays)? {
            got.extend(attend(&settings, q, k, v)?.0);
            let factor = |n| dropout.map_or(T::one(), |dropout| dropout.factor(n));
            let mut dropped = all.clone();
            dropped
                .iter_mut()
                .zip(0..)
                .for_each(|(x, n)| *x *= factor(n));
            for (b, m) in ndarray::indices((case.batch, heads)) {
                want.extend(
                    dropped
                        .slice(s![b, m, .., ..])
                        .dot(&v.slice(s![b, m, .., ..])),
                );
            }
        }
        compare(
            "the output is the sum of the weighted values",
            "output",
            (&got, &want),
            Some(tolerance),
        )?;
    }
    Ok(())
}

/// Checks that whatever no query sees changes no bit.
pub(super) fn check_hidden<T: Real>(
    case: &Case,
    settings: &Settings<T>,
    arrays: &Arrays<T>,
) -> Result<(), Failure> {
    let (heads, queries, keys) = (arrays.q.dim().1, case.queries, case.keys);
    let clean = run(settings, arrays, true)?;
    let most = T::max_value();
    for wrong in [
        T::nan(),
        T::infinity(),
        -T::infinity(),
        most,
        -most,
        most.sqrt(),
        most.sqrt().sqrt(),
    ] {
        let mut arrays = arrays.clone();
        for (b, m) in ndarray::indices((case.batch, heads)) {
            let sees = |i, j| case.sees(settings, [b, m, i, j], heads);
            for i in (0..queries).filter(|&i| !(0..keys).any(|j| sees(i, j))) {
                [&mut arrays.q, &mut arrays.cotangent]
                    .into_iter()
                    .for_each(|x| x.slice_mut(s![b, m, i, ..]).fill(wrong));
            }
            for j in (0..keys).filter(|&j| !(0..queries).any(|i| sees(i, j))) {
                [&mut arrays.k, &mut arrays.v]
                    .into_iter()
                    .for_each(|x| x.slice_mut(s![b, m, j, ..]).fill(wrong));
            }
        }
        let property = "whatever no query sees changes nothing";
        run(settings, &arrays, true)?
            .compare(property, &clean, None)
            .map_err(|failure| failure.under(&wrong.to_string()))?;
    }
    Ok(())
}

/// Checks that whatever a row does not see changes no bit of it.
pub(super) fn check_rows<T: Real>(
    trial: &Trial<T>,
    case: &Case,
    settings: &Settings<T>,
    arrays: &Arrays<T>,
) -> Result<(), Failure> {
    let clean = run(settings, arrays, true)?;
    let redrawn: Array4<f64> = random(arrays.k.raw_dim(), "other keys");
    for (m, i) in ndarray::indices((trial.heads, case.queries)) {
        let mut arrays = arrays.clone();
        for j in (0..case.keys).filter(|&j| !case.sees(settings, [0, m, i, j], trial.heads)) {
            let key = redrawn
                .slice(s![0, m, j, ..])
                .mapv(|x| T::of(x * trial.size));
            arrays.k.slice_mut(s![0, m, j, ..]).assign(&key);
            arrays.v.slice_mut(s![0, m, j, ..]).fill(T::of(3.0));
        }
        let got = run(settings, &arrays, true)?;
        // The gradient along a row's query is the row's own, too.
        for (n, part) in PARTS.into_iter().enumerate().take(2) {
            let [got, want] = [&got, &clean].map(|all| all.0[n].slice(s![0, m, i, ..]).to_vec());
            let name = format!("{part} in row {i} of head {m}");
            compare(
                "whatever a row does not see does not change it",
                &name,
                (&got, &want),
                None,
            )?;
        }
    }
    Ok(())
}

/// Checks that heads of queries may share keys and values.
pub(super) fn check_shared_heads<T: Real>(
    trial: &Trial<T>,
    case: &Case,
    settings: &Settings<T>,
) -> Result<(), Failure> {
    let shared = trial.arrays(case, 1);
    let repeat = |x: &Array4<T>| {
        let (batch, _, time, width) = x.dim();
        x.broadcast((batch, trial.heads, time, width))
            .expect("one head")
            .to_owned()
    };
    let repeated = Arrays {
        k: repeat(&shared.k),
        v: repeat(&shared.v),
        ..shared.clone()
    };
    let Results([output, q, k, v], learnt) = run(settings, &repeated, trial.learns())?;
    let [k, v] = [k, v].map(|x| x.sum_axis(Axis(1)).insert_axis(Axis(1)));
    let want = Results([output, q, k, v], learnt);
    let got = run(settings, &shared, trial.learns())?;
    got.compare(
        "shared heads are repeated ones",
        &want,
        Some(Tolerance::gradients::<T>()),
    )
}

/// Checks that all forms and blocks give the same numbers, over several blocks.
pub(super) fn check_forms<T: Real>(trial: &Trial<T>, case: &Case) -> Result<(), Failure> {
    let of = |form| Settings {
        form,
        ..trial.make(&case.mask)
    };
    let small = Form::Blocked(Blocks {
        queries: 7,
        keys: 64,
    });
    if trial.is_scan() {
        return Ok(());
    }
    let arrays = trial.arrays(case, trial.heads);
    let want = run(&of(Form::Pairwise), &arrays, trial.learns())?;
    for form in [Form::LinearTime, small, Form::Automatic] {
        if accepts(&of(form), &arrays)? {
            let got = run(&of(form), &arrays, trial.learns())?;
            let result = got.compare("all forms agree", &want, Some(Tolerance::gradients::<T>()));
            result.map_err(|failure| failure.under(&format!("{form:?}")))?;
        }
    }
    Ok(())
}

/// Checks that decoding is attending, whatever the cuts.
pub(super) fn check_decoding<T: Real>(
    trial: &Trial<T>,
    case: &Case,
    settings: Settings<T>,
) -> Result<(), Failure> {
    let arrays = trial.arrays(case, trial.heads);
    if settings.check_decoding().is_err() || !accepts(&settings, &arrays)? {
        return Ok(());
    }
    let [q, k, v] = arrays.views();
    let length = case.keys;
    let near = |got: &Array4<T>, want: ArrayView4<T>, place: &str| {
        let [got, want] = [got.view(), want].map(|x| x.iter().copied().collect::<Vec<_>>());
        compare(
            "decoding is attending",
            place,
            (&got, &want),
            Some(Tolerance::gradients::<T>()),
        )
    };
    let (whole, _) = attend(&settings, q, k, v)?;
    let step = |decoder: &mut Decoder<T>, from: usize, to: usize, order: [usize; 2]| {
        let of = |x: ArrayView4<T>| x.slice(s![.., .., from..to, ..]).select(Axis(0), &order);
        let [q, k, v] = [q, k, v].map(of);
        let got = decoder.step(q.view(), k.view(), v.view())?;
        near(
            &got,
            of(whole.view()).view(),
            &format!("positions {from}..{to}"),
        )
    };
    let size = DecoderSize {
        batch: 2,
        heads: trial.heads,
        width: trial.width,
        value_width: trial.value_width,
    };
    let straight = [0, 1];
    for cuts in [
        (0..=length).collect::<Vec<_>>(),
        vec![0, 3, 4, 40, length - 3, length],
    ] {
        let mut decoder = Decoder::new(&settings, size)?;
        cuts.windows(2)
            .try_for_each(|cut| step(&mut decoder, cut[0], cut[1], straight))?;
        if decoder.truncate(length - 2).is_ok() {
            step(&mut decoder, length - 2, length, straight)?;
        }
    }
    let mut decoder = Decoder::new(&settings, size)?;
    step(&mut decoder, 0, length - 1, straight)?;
    decoder.reorder(&[1, 1])?;
    step(&mut decoder, length - 1, length, [1, 1])?;
    let mut memory = Decoder::new(&settings, size)?;
    memory.push(k, v, None)?;
    let last = s![.., .., length - 9.., ..];
    if let Ok(got) = memory.attend(q.slice(last)) {
        let (want, _) = attend(
            &Settings {
                mask: Mask::none(),
                ..settings
            },
            q,
            k,
            v,
        )?;
        near(&got, want.slice(last), "attention after all positions")?;
    }
    Ok(())
}
