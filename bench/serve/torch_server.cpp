// SPDX-License-Identifier: Apache-2.0
/*
 * torch_server.cpp - torch-server: torch behind HTTP, without Python.
 *
 * The model of torch_server.py in C++: an embedding, an LSTM, attention over what it has seen. No
 * threads of torch's own. Built only where torch's headers are.
 */
#define AT_PER_OPERATOR_HEADERS // the few that are called: all of them take twice as long
#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/lstm.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/zeros.h>

#include <cmath>
#include <cstdio>
#include <cstring>
#include <exception>
#include <vector>

#include "server.h"

namespace {

constexpr int64_t vocabulary = 512, width = 32;

struct Model {
    at::Tensor embedding = at::randn({vocabulary, width});
    std::vector<at::Tensor> lstm = {scaled(4 * width, width), scaled(4 * width, width),
                                    at::zeros({4 * width}), at::zeros({4 * width})};
    at::Tensor head = scaled(width, ANSWER_FLOATS);

    static at::Tensor scaled(int64_t rows, int64_t columns) {
        return at::randn({rows, columns}) / std::sqrt(static_cast<double>(width));
    }

    at::Tensor operator()(const at::Tensor &tokens) const {
        const at::Tensor given = at::embedding(embedding, tokens).unsqueeze(1);
        const at::Tensor zero = at::zeros({1, 1, width});
        const auto made = at::lstm(given, {zero, zero}, lstm, true, 1, 0.0, false, false, false);
        const at::Tensor seen = std::get<0>(made).squeeze(1);
        const at::Tensor scores = at::matmul(seen, seen.t()) / std::sqrt(double{width});
        return at::matmul(at::matmul(at::softmax(scores, -1), seen).mean(0), head);
    }
};

const Model *model;

bool infer(const int32_t *tokens, size_t count, float answer[ANSWER_FLOATS]) {
    try {
        const c10::InferenceMode inference;
        const at::Tensor given = at::from_blob(const_cast<int32_t *>(tokens),
                                               {static_cast<int64_t>(count)}, at::kInt);
        const at::Tensor made = (*model)(given.to(at::kLong)).contiguous();
        std::memcpy(answer, made.data_ptr<float>(), ANSWER_FLOATS * sizeof(float));
        return true;
    } catch (const std::exception &why) {
        std::fprintf(stderr, "torch-server: %s\n", why.what());
        return false;
    }
}

} // namespace

int main() {
    at::set_num_threads(1);
    at::manual_seed(1);
    const c10::InferenceMode inference;
    const Model made;
    model = &made;
    return server_run(infer);
}
