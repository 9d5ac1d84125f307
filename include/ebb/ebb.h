// SPDX-License-Identifier: Apache-2.0
/* ebb/ebb.h - all of ebb: region memory for ML steps. Start with ebb/region.h. */
#ifndef EBB_EBB_H
#define EBB_EBB_H

#include <ebb/alias.h>
#include <ebb/base.h>
#include <ebb/batch.h>
#include <ebb/cleanup.h>
#include <ebb/collate.h>
#include <ebb/copy.h>
#include <ebb/current.h>
#include <ebb/device.h>
#include <ebb/exchange.h>
#include <ebb/exhausted.h>
#include <ebb/handoff.h>
#include <ebb/lane.h>
#include <ebb/object.h>
#include <ebb/own.h>
#include <ebb/pool.h>
#include <ebb/promote.h>
#include <ebb/ragged.h>
#include <ebb/region.h>
#include <ebb/remote.h>
#include <ebb/report.h>
#include <ebb/sample.h>
#include <ebb/scope.h>
#include <ebb/sequence.h>
#include <ebb/step.h>
#include <ebb/tensor.h>
#include <ebb/value.h>
#include <ebb/view.h>

#endif
