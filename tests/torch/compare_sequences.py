#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""compare_sequences.py DRIVER [CASES [SEED]] - ebb's sequences against torch's, bit for bit.

Random cases over everything that torch 1.13 does rightly: all data types, up to three further
dimensions, both orders, sorted or not, padding values, total lengths, lists and padded tensors,
inputs with strides. Left out is what torch refuses or gets wrong: lengths of 0 or beyond the
padded length, padding on the left, and the order of ties in large batches, which it does not
define. Where a tail of the padded tensor is in no sequence, torch is told the length that ebb
remembers. TAP; skipped without torch. A seed of its own is printed and can be given again.
"""

import os
import random
import struct
import subprocess
import sys
import time

try:
    import torch
    from torch.nn.utils import rnn
except ImportError as error:
    print(f"1..0 # SKIP {error}: python3-torch is missing")
    sys.exit(0)

INT, UINT, FLOAT, BFLOAT, COMPLEX, BOOL = 0, 1, 2, 4, 5, 6
DTYPES = {
    torch.int8: (INT, 8), torch.int16: (INT, 16), torch.int32: (INT, 32), torch.int64: (INT, 64),
    torch.uint8: (UINT, 8), torch.float16: (FLOAT, 16), torch.float32: (FLOAT, 32),
    torch.float64: (FLOAT, 64), torch.bfloat16: (BFLOAT, 16), torch.complex64: (COMPLEX, 64),
    torch.bool: (BOOL, 8),
}
VALUES = {INT: [0, 1, -1, 100], UINT: [0, 7, 255], FLOAT: [0, 0.5, -2.0, 1024.0, float("inf")],
          BFLOAT: [0, 0.5, -3.0], COMPLEX: [0, 1.5], BOOL: [0, 1]}
OPERATIONS = ["pack", "pack_and_pad", "pack_list", "pad_list", "unpad", "unpack", "invert",
              "join_and_pad"]
STABLE_COUNT = 16  # torch sorts so few by insertion, which keeps the order of ties


def bytes_of(tensor):
    tensor = tensor.contiguous()
    if tensor.dtype is torch.bfloat16:
        tensor = tensor.view(torch.int16)
    return tensor.numpy().tobytes()


class Case:
    """One random case: what both sides get."""

    def __init__(self, source):
        self.operation = source.choice(OPERATIONS)
        self.dtype = source.choice(list(DTYPES))
        self.batch_first = source.random() < 0.5
        self.result_batch_first = source.random() < 0.5
        self.sorted = source.random() < 0.5
        self.reversed = source.random() < 0.4
        self.value = source.choice(VALUES[DTYPES[self.dtype][0]])
        self.shape = self.random_shape(source)
        self.lengths = self.random_lengths(source)
        self.tail = source.choice([0, 0, 0, 1, 4])
        self.padded_length = max(self.lengths) + self.tail
        self.total_length = source.choice([None, None, 0, 1, 7])
        if self.total_length is not None:
            self.total_length += self.padded_length
        torch.manual_seed(source.randrange(1 << 31))

    def random_shape(self, source):
        shape = [source.choice([1, 2, 3, 5]) for _ in range(source.choice([0, 0, 1, 1, 2, 3]))]
        if shape and source.random() < 0.3:
            shape[-1] = source.choice([7, 8, 16, 64, 100])
        return shape

    def random_lengths(self, source):
        longest = source.choice([1, 2, 4, 9, 30, 90])
        count = source.choice([1, 2, 3, 4, 5, 8, 16, 30, 70, 130])
        if self.sorted or count <= STABLE_COUNT:
            lengths = [source.randint(1, longest) for _ in range(count)]
        else:
            lengths = source.sample(range(1, longest + count + 1), count)
        return sorted(lengths, reverse=True) if self.sorted else lengths

    @property
    def uses_list(self):
        return self.operation in ("pack_list", "pad_list", "join_and_pad")

    def elements(self, shape):
        if self.dtype is torch.bool:
            return torch.rand(shape) < 0.5
        if self.dtype.is_floating_point or self.dtype.is_complex:
            return torch.randn(shape).to(self.dtype)
        return torch.randint(0, 127, shape).to(self.dtype)

    def make_input(self):
        count = len(self.lengths)
        if self.operation == "invert":
            self.lengths = torch.randperm(count).tolist()
            return b""
        if self.uses_list:
            self.list = [self.elements((length, *self.shape)) for length in self.lengths]
            return b"".join(map(bytes_of, self.list))
        lead = (count, self.padded_length) if self.batch_first else (self.padded_length, count)
        self.padded = self.elements((*lead, *self.shape))
        if not self.reversed:
            return bytes_of(self.padded)
        return bytes_of(self.padded.permute(*reversed(range(self.padded.dim()))))

    def request(self):
        code, bits = DTYPES[self.dtype]
        elements = self.make_input()
        real = isinstance(self.value, float)
        value = struct.unpack("q", struct.pack("d" if real else "q", self.value))[0]
        total = -1 if self.total_length is None else self.total_length
        head = [OPERATIONS.index(self.operation), code, bits, self.batch_first, self.sorted,
                self.result_batch_first, self.reversed, total, 2 if real else 0, value,
                len(self.lengths), self.padded_length, len(self.shape), len(elements)]
        numbers = head + self.shape + self.lengths
        return struct.pack(f"{len(numbers)}q", *numbers) + elements

    # ---- what torch says: tensors, in the order in which the driver writes them

    def pack(self):
        return rnn.pack_padded_sequence(self.padded, torch.tensor(self.lengths),
                                        batch_first=self.batch_first,
                                        enforce_sorted=self.sorted)

    def expected(self):
        return getattr(self, "torch_" + self.operation)()

    def torch_pack(self):
        return list(self.pack())

    def torch_pack_and_pad(self):
        total = self.padded_length if self.total_length is None else self.total_length
        return list(rnn.pad_packed_sequence(self.pack(), batch_first=self.result_batch_first,
                                            padding_value=self.value, total_length=total))

    def torch_pack_list(self):
        return list(rnn.pack_sequence(self.list, enforce_sorted=self.sorted))

    def pad_list(self):
        padded = rnn.pad_sequence(self.list, batch_first=True, padding_value=self.value)
        if self.total_length is not None:
            shape = (len(self.list), self.total_length - padded.shape[1], *self.shape)
            padded = torch.cat([padded, torch.full(shape, self.value, dtype=self.dtype)], 1)
        return padded if self.result_batch_first else padded.transpose(0, 1)

    def torch_pad_list(self):
        return [self.pad_list()]

    def torch_unpad(self):
        return rnn.unpad_sequence(self.padded.clone(), torch.tensor(self.lengths),
                                  batch_first=self.batch_first)

    def torch_unpack(self):
        return rnn.unpack_sequence(self.pack())

    def torch_invert(self):
        return [rnn.invert_permutation(torch.tensor(self.lengths))]

    def torch_join_and_pad(self):
        return [torch.cat(self.list), self.pad_list()]

    def __str__(self):
        return ", ".join(f"{name} {value}" for name, value in vars(self).items()
                         if name not in ("padded", "list"))


def read_tensor(stream, element_bytes):
    """(shape, bytes) of the next result, or None if there is none."""
    ndim = struct.unpack("q", stream.read(8))[0]
    if ndim < 0:
        return None
    shape = struct.unpack(f"{ndim}q", stream.read(8 * ndim))
    count = 1
    for size in shape:
        count *= size
    return shape, stream.read(count * element_bytes)


def differs(stream, expected):
    """What is wrong with the driver's results, or None."""
    wrong = None
    for at, tensor in enumerate(expected):
        found = read_tensor(stream, tensor.element_size() if tensor is not None else 8)
        if (found is None) != (tensor is None):
            wrong = wrong or f"result {at} is {'missing' if found is None else 'too much'}"
        elif found is not None:
            if found[0] != tuple(tensor.shape):
                raise SystemExit(f"not ok - result {at}: {found[0]}, not {tuple(tensor.shape)}")
            if found[1] != bytes_of(tensor):
                wrong = wrong or f"result {at} differs"
    return wrong


def main():
    if len(sys.argv) not in (2, 3, 4):
        sys.exit(__doc__)
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 2000
    fresh = int(os.environ.get("EBB_FRESH_SEED") or time.time_ns() % 1000000)
    seed = int(sys.argv[3]) if len(sys.argv) > 3 else fresh
    print(f"# torch {torch.__version__}, {count} cases, seed {seed}")
    torch.set_num_threads(1)
    source = random.Random(seed)
    failed, done = 0, {}
    driver = subprocess.Popen([sys.argv[1]], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    for number in range(count):
        case = Case(source)
        data = case.request()
        # all of a case is read before any of its result is written
        driver.stdin.write(data)
        driver.stdin.flush()
        wrong = differs(driver.stdout, case.expected())
        done[case.operation] = done.get(case.operation, 0) + 1
        if wrong:
            failed += 1
            print(f"# case {number}: {wrong}: {case}")
    driver.stdin.close()
    failed += driver.wait() != 0
    print("# " + ", ".join(f"{name}: {done[name]}" for name in sorted(done)))
    print(f"1..1\n{'not ok' if failed else 'ok'} 1 - {count} cases are bit-equal to torch")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
