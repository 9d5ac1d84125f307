// SPDX-License-Identifier: Apache-2.0
/*
 * torch_hook.cpp - module ebb._torch_hook: torch's own tensors are born in a region.
 *
 * An allocator for the host's memory takes the place of torch's. Where a thread has entered a
 * region, storages of some size are tensors of it, held by an export each: whatever collate keeps
 * of them stays valid, as with ebb.empty(). Everything else goes to the allocator that was there.
 * oneDNN frees by the address alone, wherever its memory is from: so a storage is its own context,
 * and a map knows those of regions.
 *
 * Regions are those of the process that entered them: a forked child allocates as always.
 *
 * Built only where torch's headers are, for the torch that they are of: its C++ is not stable.
 */
#define Py_LIMITED_API 0x030b0000
#include <Python.h>

#include <c10/core/CPUAllocator.h>
#include <dlpack/dlpack.h>
#include <ebb/ebb.h>
#include <torch/csrc/api/include/torch/version.h>

#include <cstring>
#include <map>
#include <mutex>
#include <pthread.h>

namespace {

constexpr size_t small_bytes = 4096; // up to here a copy is cheaper; see ebb/current.py

thread_local ebb_region entered; // all zero: none

thread_local unsigned forks; // that led to the process that entered it

// In a forked child the region is the parent's.
void leave_after_fork() {
    const unsigned now = ebb_forks();
    if (forks != now)
        entered = {};
    forks = now;
}

c10::Allocator *usual; // torch's own

/* By address. The lock, which a fork waits for, is held for no call of ebb, malloc() or free(). */
using storages = std::map<void *, DLManagedTensor *>;
storages &of_regions = *new storages; // never ended: storages may outlive the module
std::mutex lock;

void give_back(void *storage) {
    lock.lock();
    const storages::node_type node = of_regions.extract(storage);
    lock.unlock();
    if (node)
        node.mapped()->deleter(node.mapped());
    else
        usual->raw_deleter()(storage);
}

/* A storage in the region, or NULL: then it is made elsewhere. */
void *make(size_t bytes) {
    if (bytes <= small_bytes || bytes > INT64_MAX || !ebb_region_is_open(entered))
        return nullptr;
    const int64_t shape = static_cast<int64_t>(bytes);
    ebb_tensor *tensor = ebb_tensor_new(entered, {EBB_UINT, 8, 1}, 1, &shape);
    if (!tensor)
        return nullptr;
    storages one;
    DLManagedTensor *&managed = one[tensor->data];
    managed = ebb_tensor_export(tensor, EBB_EXCHANGE_SHARE);
    if (!managed) {
        ebb_object_end(tensor);
        return nullptr;
    }
    void *storage = managed->dl_tensor.data;
    const std::lock_guard<std::mutex> holds(lock);
    of_regions.merge(one);
    return storage;
}

class RegionAllocator final : public c10::Allocator {
  public:
#if TORCH_VERSION_MAJOR == 1 || (TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR < 3)
    c10::DataPtr allocate(size_t bytes) const override {
        return allocate_here(bytes);
    }
#else
    c10::DataPtr allocate(size_t bytes) override {
        return allocate_here(bytes);
    }
    void copy_data(void *to, const void *from, std::size_t bytes) const override {
        default_copy_data(to, from, bytes);
    }
#endif
    c10::DeleterFnPtr raw_deleter() const override {
        return usual->raw_deleter() ? give_back : nullptr;
    }

  private:
    c10::DataPtr allocate_here(size_t bytes) const {
        if (entered.lane)
            leave_after_fork();
        void *storage = entered.lane ? make(bytes) : nullptr;
        if (!storage)
            return usual->allocate(bytes);
        return {storage, storage, give_back, c10::Device(c10::DeviceType::CPU)};
    }
};

RegionAllocator allocator; // static: storages may outlive the module

/* enter(handle): storages of this thread are born in that region; the handle before, to go back. */
PyObject *enter(PyObject *, PyObject *handle) {
    char *bytes;
    Py_ssize_t size;
    if (PyBytes_AsStringAndSize(handle, &bytes, &size) != 0)
        return nullptr;
    if (size != sizeof entered) {
        PyErr_SetString(PyExc_ValueError, "no handle of a region");
        return nullptr;
    }
    leave_after_fork();
    PyObject *before = PyBytes_FromStringAndSize(reinterpret_cast<char *>(&entered),
                                                 sizeof entered);
    if (before)
        std::memcpy(&entered, bytes, sizeof entered);
    return before;
}

PyMethodDef functions[] = {
    {"enter", enter, METH_O,
     "enter(handle)\n--\n\nStorages of this thread are born in the region; the handle before."},
    {nullptr, nullptr, 0, nullptr}};

PyModuleDef definition = {PyModuleDef_HEAD_INIT, "ebb._torch_hook",
                          "torch's tensors are born in a region.", -1, functions,
                          nullptr, nullptr, nullptr, nullptr};

} // namespace

PyMODINIT_FUNC PyInit__torch_hook() {
    if (!usual) {
        const auto take = [] { lock.lock(); };
        const auto give = [] { lock.unlock(); };
        if (pthread_atfork(take, give, give) != 0)
            return PyErr_NoMemory();
        usual = c10::GetCPUAllocator();
        c10::SetCPUAllocator(&allocator);
    }
    return PyModule_Create(&definition);
}
