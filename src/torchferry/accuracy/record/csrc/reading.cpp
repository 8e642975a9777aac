// The queue of what is to be read of a device's memory (fused_statistics.py). A few tensors are read by a launch each,
// through CUDA's driver, at a third of the cost of Triton's own launcher; whatever is not so simple is left to Python.

#include "reading.h"

#include <dlfcn.h>

#include <algorithm>
#include <memory>

namespace torchferry {
namespace {

using LaunchKernel = int (*)(
    void* function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y,
    unsigned block_z, unsigned shared, void* stream, void** parameters, void** extra);
using ParameterInfo = int (*)(void* function, size_t index, size_t* offset, size_t* size);

void* driver_function(const char* name) {
  static void* const driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
  return driver == nullptr ? nullptr : dlsym(driver, name);
}

LaunchKernel launch_kernel() {
  static const auto found = reinterpret_cast<LaunchKernel>(driver_function("cuLaunchKernel"));
  return found;
}

constexpr size_t kParameters = 8;  // of the kernel that reads; Triton may add pointers that it has no use for
constexpr size_t kMostParameters = 12;
constexpr int64_t kFew = 8;  // tensors: to send a table of more than these takes less than so many launches

// Whether a kernel takes words alone, at least as many as ours has.
bool takes_words(void* function) {
  static const auto info = reinterpret_cast<ParameterInfo>(driver_function("cuFuncGetParamInfo"));
  if (info == nullptr) return false;
  size_t count = 0, offset, size;
  for (; count < kMostParameters + 1 && info(function, count, &offset, &size) == 0; ++count)
    if (offset != count * kWord || size != kWord) return false;
  return kParameters <= count && count <= kMostParameters;
}

}  // namespace

ReadingQueue::ReadingQueue(PyObject* owner)
    : owner_(owner),
      tile_(whole(owner, "tile")),
      most_programs_(whole(owner, "most_programs")),
      most_partials_(whole(owner, "most_partials")),
      most_tensors_(whole(owner, "most_tensors")),
      beyond_(whole(owner, "beyond")),
      device_(whole(owner, "device_index")),
      left_(whole(owner, "left_address")),
      current_stream_(attribute(owner, "current_stream")),
      current_device_(attribute(owner, "current_device")),
      is_capturing_(attribute(owner, "is_capturing")) {}

bool ReadingQueue::may_be_captured() const {
  return is_capturing_.get() != Py_None && call(is_capturing_).get() != Py_False;
}

void ReadingQueue::put(const void* start, int kind, int64_t numbers, int64_t nbytes, void* row) {
  const int64_t wanted = std::min((nbytes + tile_ - 1) / tile_, most_programs_);
  if (used + wanted > most_partials_ || count() == most_tensors_) {
    launch();
    checked(PyObject_CallMethod(owner_, "make_room", nullptr));
  }
  const int64_t entry[kEntry] = {reinterpret_cast<int64_t>(start), nbytes, used, wanted, numbers, kind};
  entries.insert(entries.end(), entry, entry + kEntry);
  rows.push_back(reinterpret_cast<int64_t>(row));
  used += wanted;
  pending_kinds_ += programs[kind] == 0;
  programs[kind] = std::max(programs[kind], wanted);
}

void ReadingQueue::launch() {
  if (pending_kinds_ == 0) return;
  if (!(follow() && count() - read <= kFew && launch_each())) checked(PyObject_CallMethod(owner_, "launch_all", nullptr));
  read = count();
  std::fill(std::begin(programs), std::end(programs), 0);
  pending_kinds_ = 0;
}

// Whether the device is the current one, and its stream the one that was given all before. If not, Python sees to it.
bool ReadingQueue::follow() {
  if (current_stream_.get() == Py_None) return false;
  const Ref index = checked(PyLong_FromLongLong(device_));
  const int64_t stream = whole(call(current_stream_, index.get()).get());
  if (stream != stream_) {
    checked(PyObject_CallMethod(owner_, "follow", nullptr));
    stream_ = stream;
  }
  return whole(call(current_device_).get()) == device_;
}

bool ReadingQueue::launch_each() {
  for (int64_t each = read; each < count(); ++each)
    if (!can_launch(static_cast<int>(entries[each * kEntry + 5]))) return false;
  const int64_t table = whole(owner_, "table_address");
  for (int64_t each = read; each < count(); ++each) launch_one(entries.data() + each * kEntry, table);
  return true;
}

void ReadingQueue::launch_one(const int64_t* entry, int64_t table) {
  const Function& function = functions[entry[5]];
  int64_t numbers[kMostParameters] = {
      entry[0] + beyond_, entry[1] + beyond_, entry[2] + beyond_, entry[3] + beyond_, beyond_ - 1, beyond_,
      table, left_};
  void* parameters[kMostParameters];
  for (size_t each = 0; each < kMostParameters; ++each) parameters[each] = &numbers[each];
  const int error = launch_kernel()(
      function.handle, static_cast<unsigned>(entry[3]), 1, 1, function.threads, 1, 1, function.shared,
      reinterpret_cast<void*>(stream_), parameters, nullptr);
  if (error != 0) throw std::runtime_error("a kernel can't be launched: CUDA's error " + std::to_string(error));
}

void ReadingQueue::drop() {
  entries.resize(static_cast<size_t>(read * kEntry));
  rows.resize(static_cast<size_t>(read));
  std::fill(std::begin(programs), std::end(programs), 0);
  pending_kinds_ = 0;
}

void ReadingQueue::clear() {
  entries.clear();
  rows.clear();
  read = written = 0;
}

void ReadingQueue::set_function(int kind, int64_t function, int threads, int shared) {
  void* handle = reinterpret_cast<void*>(function);
  if (handle == nullptr || launch_kernel() == nullptr || !takes_words(handle)) return;
  functions[kind] = {handle, static_cast<unsigned>(threads), static_cast<unsigned>(shared)};
}

namespace {

// What Python sees

struct QueueObject {
  PyObject_HEAD
  ReadingQueue* queue;
};

PyTypeObject* queue_type = nullptr;

ReadingQueue& queue_of(PyObject* self) { return *reinterpret_cast<QueueObject*>(self)->queue; }

PyObject* new_queue(PyTypeObject* type, PyObject* args, PyObject*) {
  PyObject* owner;
  if (!PyArg_ParseTuple(args, "O", &owner)) return nullptr;
  return guarded([&]() -> PyObject* {
    auto queue = std::make_unique<ReadingQueue>(owner);
    PyObject* self = type->tp_alloc(type, 0);
    if (self != nullptr) reinterpret_cast<QueueObject*>(self)->queue = queue.release();
    return self;
  });
}

void free_queue(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  delete reinterpret_cast<QueueObject*>(self)->queue;
  type->tp_free(self);
  Py_DECREF(type);
}

PyObject* put(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  if (!has_arguments(count, 5)) return nullptr;
  return guarded([&]() -> PyObject* {
    queue_of(self).put(
        reinterpret_cast<const void*>(whole(args[0])), static_cast<int>(whole(args[1])), whole(args[2]), whole(args[3]),
        reinterpret_cast<void*>(whole(args[4])));
    Py_RETURN_NONE;
  });
}

PyObject* launch(PyObject* self, PyObject*) {
  return guarded([&]() -> PyObject* {
    queue_of(self).launch();
    Py_RETURN_NONE;
  });
}

PyObject* drop(PyObject* self, PyObject*) {
  queue_of(self).drop();
  Py_RETURN_NONE;
}

PyObject* clear(PyObject* self, PyObject*) {
  queue_of(self).clear();
  Py_RETURN_NONE;
}

PyObject* add_up(PyObject* self, PyObject*) {
  ReadingQueue& queue = queue_of(self);
  queue.written = queue.read;
  queue.used = 0;
  Py_RETURN_NONE;
}

PyObject* set_function(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  if (!has_arguments(count, 4)) return nullptr;
  return guarded([&]() -> PyObject* {
    const int kind = static_cast<int>(whole(args[0]));
    queue_of(self).set_function(
        kind, whole(args[1]), static_cast<int>(whole(args[2])), static_cast<int>(whole(args[3])));
    return PyBool_FromLong(queue_of(self).can_launch(kind));
  });
}

// The kinds that are waiting, with the most programs of each.
PyObject* waiting(PyObject* self, PyObject*) {
  return guarded([&]() -> PyObject* {
    Ref list = checked(PyList_New(0));
    for (int kind = 0; kind < kKinds; ++kind) {
      if (queue_of(self).programs[kind] == 0) continue;
      const Ref pair = checked(Py_BuildValue("(iL)", kind, static_cast<long long>(queue_of(self).programs[kind])));
      if (PyList_Append(list.get(), pair.get()) < 0) throw Raised();
    }
    return list.release();
  });
}

PyObject* get_counts(PyObject* self, void*) {
  const ReadingQueue& queue = queue_of(self);
  return Py_BuildValue(
      "(LLL)", static_cast<long long>(queue.written), static_cast<long long>(queue.read),
      static_cast<long long>(queue.count()));
}

PyObject* get_entries(PyObject* self, void*) { return PyLong_FromVoidPtr(queue_of(self).entries.data()); }

PyObject* get_rows(PyObject* self, void*) {
  return guarded([&]() -> PyObject* {
    const ReadingQueue& queue = queue_of(self);
    Ref list = checked(PyList_New(queue.written));
    for (int64_t each = 0; each < queue.written; ++each)
      PyList_SET_ITEM(list.get(), each, checked(PyLong_FromLongLong(queue.rows[static_cast<size_t>(each)])).release());
    return list.release();
  });
}

PyMethodDef methods[] = {
    {"put", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(put)), METH_FASTCALL, nullptr},
    {"launch", launch, METH_NOARGS, nullptr},
    {"drop", drop, METH_NOARGS, nullptr},
    {"clear", clear, METH_NOARGS, nullptr},
    {"add_up", add_up, METH_NOARGS, nullptr},
    {"waiting", waiting, METH_NOARGS, nullptr},
    {"set_function", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(set_function)), METH_FASTCALL, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

PyGetSetDef attributes[] = {
    {"counts", get_counts, nullptr, nullptr, nullptr},
    {"entries", get_entries, nullptr, nullptr, nullptr},
    {"rows", get_rows, nullptr, nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};

PyType_Slot slots[] = {
    {Py_tp_new, reinterpret_cast<void*>(new_queue)},
    {Py_tp_dealloc, reinterpret_cast<void*>(free_queue)},
    {Py_tp_methods, methods},
    {Py_tp_getset, attributes},
    {0, nullptr},
};
PyType_Spec spec = {"torchferry_calls.ReadingQueue", sizeof(QueueObject), 0, Py_TPFLAGS_DEFAULT, slots};

}  // namespace

ReadingQueue* reading_queue_of(PyObject* object) {
  return Py_TYPE(object) == queue_type ? reinterpret_cast<QueueObject*>(object)->queue : nullptr;
}

bool add_reading_queue(PyObject* module) {
  queue_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
  if (queue_type == nullptr) return false;
  Py_INCREF(queue_type);
  return PyModule_AddObject(module, "ReadingQueue", reinterpret_cast<PyObject*>(queue_type)) == 0;
}

}  // namespace torchferry
