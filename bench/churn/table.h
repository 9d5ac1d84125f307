// SPDX-License-Identifier: Apache-2.0
/* table.h - a small table of text, printed with aligned columns. */
#ifndef EBB_BENCH_TABLE_H
#define EBB_BENCH_TABLE_H

enum { TABLE_COLUMNS_MAX = 12, TABLE_ROWS_MAX = 256, TABLE_CELL_MAX = 64 };

struct table {
    int columns, rows;
    int filled; /* cells of the last row */
    char cell[TABLE_ROWS_MAX][TABLE_COLUMNS_MAX][TABLE_CELL_MAX];
};

/* Begins anew with one heading per column, separated by '|'. */
void table_begin(struct table *table, const char *headings);

/* Adds a row; its cells follow with table_cell(), from left to right. If full it is printed. */
void table_row(struct table *table);
__attribute__((format(printf, 2, 3))) void table_cell(struct table *table, const char *format,
                                                      ...);

/* Prints to standard output: the first column to the left, the others to the right. */
void table_print(const struct table *table);

#endif
