//! Results depend neither on the number of threads nor on what else is in the batch.

use crate::built_in::SquaredProduct;
use crate::examples::{elu, retention, retention_scan};
use bochner_engine::ndarray::{Array4, s};
use bochner_engine::numerics::check::random;
use bochner_engine::{Error, Form, Gradients, Mask, Settings, Wanted, attend, attend_vjp};

fn kinds(mask: &Mask) -> Vec<Settings<f32>> {
    let in_linear_time = |settings: Settings<f32>| Settings {
        form: Form::LinearTime,
        ..settings
    };
    vec![
        Settings::softmax(mask),
        retention::settings(mask),
        Settings::pairs(SquaredProduct, mask),
        in_linear_time(Settings::pairs(SquaredProduct, mask)),
        Settings::features(elu::Elu { width: 8 }, mask),
        in_linear_time(Settings::features(elu::Elu { width: 8 }, mask)),
        Settings::scan(retention_scan::RetentionScan, mask),
    ]
}

fn run(settings: &Settings<f32>, x: &Array4<f32>) -> Result<(Array4<f32>, Gradients<f32>), Error> {
    let (output, saved) = attend(settings, x.view(), x.view(), x.view())?;
    let gradients = attend_vjp(
        settings,
        &saved,
        x.view(),
        x.view(),
        x.view(),
        x.view(),
        Wanted::default(),
    )?;
    Ok((output.to_owned(), gradients))
}

#[test]
fn threads_change_no_bit() -> Result<(), Error> {
    let x: Array4<f32> = random([2, 3, 700, 8], "x");
    let pool = |threads| {
        rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .build()
            .expect("a pool")
    };
    let pools = [1, 3].map(pool);
    for settings in kinds(&Mask::causal()) {
        let [one, three] = pools
            .each_ref()
            .map(|pool| pool.install(|| run(&settings, &x)));
        assert!(one? == three?, "{:?}", settings.kernel);
    }
    Ok(())
}

#[test]
fn neighbours_in_the_batch_change_no_bit() -> Result<(), Error> {
    let x: Array4<f32> = random([3, 2, 300, 8], "x");
    let lengths = vec![300, 190, 40];
    let all = kinds(&Mask::causal().with_key_lengths(lengths.clone()));
    for (b, &length) in lengths.iter().enumerate() {
        let alone = kinds(&Mask::causal().with_key_lengths(vec![length]));
        for (all, alone) in all.iter().zip(alone) {
            let ((output, gradients), of) = (run(all, &x)?, s![b..b + 1, .., .., ..]);
            let (own, of_own) = run(&alone, &x.slice(of).to_owned())?;
            let pairs = [
                (&output, &own),
                (&gradients.q, &of_own.q),
                (&gradients.k, &of_own.k),
                (&gradients.v, &of_own.v),
            ];
            for (all, own) in pairs {
                assert!(all.slice(of) == own, "{:?}", alone.kernel);
            }
        }
    }
    Ok(())
}

/// A tape keeps what a forward pass saves, on any thread.
#[test]
fn views_in_any_order_and_saved_passes_may_travel() -> Result<(), Error> {
    fn travels<T: Clone + Send + Sync + 'static>(_: &T) {}
    let x: Array4<f32> = random([2, 2, 20, 8], "x");
    for settings in kinds(&Mask::causal()) {
        let reordered = x
            .view()
            .permuted_axes([3, 2, 1, 0])
            .as_standard_layout()
            .into_owned();
        let view = reordered.view().permuted_axes([3, 2, 1, 0]);
        let (output, saved) = attend(&settings, view, view, view)?;
        travels(&saved);
        let gradients = attend_vjp(&settings, &saved, view, view, view, view, Wanted::default())?;
        assert!(
            (output.to_owned(), gradients) == run(&settings, &x)?,
            "{:?}",
            settings.kernel
        );
    }
    Ok(())
}

#[test]
fn later_positions_change_no_bit_of_earlier_rows() -> Result<(), Error> {
    let x: Array4<f32> = random([1, 2, 700, 8], "x");
    let mut later = x.clone();
    later
        .slice_mut(s![.., .., 333.., ..])
        .mapv_inplace(|x| 3.0 - 2.0 * x);
    let earlier = s![.., .., ..333, ..];
    for settings in kinds(&Mask::causal()) {
        let [(own, of_own), (all, of_all)] = [run(&settings, &x)?, run(&settings, &later)?];
        assert!(
            own.slice(earlier) == all.slice(earlier),
            "{:?}",
            settings.kernel
        );
        assert!(
            of_own.q.slice(earlier) == of_all.q.slice(earlier),
            "{:?}",
            settings.kernel
        );
    }
    Ok(())
}
