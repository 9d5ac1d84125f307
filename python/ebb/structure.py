# SPDX-License-Identifier: Apache-2.0
"""What is not elements of a batch: a pickle that lies in the region beside them.

Tensors of torch and arrays of numpy are put into the region by the extension (Writer.reduce), and
so are the buffers of whatever else speaks protocol 5. Everything else is pickled as by a queue of
multiprocessing, so whatever can be sent by one comes back as itself: connections and sockets, too,
which a plain pickle would take for numbers that say nothing elsewhere.
"""

import copyreg
import io
import pickle
import types
from multiprocessing.reduction import ForkingPickler

from . import _ebb


def _storage(elements):
    ask = getattr(elements, "untyped_storage", None) or elements._storage
    return ask()


def _reduce_storage(storage):
    if storage.device.type != "cpu":
        return storage.__reduce__()
    import torch
    return _storage, (torch.empty(0, dtype=torch.uint8).set_(storage),)


# What torch and multiprocessing registered for their queues, where it is otherwise here: torch's
# elements would go by a descriptor each, and a partial would lose its attributes.
_OTHERWISE = {
    ("multiprocessing.reduction", "_reduce_partial"): None,
    ("torch.multiprocessing.reductions", "reduce_tensor"): None,
    ("torch.multiprocessing.reductions", "reduce_storage"): _reduce_storage,
}


def _used_here(reducer):
    """Of one that ForkingPickler has: None if it is not asked here."""
    name = getattr(reducer, "__module__", None), getattr(reducer, "__name__", None)
    return _OTHERWISE.get(name, reducer)


def _is_registered(cls):
    """With ForkingPickler.register() or copyreg.pickle(); else its objects reduce themselves."""
    return (_used_here(ForkingPickler._extra_reducers.get(cls)) is not None
            or copyreg.dispatch_table.get(cls) is not None)


def _reduce_registered(value, reducer):
    """By what ForkingPickler has for its type. A pickler asks copyreg by itself, and nobody about
    classes and functions, which go by their names."""
    reducer = _used_here(reducer)
    if reducer is None or type(value) in (type, types.FunctionType):
        return NotImplemented
    return reducer(value)


class _Pickler(pickle.Pickler):
    """A class of Python's, so that each object can have a reducer of its own."""


def _with_grad(tensor):
    return tensor.requires_grad_(True)


def _itself(tensor):
    return tensor


def _of_dtype(elements, dtype):
    return elements.view(dtype)


_BITS = {1: "uint8", 2: "int16", 4: "int32", 8: "int64"}  # by their bytes, in all torchs


def _as_bits(tensor):
    """Elements of a dtype that ebb has no name for, as numbers that it has; None: there is more to
    them, or to the tensor, which may have more dimensions than ebb, and it is torch's to reduce."""
    import torch
    if (not tensor.is_cpu or tensor.is_quantized or tensor.is_nested or tensor.has_names()
            or tensor.element_size() not in _BITS):
        return None
    bits = getattr(torch, _BITS[tensor.element_size()])
    return None if tensor.dtype == bits else tensor.view(bits)


def _set_state(made, state):
    """As torch does. That of torch.Tensor is for what old torchs have pickled."""
    import torch
    if type(made).__setstate__ is not torch.Tensor.__setstate__:
        made.__setstate__(state)
        return
    for part in state if isinstance(state, tuple) else (state,):  # of __dict__, of slots
        for name, value in (part or {}).items():
            setattr(made, name, value)


def _subclassed(cls, tensor, requires_grad, state):
    made = tensor.as_subclass(cls)
    if requires_grad:
        made.requires_grad_(True)
    _set_state(made, state)
    return made


def _sparse(make, arguments, is_coalesced):
    """torch keeps what it makes of a pickle until it is validated, which only torch.load() does.
    Whether it is coalesced some torch forget, so that nobody could ask for its indices."""
    from torch import _utils
    made = make(*arguments)
    _utils._validate_loaded_sparse_tensors()
    if is_coalesced:
        made._coalesced_(True)
    return made


def _reduce_other(tensor):
    """Tensors of torch that are more than their elements: typed, conjugated, requiring grad.

    Types that reduce themselves, or have a reducer that is registered, go by that, with their
    elements in the region; so do sparse tensors.
    """
    import torch
    cls = type(tensor)
    if cls is not torch.Tensor and _is_registered(cls):
        return NotImplemented
    if tensor.requires_grad and not tensor.is_leaf:
        raise RuntimeError("a tensor that requires grad and is no leaf cannot go to another "
                           "process: detach() it")
    if cls is torch.Tensor and tensor.requires_grad:
        return _with_grad, (tensor.detach(),)
    if cls is torch.Tensor:  # torch's own way forgets that elements are negated
        lazy = tensor.layout == torch.strided and (tensor.is_conj() or tensor.is_neg())
        if lazy:
            return _itself, (tensor.resolve_conj().resolve_neg(),)
        if tensor.layout == torch.strided and tensor.is_cpu and tensor._is_zerotensor():
            return _itself, (tensor.clone(),)  # zeros that lie nowhere
        if tensor.layout == torch.strided:  # by torch's own way what it is a view of goes, whole
            bits = _as_bits(tensor)
            return NotImplemented if bits is None else (_of_dtype, (bits, tensor.dtype))
        is_coalesced = tensor.layout == torch.sparse_coo and tensor.is_coalesced()
        return _sparse, (*tensor.__reduce_ex__(2)[:2], is_coalesced)
    ours = all(getattr(cls, name, None) is getattr(torch.Tensor, name, None)
               for name in ("__reduce_ex__", "__reduce__"))
    wraps = cls.__dict__.get("__torch_dispatch__") or (
        getattr(cls, "__torch_dispatch__", None)
        is not getattr(torch.Tensor, "__torch_dispatch__", None))
    if not ours or wraps:
        return NotImplemented
    with torch._C.DisableTorchFunction():
        plain = torch.Tensor.as_subclass(tensor.detach(), torch.Tensor)
    return _subclassed, (cls, plain, tensor.requires_grad, tensor.__getstate__())


def writer_to(region):
    """A Writer to a region of a shared pool; ebb.Error if it is closed, or a parent process's."""
    return _ebb.Writer(region, _reduce_other, ForkingPickler._extra_reducers, _reduce_registered)


def put(writer, batch):
    """Puts the batch into the writer's region: it is ready to send.

    ebb.Error if there is no room, which the writer says, too; pickle's errors if something cannot
    be pickled.
    """
    stream = io.BytesIO()
    pickler = _Pickler(stream, 5, buffer_callback=writer.put)
    pickler.reducer_override = writer.reduce
    pickler.dump(batch)
    writer.finish(stream.getbuffer())


def write(region, batch):
    """Puts the batch into a region of a shared pool: a Writer that is ready to send."""
    writer = writer_to(region)
    put(writer, batch)
    return writer
