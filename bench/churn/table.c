// SPDX-License-Identifier: Apache-2.0
/*
 * table.c - collects cells, then prints them as wide as the widest of each column.
 *
 * A full table is printed, and the rows that follow come under the same headings once more. Widths
 * count characters, not bytes (UTF-8 continuation bytes have no width).
 */
#include "table.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>



void table_begin(struct table *table, const char *headings) {
    table->columns = 0;
    table->rows = 0;
    table_row(table);
    for (const char *at = headings;; at++) {
        int length = (int)strcspn(at, "|");
        table_cell(table, "%.*s", length, at);
        table->columns++;
        at += length;
        if (*at == '\0')
            return;
    }
}

void table_row(struct table *table) {
    table->filled = 0;
    if (table->rows == TABLE_ROWS_MAX) {
        table_print(table);
        table->rows = 1;
    }
    memset(table->cell[table->rows++], 0, sizeof table->cell[0]);
}

void table_cell(struct table *table, const char *format, ...) {
    va_list arguments;
    if (table->filled == TABLE_COLUMNS_MAX)
        return;
    va_start(arguments, format);
    vsnprintf(table->cell[table->rows - 1][table->filled++], TABLE_CELL_MAX, format, arguments);
    va_end(arguments);
}

static int width_of(const char *text) {
    int width = 0;
    for (; *text; text++)
        width += ((unsigned char)*text & 0xc0) != 0x80;
    return width;
}

static int column_width(const struct table *table, int column) {
    int width = 0;
    for (int row = 0; row < table->rows; row++) {
        int own = width_of(table->cell[row][column]);
        width = own > width ? own : width;
    }
    return width;
}

void table_print(const struct table *table) {
    int width[TABLE_COLUMNS_MAX];
    for (int column = 0; column < table->columns; column++)
        width[column] = column_width(table, column);
    for (int row = 0; row < table->rows; row++) {
        for (int column = 0; column < table->columns; column++) {
            const char *text = table->cell[row][column];
            int pad = width[column] - width_of(text);
            if (column == 0)
                printf("  %s%*s", text, pad, "");
            else
                printf("  %*s%s", pad, "", text);
        }
        putchar('\n');
    }
}
