// SPDX-License-Identifier: Apache-2.0
/*
 * ort_model.h - a model in onnxruntime, through its C API.
 *
 * Its arena is off, unless asked for: what malloc is given is then what the model's operators ask
 * for.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "message.h"

/* Loads libonnxruntime and the model. False: it failed, and has said why. */
bool ort_model_open(const char *library, const char *path, bool arena);

/* The same. Called by any number of threads. */
bool ort_model_infer(const int32_t *tokens, size_t count, float answer[ANSWER_FLOATS]);
