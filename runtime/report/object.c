// SPDX-License-Identifier: Apache-2.0
/*
 * object.c - an object and everything it consists of, in text or JSON.
 *
 * Walks fields in the order of their table. The depth of the walk is bounded as that of composites
 * is; a field that was written since it was composed is printed as an address. What comes again is
 * not printed again: so this takes no longer than there are objects. In JSON the fields, which may
 * have any name, are an object of their own, and members of a field that has several a list: so no
 * JSON object has a key twice.
 */
#include "object/object.h"
#include "base/error.h"
#include "report/text.h"

struct print {
    struct text *text;
    bool json;
    bool begun; /* something was printed of the object's fields, or of the list */
};

/* What something is called: by its field, and by its place in the list if that has one. */
struct label {
    const char *field;
    size_t at;
    bool several;
};

static void print_object(struct print *print, struct ebb_object *object,
                         const struct label *label, unsigned depth);

/* Elements of a list have no keys. */
static void print_key(struct print *print, const struct label *label) {
    if (print->begun)
        text_print(print->text, ",");
    if (!label->several) {
        text_json_string(print->text, label->field);
        text_print(print->text, ":");
    }
    print->begun = true;
}

static void print_label(struct print *print, const struct label *label, unsigned depth) {
    if (print->json) {
        print_key(print, label);
        return;
    }
    text_print(print->text, "%*s", (int)depth * 2, "");
    text_name(print->text, label->field);
    if (label->several)
        text_print(print->text, "[%zu]", label->at);
    text_print(print->text, ": ");
}

static void print_numbers(struct text *text, const char *name, const int64_t *numbers,
                          int32_t count) {
    text_print(text, "%s[", name);
    for (int32_t i = 0; i < count; i++)
        text_print(text, "%s%lld", i ? "," : "", (long long)numbers[i]);
    text_print(text, "]");
}

static const char *code_name(uint8_t code) {
    static const char *const names[] = {"int",    "uint",    "float", "opaque",
                                        "bfloat", "complex", "bool"};
    return names[code];
}

static void print_tensor(struct print *print, const struct ebb_tensor *tensor) {
    const struct ebb_dtype *dtype = &tensor->dtype;
    text_print(print->text, print->json ? ",\"dtype\":\"%s%u" : " %s%u", code_name(dtype->code),
               dtype->bits);
    if (dtype->lanes > 1)
        text_print(print->text, "x%u", dtype->lanes);
    print_numbers(print->text, print->json ? "\",\"shape\":" : " ", tensor->shape, tensor->ndim);
    print_numbers(print->text, print->json ? ",\"strides\":" : " strides ", tensor->strides,
                  tensor->ndim);
    text_print(print->text, print->json ? ",\"bytes\":%zu,\"seen_by\":%llu"
                                        : ", %zu bytes, storage seen by %llu",
               ebb_tensor_bytes(tensor), (unsigned long long)tensor->storage->tensors);
}

static void print_bytes(struct print *print, const char *field, size_t bytes, unsigned depth) {
    print_label(print, &(struct label){.field = field}, depth);
    text_print(print->text, print->json ? "%zu" : "%zu bytes\n", bytes);
}

static void print_member(struct print *print, const struct ebb_object *whole, void *member,
                         const struct label *label, unsigned depth) {
    bool has = depth <= EBB_DEPTH_MAX && compose_has(whole, member);
    if (has && compose_is_told(member)) {
        print_label(print, label, depth);
        text_print(print->text, print->json ? "{\"above\":true}" : "(above)\n");
    } else if (has) {
        print_object(print, member, label, depth);
    } else if (!print->json) {
        print_label(print, label, depth);
        text_print(print->text, "%p\n", member);
    } else if (label->several) {
        print_label(print, label, depth);
        text_print(print->text, "null");
    }
}

static void print_members(struct print *print, struct ebb_object *whole,
                          const struct ebb_field *field, unsigned depth) {
    void **members;
    size_t count = compose_members(whole, field, &members);
    for (size_t i = 0; i < count && print->text->result == 0; i++) {
        const struct label label = {field->name, i, field->kind == EBB_FIELD_OBJECTS};
        print_member(print, whole, members[i], &label, depth);
    }
}

static void print_list(struct print *print, struct ebb_object *whole,
                       const struct ebb_field *field, unsigned depth) {
    if (print->json) {
        print_key(print, &(struct label){.field = field->name});
        text_print(print->text, "[");
        print->begun = false;
    }
    print_members(print, whole, field, depth);
    if (print->json) {
        text_print(print->text, "]");
        print->begun = true;
    }
}

static void print_fields(struct print *print, struct ebb_object *object, unsigned depth) {
    for (size_t i = 0; i < object->type->field_count; i++) {
        const struct ebb_field *field = &object->type->fields[i];
        const void *pointer = *field_place(object, field);
        if (field->kind == EBB_FIELD_BYTES)
            print_bytes(print, field->name, pointer ? field_count(object, field) : 0, depth);
        else if (field->kind == EBB_FIELD_OBJECTS)
            print_list(print, object, field, depth);
        else
            print_members(print, object, field, depth);
    }
    compose_untell(object);
}

/* What is reported itself has no label. */
static void print_object(struct print *print, struct ebb_object *object,
                         const struct label *label, unsigned depth) {
    struct text *text = print->text;
    if (label)
        print_label(print, label, depth);
    if (print->json)
        text_print(text, "{\"type\":");
    (print->json ? text_json_string : text_name)(text, object->type->name);
    bool has_fields = !object_is_tensor(object);
    if (!has_fields)
        print_tensor(print, tensor_of(object));
    if (!print->json)
        text_print(text, "\n");
    else if (has_fields)
        text_print(text, ",\"fields\":{");
    print->begun = false;
    print_fields(print, object, depth + 1);
    print->begun = true;
    if (print->json)
        text_print(text, has_fields ? "}}" : "}");
}

int ebb_report_object(const void *address, enum ebb_report_format format, ebb_write_fn *write,
                      void *context) {
    struct object_place place;
    if (!write || (format != EBB_REPORT_TEXT && format != EBB_REPORT_JSON))
        return error_set(EBB_E_ARGUMENT, "report: format %d, callback %s", (int)format,
                         write ? "set" : "NULL");
    int result = object_find(address, &place);
    if (result)
        return result;
    struct text text = {.write = write, .context = context};
    struct print print = {.text = &text, .json = format == EBB_REPORT_JSON};
    print_object(&print, place.object, NULL, 0);
    return text.result;
}
