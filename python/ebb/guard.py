# SPDX-License-Identifier: Apache-2.0
"""guard(): a batch whose region waits for a device that copies from it."""

import collections
import collections.abc
import functools
import sys
import types

from ._ebb import buffer_at, guard_at


def _current_device():
    """torch's; it is the first one as long as torch has not begun with CUDA, as asking it would."""
    cuda = sys.modules.get("torch.cuda")
    begun = getattr(cuda, "is_initialized", None)  # a thread may be importing torch
    return cuda.current_device() if begun and begun() else 0


def _stream(stream, device):
    """(number of the device, address of the stream); None: there is no device."""
    if stream is None:
        torch = sys.modules.get("torch")
        if torch is None or not (torch.cuda.is_initialized() or torch.cuda.is_available()):
            return None
        stream = torch.cuda.current_stream(device)
    if isinstance(stream, int):
        return _current_device() if device is None else device, stream
    if not hasattr(stream, "cuda_stream"):
        raise TypeError(f"{stream!r} is neither a torch.cuda.Stream nor its address")
    return stream.device.index, stream.cuda_stream


_PLAIN = {str, bytes, int, bool, float, complex, type(None)}  # of just these: nothing is in them
_SEQUENCES = (list, tuple, set, frozenset, collections.deque)
_BARE = (dict, *_SEQUENCES)  # of just these classes they have no attributes


def _elements(value):
    if isinstance(value, collections.abc.Mapping):
        return value.values()
    if isinstance(value, _SEQUENCES):
        return value
    if isinstance(value, functools.partial):
        return value.func, value.args, value.keywords
    return ()


_READERS = (types.GetSetDescriptorType, types.MemberDescriptorType)


def _readers(kind):
    """What reads the dict of attributes, if there is one, and the slots of objects of a class. None
    of it is the program's: names are looked up by properties and __getattr__() of its own."""
    dicts, slots = [], []
    for members in (vars(base) for base in kind.__mro__):
        if isinstance(members.get("__dict__"), _READERS):
            dicts.append(members["__dict__"])
        if "__slots__" in members:
            slots += [slot for name, slot in members.items()
                      if isinstance(slot, types.MemberDescriptorType)]
    return dicts[:1], slots


def _read(value, readers):
    for reader in readers:
        try:
            yield reader.__get__(value)
        except AttributeError:  # there is none so far
            pass


def _children(value, known):
    """What is in it; `known` keeps the readers of each class, by its address."""
    kind = type(value)
    if kind in _BARE:
        return _elements(value)
    if id(kind) not in known:
        known[id(kind)] = _readers(kind)
    dicts, slots = known[id(kind)]
    found = [*_elements(value), *_read(value, slots)]
    for attributes in _read(value, dicts):
        if isinstance(attributes, dict):
            found += dict.values(attributes)
    return found


def _elsewhere(value):
    return ValueError(f"a tensor on {value.device}: guard what was copied from, not the copy")


def _parts(tensor):
    """Tensors with the elements of a sparse one."""
    layout = str(tensor.layout)
    if layout == "torch.sparse_coo":
        return [tensor._indices(), tensor._values()]
    if layout in ("torch.sparse_csr", "torch.sparse_bsr"):
        return [tensor.crow_indices(), tensor.values()]
    if layout in ("torch.sparse_csc", "torch.sparse_bsc"):
        return [tensor.ccol_indices(), tensor.values()]
    return []


def _addresses(batch):
    """Where the elements of all tensors, storages, arrays and buffers in it are."""
    torch, numpy = sys.modules.get("torch"), sys.modules.get("numpy")
    seen, known, rest = {}, {}, [batch]
    while rest:
        value = rest.pop()
        if type(value) in _PLAIN or isinstance(value, type) or id(value) in seen:
            continue
        seen[id(value)] = value
        if torch and isinstance(value, torch.Tensor):
            if not value.is_cpu:
                raise _elsewhere(value)
            if value.layout == torch.strided:
                yield value.data_ptr()
            else:
                rest += _parts(value)
            if type(value) is torch.Tensor:  # has no slots, and seldom anything else
                rest.extend(value.__dict__.values())
                continue
        elif torch and isinstance(value, torch._C.StorageBase):
            if value.device.type != "cpu":
                raise _elsewhere(value)
            yield value.data_ptr()
        elif numpy and isinstance(value, numpy.ndarray):
            yield value.ctypes.data
            if value.dtype.hasobject:
                rest.append(value.tolist())
        else:
            yield buffer_at(value)
        rest.extend(_children(value, known))


def guard(batch, stream=None, *, device=None):
    """Keeps the region of a batch from being used again before a CUDA stream has come this far.

        for images, labels in loader:               # ebb.Pool("shared+pinned")
            x = images.to("cuda", non_blocking=True)
            ebb.guard(images)                       # before `images` is dropped

    batch   the batch, or any tensor, array, storage of torch or buffer of it, on the host. Looked
            through are values of mappings, lists, tuples, sets, deques, arrays of objects, what a
            functools.partial calls and with what, and attributes and slots of all objects: what
            else has tensors inside, as an iterator or a closure, is not. One tensor guards the
            region that it lies in: all of a batch, unless parcels are inside, which have regions of
            their own. Hand over the whole batch then
    stream  torch.cuda.Stream, or the address of one as an int (0: the default stream) with
            `device`; None: torch's current stream of `device`, and nothing where there is no CUDA
    device  its number; None: torch's current one, or 0. Copies to another device are asked of that
            one's current stream: name it, or the region waits for a stream that copies nothing

    Returns how many batches were guarded; 0 says that nothing was found in it that came through a
    pool, or that there is no CUDA. ebb.Error EBB_E_BUSY if four other streams read the batch
    already, EBB_E_DEVICE if the driver refuses: synchronise then.
    """
    place = _stream(stream, device)
    ranges, start, end = [], 0, 0  # the last one is that of the next tensor as well, mostly
    for address in _addresses(batch) if place else ():
        if not address or start <= address < end or any(low <= address < high
                                                        for low, high in ranges):
            continue
        found = guard_at(address, *place)
        if found:
            ranges.append(found)
            start, end = found
    return len(ranges)


guard.__module__ = "ebb"
