// SPDX-License-Identifier: Apache-2.0
/* handoffs.h - acts that make shared pools, and send and receive by them. */
#ifndef FAILURE_HANDOFFS_H
#define FAILURE_HANDOFFS_H

#include "failure/scene.h"

/* A shared pool that nobody has used. */
void handoff_prepare(struct scene *scene);

int create_shared(struct scene *scene);
int attach_shared(struct scene *scene);

/* A tensor goes through a slot and arrives in the leaf. */
int cross(struct scene *scene);

/* Objects are made, composed, given and lent in a slot; what fails changes no counter. */
int work_in_a_slot(struct scene *scene);

#endif
