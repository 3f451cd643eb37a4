"""Mechanisms that are broken on purpose, each in one way that was seen in living code or that a component can commit.

The tables say which check of the kit must catch which.
"""

from __future__ import annotations

from typing import Any

from tests.testing import (
    zoo_cells as cells,
    zoo_claims as claims,
    zoo_joint as joint,
    zoo_messages as messages,
    zoo_noise as noise,
    zoo_programs as programs,
    zoo_reports as reports,
    zoo_spaces as spaces,
    zoo_thresholds as thresholds,
)
from tests.testing.honest import HonestCounts, HonestSums, Plain
from tests.testing.undocumented import Undocumented

CAUGHT: dict[str, tuple[type[Any], ...]] = {
    "variance_is_as_declared": (
        noise.QuieterThanItSays,
        noise.QuieterSums,
        claims.WrongVariance,
    ),
    "empty_buckets_get_the_same_noise": (
        noise.EmptyBucketsSkipped,
        noise.HalvesTheNoiseOfLargeCounts,
        noise.HalvesTheNoiseOfLargeSums,
    ),
    "neighbours_are_hard_to_tell_apart": (
        noise.QuieterAndAdmitsIt,
        noise.LevelsNotCounted,
        noise.NeverMoreThanFivePureLevels,
        noise.RhoForEpsilon,
        noise.ShortTails,
        claims.CheaperOnPaper,
    ),
    "one_row_moves_no_mean_too_far": (
        noise.LevelsNotCounted,
        noise.BoundPerCoordinate,
        noise.NeverMoreThanFiveLevels,
        noise.NeverMuchNoise,
        noise.NeverMoreThanTenColumns,
        noise.ExactUnderAPrivateName,
    ),
    "secret_noise_has_the_declared_law": (noise.QuieterInSecret,),
    "budgets_in_a_foreign_measure_are_refused": (noise.RhoForEpsilon,),
    "noise_comes_from_the_rng_it_is_given": (
        noise.PublicNoise,
        noise.OwnNoise,
    ),
    "bias_is_as_declared": (
        noise.ClampedInSilence,
        reports.DropsUsers,
        reports.DropsRowsThatSkipALevel,
    ),
    "errors_are_within_the_declared_ones": (noise.ClampedAndBoastful,),
    "secret_noise_has_the_law_of_seeded_noise": (noise.ClampedAndQuietInSecret,),
    "secret_noise_has_the_law_of_seeded_noise_in_a_large_space": (noise.ClampedAndQuietInSecret,),
    "errors_are_within_the_declared_ones_in_a_large_space": (noise.ClampedAndBoastful,),
    "many_rows_get_the_same_noise": (noise.HalvesAndCallsItBias,),
    "noise_falls_on_either_side_alike": (noise.FlipsSignsSeldom,),
    "noises_are_independent": (
        noise.OneSeedForAllLevels,
        noise.CancellingNoise,
        noise.MirroredNoise,
        noise.GivesTheTotalAway,
        noise.PublicNoise,
    ),
    "noise_is_discrete": (noise.FloatNoise,),
    "events_cover_the_budget_and_no_more": (
        claims.DearerThanItsBudget,
        claims.ForeignMeasure,
        claims.PureOnPaper,
        claims.PurerThanItIs,
        claims.GaussianOnPaper,
        thresholds.DearerDelta,
    ),
    "discreteness_is_declared_truthfully": (
        claims.TouchesMoreThanItSays,
        claims.CoarserThanItSays,
    ),
    "what_it_costs_is_known_before_any_row": (claims.RemembersRows,),
    "options_can_be_given_as_text": (claims.NotPlain,),
    "it_is_frozen_and_equal_to_its_rebuilt_self": (claims.NotFrozen,),
    "the_guarantee_is_documented": (Undocumented,),
    "exact_answers_are_exact": (claims.NoisyExact,),
    "two_questions_have_independent_noise": (noise.ReusesNoise,),
    "sessions_answer_real_ids_only": (reports.FirstLevelOnly,),
    "a_vector_beyond_the_bound_is_clipped": (reports.DoublesVectors,),
    "one_trust_model_from_start_to_end": (programs.AsksLocally,),
    "replay_needs_no_rows": (programs.StartsAtARow,),
    "options_keep_to_their_bounds": (claims.NanPasses,),
    "every_option_and_slot_is_explained": (claims.Unexplained,),
    "rows_count_the_same_in_any_chunk_and_order": (
        reports.CentredOnTheBatch,
        reports.DrawsInRowOrder,
    ),
    "merging_is_associative_and_commutative": (
        reports.MergesInPlace,
        reports.DecodesInPlace,
    ),
    "absorb_refuses_what_no_encoder_sends": (reports.AbsorbsAnything,),
    "no_rows_are_valid_rows": (reports.FailsOnNoRows,),
    "a_bucket_always_answers_the_same": (reports.AnswersAnew,),
    "tables_neither_pickle_nor_print": (
        reports.TablesTravel,
        reports.TablesPrint,
    ),
    "one_report_hides_its_row": (
        reports.LouderReports,
        reports.SilentUsers,
        joint.OneNoiseForAllBuckets,
        joint.SendsItsBucketBeside,
    ),
    "a_coin_seldom_wrong_is_found": (
        reports.SignsSeldomDrawn,
        reports.VectorsSeldomTurned,
        reports.LongVectorsSeldomTurned,
        reports.SetsSeldomRight,
        reports.QuietVectors,
    ),
    "standard_error_is_that_of_an_empty_bucket": (reports.BoastfulReports,),
    "reports_travel_as_columns": (reports.LosesBitsOnTheWay,),
    "messages_travel_in_any_order": (
        messages.NamesUsers,
        messages.NeedsTheirOrder,
    ),
    "the_ideal_functionality_has_the_law_of_the_messages": (messages.QuieterWhenPooled,),
    "noise_does_not_shrink_where_counts_are_large": (messages.QuieterWhereMany,),
    "it_says_whom_it_counts_on": (messages.CountsOnMoreThanThereAre,),
    "messages_of_one_person_cannot_be_linked": (joint.OneTagForAll,),
    "a_message_hides_among_those_of_others": (
        joint.TheTagTellsTheValue,
        joint.MarksItsOwn,
    ),
    "any_counts_grow_a_coreset": (cells.GrowsNothing,),
    "children_are_in_their_parents": (cells.ChildrenElsewhere,),
    "the_schedule_does_not_depend_on_answers": (programs.StopsEarly,),
    "the_number_it_chooses_changes_no_question": (
        programs.AsksAboutItsChoice,
        programs.SaysAnotherNumber,
    ),
    "every_option_keeps_the_budget": (programs.BudgetOfThreeRounds,),
    "all_rounds_together_keep_the_budget": (programs.SwappedSplit,),
    "rows_are_reached_by_asking_only": (
        programs.StartsAtARow,
        programs.BringsItsOwnNoise,
        programs.AsksOnceMore,
    ),
    "only_answers_tell_of_the_rows": (
        programs.KeepsTheLastRows,
        programs.AsksOnceMore,
    ),
    "its_questions_see_each_row_alone": (
        programs.CentresOnTheBatch,
        programs.TestsTheBatch,
    ),
    "equal_answers_give_equal_centers": (programs.GlobalCoins,),
    "any_answers_give_centers_inside_the_domain": (
        programs.DividesByCounts,
        programs.LeavesTheDomain,
        programs.HandsOutTables,
    ),
    "any_released_points_give_k_finite_centers": (
        programs.PositiveOnly,
        programs.TooFew,
    ),
    "the_same_points_and_key_give_the_same_centers": (programs.GlobalStarts,),
    "points_and_weights_are_left_alone": (programs.ClipsWeights,),
    "empty_buckets_read_zero": (thresholds.EmptyOnesToo,),
    "a_lone_row_is_released_as_seldom_as_declared": (
        thresholds.LevelsFree,
        thresholds.CheapestDelta,
    ),
    "counts_are_hard_to_tell_apart": (thresholds.LouderThanPaid,),
    "released_counts_have_the_declared_noise": (thresholds.QuieterAbove,),
    "nested_levels_have_noise_of_their_own": (spaces.NoiseFromTheLeaves,),
    "nested_levels_are_added_up_exactly": (spaces.ForgetsTheOddOne,),
    "nested_errors_are_within_the_declared_ones": (spaces.NoiseFromTheLeavesIsCalledBias,),
}
"""Kinds of components that each check catches."""

IN_LARGE_SPACES: dict[str, type[Any]] = {
    "no_rows_are_valid_rows": reports.FailsOnNoRows,
    "rows_count_the_same_in_any_chunk_and_order": reports.CentredOnTheBatch,
    "merging_is_associative_and_commutative": reports.MergesInPlace,
    "absorb_refuses_what_no_encoder_sends": reports.AbsorbsAnything,
    "a_bucket_always_answers_the_same": reports.AnswersAnew,
    "tables_neither_pickle_nor_print": reports.TablesTravel,
    "bias_is_as_declared": reports.DropsUsers,
    "noise_comes_from_the_rng_it_is_given": noise.OwnNoise,
    "variance_is_as_declared": noise.QuieterThanItSays,
    "secret_noise_has_the_declared_law": noise.QuieterInSecret,
    "many_rows_get_the_same_noise": noise.HalvesAndCallsItBias,
    "empty_buckets_get_the_same_noise": noise.EmptyBucketsSkipped,
    "noises_are_independent": noise.CancellingNoise,
    "noise_is_discrete": noise.FloatNoise,
    "neighbours_are_hard_to_tell_apart": noise.LevelsNotCounted,
    "exact_answers_are_exact": claims.NoisyExact,
}
"""Those that each check catches far out in a space too large to list, too."""

MADE: dict[str, dict[str, tuple[Any, ...]]] = {
    "Bucketing": {
        "a_row_falls_in_the_same_bucket_in_any_batch": (
            cells.made(cells._Float64),
            cells.made(cells._MeanCentred),
            cells.made(cells._FittedOnce),
        ),
        "ids_are_those_of_the_nearest_centers": (cells.made(cells._LastTie),),
        "ids_are_within_the_space": (cells.made(cells._OneTooMany),),
        "its_digest_travels": (cells.made(cells._Addressed),),
        "nested_levels_are_halves": (spaces.nested_elsewhere,),
    },
    "Vectors": {
        "vectors_are_bounded_and_of_their_row_alone": (
            cells.long_vectors,
            cells.batch_vectors,
        ),
    },
    "Population": {
        "gathering_is_encoding_all_rows_at_once": (programs.LosesTheLastChunk,),
        "it_says_its_columns_and_checks_its_rows": (programs.TakesAnyNumber,),
        "unusable_rows_are_dropped_one_by_one": (programs.NanIsZero,),
        "users_keep_their_numbers": (
            programs.NewNumbers,
            programs.NumbersByRank,
            programs.NumbersWithoutNames,
        ),
        "no_rows_are_a_population": (programs.NeedsRows,),
        "a_population_counts_its_people": (programs.CountsEveryRow,),
        "gathering_again_reads_the_same_rows": (programs.ReadsOnce,),
    },
}
"""Makers that each check catches, by the role of what they make."""


def bred(kind: type[Any]) -> Any:
    """A specimen of its kind: a method's oracles are honest."""
    return kind(counts=HonestCounts(), sums=HonestSums()) if issubclass(kind, Plain) else kind()


# (specimen, role for makers, the check that catches it)
SPECIMENS: tuple[tuple[Any, str | None, str], ...] = (
    *((bred(kind), None, check) for check, kinds in CAUGHT.items() for kind in kinds),
    *((spaces.far_out(kind()), None, f"{check}_in_a_large_space") for check, kind in IN_LARGE_SPACES.items()),
    *((make, role, check) for role, table in MADE.items() for check, makers in table.items() for make in makers),
)
