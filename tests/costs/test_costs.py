# SPDX-License-Identifier: Apache-2.0
"""What is linear: for eight times as many it takes eight times the instructions, as callgrind
counts them. That is the same in every run, however busy the machine is; times are not."""

import ctypes.util
import os
import platform
import re
import subprocess
import unittest

FACTOR = 8
MORE = 1.25  # trees grow deeper, tables are enlarged


def instructions(case, count, function="counted_*", program="EBB_COSTS", preloaded=None):
    """Of all calls of the function in the program, `costs` or another."""
    environment = dict(os.environ, **({"LD_PRELOAD": preloaded} if preloaded else {}))
    ran = subprocess.run(
        ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null",
         f"--toggle-collect={function}", os.environ[program], case, str(count)],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, env=environment)
    if ran.returncode != 0:
        raise AssertionError(f"{case} {count}: exit {ran.returncode}\n{ran.stdout}{ran.stderr}")
    return int(re.search(r"Collected : (\d+)", ran.stderr)[1])


class Linear(unittest.TestCase):
    def check(self, case, few, function="counted_*", program="EBB_COSTS"):
        least, most = (instructions(case, n, function, program) for n in (few, FACTOR * few))
        self.assertGreater(least, 10 * few, "the function was not found")
        print(f"# {case}: {least / few:.0f} each of {few}, {most / few / FACTOR:.0f} each of "
              f"{FACTOR * few}")
        self.assertLess(most, MORE * FACTOR * least)

    def test_kept_runs_are_given_back_wherever_they_are_listed(self):
        self.check("give_back_kept_runs", 1000)
        self.check("give_back_kept_runs_from_the_top", 1000)

    def test_relinking_does_not_depend_on_how_many_runs_there_are(self):
        self.check("relink_runs", 500)

    def test_closing_does_not_look_for_the_run_of_each_survivor(self):
        self.check("close_many_runs", 500, "depart_locked")

    def test_survivors_leave_their_run_whatever_the_order(self):
        self.check("release_in_order", 500)
        self.check("release_in_turns", 8000)
        self.check("release_in_any_order", 12000)

    def test_making_room_at_a_limit_does_not_look_at_all_that_is_cached(self):
        self.check("make_room_at_the_limit", 1000)

    def test_coming_back_does_not_depend_on_how_many_are_newer(self):
        self.check("return_the_lent", 500)

    def test_a_place_that_many_blocks_had_costs_no_more_than_others(self):
        self.check("serve_pairs_at_two_places", 1000)

    def test_a_block_is_found_however_many_were_to_have_its_place(self):
        self.check("find_before_many", 300, program="EBB_COSTS_PLANS")

    def test_many_steps_at_once_do_not_wait_for_each_other(self):
        self.check("bear_in_one_parent", 300)

    def test_many_blocks_promoted_to_one_parent_do_not_wait_for_each_other(self):
        self.check("promote_to_one_parent", 300)

    def test_a_step_that_ends_does_not_look_at_all_exports_for_each_of_its_own(self):
        self.check("end_exported", 200, "track_end_born")

    def test_packing_does_not_look_at_all_that_comes_while_a_buffer_lives(self):
        self.check("pack_long_lives", 2000)

    def test_a_rewind_looks_at_each_region_below_once(self):
        self.check("rewind_above_a_chain", 300, program="EBB_COSTS_REWINDS")

    def test_a_close_does_not_look_at_all_above_for_each_region_below(self):
        self.check("close_a_chain", 300, program="EBB_COSTS_REWINDS")

    def test_a_rewind_does_not_look_for_each_object_behind_those_of_others(self):
        self.check("rewind_behind_the_attached", 500, program="EBB_COSTS_REWINDS")

    def test_a_rewind_does_not_begin_anew_for_each_view_that_is_attached_elsewhere(self):
        self.check("rewind_above_attached_views", 500, program="EBB_COSTS_REWINDS")

    def test_stops_of_a_step_do_not_look_at_all_that_is_done_or_due(self):
        self.check("stop_behind_an_early_one", 1000)
        self.check("stop_where_blocks_go", 1000)

    def test_giving_back_between_blocks_does_not_look_for_the_run_of_each_gap(self):
        self.check("settle_gaps", 2000)

    def test_a_report_does_not_look_for_each_member_among_all_before_it(self):
        self.check("report_a_crowd", 1000)

    def test_a_try_beside_a_plan_does_not_look_at_all_its_blocks(self):
        self.check("full", 1000, program="EBB_COSTS_REFUSALS")
        self.check("gaps", 1000, program="EBB_COSTS_REFUSALS")

    @unittest.skipUnless("EBB_COSTS_SITES" in os.environ, "built without libebb-malloc")
    def test_a_site_of_scopes_costs_as_much_however_many_there_are(self):
        self.check("own_sites", 600, program="EBB_COSTS_SITES")
        self.check("one_site", 600, program="EBB_COSTS_SITES")
        self.check("turns", 100, "counted_turns", program="EBB_COSTS_SITES")


# Of a pair outside of scopes, what libebb-malloc may take above jemalloc. A gate takes three or
# four; realloc() comes between two, and malloc_usable_size().
MORE_THAN_JEMALLOC = {"malloc": 8, "large": 8, "new": 8, "many": 14, "sized": 0, "calloc": 0,
                      "realloc": 22, "usable": 13, "aligned": 0}


@unittest.skipUnless("EBB_COSTS_PAIRS" in os.environ, "built without libebb-malloc")
@unittest.skipUnless(platform.machine() == "x86_64", "gates are for x86-64")
class Pairs(unittest.TestCase):
    def test_pairs_outside_of_scopes_take_few_more_than_jemallocs(self):
        jemalloc = ctypes.util.find_library("jemalloc")
        if not jemalloc:
            self.skipTest("libjemalloc is not installed")
        for kind, more in MORE_THAN_JEMALLOC.items():
            ours, theirs = (instructions(kind, 4000, program="EBB_COSTS_PAIRS", preloaded=library)
                            / 4000 for library in (os.environ["EBB_COSTS_MALLOC"], jemalloc))
            print(f"# {kind}: {ours:.1f}, jemalloc {theirs:.1f}")
            with self.subTest(kind):
                self.assertGreater(theirs, 50, "the function was not found")
                self.assertLess(ours - theirs, more + 1)


class Bounded(unittest.TestCase):
    def test_warming_looks_at_few_tiles_for_each(self):
        """However much there is to look at: without a limit some 40,000 instructions."""
        each = instructions("warm_groups", 5000, "warm_places") / 5000
        print(f"# warm_groups: {each:.0f} each")
        self.assertGreater(each, 100, "it was not found")
        self.assertLess(each, 2000)

    def test_a_gap_that_no_block_fits_into_is_not_sorted(self):
        """Walking over 48 that are there takes more than 300."""
        each = instructions("leave_gaps", 5000, "fit_insert") / 5000
        print(f"# leave_gaps: {each:.0f} each")
        self.assertGreater(each, 10, "it was not found")
        self.assertLess(each, 80)

    def test_a_rewind_past_little_clears_little(self):
        """All that describes what lies behind in a window takes some 8,000."""
        each = instructions("rewind_a_little", 4000, "small_rewind", "EBB_COSTS_REWINDS") / 4000
        print(f"# rewind_a_little: {each:.0f} each")
        self.assertGreater(each, 100, "it was not found")
        self.assertLess(each, 1000)

    def test_a_step_without_tables_does_not_begin_with_a_walk_over_its_plan(self):
        """Which takes some 10 for each of the blocks."""
        begun = instructions("begin_without_tables", 4000)
        print(f"# begin_without_tables: {begun}")
        self.assertGreater(begun, 100, "it was not found")
        self.assertLess(begun, 4000)

    def test_a_merged_plan_that_is_too_high_is_refused_where_it_is(self):
        """To merge it all, and then to look, takes some 1,000."""
        each = instructions("merge_too_much", 4000, "draft_merge", "EBB_COSTS_PLANS") / 4000
        print(f"# merge_too_much: {each:.0f} each")
        self.assertGreater(each, 100, "it was not found")
        self.assertLess(each, 700)

    def test_a_plan_that_is_a_guess_is_packed_once(self):
        """In all orders that takes some 9,000."""
        each = instructions("plan_guesses", 2000, "draft_plan", "EBB_COSTS_PLANS") / 2000
        print(f"# plan_guesses: {each:.0f} each")
        self.assertGreater(each, 1000, "it was not found")
        self.assertLess(each, 4500)

    def test_a_step_that_asks_for_few_of_a_plans_blocks_pays_for_these(self):
        """To look at all others as well takes 80,000 and more."""
        for case in ("few_in_order", "few_that_wander"):
            step = instructions(case, 6000, program="EBB_COSTS_PLANS")
            print(f"# {case}: {step}")
            self.assertGreater(step, 1000, "it was not found")
            self.assertLess(step, 30000)
