//! The properties of the models.

mod an_encoder_layer_is_its_parts;
mod one_trainer_trains_all;
mod padding_changes_nothing;
mod settings_are_checked_when_they_are_read;
