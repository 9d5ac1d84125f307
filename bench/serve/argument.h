// SPDX-License-Identifier: Apache-2.0
/* argument.h - the numbers that a program is told, by its words or on lines of standard input. */
#pragma once

/* The number that the text is. Anything that is none from `least` to `most` ends the program, with
 * exit code 2 and after a message that names it as `what`. */
unsigned long argument_number(const char *what, const char *text, unsigned long least,
                              unsigned long most);
