// SPDX-License-Identifier: Apache-2.0
/* ebb/ebb.h - all of ebb: region memory for ML steps. Start with ebb/region.h. */
#ifndef EBB_EBB_H
#define EBB_EBB_H

#include <ebb/base.h>
#include <ebb/pool.h>
#include <ebb/promote.h>
#include <ebb/region.h>
#include <ebb/report.h>

#endif
