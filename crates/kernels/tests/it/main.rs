//! The properties of kernels, densities and random features.

mod agrees_with_scikit_learn;
mod common;
mod densities_belong_to_their_kernels;
mod equal_points_are_stationary;
mod every_kernel_takes_any_input;
mod gram_matrices_are_positive_semi_definite;
mod kernel_is_bounded_and_normalised;
mod kernels;
mod proposition_4_uniform_bound;
mod random_features_converge;
mod random_features_of_softmax;
mod settings_survive_serde;
mod stationary_kernel_sees_only_differences;
