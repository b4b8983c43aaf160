//! Parameters of our models and of dfdx's are visited by name, and so are their gradients.

use bochner_nn::{
    Collection, Parameters, alloc_gradients, drain_gradients, flat_gradients, parameter_count,
    set_flat_gradients, zero_gradients,
};
use dfdx::prelude::*;

#[test]
fn only_the_gradients_of_parameters_are_kept() {
    let x: Tensor<(usize,), f64, Cpu> = Cpu::default().tensor_from_vec(vec![1.0, 2.0], (2,));
    let y = x.trace(alloc_gradients(&x).unwrap()).square();
    let inner = y.retaped::<NoneTape>();
    let mut gradients = y.sum().backward();
    assert_eq!(gradients.get(&x).as_vec(), [2.0, 4.0]);
    // Allocated afresh: the pass has dropped it.
    let inner = gradients.get_or_alloc_mut(&inner).unwrap();
    assert_eq!(**inner, [0.0, 0.0]);
    let mut sum = x.leaky_trace().sum().backward();
    drain_gradients(&x, &mut gradients, &mut sum).unwrap();
    assert_eq!(sum.get(&x).as_vec(), [3.0, 5.0]);
    assert_eq!(gradients.get(&x).as_vec(), [0.0, 0.0]);
    zero_gradients(&x, &mut sum).unwrap();
    assert_eq!(sum.get(&x).as_vec(), [0.0, 0.0]);
}

#[test]
fn flat_gradients_come_back_in_their_order() {
    let vector = |n| Cpu::default().zeros_like(&(n,));
    let model: Vec<Tensor<(usize,), f64, Cpu>> = vec![vector(2), vector(1)];
    let mut gradients = alloc_gradients(&model).unwrap();
    set_flat_gradients(&model, &mut gradients, &[1.0, 2.0, 3.0]).unwrap();
    assert_eq!(gradients.get(&model[0]).as_vec(), [1.0, 2.0]);
    assert_eq!(gradients.get(&model[1]).as_vec(), [3.0]);
    let flat = flat_gradients(&model, &mut gradients).unwrap();
    assert_eq!(flat, [1.0, 2.0, 3.0]);
    assert!(set_flat_gradients(&model, &mut gradients, &flat[1..]).is_err());
}

type Model = (Linear<2, 3>, BatchNorm2D<4>);

#[test]
fn tensors_dfdx_does_not_train_are_visited_as_such() {
    let mut model = Cpu::default().build_module::<Model, f32>();
    let trainable = model.num_trainable_params();
    let mut collection = Collection(&mut model);
    assert_eq!(parameter_count(&collection), trainable);
    let mut names = Vec::new();
    collection.for_each("model", &mut |name, p| {
        names.push((name.to_string(), p.is_trained()));
    });
    let mut again = Vec::new();
    collection.for_each_mut("model", &mut |name, p| {
        again.push((name.to_string(), p.is_trained()));
    });
    assert_eq!(names, again);
    assert!(names.contains(&("model.0.weight".to_string(), true)));
    assert!(names.contains(&("model.1.running_mean".to_string(), false)));
}

#[test]
fn what_is_written_is_read_back() {
    let mut model = Cpu::default().build_module::<Model, f32>();
    Collection(&mut model).for_each_mut("", &mut |_, p| {
        let values: Vec<f32> = (0..p.len()).map(|i| i as f32).collect();
        p.write(&values);
        let mut read = vec![7.0; 100];
        p.read_into(&mut read);
        assert_eq!(read, values);
    });
    assert_eq!(model.0.weight.array(), [[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]]);
    assert_eq!(model.1.running_var.array(), [0.0, 1.0, 2.0, 3.0]);
}
