//! The properties of cleaning, vocabularies, batches, subwords, scores and searches.

mod batches_hold_every_sentence_once;
mod bleu_is_a_sum_over_lines;
mod bytes_are_lines;
mod chrf_agrees_with_sacrebleu;
mod cleaning_follows_the_written_rule;
mod codes_name_their_defects;
mod lines_are_detokenised;
mod merges_are_those_of_full_recounts;
mod searches_agree_with_enumeration;
mod settings_are_checked_when_read;
mod ter_agrees_with_sacrebleu;
mod tokenizers_agree;
mod vocabularies_know_themselves;
