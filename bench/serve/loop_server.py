#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""loop_server.py json|torch - requests served by asyncio, all on the thread of its event loop.

json: a list of words, sorted. torch: the model of torch_server.py. Prints `port N`; ends with
standard input.
"""

import array
import asyncio
import json
import sys


def json_answer(body):
    words = json.loads(body)
    words.sort(key=lambda word: (word["key"], word["text"]))
    return json.dumps(words).encode()


def torch_answers():
    import torch  # only here: json is to be small
    from torch_server import Model
    torch.set_num_threads(1)
    torch.manual_seed(1)
    model = Model().eval()

    def answer(body):
        with torch.inference_mode():
            tokens = torch.frombuffer(bytearray(body), dtype=torch.int32).long()
            return array.array("f", model(tokens).tolist()).tobytes()
    return answer


def server_of(answer_to):
    async def serve(reader, writer):
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = int(head.lower().partition(b"content-length:")[2].split()[0])
                answer = answer_to(await reader.readexactly(length))
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(answer) +
                             answer)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()
    return serve


async def main():
    answer = torch_answers() if sys.argv[1] == "torch" else json_answer
    server = await asyncio.start_server(server_of(answer), "127.0.0.1", 0)
    print("port", server.sockets[0].getsockname()[1], flush=True)
    await asyncio.to_thread(sys.stdin.read)


asyncio.run(main())
