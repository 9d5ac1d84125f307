// SPDX-License-Identifier: Apache-2.0
/*
 * steps.h - sites and their steps where memory fails: a step begins or it does not; what is learnt
 * from it is lost at most.
 */
#ifndef FAILURE_STEPS_H
#define FAILURE_STEPS_H

#include "failure/scene.h"

int create_a_site(struct scene *scene);

/* A site without steps. */
void steps_prepare(struct scene *scene);

/* A site with a plan. */
void steps_prepare_planned(struct scene *scene);

int begin_a_step(struct scene *scene);
int take_some_steps(struct scene *scene);
int take_larger_steps(struct scene *scene);
int take_steps_in_rows(struct scene *scene);
int keep_from_steps(struct scene *scene);

#endif
