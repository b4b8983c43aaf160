//! The properties of the models.

mod a_decoder_layer_is_its_parts;
mod a_sentence_classifier_is_one_file;
mod a_text_translator_is_one_file;
mod a_training_starts_from_a_model;
mod a_translator_reverses;
mod an_encoder_layer_is_its_parts;
mod attention_options;
mod by_weights;
mod common;
mod every_mechanism_decodes_or_is_refused;
mod language_models;
mod next_events_are_foretold;
mod one_trainer_trains_all;
mod padding_changes_nothing;
mod rational_quadratic;
mod rows_attend_to_rows;
mod settings_are_checked_when_they_are_read;
mod tables_are_filled_in;
mod the_example_classifies;
mod the_example_translates;
mod the_example_writes;
mod trainers_train_what_they_accept;
mod translators;
mod weights_of_torch;
