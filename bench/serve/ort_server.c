// SPDX-License-Identifier: Apache-2.0
/*
 * ort_server.c - ort-server LIBRARY MODEL [arena]: onnxruntime behind HTTP, through its C API. One
 * thread for each connection.
 */
#include <stdio.h>
#include <string.h>

#include "ort_model.h"
#include "server.h"

int main(int argc, char **argv) {
    bool arena = argc == 4 && strcmp(argv[3], "arena") == 0;
    if (argc != 3 && !arena) {
        fprintf(stderr, "usage: ort-server LIBRARY MODEL [arena]\n");
        return 2;
    }
    return ort_model_open(argv[1], argv[2], arena) ? server_run(ort_model_infer) : 1;
}
