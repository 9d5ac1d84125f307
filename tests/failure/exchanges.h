// SPDX-License-Identifier: Apache-2.0
/* exchanges.h - acts that export, import, and close a region of which exports are out. */
#ifndef FAILURE_EXCHANGES_H
#define FAILURE_EXCHANGES_H

#include "failure/scene.h"

/* A tensor in the leaf, and an empty region below it. */
void exchange_prepare(struct scene *scene);

int export_shared(struct scene *scene);
int export_copied(struct scene *scene);
int import_shared(struct scene *scene);
int import_copied(struct scene *scene);

/* Many exports in the leaf, and blocks among them that depart. */
void export_some(struct scene *scene);
int close_with_exports(struct scene *scene);

#endif
