#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""torch_server.py PACKAGE - an LSTM of torch behind Python's own http.server.

A thread for each connection, as http.server has it; one thread for torch. Prints `port N`; ends
with standard input. SERVE_SCOPES: each request is a scope.
"""

import array
import http.server
import sys
import threading

import torch
from torch import nn

import scopes

VOCABULARY, WIDTH, ANSWERS = 512, 32, 16


class Model(nn.Module):
    """An embedding, an LSTM and a little attention over what it has seen."""

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, WIDTH)
        self.lstm = nn.LSTM(WIDTH, WIDTH, batch_first=True)
        self.head = nn.Linear(WIDTH, ANSWERS)

    def forward(self, tokens):
        seen, _ = self.lstm(self.embedding(tokens)[None])
        shares = torch.softmax(seen @ seen.transpose(1, 2) / WIDTH ** 0.5, dim=-1)
        return self.head((shares @ seen).mean(1))[0]


def handler_of(model, scope):
    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = 1 << 16
        disable_nagle_algorithm = True

        def do_POST(self):
            with scope(), torch.inference_mode():
                body = self.rfile.read(int(self.headers["Content-Length"]))
                tokens = torch.frombuffer(bytearray(body), dtype=torch.int32).long()
                answer = array.array("f", model(tokens).tolist()).tobytes()
                self.send_response(200)
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

        def log_message(self, format, *arguments):
            pass
    return Handler


def main():
    torch.set_num_threads(1)
    torch.manual_seed(1)
    model = Model().eval()
    handler = handler_of(model, scopes.opener("request", sys.argv[1]))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print("port", server.server_address[1], flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
