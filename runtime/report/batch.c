// SPDX-License-Identifier: Apache-2.0
/*
 * batch.c - trees of objects in words, as text and as JSON (see ebb/batch.h).
 *
 * Nodes and samples are shown as what they mean, all other types by their field tables, and nodes
 * made by hand that say what is not so. Text is
 * one line for each object: indented, with the name under which its composite has it. What is in a
 * field and no member, since nobody has composed it, is not followed: so this ends, too. What comes
 * again is not shown again: so this takes no longer than there are objects.
 *
 * No JSON object has a key twice: fields of a type, which may have any name, are in one of their
 * own, and those of samples have none of the names that are said of a sample.
 */
#include <ebb/batch.h>

#include "base/error.h"
#include "object/batch.h"
#include "object/dtype.h"
#include "object/sample.h"
#include "report/text.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

struct page {
    struct text text;
    bool json;
    unsigned depth;
};

static void show_member(struct page *page, const struct ebb_object *whole, const char *name,
                        void *member);

/* ---- lines of text, values of JSON ---- */

/* What comes before an object: in text its indentation and name, in JSON its name. */
static void show_name(struct page *page, const char *name) {
    if (!page->json)
        text_print(&page->text, "%*s", (int)(2 * page->depth), "");
    if (!name)
        return;
    text_json_string(&page->text, name);
    text_print(&page->text, page->json ? ":" : ": ");
}

static void end_line(struct page *page) {
    if (!page->json)
        text_print(&page->text, "\n");
}

/* Members [count], with names if there are any. */
static void show_members(struct page *page, struct ebb_node *node, bool named) {
    page->depth++;
    for (size_t i = 0; i < node->count && page->text.result == 0; i++) {
        if (page->json && i)
            text_print(&page->text, ",");
        show_member(page, &node->object, named ? node_name_at(node, i + 1) : NULL,
                    node->members[i]);
    }
    compose_untell(&node->object);
    page->depth--;
}

/* ---- nodes ---- */

/* Never looks like an integer. JSON has no numbers for what is not finite. */
static void show_real(struct page *page, double value) {
    char digits[40];
    snprintf(digits, sizeof digits, "%.17g", value);
    bool whole = digits[strspn(digits, "-0123456789")] == '\0';
    bool quoted = page->json && !isfinite(value);
    text_print(&page->text, quoted ? "{\"real\":\"%.17g%s\"}" : "%.17g%s", value,
               whole ? ".0" : "");
}

static void show_value(struct page *page, const struct ebb_node *node) {
    switch (node->kind) {
    case EBB_NODE_BOOL:
        text_print(&page->text, "%s", node->truth ? "true" : "false");
        break;
    case EBB_NODE_INTEGER:
        text_print(&page->text, "%lld", (long long)node->integer);
        break;
    case EBB_NODE_REAL:
        show_real(page, node->real);
        break;
    case EBB_NODE_STRING:
        text_json_string(&page->text, node_bytes(node));
        break;
    case EBB_NODE_BYTES:
        text_print(&page->text, page->json ? "{\"bytes\":%zu}" : "%zu bytes", node->byte_count);
        break;
    default:
        text_print(&page->text, page->json ? "null" : "none");
    }
}

static void open_inner(struct page *page, const struct ebb_node *node, bool named) {
    const char *kind = ebb_node_kind_name(node->kind);
    text_print(&page->text, page->json ? "{\"%s\":" : "%s", kind);
    if (node->kind == EBB_NODE_NAMED_TUPLE) {
        text_print(&page->text, page->json ? "" : " ");
        text_json_string(&page->text, node_name_at(node, 0));
        text_print(&page->text, page->json ? ",\"fields\":" : "");
    }
    if (page->json)
        text_print(&page->text, named ? "{" : "[");
    end_line(page);
}

static void show_node(struct page *page, struct ebb_node *node) {
    if (!kind_has_members(node->kind)) {
        show_value(page, node);
        end_line(page);
        return;
    }
    bool named = kind_has_names(node->kind);
    open_inner(page, node, named);
    show_members(page, node, named);
    if (page->json)
        text_print(&page->text, named ? "}}" : "]}");
}

/* ---- tensors and samples ---- */

static void show_shape(struct page *page, const struct ebb_tensor *tensor) {
    text_print(&page->text, "[");
    for (int i = 0; i < tensor->ndim; i++)
        text_print(&page->text, "%s%lld", i == 0 ? "" : page->json ? "," : ", ",
                   (long long)tensor->shape[i]);
    text_print(&page->text, "]");
}

static void show_tensor(struct page *page, const struct ebb_tensor *tensor) {
    char dtype[DTYPE_TEXT];
    dtype_describe(tensor->dtype, dtype);
    text_print(&page->text, page->json ? "{\"tensor\":\"%s\",\"shape\":" : "%s ", dtype);
    show_shape(page, tensor);
    if (page->json)
        text_print(&page->text, "}");
    end_line(page);
}

static void show_info_json(struct page *page, const struct ebb_sample *sample) {
    text_print(&page->text, "{\"sample\":");
    text_json_string(&page->text, ebb_sample_kind_name(sample->kind));
    if (sample->format)
        text_print(&page->text, ",\"format\":\"%s\",\"clamping\":\"%s\"",
                   ebb_box_format_name(sample->format), ebb_clamping_name(sample->clamping));
    if (sample->canvas[0])
        text_print(&page->text, ",\"canvas\":[%lld,%lld]", (long long)sample->canvas[0],
                   (long long)sample->canvas[1]);
    if (sample->byte_count)
        text_print(&page->text, ",\"metadata\":%zu", sample->byte_count);
}

static void show_info_text(struct page *page, const struct ebb_sample *sample) {
    text_print(&page->text, "%s", sample->offsets ? "ragged " : "");
    text_name(&page->text, ebb_sample_kind_name(sample->kind));
    if (sample->format)
        text_print(&page->text, " %s, %s clamping", ebb_box_format_name(sample->format),
                   ebb_clamping_name(sample->clamping));
    if (sample->canvas[0])
        text_print(&page->text, ", canvas %lld x %lld", (long long)sample->canvas[0],
                   (long long)sample->canvas[1]);
    if (sample->byte_count)
        text_print(&page->text, ", %zu bytes of metadata", sample->byte_count);
    text_print(&page->text, "\n");
}

/* ---- fields of any object ---- */

static void show_objects(struct page *page, struct ebb_object *object,
                         const struct ebb_field *field) {
    void **members;
    size_t count = compose_members(object, field, &members);
    if (page->json) {
        text_json_string(&page->text, field->name);
        text_print(&page->text, ":[");
    }
    for (size_t i = 0; i < count && page->text.result == 0; i++) {
        if (page->json && i)
            text_print(&page->text, ",");
        show_member(page, object, page->json ? NULL : field->name, members[i]);
    }
    if (page->json)
        text_print(&page->text, "]");
}

static void show_field(struct page *page, struct ebb_object *object,
                       const struct ebb_field *field) {
    if (field->kind == EBB_FIELD_OBJECT) {
        show_member(page, object, field->name, *field_place(object, field));
    } else if (field->kind == EBB_FIELD_OBJECTS) {
        show_objects(page, object, field);
    } else {
        show_name(page, field->name);
        text_print(&page->text, page->json ? "{\"bytes\":%zu}" : "%zu bytes\n",
                   field_count(object, field));
    }
}

/* A field that nothing is in is not shown for a sample: most are not ragged. */
static void show_fields(struct page *page, struct ebb_object *object) {
    bool sample = object->type == &ebb_type_sample;
    page->depth++;
    for (size_t i = 0; i < object->type->field_count && page->text.result == 0; i++) {
        const struct ebb_field *field = &object->type->fields[i];
        if (sample && !*field_place(object, field))
            continue;
        if (page->json && (sample || i))
            text_print(&page->text, ",");
        show_field(page, object, field);
    }
    compose_untell(object);
    page->depth--;
}

static void show_object(struct page *page, struct ebb_object *object) {
    if (page->json) {
        text_print(&page->text, "{\"object\":");
        text_json_string(&page->text, object->type->name);
        text_print(&page->text, ",\"fields\":{");
    } else {
        text_name(&page->text, object->type->name);
        text_print(&page->text, "\n");
    }
    show_fields(page, object);
    if (page->json)
        text_print(&page->text, "}}");
}

static void show_sample(struct page *page, struct ebb_sample *sample) {
    if (page->json)
        show_info_json(page, sample);
    else
        show_info_text(page, sample);
    show_fields(page, &sample->object);
    if (page->json)
        text_print(&page->text, "}");
}

/* ---- the tree ---- */

static void show(struct page *page, struct ebb_object *object) {
    if (object_is_node(object) && node_is_sound((const struct ebb_node *)object))
        show_node(page, (struct ebb_node *)object);
    else if (object_is_tensor(object))
        show_tensor(page, (const struct ebb_tensor *)object);
    else if (object->type == &ebb_type_sample)
        show_sample(page, (struct ebb_sample *)object);
    else
        show_object(page, object);
}

static void show_member(struct page *page, const struct ebb_object *whole, const char *name,
                        void *member) {
    bool has = page->depth <= EBB_DEPTH_MAX && compose_has(whole, member);
    show_name(page, name);
    if (has && !compose_is_told(member))
        show(page, member);
    else
        text_print(&page->text, page->json ? "{\"%s\":true}" : "(%s)\n",
                   has ? "above" : member ? "no member" : "ended");
}

int ebb_report_batch(const void *object, enum ebb_report_format format, ebb_write_fn *write,
                     void *context) {
    struct object_place place;
    struct page page = {.text = {.write = write, .context = context},
                        .json = format == EBB_REPORT_JSON};
    int result = object_find(object, &place);
    if (result)
        return result;
    if (!write || (format != EBB_REPORT_TEXT && format != EBB_REPORT_JSON))
        return error_set(EBB_E_ARGUMENT, "report of a batch: format %d, callback %s", (int)format,
                         write ? "given" : "NULL");
    show(&page, place.object);
    return page.text.result;
}
