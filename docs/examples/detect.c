// SPDX-License-Identifier: Apache-2.0
/* detect.c - a detection step: samples of images and boxes, collated, the best boxes kept. */
#include <ebb/ebb.h>

#include <stdlib.h>

enum { IMAGES = 4, SIZE = 32 };

static void need(bool holds) {
    if (!holds)
        exit(1);
}

static void *load(ebb_region region, int number) {
    const int64_t pixels[] = {3, SIZE, SIZE}, corners[] = {number, 4}; /* image 0 has no boxes */
    struct ebb_dtype u8 = {EBB_UINT, 8, 1}, f32 = {EBB_FLOAT, 32, 1};
    struct ebb_tensor *image = ebb_tensor_new_zeroed(region, u8, 3, pixels);
    struct ebb_tensor *boxes = ebb_tensor_new_zeroed(region, f32, 2, corners);
    need(image && boxes);
    for (int i = 0; i < number; i++)
        ((float *)boxes->data)[4 * i + 2] = (float)i; /* how wide it is */
    const struct ebb_sample_info is_image = {.kind = EBB_SAMPLE_IMAGE};
    const struct ebb_sample_info is_boxes = {
        .kind = EBB_SAMPLE_BOXES, .format = EBB_BOX_XYWH, .canvas = {SIZE, SIZE + number}};
    void *members[] = {ebb_sample_new(region, image, &is_image),
                       ebb_sample_new(region, boxes, &is_boxes)};
    return ebb_node_new_dict(region, (const char *[]){"image", "boxes"}, members, 2);
}

/* The last box of each image that has any, still boxes: a sample like the batch's. */
static struct ebb_sample *best(ebb_region step, const struct ebb_sample *boxes, size_t image) {
    struct ebb_sample *row = ebb_sample_row(step, boxes, image);
    need(row != NULL);
    if (row->data->shape[0] == 0)
        return NULL;
    struct ebb_tensor *last =
        ebb_tensor_view(step, row->data, 1, (const int64_t[]){4}, (const int64_t[]){1},
                        4 * (row->data->shape[0] - 1));
    return ebb_sample_wrap(step, last, row, NULL);
}

int main(void) {
    ebb_region run = ebb_region_open(EBB_REGION_OPTIONS(.name = "run"));
    ebb_region loader = ebb_region_open(EBB_REGION_OPTIONS(.name = "loader", .parent = run));
    ebb_region step = ebb_region_open(EBB_REGION_OPTIONS(.name = "step", .parent = run));
    void *samples[IMAGES];
    for (int i = 0; i < IMAGES; i++)
        need((samples[i] = load(loader, i)) != NULL);
    void *batch = ebb_batch_collate(step, samples, IMAGES, NULL, NULL);
    need(batch && ebb_region_close(loader) == 0); /* the batch has copies of its own */
    struct ebb_sample *images = ebb_node_find(batch, "image");
    struct ebb_sample *boxes = ebb_node_find(batch, "boxes");
    need(images->data->shape[0] == IMAGES && boxes->data->shape[0] == 0 + 1 + 2 + 3);
    void *kept[] = {best(step, boxes, 3)};
    need(ebb_objects_close_keeping(step, run, kept, 1, NULL, NULL, NULL) == 0);
    const struct ebb_sample *box = kept[0]; /* kind, format and canvas came along */
    need(box->kind == EBB_SAMPLE_BOXES && box->canvas[1] == SIZE + 3);
    return ((const float *)box->data->data)[2] > 1.5f ? ebb_region_close(run) : 1;
}
