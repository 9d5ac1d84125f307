# SPDX-License-Identifier: Apache-2.0
"""What a batch holds beside elements, where the program says how it is sent to a process."""

import copyreg
import functools
import gc
import multiprocessing
import os
import pickle
import socket
import tempfile
import threading
import types
import unittest
from multiprocessing.reduction import ForkingPickler
from unittest import mock

import ebb

try:
    import torch
    torch.set_num_threads(1)
except ImportError:
    raise unittest.SkipTest("torch is missing")

import numpy
from torch.utils.data.datapipes.iter import IterableWrapper

from cases import same


class Refuses:
    """A plain pickle cannot have it."""

    def __init__(self, number):
        self.number = number

    def __reduce__(self):
        raise TypeError("not by itself")


ForkingPickler.register(Refuses, lambda refuses: (Refuses, (refuses.number,)))


class NoHash(type):
    def __hash__(cls):
        raise LookupError("no hash")


class Unhashable(metaclass=NoHash):
    """Nobody can look for a reducer of its type."""


class Metres(torch.Tensor):
    """What it is measured in lies elsewhere."""

    units = {}

    @classmethod
    def make(cls, plain, unit):
        made = plain.as_subclass(cls)
        cls.units[id(made)] = unit
        return made

    def reduce(self):
        return Metres.make, (self.detach().as_subclass(torch.Tensor), self.units[id(self)])


class Locked(torch.Tensor):
    """Keeps in its state what can go, and makes the rest anew."""

    def __getstate__(self):
        return {name: value for name, value in self.__dict__.items() if name != "lock"}

    def __setstate__(self, state):
        self.__dict__.update(state, lock=threading.Lock(), restored=True)


class Told(torch.Tensor):
    """Its state is set as attributes are."""

    def __getstate__(self):
        return {"unit": self.told}

    @property
    def unit(self):
        return self.told

    @unit.setter
    def unit(self, unit):
        self.told = unit


class Silent(Told):
    """What comes of a state that is nothing."""

    __slots__ = ("told",)

    def __getstate__(self):
        return None

    def __setstate__(self, state):
        self.told = "nothing" if state is None else state


class Ends:
    """Samples that are ends of pipes or sockets; the worker has the others, and many open."""

    def __init__(self, make, send):
        self.make, self.send = make, send

    def __len__(self):
        return 1

    def __getitem__(self, index):
        self.kept = [self.make() for _ in range(4)]
        self.send(self.kept[-1][0], b"from the worker")
        return self.kept[-1][1]


def first(samples):
    return samples[0]


def through(sample, workers):
    """What the trainer gets of it."""
    samples = sample if isinstance(sample, Ends) else [sample]
    return next(iter(torch.utils.data.DataLoader(
        samples, num_workers=workers, collate_fn=ebb.Collate(ebb.Pool("shared"), first))))


class Descriptors(unittest.TestCase):
    def test_connections_and_sockets_are_those_that_were_sent(self):
        """Not what has their numbers in the trainer, which they would close when they are gone."""
        for make, send, receive in (
                (multiprocessing.Pipe, lambda end, data: end.send_bytes(data),
                 lambda end: end.recv_bytes()),
                (socket.socketpair, lambda end, data: end.send(data), lambda end: end.recv(99))):
            for workers in (0, 1):
                files = [tempfile.TemporaryFile() for _ in range(40)]
                batches = iter(torch.utils.data.DataLoader(
                    Ends(make, send), num_workers=workers,
                    collate_fn=ebb.Collate(ebb.Pool("shared"), first)))
                end = next(batches)
                self.assertEqual(receive(end), b"from the worker")
                del end, batches
                gc.collect()
                for file in files:
                    os.fstat(file.fileno())
                    file.close()


class Registered(unittest.TestCase):
    def test_objects_go_as_by_a_queue_of_multiprocessing(self):
        self.assertRaises(TypeError, pickle.dumps, Refuses(7))
        for workers in (0, 1):
            self.assertEqual(through(Refuses(7), workers).number, 7)

    def test_what_is_registered_when_it_is_sent_counts(self):
        pool, there, after = ebb.Pool("shared"), ForkingPickler._extra_reducers, Refuses(8)
        sent = [Refuses(7), after, numpy.array([Refuses(9)])]
        by_copyreg = {Refuses: lambda refuses: (str, ("copyreg",))}
        with mock.patch.dict(copyreg.dispatch_table, by_copyreg):
            self.assertEqual([got.number for got in pool.send(sent[:2]).open()], [7, 8])
            with mock.patch.dict(there, {Refuses: None}):
                self.assertEqual(pool.send(after).open(), "copyreg")
            with mock.patch.dict(there):
                del there[Refuses]
                self.assertEqual(pool.send(after).open(), "copyreg")
        self.assertEqual(pool.send(sent).open()[2][0].number, 9)
        with mock.patch.dict(there, {type: Refuses.__reduce__, types.FunctionType: None}):
            self.assertEqual(pool.send([Refuses, first]).open(), [Refuses, first])

    def test_what_a_reducer_raises_is_raised_where_it_is_sent(self):
        pool, there = ebb.Pool("shared"), ForkingPickler._extra_reducers

        def leaves(refuses):
            del there[Refuses]
            gc.collect()
            raise LookupError("of its own")

        with mock.patch.dict(there, {Refuses: leaves}):
            del leaves
            self.assertRaisesRegex(LookupError, "of its own", pool.send, Refuses(7))
            self.assertRaisesRegex(TypeError, "not by itself", pool.send, Refuses(7))
        self.assertRaisesRegex(LookupError, "no hash", pool.send, Unhashable())

    def test_so_do_tensors_of_types_whose_reducer_is_registered(self):
        needs_grad = torch.ones(3, requires_grad=True) * 2
        for table in copyreg.dispatch_table, ForkingPickler._extra_reducers:
            with mock.patch.dict(table, {Metres: Metres.reduce}):
                for workers in (0, 1):
                    sent = Metres.make(torch.arange(3000.0), "km")
                    got = through(sent, workers)
                    self.assertEqual((type(got), Metres.units.pop(id(got))), (Metres, "km"))
                    self.assertTrue(torch.equal(got, sent))
                got = ebb.Pool("shared").send(Metres.make(needs_grad, "m")).open()
                self.assertEqual(got.tolist(), [2, 2, 2])

    def test_the_state_of_a_tensor_is_what_its_type_says(self):
        for workers in (0, 1):
            sent = torch.arange(3000.0).as_subclass(Locked)
            sent.unit, sent.lock = "km", threading.Lock()
            got = through(sent, workers)
            self.assertEqual(sorted(got.__dict__), ["lock", "restored", "unit"])
            self.assertTrue(type(got) is Locked and torch.equal(got, sent))
            for cls, unit in (Told, "km"), (Silent, "nothing"):
                sent = torch.ones(3).as_subclass(cls)
                sent.told = "km"
                got = through(sent.requires_grad_(True), workers)
                self.assertEqual((type(got), got.told, got.requires_grad), (cls, unit, True))

    def test_attributes_of_plain_tensors_stay_behind_as_with_torchs_workers(self):
        sent = torch.ones(3)
        sent.note = "mine"
        [by_torch] = torch.utils.data.DataLoader([sent], num_workers=1, collate_fn=first)
        for got in by_torch, through(sent, 0), through(sent, 1):
            self.assertTrue(torch.equal(got, sent))
            self.assertFalse(hasattr(got, "note"))

    def test_what_is_mapped_over_batches_in_a_worker_sees_parcels(self):
        collate = ebb.Collate(ebb.Pool("shared"))
        for workers, seen in (0, torch.Tensor), (1, ebb.Parcel):
            batches = IterableWrapper(range(4)).batch(2).collate(collate_fn=collate).map(type)
            self.assertEqual(list(torch.utils.data.DataLoader(batches, batch_size=None,
                                                              num_workers=workers)), [seen] * 2)

    def test_partials_keep_their_attributes(self):
        partial = functools.partial(int, base=2)
        partial.note = "mine"
        got = ebb.Pool("shared").send(partial).open()
        self.assertEqual((got("11"), got.note), (3, "mine"))

    def test_storages_are_no_exception(self):
        def untyped_of(typed):
            return getattr(typed, "_untyped_storage", None) or typed._storage

        storage = untyped_of(torch.arange(3000.0).storage())
        sent = {"untyped": storage, "typed": torch.ones(3).storage(),
                "float": torch.FloatStorage([1, 1, 1])}
        for workers in (0, 1):
            got = through(sent, workers)
            self.assertEqual([type(part) for part in got.values()],
                             [type(part) for part in sent.values()])
            self.assertEqual(got["untyped"].tolist(), storage.tolist())
            for name in ("typed", "float"):
                self.assertEqual((got[name].tolist(), got[name].dtype), ([1] * 3, torch.float32))
                self.assertEqual(vars(untyped_of(got[name])), {})
        empty = ebb.Pool("shared").send(type(storage)(0)).open()
        self.assertEqual((type(empty), empty.tolist()), (type(storage), []))

    def test_what_torch_registered_for_its_tensors_is_not_asked(self):
        """It would send a descriptor for each, and share its memory with the sender."""
        pool = ebb.Pool("shared")
        quantised = torch.quantize_per_tensor(torch.arange(9.0), 0.1, 3, torch.quint8)
        for sent in (torch.nn.Parameter(torch.ones(3)), quantised, torch.ones(3).storage()):
            got = pool.send(sent).open()
            self.assertFalse(got.is_shared() or sent.is_shared())
            same(got.tolist() if sent is not quantised else got.int_repr(),
                 sent.tolist() if sent is not quantised else sent.int_repr())


if __name__ == "__main__":
    unittest.main()
