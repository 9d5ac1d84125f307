// SPDX-License-Identifier: Apache-2.0
/* step_objects.h - objects of planned steps where memory fails, some of them born in the parent. */
#ifndef FAILURE_STEP_OBJECTS_H
#define FAILURE_STEP_OBJECTS_H

#include "failure/scene.h"

/* A site without steps. */
void step_objects_begin(struct scene *scene);

/* A site whose steps keep objects and blocks in their parent, and has learnt it. */
void step_objects_prepare(struct scene *scene);

/* Such steps; steps that do else with what was born in the parent. */
int keep_objects_from_steps(struct scene *scene);
int do_else_with_objects_of_steps(struct scene *scene);

#endif
