// SPDX-License-Identifier: Apache-2.0
/*
 * recorded.c - the steps of a trace as instances.
 *
 * A section ends at the first death behind a birth, so it is a stretch in which nothing that died
 * makes room for something that is born: two blocks are alive together exactly if they share a
 * section. What is alive at the end of a step lives to its last section. Blocks are aligned to 16,
 * those of 1 KiB and more to 64, or as the program asked, and their sizes rounded up to as much.
 *
 * Invariant: each life has at least one section.
 */
#include "buffers.h"
#include "instance.h"
#include "steps.h"

enum { LARGE_ALIGN = 64, LARGE = 1024 };

static struct packing_buffer born(const struct step_event *event, uint32_t section) {
    uint32_t align = UINT32_C(1) << event->align_log2;
    if (event->bytes >= LARGE && align < LARGE_ALIGN)
        align = LARGE_ALIGN;
    return (struct packing_buffer){.lower = section, .upper = UINT32_MAX, .align = align,
                                   .bytes = (event->bytes + align - 1) / align * align};
}

static struct instance instance_of(const struct step *step) {
    struct instance instance = {.count = step->object_count};
    instance.buffers = buffer_resize(NULL, instance.count, sizeof *instance.buffers);
    uint32_t section = 0;
    bool birth = false;
    for (size_t i = 0; i < step->event_count; i++) {
        const struct step_event *event = &step->events[i];
        if (event->is_free) {
            section += birth;
            instance.buffers[event->object].upper = section;
        } else {
            instance.buffers[event->object] = born(event, section);
        }
        birth = !event->is_free;
    }
    for (uint32_t i = 0; i < instance.count; i++)
        if (instance.buffers[i].upper == UINT32_MAX)
            instance.buffers[i].upper = section + 1;
    return instance;
}

void recorded_collect(struct instances *instances, const struct ebb_trace *trace) {
    struct steps steps;
    steps_collect(&steps, trace);
    *instances = (struct instances){.count = steps.count};
    instances->instance = buffer_resize(NULL, steps.count, sizeof *instances->instance);
    for (size_t i = 0; i < steps.count; i++)
        instances->instance[i] = instance_of(&steps.step[i]);
    steps_free(&steps);
}
