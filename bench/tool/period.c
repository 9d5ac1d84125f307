// SPDX-License-Identifier: Apache-2.0
/*
 * period.c - see period.h.
 *
 *     1  every allocation has a sort: thread, operation, size, place; and, where places have names,
 *        one without the size, which may vary with the input. The distances between two of a sort
 *        have a median, and a spread: half of what lies between their first and last tenth
 *     2  of the sorts that come often and evenly some are candidates: for each number of
 *        occurrences, as many of the most even ones as there is room for
 *     3  for each candidate: which share of what is born between its first and last occurrence dies
 *        before the next one? One pass over the blocks
 *     4  the best share, less a little, is what a shorter period must reach: the shortest one that
 *        does, with a hundredth of the bytes of any other that does, is the period of the program
 *     5  of the sorts with this period, wherever in it they lie, the one with the best share wins
 *        (in 4 and 5, where none has any: by the share that dies before the next but one)
 *     6  what is said of it is counted as report and advise count steps: another pass
 *
 * Very even sorts are tried first, and less even ones only where those find nothing that is well
 * worth it and has a hundredth of all bytes; the best of all levels counts. Linear in the events
 * for each candidate, and there are at most CANDIDATES of them twice on each of four levels, where
 * those of the levels before come again, and are not measured again.
 */
#include "period.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "complain.h"

enum { CANDIDATES = 96, PER_COUNT = 4, REACH_LEAST = 50, /* a fiftieth of the events */
       FAR = 4, FEW_OF = 20, LITTLE_OF = 100 };

static const double GIVEN_AWAY = 0.04, WORTH_IT = 0.7, BURSTS = 3, EVEN[] = {0.05, 0.15, 0.4, 1.0};

enum { LEVELS = sizeof EVEN / sizeof *EVEN };

struct sort {
    uint64_t key, bytes;
    uint32_t thread, count, filled;
    size_t at; /* its first place in search.at */
    double median, spread; /* of the distances, in events; spread relative to the median */
    uint16_t place;
    uint8_t op;
    bool any_size, varies; /* it is of the place alone; it has more than one size */
};

struct life {
    uint32_t birth, death; /* lines; death UINT32_MAX: never */
    uint64_t bytes;
};

struct search {
    const struct ebb_trace *trace;
    const struct places *places;
    struct sort *sort;
    size_t sorts, mask;
    struct life *life;
    size_t lives;
    uint32_t *at;   /* lines of all sorts, those of each together and in order */
    uint32_t *next; /* by line: how many anchors there were until then */
    uint32_t *time; /* by line: how many events there were until then; markers are none */
    struct known *known;
};

/* ---- sorts */

static uint64_t mix(uint64_t value) {
    value *= UINT64_C(0x9e3779b97f4a7c15);
    return value ^ value >> 29;
}

static bool grow(struct search *search) {
    size_t mask = 2 * search->mask + 1;
    struct sort *larger = calloc(mask + 1, sizeof *larger);
    if (!larger)
        return false;
    for (size_t i = 0; search->sort && i <= search->mask; i++) {
        if (!search->sort[i].count)
            continue;
        size_t at = search->sort[i].key & mask;
        while (larger[at].count)
            at = (at + 1) & mask;
        larger[at] = search->sort[i];
    }
    free(search->sort);
    search->sort = larger;
    search->mask = mask;
    return true;
}

static uint64_t key_of(uint32_t thread, const struct trace_event *event, uint16_t place,
                       bool any_size) {
    uint64_t bytes = any_size ? 0 : event->value, which = any_size ? 1u << 24 : 0;
    return mix(mix(mix(thread) + bytes) + (which | (uint64_t)place << 8 | event->op)) | 1;
}

/* The slot of a sort, which may be empty. */
static struct sort *slot_of(const struct search *search, uint64_t key) {
    size_t at = key & search->mask;
    while (search->sort[at].count && search->sort[at].key != key)
        at = (at + 1) & search->mask;
    return &search->sort[at];
}

static bool count_sort(struct search *search, uint32_t thread, const struct trace_event *event,
                       uint16_t place, bool any_size) {
    if (search->sorts > search->mask / 2 && !grow(search))
        return false;
    uint64_t key = key_of(thread, event, place, any_size);
    struct sort *sort = slot_of(search, key);
    sort->varies |= sort->count && sort->bytes != event->value;
    if (sort->count++)
        return true;
    *sort = (struct sort){.key = key, .bytes = event->value, .thread = thread, .count = 1,
                          .place = place, .op = event->op, .any_size = any_size};
    search->sorts++;
    return true;
}

/* Number 0 is that of all places for which there was no number. */
static bool has_name(const struct search *search, uint16_t place) {
    return search->places->sites && place != 0;
}

/* A place that has a name is a sort itself, too: what it asks for may vary with the input. */
static bool count_sorts(struct search *search, uint32_t thread, const struct trace_event *event,
                        uint16_t place) {
    return count_sort(search, thread, event, place, false) &&
           (!has_name(search, place) || count_sort(search, thread, event, place, true));
}

static bool is_born(uint8_t op) {
    return op <= TRACE_REALLOC;
}

/* Lives of all blocks, and all sorts, in one pass. */
static bool look(struct search *search) {
    const struct ebb_trace *trace = search->trace;
    uint32_t thread = 0, time = 0;
    for (uint32_t i = 0; i < trace->event_count; i++) {
        const struct trace_event *event = &trace->events[i];
        search->time[i] = time;
        time += event->op >= TRACE_ALLOC && event->op <= TRACE_FREE;
        if (event->op == TRACE_THREAD)
            thread = event->index;
        if (event->op == TRACE_FREE || event->op == TRACE_REALLOC)
            search->life[event->index].death = i;
        if (!is_born(event->op))
            continue;
        size_t number = search->lives++;
        search->life[number] = (struct life){i, UINT32_MAX, event->value};
        if (event->op != TRACE_PREEXISTING &&
            !count_sorts(search, thread, event, search->places->of[number]))
            return false;
    }
    return true;
}

static void note_place(struct search *search, uint64_t key, uint32_t line) {
    struct sort *sort = slot_of(search, key);
    search->at[sort->at + sort->filled++] = line;
}

/* Fills search.at. */
static void note_places(struct search *search) {
    const struct ebb_trace *trace = search->trace;
    size_t used = 0, number = 0;
    uint32_t thread = 0;
    for (size_t i = 0; i <= search->mask; i++) {
        search->sort[i].at = used;
        used += search->sort[i].count;
    }
    for (uint32_t i = 0; i < trace->event_count; i++) {
        const struct trace_event *event = &trace->events[i];
        if (event->op == TRACE_THREAD)
            thread = event->index;
        if (!is_born(event->op))
            continue;
        uint16_t place = search->places->of[number++];
        if (event->op == TRACE_PREEXISTING)
            continue;
        note_place(search, key_of(thread, event, place, false), i);
        if (has_name(search, place))
            note_place(search, key_of(thread, event, place, true), i);
    }
}

/* ---- candidates */

static int by_size(const void *a, const void *b) {
    uint32_t one = *(const uint32_t *)a, two = *(const uint32_t *)b;
    return one < two ? -1 : one > two;
}

/* Events from one line to a later one. */
static uint32_t time_between(const struct search *search, uint32_t from, uint32_t to) {
    return search->time[to] - search->time[from];
}

static uint32_t reach_of(const struct search *search, const struct sort *sort) {
    return time_between(search, search->at[sort->at], search->at[sort->at + sort->count - 1]);
}

/* `distances` has room for all of them. */
static void measure_sort(const struct search *search, struct sort *sort, uint32_t *distances) {
    const uint32_t *at = &search->at[sort->at];
    uint32_t count = sort->count - 1;
    for (uint32_t i = 0; i < count; i++)
        distances[i] = time_between(search, at[i], at[i + 1]);
    qsort(distances, count, sizeof *distances, by_size);
    sort->median = distances[count / 2];
    sort->spread = (distances[count - 1 - count / 10] - distances[count / 10]) / 2.0 /
                   sort->median;
    double mean = (double)reach_of(search, sort) / count;
    if (mean > BURSTS * sort->median) /* close together now and then, and far apart otherwise */
        sort->spread += mean / sort->median;
}

static int by_count_and_spread(const void *a, const void *b) {
    const struct sort *one = *(const struct sort *const *)a, *two = *(const struct sort *const *)b;
    if (one->count != two->count)
        return one->count < two->count ? -1 : 1;
    return one->spread < two->spread ? -1 : one->spread > two->spread;
}

/* All sorts that may be anchors, by count; *count of them. To be freed. NULL: no memory. */
static const struct sort **list_sorts(struct search *search, size_t *count) {
    const struct sort **list = malloc((search->sorts + 1) * sizeof *list);
    uint32_t *distances = malloc((search->lives + 1) * sizeof *distances);
    *count = 0;
    for (size_t i = 0; list && distances && i <= search->mask; i++) {
        struct sort *sort = &search->sort[i];
        if (sort->count < PERIOD_LEAST || (sort->any_size && !sort->varies) ||
            reach_of(search, sort) < search->trace->totals.events / REACH_LEAST)
            continue;
        measure_sort(search, sort, distances);
        list[(*count)++] = sort;
    }
    if (list && distances)
        qsort(list, *count, sizeof *list, by_count_and_spread);
    free(distances);
    if (distances)
        return list;
    free(list);
    return NULL;
}

/* Those of the list that are even enough, at its beginning; how many. Their order stays. */
static size_t take_even(const struct sort **list, size_t count, const struct sort **even,
                        double most) {
    size_t taken = 0;
    for (size_t i = 0; i < count; i++)
        if (list[i]->spread <= most)
            even[taken++] = list[i];
    return taken;
}

/* ---- how good */

struct share {
    double bytes, blocks; /* that die before the next anchor */
    double born;          /* bytes of those that this is of */
    double second;        /* of the bytes: before the next but one */
    double alive;         /* bytes alive at an anchor, on average, over those alive at any time */
};

/* Fills `next`: how many anchors lie at or before each line. */
static void lay_anchors(const struct search *search, const uint32_t *at, uint32_t count) {
    uint32_t laid = 0;
    for (uint32_t i = 0; i < search->trace->event_count; i++) {
        laid += laid < count && at[laid] == i;
        search->next[i] = laid;
    }
}

/* Events from one anchor to the next. */
static uint32_t distance_at(const struct search *search, const struct sort *sort, uint32_t i) {
    const uint32_t *at = &search->at[sort->at + i];
    return time_between(search, at[0], at[1]);
}

/* What is much longer than others lies between steps: what is born there says nothing of them. */
static bool is_step(const struct search *search, const struct sort *sort, uint32_t i) {
    return distance_at(search, sort, i) <= FAR * sort->median;
}

/* At anchors in the middle of a step as much is alive as at any time; where a step ends, much
 * less. What lives through most steps is not looked at: it would outlive any step. What never ends
 * counts as born: steps that begin a program leave much of it. */
static struct share measure(const struct search *search, const struct sort *sort) {
    double born = 0, died = 0, second = 0, blocks = 0, died_blocks = 0, crossing = 0, living = 0;
    lay_anchors(search, &search->at[sort->at], sort->count);
    for (size_t i = 0; i < search->lives; i++) {
        const struct life *life = &search->life[i];
        uint32_t step = search->next[life->birth];
        if (step == 0 || step >= sort->count || !is_step(search, sort, step - 1))
            continue;
        bool ends = life->death != UINT32_MAX;
        uint32_t crossed = ends ? search->next[life->death] - step : 0;
        if (2 * crossed > sort->count)
            continue;
        born += (double)life->bytes;
        blocks++;
        if (!ends)
            continue;
        died += crossed ? 0 : (double)life->bytes;
        second += crossed > 1 ? 0 : (double)life->bytes;
        died_blocks += crossed == 0;
        crossing += (double)life->bytes * crossed;
        living += (double)life->bytes * time_between(search, life->birth, life->death);
    }
    double anchors = 0, events = 0;
    for (uint32_t i = 0; i + 1 < sort->count; i++)
        if (is_step(search, sort, i)) {
            anchors++;
            events += distance_at(search, sort, i);
        }
    return (struct share){born > 0 ? died / born : 0, blocks > 0 ? died_blocks / blocks : 0, born,
                          born > 0 ? second / born : 0,
                          living > 0 ? crossing / anchors / (living / events) : 1};
}

static double worth(struct share share) {
    return share.alive < 1 ? (share.bytes + share.blocks) / 2 * (1 - share.alive) : 0;
}

struct candidate {
    const struct sort *sort;
    struct share share;
    double merit; /* what it is chosen by */
};

/* All that were measured. */
struct known {
    struct candidate candidate[2 * CANDIDATES * LEVELS];
    int count;
};

static struct share share_of(const struct search *search, const struct sort *sort) {
    struct known *known = search->known;
    for (int i = 0; i < known->count; i++)
        if (known->candidate[i].sort == sort)
            return known->candidate[i].share;
    struct candidate *added = &known->candidate[known->count++];
    *added = (struct candidate){.sort = sort, .share = measure(search, sort)};
    return added->share;
}

/* `each` of each count, at most CANDIDATES; of more counts those are taken that most sorts have. */
static int pick(const struct sort **list, size_t count, struct candidate *picked, uint32_t least,
                size_t each) {
    int taken = 0;
    for (size_t i = 0; i < count && taken < CANDIDATES;) {
        size_t same = i;
        while (same < count && list[same]->count == list[i]->count)
            same++;
        if (same - i >= least)
            for (size_t j = i; j < same && j < i + each && taken < CANDIDATES; j++)
                picked[taken++].sort = list[j];
        i = same;
    }
    return taken;
}

/* As many of each count as there is room for: most of them lie in the midst of a step, where none
 * is good. */
static int pick_more(const struct sort **list, size_t count, struct candidate *picked,
                     uint32_t least) {
    size_t each = PER_COUNT;
    while (each < CANDIDATES && pick(list, count, picked, least, 2 * each) < CANDIDATES)
        each *= 2;
    return pick(list, count, picked, least, each);
}

/* Those whose count is that of `like`, give or take a fiftieth, spread over all there are. */
static int pick_like(const struct sort **list, size_t count, uint32_t like,
                     struct candidate *picked) {
    size_t first = 0, last = 0;
    int taken = 0;
    while (first < count && list[first]->count < like - like / 50)
        first++;
    for (last = first; last < count && list[last]->count <= like + like / 50;)
        last++;
    size_t stride = (last - first) / CANDIDATES + 1;
    for (size_t i = first; i < last && taken < CANDIDATES; i += stride)
        picked[taken++].sort = list[i];
    return taken;
}

/* The best merit: worth or, where all are worth nothing, what a ring of one step would end. */
static double measure_all(const struct search *search, struct candidate *picked, int count) {
    double best = 0;
    for (int i = 0; i < count; i++) {
        picked[i].share = share_of(search, picked[i].sort);
        picked[i].merit = worth(picked[i].share);
        best = fmax(best, picked[i].merit);
    }
    if (best > 0)
        return best;
    for (int i = 0; i < count; i++) {
        picked[i].merit = picked[i].share.second;
        best = fmax(best, picked[i].merit);
    }
    return best;
}

/* The candidate with most steps among those that are nearly as good as the best, and have more than
 * next to nothing of the bytes: a loop of its own is as good as a step can be. */
static const struct candidate *shortest(const struct candidate *picked, int count, double best) {
    const struct candidate *found = NULL;
    double most = 0;
    for (int i = 0; i < count; i++)
        if (picked[i].merit >= best - GIVEN_AWAY)
            most = fmax(most, picked[i].share.born);
    for (int i = 0; i < count; i++)
        if (picked[i].merit >= best - GIVEN_AWAY && picked[i].share.born >= most / LITTLE_OF &&
            (!found || picked[i].sort->count > found->sort->count))
            found = &picked[i];
    return found;
}

static const struct candidate *choose(const struct search *search, const struct sort **list,
                                      size_t count, struct candidate *picked) {
    uint32_t least = 1;
    int taken = pick(list, count, picked, least, PER_COUNT);
    while (taken == CANDIDATES && least < 1000) /* too many counts: the popular ones */
        taken = pick(list, count, picked, least *= 2, PER_COUNT);
    if (taken == 0)
        least /= 2;
    taken = pick_more(list, count, picked, least);
    const struct candidate *period =
        shortest(picked, taken, measure_all(search, picked, taken));
    if (!period)
        return NULL;
    taken = pick_like(list, count, period->sort->count, picked);
    double best = measure_all(search, picked, taken);
    for (int i = 0; i < taken; i++)
        if (picked[i].merit >= best)
            return &picked[i];
    return NULL;
}

/* ---- the answer */

/* The part of a fate that the end of a block born in this step belongs to. What ends behind the
 * last anchor never does: the steps end there. */
static struct amount *part_of(const struct search *search, struct anchor *best,
                              const struct life *life, uint32_t step) {
    uint32_t last = life->death == UINT32_MAX ? best->count : search->next[life->death];
    if (last == step)
        return &best->fate.died;
    if (last == best->count)
        return &best->fate.never;
    return last == step + 1 ? &best->fate.next : &best->fate.later;
}

static void add(struct amount *amount, uint64_t bytes) {
    amount->blocks++;
    amount->bytes += bytes;
}

/* As figures.c does it where these steps are marked: what other threads allocate is in no step. */
static void follow(const struct search *search, struct anchor *best) {
    const struct trace_event *events = search->trace->events;
    uint32_t thread = 0;
    size_t number = 0;
    lay_anchors(search, best->at, best->count);
    for (uint32_t i = 0; i < best->at[best->count - 1]; i++) {
        if (events[i].op == TRACE_THREAD)
            thread = events[i].index;
        if (!is_born(events[i].op))
            continue;
        const struct life *life = &search->life[number++];
        uint32_t step = search->next[i];
        if (step == 0 || events[i].op == TRACE_PREEXISTING)
            continue;
        if (thread != best->thread) {
            add(&best->outside, life->bytes);
            continue;
        }
        add(&best->fate.born, life->bytes);
        add(part_of(search, best, life, step), life->bytes);
    }
}

/* How many came by chance, long before the others: they begin no step. They are few, and no gap as
 * long as the one behind them comes again, as it does where epochs end. */
static uint32_t count_early(const struct search *search, const struct sort *sort) {
    const uint32_t *at = &search->at[sort->at];
    uint32_t few = sort->count / FEW_OF < PERIOD_LEAST ? PERIOD_LEAST - 1 : sort->count / FEW_OF;
    double longest = FAR * sort->median;
    for (uint32_t i = sort->count - 1; i > 0; i--) {
        double gap = time_between(search, at[i - 1], at[i]);
        if (gap > longest && i <= few && sort->count - i >= PERIOD_LEAST)
            return i;
        longest = fmax(longest, gap);
    }
    return 0;
}

static bool answer(const struct search *search, const struct candidate *chosen,
                   struct anchor *best) {
    const struct sort *sort = chosen->sort;
    const uint32_t *at = &search->at[sort->at];
    uint32_t first = count_early(search, sort);
    best->count = sort->count - first;
    best->at = calloc(best->count, sizeof *best->at);
    if (!best->at)
        return false;
    memcpy(best->at, at + first, best->count * sizeof *best->at);
    best->thread = sort->thread;
    best->bytes = sort->bytes;
    best->any_size = sort->any_size;
    best->place = sort->place;
    best->op = sort->op;
    best->events = sort->median;
    best->spread = sort->spread;
    follow(search, best);
    return true;
}

/* The evener one, unless the other is worth more than is given away, or nearly as much where the
 * evener one has next to nothing of its bytes; the later one of two that are worth nothing. */
static bool is_better(const struct candidate *one, const struct candidate *before) {
    double found = before->sort ? worth(before->share) : 0;
    bool is_more = before->share.born < one->share.born / LITTLE_OF;
    double least = is_more ? found - GIVEN_AWAY : found + GIVEN_AWAY;
    return found > 0 ? worth(one->share) > least : true;
}

static double bytes_of_all(const struct search *search) {
    double bytes = 0;
    for (size_t i = 0; i < search->lives; i++)
        bytes += (double)search->life[i].bytes;
    return bytes;
}

/* The even ones first. */
static bool find_best(struct search *search, const struct sort **list, size_t count,
                      struct anchor *best) {
    struct candidate picked[CANDIDATES], found = {0};
    const struct sort **even = malloc((count + 1) * sizeof *even);
    if (!even)
        return false;
    double enough = bytes_of_all(search) / LITTLE_OF;
    for (int i = 0; i < LEVELS; i++) {
        if (worth(found.share) >= WORTH_IT && found.share.born >= enough)
            break;
        size_t taken = take_even(list, count, even, EVEN[i]);
        const struct candidate *chosen = taken ? choose(search, even, taken, picked) : NULL;
        if (chosen && is_better(chosen, &found))
            found = *chosen;
    }
    free(even);
    return !found.sort || answer(search, &found, best);
}

bool period_find(struct anchor *best, const struct ebb_trace *trace, const struct places *places) {
    struct known known = {.count = 0};
    struct search search = {.trace = trace, .places = places, .mask = 511, .known = &known};
    const struct sort **list = NULL;
    size_t count = 0;
    *best = (struct anchor){0};
    search.life = calloc(trace->totals.objects + 1, sizeof *search.life);
    search.at = calloc(2 * trace->totals.objects + 1, sizeof *search.at);
    search.next = calloc((size_t)trace->event_count + 1, sizeof *search.next);
    search.time = calloc((size_t)trace->event_count + 1, sizeof *search.time);
    bool good = search.life && search.at && search.next && search.time && grow(&search) &&
                look(&search);
    if (good) {
        note_places(&search);
        list = list_sorts(&search, &count);
        good = list && find_best(&search, list, count, best);
    }
    free(list);
    free(search.sort);
    free(search.life);
    free(search.at);
    free(search.next);
    free(search.time);
    return good || complain("out of memory: %" PRIu32 " lines", trace->event_count);
}

void period_free(struct anchor *anchor) {
    free(anchor->at);
    *anchor = (struct anchor){0};
}
