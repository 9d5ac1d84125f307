#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""mixed.py - some of everything that Python programs allocate for; prints digests."""

import collections
import concurrent.futures
import hashlib
import json
import pickle
import random
import re
import zlib

random.seed(7)
data = [{"n": i, "t": "x" * random.randrange(300), "l": list(range(i % 50))} for i in range(4000)]
text = json.dumps(data)
print(len(text), hashlib.sha256(text.encode()).hexdigest())
print(hashlib.sha256(pickle.dumps(json.loads(text))).hexdigest())
print(len(zlib.compress(text.encode() * 20)))
print(collections.Counter(re.findall(r"[0-9]{2,4}", text)).most_common(20))


def work(seed):
    own = random.Random(seed)
    blocks = {}
    for _ in range(20000):
        blocks[own.randrange(500)] = bytearray(own.randrange(20000))
    return sum(map(len, blocks.values()))


with concurrent.futures.ThreadPoolExecutor(4) as pool:
    print(list(pool.map(work, range(8))))
try:
    import numpy
except ImportError:
    print("no numpy")
else:
    a = numpy.arange(250000.0).reshape(500, 500)
    print((a @ a.T).sum(), numpy.sort(a.ravel()[::-1])[:5], numpy.linalg.norm(a))
