// SPDX-License-Identifier: Apache-2.0
/* gzip_text.h - text into compressed files. */
#ifndef EBB_BENCH_TOOL_GZIP_TEXT_H
#define EBB_BENCH_TOOL_GZIP_TEXT_H

#include <zlib.h>

/* As printf(), of lines up to 1099 bytes; a NULL file: nothing. What fails is seen at gzclose(). */
__attribute__((format(printf, 2, 3))) void gzip_print(gzFile file, const char *format, ...);

#endif
