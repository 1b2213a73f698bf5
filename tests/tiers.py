"""What gates a merge and what is tried every night; CONTRIBUTING.md says what runs when."""

from typing import Any
from zlib import crc32

import pytest

EVERY_THIRD = {
    "tests/app/test_bad_input.py::test_an_unusual_text_is_remarked_on",
    "tests/app/test_claims_page.py::test_the_numbers_are_the_models",
    "tests/app/test_clicked_rows.py::test_the_cell_of_a_grid",
    "tests/app/test_clicked_rows.py::test_the_row_of_a_list",
    "tests/app/test_compare_page.py::test_swapping_twice_changes_nothing_and_once_exchanges_the_matrices",
    "tests/app/test_comparing_bundles.py::TestComparing::test_is_not_offered_without_the_weights",
    "tests/app/test_comparing_bundles.py::TestComparing::test_nothing_is_promised_before",
    "tests/app/test_failed_jobs.py::test_is_explained_and_can_be_made_once_more",
    "tests/app/test_first_screen_map.py::test_settings_of_the_map_are_in_its_note_and_in_the_link",
    "tests/app/test_first_screen_sentence.py::test_a_preset_shows_its_sentence_and_picks_its_query",
    "tests/app/test_history_page.py::test_other_families",
    "tests/app/test_inputs_page.py::test_a_text_of_special_tokens_alone_has_none_to_take_away",
    "tests/app/test_kinds_of_attention_page.py::test_what_the_model_would_fill_in",
    "tests/app/test_lessons.py::test_a_step_shows_what_its_text_names",
    "tests/app/test_links.py::test_a_wrong_value_falls_back_and_it_is_said",
    "tests/app/test_literal.py::test_no_token_alone_is_taken_for_markup",
    "tests/app/test_models_on_screen.py::TestKinds::test_each_kind_draws",
    "tests/app/test_opened_bundles.py::TestOpening::test_is_left",
    "tests/app/test_query_key_map_page.py::test_every_method_with_everything_it_is_fed_with",
    "tests/app/test_step_by_step_page.py::test_every_number_is_the_traces",
    "tests/app/test_step_by_step_page.py::test_what_layer_0_reads",
    "tests/parity/test_anatomy.py::test_a_layer_multiplied_out",
    "tests/parity/test_answers.py::TestTokens::test_as_transformers_own",
    "tests/parity/test_copying.py::test_is_that_of_the_whole_matrix",
    "tests/parity/test_families.py::TestLadder::test_layers_and_heads_are_the_model_s",
    "tests/parity/test_families.py::TestRefused::test_because_it_does_not_pass_through_our_attention",
    "tests/parity/test_families.py::TestRefused::test_with_a_reason",
    "tests/parity/test_input_attribution.py::test_every_method_that_is_there_gives_a_number_for_every_token",
    "tests/parity/test_input_attribution.py::test_gradient_times_input_is_that_of_transformers",
    "tests/parity/test_input_attribution.py::test_sum_of_integrated_gradients",
    "tests/parity/test_interventions.py::test_the_residual_stream_of_another_text_gives_the_other_text",
    "tests/parity/test_interventions.py::test_variants_of_a_batch_equal_one_at_a_time",
    "tests/parity/test_lens.py::test_each_layer_as_the_model_that_stops_there",
    "tests/parity/test_logit_attribution.py::test_parts_of_a_logit_sum_to_it",
    "tests/parity/test_logit_attribution.py::test_parts_of_the_last_hidden_state_sum_to_its_length",
    "tests/parity/test_output_weights.py::test_heads_add_up_to_what_the_output_projection_gives",
    "tests/parity/test_output_weights.py::test_norm_based_weights_are_lengths_of_what_the_model_s_own_projection_makes",
    "tests/parity/test_score_sources.py::test_parts_sum_to_the_model_s_own_product",
    "tests/unit/test_broken_checkpoints.py::TestWrapped::test_loads_and_equals_the_plain_one",
    "tests/unit/test_bundle_changes.py::TestRefused::test_a_document",
    "tests/unit/test_bundle_changes.py::TestRefused::test_arrays",
    "tests/unit/test_bundle_changes.py::test_each_is_read_as_it_was_written",
    "tests/unit/test_bundle_refusals.py::TestHostileFiles::test_with_a_provenance_that_does_not_fit",
    "tests/unit/test_bundle_refusals.py::TestHostileFiles::test_with_arrays_that_do_not_fit_each_other",
    "tests/unit/test_bundle_round_trip.py::TestRoundTrip::test_is_exact",
    "tests/unit/test_bundle_verification.py::TestFails::test_on_what_somebody_changed",
    "tests/unit/test_bundle_verification.py::TestPasses::test_what_models_of_other_families_made",
    "tests/unit/test_bundle_verification.py::TestPasses::test_what_was_masked_paired_or_cut",
    "tests/unit/test_cli.py::TestExport::test_of_a_head_that_is_not_there_is_an_error",
    "tests/unit/test_cli.py::test_an_error_is_one_line_and_exits_with_2",
    "tests/unit/test_continuation.py::test_the_attention_of_every_step_is_recorded",
    "tests/unit/test_continuation.py::test_the_most_likely_tokens_are_those_of_transformers",
    "tests/unit/test_deletion.py::test_every_point_is_a_run_of_its_own",
    "tests/unit/test_generation_settings.py::test_a_decoder_starts_as_generate_does",
    "tests/unit/test_patch_maps.py::test_every_kind_of_state",
    "tests/unit/test_patch_maps.py::test_the_gradient_s_patches_are_those_of_torch_s_autograd",
    "tests/unit/test_patching.py::test_encoder_and_decoder",
    "tests/unit/test_path_patching.py::test_every_sender",
    "tests/unit/test_predictions.py::test_every_position_as_transformers_own",
    "tests/unit/test_presets.py::test_the_numbers_are_those_of_transformers",
    "tests/unit/test_verification.py::TestFails::test_when_the_weights_are_not_the_model_s",
    "tests/unit/test_verification.py::TestFails::test_when_the_weights_are_the_model_s_and_other_numbers_are_not",
}
"""Dear tests with many cases of one kind: a third of the cases gates a merge, of each test another one, the rest is tried every
night."""


def mark_nightly(items: list[pytest.Item]) -> None:
    """Marks the cases of those tests that do not gate."""
    counts = {name: crc32(name.encode()) % 3 for name in EVERY_THIRD}
    for item in items:
        name = item.nodeid.partition("[")[0]
        if name in counts:
            if counts[name] % 3:
                item.add_marker(pytest.mark.nightly)
            counts[name] += 1


def first_gates(*cases: Any) -> list[Any]:
    """Parameters of a test, a tuple for each case of several; the first alone gates a merge, the others are tried every night."""
    first, *others = (case if isinstance(case, tuple) else (case,) for case in cases)
    return [pytest.param(*first), *(pytest.param(*case, marks=pytest.mark.nightly) for case in others)]
