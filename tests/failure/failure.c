// SPDX-License-Identifier: Apache-2.0
/*
 * failure.c - every acquisition fails, for every scenario: the n-th once, and the n-th and all
 * later ones, for n = 1, 2, 3 ... until the scenario asks for no n-th. Where EBB_SHARE is above 1,
 * as in builds beside another that makes all, it is every fourth n, from one that is drawn.
 *
 * After each failure: the error is named, counters and contents are as before, the laws hold;
 * the same act succeeds once acquisitions are granted; nothing is left behind at the end. Each
 * attempt is a forked child, so that the first use of everything happens in it.
 */
#include "kit/test.h"

#include "base/os.h"
#include "failure/fault.h"
#include "failure/scene.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { NOT_REACHED = 10, MOST_ACQUISITIONS = 2000 };

/* What must hold between a failed act and its repetition. */
static void check_failed(const struct scenario *scenario, const struct scene *scene, int code,
                         struct sight *before) {
    struct sight after;
    if (code != 1) { /* trim has no code: it says how much is left */
        DEMAND(code == EBB_E_MEMORY || code == EBB_E_NO_SPACE);
        DEMAND(ebb_last_error() == code && ebb_last_error_text()[0]);
    }
    scene_look(scene, &after);
    if (scenario->loose & SCENE_MAY_KEEP_PAGES) {
        scene_forget_pages(before);
        scene_forget_pages(&after);
    }
    if (!(scenario->loose & SCENE_MAY_SUCCEED))
        DEMAND(scene_is_same(before, &after));
    scene_check(scene);
}

/* One attempt; its exit code says whether the n-th acquisition was reached. */
static int attempt(const struct scenario *scenario, unsigned nth, bool forever) {
    static struct scene scene;
    struct sight before;
    if (!scenario->bare)
        scene_make(&scene);
    if (scenario->prepare)
        scenario->prepare(&scene);
    scene_look(&scene, &before);
    fault_arm(nth, forever);
    int code = scenario->act(&scene);
    unsigned refused = fault_disarm();
    DEMAND(refused || code == 0);
    if (code)
        check_failed(scenario, &scene, code, &before);
    scene_check(&scene);
    if (code)
        DEMAND(scenario->act(&scene) == 0);
    scene_check(&scene);
    scene_end(&scene);
    return refused ? 0 : NOT_REACHED;
}

static int run_child(const struct scenario *scenario, unsigned nth, bool forever) {
    int status;
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0)
        _exit(attempt(scenario, nth, forever));
    assert_true(waitpid(child, &status, 0) == child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* From one acquisition that is tried to the next. */
static unsigned stride(void) {
    return number_from("EBB_SHARE", 1) > 1 ? 4 : 1;
}

static void fail_at_acquisitions(const struct scenario *scenario, bool forever) {
    for (unsigned nth = 1 + (unsigned)rand() % stride(); nth < MOST_ACQUISITIONS; nth += stride()) {
        int result = run_child(scenario, nth, forever);
        if (result == NOT_REACHED)
            return;
        if (result)
            fail_msg("%s: acquisition %u failing %s: exit code %d", scenario->name, nth,
                     forever ? "from then on" : "once", result);
    }
    fail_msg("%s never stops acquiring", scenario->name);
}

static void survives_one_failure(void **state) {
    fail_at_acquisitions(*state, false);
}

static void survives_lasting_failure(void **state) {
    fail_at_acquisitions(*state, true);
}

/* Runs last, where all were tried: a kind that no scenario ever asked for would make the suite say
 * too much. */
static void every_kind_of_acquisition_was_refused(void **state) {
    const unsigned *counts = *state;
    for (unsigned kind = 0; kind < OS_ACQUISITIONS; kind++)
        if (!counts[kind])
            fail_msg("internal acquisition %u was never refused", kind);
    for (unsigned kind = FAULT_RESERVE; kind < FAULT_KINDS; kind++)
        if (!counts[kind])
            fail_msg("system acquisition %u was never refused", kind);
}

int main(void) {
    unsigned *counts = mmap(NULL, FAULT_KINDS * sizeof *counts, PROT_READ | PROT_WRITE,
                            MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (counts == MAP_FAILED)
        return 1;
    fault_count_into(counts);
    srand((unsigned)fresh_seed());
    static struct CMUnitTest tests[200];
    static char names[200][96];
    unsigned count = 0;
    for (unsigned i = 0; i < scenario_count; i++)
        for (int forever = 0; forever < 2; forever++, count++) {
            snprintf(names[count], sizeof *names, "%s_%s", scenarios[i].name,
                     forever ? "survives_lasting_failure" : "survives_one_failure");
            tests[count] = (struct CMUnitTest){
                .name = names[count],
                .test_func = forever ? survives_lasting_failure : survives_one_failure,
                .initial_state = (void *)(uintptr_t)&scenarios[i]};
        }
    if (stride() == 1)
        tests[count++] = (struct CMUnitTest){.name = "every_kind_of_acquisition_was_refused",
                                             .test_func = every_kind_of_acquisition_was_refused,
                                             .initial_state = counts};
    return _cmocka_run_group_tests("failure", tests, count, NULL, NULL);
}
