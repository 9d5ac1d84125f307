// SPDX-License-Identifier: Apache-2.0
/*
 * driver.c - does with ebb what compare_sequences.py has torch do: cases from standard input,
 * results to standard output, both as numbers of 8 bytes and raw elements.
 *
 * A case is `struct request`, the further dimensions, the lengths, and the elements: of a padded
 * tensor, or of all sequences of a list one after the other. Those of a padded tensor come with
 * all dimensions reversed where the request says so: then ebb gets a view. A result is tensors:
 * count of dimensions, dimensions, bytes; -1 in place of the count if there is none.
 */
#include <ebb/ebb.h>

#include <stdio.h>
#include <stdlib.h>

enum operation { PACK, PACK_AND_PAD, PACK_LIST, PAD_LIST, UNPAD, UNPACK, INVERT, JOIN_AND_PAD };

struct request {
    int64_t operation, code, bits, batch_first, sorted, result_batch_first, reversed;
    int64_t total_length; /* -1: not asked for */
    int64_t value_kind, value; /* bits of the number */
    int64_t count, padded_length, dimensions, bytes;
};

struct scene {
    struct request request;
    ebb_region region;
    struct ebb_dtype dtype;
    int64_t shape[EBB_DIMENSIONS_MAX];
    int64_t *lengths;
    void *elements;
    struct ebb_tensor **list;
    struct ebb_pack_options pack;
    struct ebb_pad_options pad;
};

static void need(int holds, const char *what) {
    if (holds)
        return;
    fprintf(stderr, "driver: %s: %s\n", what, ebb_last_error_text());
    exit(1);
}

static bool get(void *to, size_t bytes) {
    return bytes == 0 || fread(to, bytes, 1, stdin) == 1;
}

static void put(const void *from, size_t bytes) {
    need(bytes == 0 || fwrite(from, bytes, 1, stdout) == 1, "writing");
}

static void put_tensor(const struct ebb_tensor *tensor) {
    int64_t ndim = tensor ? tensor->ndim : -1;
    put(&ndim, sizeof ndim);
    if (!tensor)
        return;
    need(ebb_tensor_is_contiguous(tensor), "a result is contiguous");
    put(tensor->shape, sizeof *tensor->shape * (size_t)tensor->ndim);
    put(tensor->data, ebb_tensor_bytes(tensor));
}

static void put_packed(const struct ebb_packed *packed) {
    need(packed != NULL, "packing");
    put_tensor(packed->data);
    put_tensor(packed->batch_sizes);
    put_tensor(packed->sorted_indices);
    put_tensor(packed->unsorted_indices);
}

/* ---- input ---- */

static struct ebb_tensor *padded(struct scene *scene) {
    const struct request *request = &scene->request;
    int64_t shape[EBB_DIMENSIONS_MAX], strides[EBB_DIMENSIONS_MAX], stride = 1;
    int64_t reversed[EBB_DIMENSIONS_MAX];
    int ndim = 2 + (int)request->dimensions;
    shape[!request->batch_first] = request->count;
    shape[request->batch_first] = request->padded_length;
    for (int i = 2; i < ndim; i++)
        shape[i] = scene->shape[i - 2];
    if (!request->reversed)
        return ebb_tensor_from(scene->region, scene->dtype, ndim, shape, scene->elements);
    for (int i = 0; i < ndim; i++) {
        reversed[ndim - 1 - i] = shape[i];
        strides[i] = stride;
        stride *= shape[i];
    }
    struct ebb_tensor *base =
        ebb_tensor_from(scene->region, scene->dtype, ndim, reversed, scene->elements);
    need(base != NULL, "a reversed tensor");
    return ebb_tensor_view(scene->region, base, ndim, shape, strides, 0);
}

static void make_list(struct scene *scene) {
    const char *at = scene->elements;
    int64_t shape[EBB_DIMENSIONS_MAX];
    for (int64_t i = 0; i < scene->request.dimensions; i++)
        shape[i + 1] = scene->shape[i];
    for (int64_t i = 0; i < scene->request.count; i++) {
        shape[0] = scene->lengths[i];
        scene->list[i] = ebb_tensor_from(scene->region, scene->dtype,
                                         1 + (int)scene->request.dimensions, shape, at);
        need(scene->list[i] != NULL, "a sequence");
        at += ebb_tensor_bytes(scene->list[i]);
    }
}

/* ---- operations ---- */

static struct ebb_packed *pack(struct scene *scene) {
    struct ebb_tensor *tensor = padded(scene);
    need(tensor != NULL, "a padded tensor");
    struct ebb_packed *packed = ebb_padded_pack(scene->region, tensor, scene->lengths,
                                                (size_t)scene->request.count, &scene->pack);
    need(packed != NULL, "packing");
    return packed;
}

static void put_list(const struct scene *scene) {
    for (int64_t i = 0; i < scene->request.count; i++)
        put_tensor(scene->list[i]);
}

static void pack_and_pad(struct scene *scene) {
    struct ebb_packed *packed = pack(scene);
    int64_t count = scene->request.count;
    struct ebb_tensor *result = ebb_packed_pad(scene->region, packed, &scene->pad);
    struct ebb_tensor *lengths =
        ebb_tensor_new(scene->region, (struct ebb_dtype){EBB_INT, 64, 1}, 1, &count);
    need(result && lengths, "padding");
    need(ebb_packed_read_lengths(packed, lengths->data, (size_t)count) == 0, "lengths");
    put_tensor(result);
    put_tensor(lengths);
}

static void unpad(struct scene *scene) {
    struct ebb_tensor *tensor = padded(scene);
    need(ebb_padded_unpad(scene->region, tensor, scene->lengths, (size_t)scene->request.count,
                          &scene->pack, scene->list) == 0, "cutting");
    put_list(scene);
}

static void join_and_pad(struct scene *scene) {
    struct ebb_ragged *ragged =
        ebb_sequences_join(scene->region, scene->list, (size_t)scene->request.count);
    need(ragged != NULL, "joining");
    put_tensor(ragged->data);
    struct ebb_packed *packed = ebb_ragged_pack(scene->region, ragged, &scene->pack);
    need(packed != NULL, "packing what is ragged");
    ragged = ebb_packed_join(scene->region, packed);
    need(ragged != NULL, "joining what is packed");
    put_tensor(ebb_ragged_pad(scene->region, ragged, &scene->pad));
}

static void operate(struct scene *scene) {
    const struct request *request = &scene->request;
    size_t count = (size_t)request->count;
    if (request->operation == PACK_LIST || request->operation == PAD_LIST ||
        request->operation == JOIN_AND_PAD)
        make_list(scene);
    switch ((enum operation)request->operation) {
    case PACK:
        put_packed(pack(scene));
        break;
    case PACK_AND_PAD:
        pack_and_pad(scene);
        break;
    case PACK_LIST:
        put_packed(ebb_sequences_pack(scene->region, scene->list, count, &scene->pack));
        break;
    case PAD_LIST:
        put_tensor(ebb_sequences_pad(scene->region, scene->list, count, &scene->pad));
        break;
    case UNPAD:
        unpad(scene);
        break;
    case UNPACK:
        need(ebb_packed_unpack(scene->region, pack(scene), scene->list, count) == 0, "unpacking");
        put_list(scene);
        break;
    case INVERT:
        put_tensor(ebb_permutation_invert(
            scene->region, ebb_tensor_from(scene->region, (struct ebb_dtype){EBB_INT, 64, 1}, 1,
                                           &request->count, scene->lengths)));
        break;
    case JOIN_AND_PAD:
        join_and_pad(scene);
        break;
    }
}

static void prepare(struct scene *scene) {
    const struct request *request = &scene->request;
    size_t count = (size_t)request->count;
    scene->region = ebb_region_open(NULL);
    scene->dtype = (struct ebb_dtype){(uint8_t)request->code, (uint8_t)request->bits, 1};
    scene->lengths = ebb_region_alloc(scene->region, count * sizeof *scene->lengths, 16);
    scene->list = ebb_region_alloc(scene->region, count * sizeof *scene->list, 16);
    scene->elements = ebb_region_alloc(scene->region, (size_t)request->bytes, 64);
    need(scene->lengths && scene->list && scene->elements, "memory of a case");
    need(get(scene->shape, (size_t)request->dimensions * sizeof *scene->shape) &&
             get(scene->lengths, count * sizeof *scene->lengths) &&
             get(scene->elements, (size_t)request->bytes),
         "a case is cut off");
    scene->pack = (struct ebb_pack_options){.size = sizeof scene->pack,
                                            .batch_first = request->batch_first,
                                            .enforce_sorted = request->sorted};
    scene->pad = (struct ebb_pad_options){
        .size = sizeof scene->pad,
        .batch_first = request->result_batch_first,
        .padding = {.kind = (enum ebb_value_kind)request->value_kind, {.i = request->value}},
        .has_total_length = request->total_length >= 0,
        .total_length = request->total_length};
}

int main(void) {
    struct scene scene;
    while (get(&scene.request, sizeof scene.request)) {
        need(scene.request.dimensions <= EBB_DIMENSIONS_MAX - 2, "dimensions of a case");
        prepare(&scene);
        operate(&scene);
        need(fflush(stdout) == 0 && ebb_region_close(scene.region) == 0, "closing");
    }
    return 0;
}
