// What calls.py and layout.py do for records of statistics, call by call, without Python's own cost for each tensor: looks
// at a call's tensors before it is made and afterwards, and has read what is not known yet. Whatever is unusual is asked
// of Python (quick_calls.py): new layouts, tensors of other types, tensors that can't be read.

#include "gradients.h"
#include "places.h"
#include "python_objects.h"
#include "reading.h"

#include <ATen/PythonTorchFunctionTLS.h>
#include <c10/core/CPUAllocator.h>
#include <c10/core/GradMode.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/csrc/autograd/python_variable.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

namespace torchferry {
namespace {

// Equal for calls that look alike; of two different ones never the same in practice.
struct Digest {
  uint64_t first = 0x9E3779B97F4A7C15u, second = 0xC2B2AE3D27D4EB4Fu;

  void add(uint64_t word) {
    first = (first ^ word) * 0xBF58476D1CE4E5B9u;
    first ^= first >> 32;
    second = (second + word) * 0x94D049BB133111EBu;
    second ^= second >> 29;
  }
  void add(const void* pointer) { add(reinterpret_cast<uint64_t>(pointer)); }
  void add(const char* text, size_t length) {
    add(length);
    for (; length >= 8; length -= 8, text += 8) {
      uint64_t word;
      std::memcpy(&word, text, 8);
      add(word);
    }
    uint64_t rest = 0;
    std::memcpy(&rest, text, length);
    add(rest);
  }
  bool operator==(const Digest& other) const { return first == other.first && second == other.second; }
};

struct DigestHash {
  size_t operator()(const Digest& digest) const { return digest.first; }
};

enum Tag : uint64_t { kTensor = 1, kList, kInteger, kBool, kText, kNone, kFloat, kOdd, kName, kIndex, kResults };

// What a TensorLayout of Python's says.
struct Layout {
  explicit Layout(PyObject* layout)
      : object(Ref::borrowed(layout)),
        is_unread(PyObject_IsTrue(attribute(layout, "unread").get()) == 1),
        is_on_host(truth(layout, "on_host")),
        is_plain(truth(layout, "is_plain")),
        is_simple(truth(layout, "is_dense") && !truth(layout, "has_marks")),
        nbytes(whole(layout, "nbytes")),
        numbers(whole(layout, "numbers")),
        extent(whole(layout, "extent")),
        code(static_cast<int>(whole(layout, "code"))),
        is_of_cpu(PyUnicode_CompareWithASCIIString(attribute(layout, "device").get(), "cpu") == 0),
        region(Ref(attribute(layout, "region"))) {}

  Ref object;
  bool is_unread, is_on_host, is_plain, is_simple;
  int64_t nbytes, numbers, extent;
  int code;
  bool is_of_cpu;
  Ref region;  // one object for equal regions: see Observer::layout_from
  const void* same_region = nullptr;
  // what reads such tensors of a device; none: Python sees to it
  ReadingQueue* queue = nullptr;
  bool is_queue_known = false;
};

// What one look at a tensor's metadata finds a layout by.
struct Look {
  const at::TensorImpl* impl;
  uint64_t kind;  // dtype, device, marks

  explicit Look(const at::TensorImpl* tensor) : impl(tensor) {
    const c10::Device device = tensor->device();
    const auto marks = tensor->key_set();
    kind = (static_cast<uint64_t>(c10::typeMetaToScalarType(tensor->dtype())) << 32) |
        (static_cast<uint64_t>(device.type()) << 16) | (static_cast<uint64_t>(static_cast<uint8_t>(device.index())) << 8) |
        (marks.has(c10::DispatchKey::Conjugate) ? 2u : 0u) | (marks.has(c10::DispatchKey::Negative) ? 1u : 0u);
  }

  Digest digest() const {
    Digest found;
    found.add(kind);
    for (int64_t size : impl->sizes()) found.add(static_cast<uint64_t>(size));
    for (int64_t step : impl->strides()) found.add(static_cast<uint64_t>(step));
    found.add(static_cast<uint64_t>(impl->dim()));
    return found;
  }
};

// What is known of a piece of memory.
struct Known {
  const char *start, *stop;
  const void* region;
  int64_t number, version, slack;
  bool has_checksum;
  uint64_t checksum;
};

constexpr int64_t kNoVersion = -1;  // of tensors that were made in inference mode

int64_t version_of(const at::TensorImpl* tensor) {
  const auto& counter = tensor->version_counter();
  return counter.enabled() ? static_cast<int64_t>(counter.current_version()) : kNoVersion;
}

// Whether a tensor of the same memory has the content still. Autograd counts a write after the call that we see, or not
// at all: so much more than the version is the same.
bool is_still_there(Known& known, const at::TensorImpl* tensor) {
  const int64_t change = version_of(tensor) - known.version;
  if (change == 0) return true;
  if (change < 0 || change > known.slack) return false;
  known.version += change;
  known.slack = 0;
  return true;
}

struct Storage {
  Storage(c10::intrusive_ptr<c10::StorageImpl> strong, bool shifting) : weak(std::move(strong)), is_shifting(shifting) {}

  c10::weak_intrusive_ptr<c10::StorageImpl> weak;  // keeps the address from being used again, not the data
  std::vector<Known> contents;
  bool is_shifting;

  Known* find(const char* start, const void* region) {
    for (Known& known : contents)
      if (known.start == start && known.region == region) return &known;
    return nullptr;
  }

  void forget(const char* start, const char* stop) {
    size_t kept = 0;
    for (Known& known : contents) {
      if (known.start < stop && start < known.stop) continue;
      known.slack += 1;
      contents[kept++] = known;
    }
    contents.resize(kept);
  }
};

// What is computed while it lives leaves no trace: no graph, no modes or subclasses of the program, no autocast. As
// `unobserved` of Python's.
class Unobserved {
 public:
  Unobserved() : functions_(at::impl::PythonTorchFunctionTLS::get_disabled_state()) {
    at::impl::PythonTorchFunctionTLS::set_disabled_state(at::impl::TorchFunctionDisabledState::ALL_DISABLED);
  }
  ~Unobserved() { at::impl::PythonTorchFunctionTLS::set_disabled_state(functions_); }
  Unobserved(const Unobserved&) = delete;
  Unobserved& operator=(const Unobserved&) = delete;

 private:
  at::impl::TorchFunctionDisabledState functions_;
  c10::AutoGradMode gradients_{false};
  c10::impl::ExcludeDispatchKeyGuard keys_{
      c10::autocast_dispatch_keyset |
      c10::DispatchKeySet({c10::DispatchKey::Python, c10::DispatchKey::PythonTLSSnapshot})};
};

// The last block of a table of the file, as the writer in Python describes it (_Block). It has room for more rows
// unless Python has to be asked for another block, or nothing may be written any more.
struct Block {
  char* address;
  int64_t first, used, limit;

  bool has_room(int64_t rows) const { return used + rows <= limit; }
};

// A row of the table of calls.
struct CallRow {
  uint64_t first_content;
  uint32_t contents, step, site, signature;
};
static_assert(sizeof(CallRow) == 24);

constexpr size_t kFewestPurged = 2048;
constexpr size_t kMostSignatures = 100000;  // programs whose numbers change all the time have one for each call
constexpr int kRowSize = 72, kChecksumPlace = 64;
constexpr long kNoArgument = -1;  // the position of what is no argument
using Kernel = void (*)(const void* data, int code, uint64_t count, void* row);

// What an OperatorPlan of Python's says.
struct Plan {
  explicit Plan(PyObject* plan)
      : object(Ref::borrowed(plan)),
        is_view(truth(plan, "is_view")),
        waits(truth(plan, "waits")),
        communicates(truth(plan, "communicates")),
        is_uninitialised(truth(plan, "uninitialised")),
        is_described(truth(plan, "is_described")),
        has_effects(truth(plan, "has_effects")),
        may_be_under_way(truth(plan, "may_be_under_way")),
        positions(attribute(plan, "positions")),
        function(attribute(plan, "call")) {
    const Ref place = attribute(plan, "in_place");
    in_place = place.get() == Py_None ? kNoArgument : static_cast<long>(whole(place.get()));
    fill(plan, "written", written);
    fill(plan, "lost", lost);
  }

  static void fill(PyObject* plan, const char* name, std::vector<bool>& places) {
    const Ref numbers = checked(PySequence_List(attribute(plan, name).get()));
    for (Py_ssize_t each = 0; each < PyList_GET_SIZE(numbers.get()); ++each) {
      const size_t place = static_cast<size_t>(whole(PyList_GET_ITEM(numbers.get(), each)));
      if (places.size() <= place) places.resize(place + 1);
      places[place] = true;
    }
  }

  static bool has(const std::vector<bool>& places, long position) {
    return position >= 0 && static_cast<size_t>(position) < places.size() && places[static_cast<size_t>(position)];
  }

  Ref object;
  bool is_view, waits, communicates, is_uninitialised, is_described, has_effects, may_be_under_way;
  Ref positions, function;
  long in_place;
  std::vector<bool> written, lost;
};

// A tensor of a call, as it was given or answered; the call holds the objects.
struct Part {
  PyObject* tensor;
  long position;
  Layout* layout;
  PyObject* mark;
};

struct Ongoing {
  Plan* plan;
  Ref site, args, kwargs, result;
  std::vector<Part> inputs, outputs;
  std::vector<int64_t> contents;
  Digest digest;
  Digest shape;  // of its lists and tensors alone, whatever values it is given
};

struct OngoingObject {
  PyObject_HEAD
  Ongoing* call;
};

PyTypeObject* ongoing_type = nullptr;

// Holds the lock of the record's file.
class Locked {
 public:
  Locked(const Ref& acquire, const Ref& release) : release_(release) { call(acquire); }
  ~Locked() {
    const Ref done(PyObject_CallNoArgs(release_.get()));
    if (!done) PyErr_Clear();
  }
  Locked(const Locked&) = delete;
  Locked& operator=(const Locked&) = delete;

 private:
  const Ref& release_;
};

// Puts away the error that is set, and sets it again.
class SavedError {
 public:
  SavedError() { PyErr_Fetch(&type_, &value_, &trace_); }
  ~SavedError() { PyErr_Restore(type_, value_, trace_); }
  SavedError(const SavedError&) = delete;
  SavedError& operator=(const SavedError&) = delete;

 private:
  PyObject *type_, *value_, *trace_;
};

class Observer {
 public:
  // Functions and types of Python's, by the names that quick_calls.py gives them.
  explicit Observer(PyObject* helpers)
      : layout_of_(attribute(helpers, "layout_of")),
        layout_of_any_(attribute(helpers, "layout_of_any")),
        is_shared_(attribute(helpers, "is_shared")),
        row_(attribute(helpers, "row")),
        address_(attribute(helpers, "address")),
        put_(attribute(helpers, "put")),
        launch_(attribute(helpers, "launch")),
        refuse_capturing_(attribute(helpers, "refuse_capturing")),
        queue_for_(attribute(helpers, "queue_for")),
        synchronize_(attribute(helpers, "synchronize")),
        key_of_odd_(attribute(helpers, "key_of_odd")),
        new_numbers_(attribute(helpers, "new_numbers")),
        write_(attribute(helpers, "write")),
        where_(attribute(helpers, "where")),
        find_site_(attribute(where_.get(), "find_site")),
        acquire_(attribute(helpers, "acquire")),
        release_(attribute(helpers, "release")),
        caller_(checked(PyLong_FromLong(1))),
        parameter_(attribute(helpers, "parameter")),
        buffer_(attribute(helpers, "buffer")),
        no_role_(attribute(helpers, "no_role")),
        overwritten_(attribute(helpers, "overwritten")),
        uninitialised_(attribute(helpers, "uninitialised")),
        under_way_(attribute(helpers, "under_way")),
        tensor_type_(attribute(helpers, "tensor_type")),
        parameter_type_(attribute(helpers, "parameter_type")),
        dtype_type_(attribute(helpers, "dtype_type")),
        regions_(checked(PyDict_New())),
        odd_keys_(checked(PyDict_New())),
        marks_(checked(PyDict_New())),
        rows_(reinterpret_cast<Block*>(whole(helpers, "rows_block"))),
        calls_(reinterpret_cast<Block*>(whole(helpers, "calls_block"))),
        contents_(reinterpret_cast<Block*>(whole(helpers, "contents_block"))),
        short_(reinterpret_cast<Kernel>(whole(helpers, "short_kernel"))),
        long_(reinterpret_cast<Kernel>(whole(helpers, "long_kernel"))),
        most_short_(whole(helpers, "most_short")),
        empty_(attribute(helpers, "empty")),
        host_deleter_(c10::GetCPUAllocator()->raw_deleter()) {}

  bool is_anything_shifting = false;  // code runs whose writes can't be seen

  // The arguments of a call, as the operator finds them.
  Ongoing* before(PyObject* plan, PyObject* site, PyObject* args, PyObject* kwargs) {
    const Unobserved guard;
    auto call = std::make_unique<Ongoing>();
    call->plan = plan_of(plan);
    call->site = Ref::borrowed(site);
    call->args = Ref::borrowed(args);
    call->kwargs = Ref::borrowed(kwargs);
    call->digest.add(plan);
    call->digest.add(site);
    call->shape.add(plan);
    for (Py_ssize_t place = 0; place < PyTuple_GET_SIZE(args); ++place)
      take(*call, static_cast<long>(place), PyTuple_GET_ITEM(args, place));
    PyObject *name, *value;
    Py_ssize_t next = 0;
    while (PyDict_Next(kwargs, &next, &name, &value)) {
      call->digest.add(kName);
      add_text(call->digest, name);
      take(*call, position_of(*call->plan, name), value);
    }
    launch();
    return call.release();
  }

  // The results, and the arguments that the operator has written to; then the whole call is written.
  void take(Ongoing& call, PyObject* result, PyObject* step) {
    const Unobserved guard;
    const Plan& plan = *call.plan;
    if (plan.in_place == kNoArgument || !take_in_place(call, result)) take_whole(call, result);
    launch();
    write(call, step);
  }

  // What Recorder.observe does for a call that is wanted: looks at it, makes it, looks at its results.
  PyObject* observed(PyObject* recorder, PyObject* object, PyObject* args, PyObject* kwargs) {
    const Plan& plan = *plan_of(object);
    std::unique_ptr<Ongoing> ongoing;
    const bool is_seen = has_done([&] {
      const Locked lock(acquire_, release_);
      const Ref site = call(find_site_, caller_.get());
      ongoing.reset(before(object, site.get(), args, kwargs));
    });
    if (!is_seen) fail(recorder);
    Ref result(PyObject_Call(plan.function.get(), args, kwargs));
    if (!result) {
      if (plan.has_effects) lose(object, args, kwargs);  // a call that fails may have written already
      throw Raised();
    }
    const bool is_written = !ongoing || has_done([&] {
      const Locked lock(acquire_, release_);
      const Ref step = attribute(recorder, "_step");
      take(*ongoing, result.get(), step.get());
    });
    if (!is_written) fail(recorder);
    return result.release();
  }

  // Forget what a call that was not looked at has written to.
  void effects_of(PyObject* object, PyObject* args, PyObject* kwargs) {
    const Unobserved guard;
    const Plan& plan = *plan_of(object);
    std::vector<Part> tensors;
    for (Py_ssize_t place = 0; place < PyTuple_GET_SIZE(args); ++place)
      gather(tensors, static_cast<long>(place), PyTuple_GET_ITEM(args, place));
    PyObject *name, *value;
    Py_ssize_t next = 0;
    while (PyDict_Next(kwargs, &next, &name, &value)) gather(tensors, position_of(plan, name), value);
    apply_effects(plan, tensors);
  }

  void forget_all() { storages_.clear(); }

  size_t size() const { return storages_.size(); }

  void forget_storage(PyObject* tensor) {
    const auto found = storages_.find(storage_of(THPVariable_Unpack(tensor).unsafeGetTensorImpl()));
    if (found != storages_.end()) found->second.contents.clear();
  }

 private:
  // Whether it goes through without an error; an error is set if not.
  template <typename Work>
  static bool has_done(Work work) {
    const Ref done(guarded([&]() -> PyObject* {
      work();
      Py_RETURN_NONE;
    }));
    return static_cast<bool>(done);
  }

  // The recording ends with the error that is set, and the program goes on.
  static void fail(PyObject* recorder) {
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    PyErr_NormalizeException(&type, &value, &trace);
    const Ref kind(type), error(value), place(trace);
    checked(PyObject_CallMethod(recorder, "_fail", "O", value));
  }

  void lose(PyObject* plan, PyObject* args, PyObject* kwargs) {
    const SavedError error;
    const bool is_done = has_done([&] {
      const Locked lock(acquire_, release_);
      effects_of(plan, args, kwargs);
    });
    if (!is_done) PyErr_Clear();
  }

  // Arguments and results

  void take(Ongoing& call, long position, PyObject* value) {
    PyTypeObject* kind = Py_TYPE(value);
    Digest& digest = call.digest;
    if (is_plain_tensor(kind)) {
      take_input(call, position, value, layout_from(value));
    } else if (kind == &PyList_Type || kind == &PyTuple_Type) {
      const Py_ssize_t count = PySequence_Fast_GET_SIZE(value);
      add_list(call, count);
      for (Py_ssize_t each = 0; each < PySequence_Fast_GET_SIZE(value); ++each) {
        call.shape.add(static_cast<uint64_t>(each));
        take(call, position, PySequence_Fast_GET_ITEM(value, each));
      }
    } else if (!add_value(digest, value)) {
      if (is_tensor(value)) {
        take_input(call, position, value, layout_of_any(value));
      } else {
        add_odd(digest, value);
      }
    }
  }

  void take_input(Ongoing& call, long position, PyObject* tensor, Layout* layout) {
    const Plan& plan = *call.plan;
    PyObject* mark = role_of(tensor);
    int64_t content = 0;
    if (Plan::has(plan.lost, position)) {
      if (!layout->is_unread) mark = marked(mark, overwritten_.get());
    } else if (!layout->is_unread) {
      try {  // a view is not read: whoever computes with it does
        content = plan.is_view ? found(tensor, *layout) : read(tensor, *layout, 0);
      } catch (const Unreadable& error) {
        layout = reason(tensor, error, mark);
      }
    }
    call.inputs.push_back({tensor, position, layout, mark});
    call.contents.push_back(content);
    call.shape.add(static_cast<uint64_t>(position));
    add_tensor(call, layout, mark);
  }

  // The parts of a digest that say where its lists and tensors are: values have none of them.
  static void add_list(Ongoing& call, Py_ssize_t count) {
    for (Digest* digest : {&call.digest, &call.shape}) {
      digest->add(kList);
      digest->add(static_cast<uint64_t>(count));
    }
  }

  static void add_tensor(Ongoing& call, const Layout* layout, PyObject* mark) {
    for (Digest* digest : {&call.digest, &call.shape}) {
      digest->add(kTensor);
      digest->add(layout);
      digest->add(mark);
    }
  }

  void take_output(Ongoing& call, PyObject* tensor) {
    Layout* layout = is_plain_tensor(Py_TYPE(tensor)) ? layout_from(tensor) : layout_of_any(tensor);
    take_content(call, tensor, layout, role_of(tensor));
  }

  void take_content(Ongoing& call, PyObject* tensor, Layout* layout, PyObject* mark) {
    const Plan& plan = *call.plan;
    int64_t content = 0;
    if (plan.is_uninitialised || plan.communicates) {
      if (!layout->is_unread) mark = marked(mark, (plan.is_uninitialised ? uninitialised_ : under_way_).get());
    } else if (!layout->is_unread) {
      try {
        content = plan.is_view ? found(tensor, *layout) : read(tensor, *layout, plan.written.empty() ? 0 : 1);
      } catch (const Unreadable& error) {
        layout = reason(tensor, error, mark);
      }
    }
    call.outputs.push_back({tensor, kNoArgument, layout, mark});
    call.contents.push_back(content);
    add_tensor(call, layout, mark);
  }

  // The result of most calls that write is the argument that was written to, and tensors as it did.
  bool take_in_place(Ongoing& call, PyObject* result) {
    const long position = call.plan->in_place;
    if (position >= PyTuple_GET_SIZE(call.args.get()) || PyTuple_GET_ITEM(call.args.get(), position) != result)
      return false;
    for (const Part& given : call.inputs) {
      if (given.position != position) continue;
      if (given.layout->is_unread) return false;
      forget(result, *given.layout);
      call.result = Ref::borrowed(result);
      call.digest.add(kResults);
      PyObject* mark = PyTuple_Check(given.mark) ? PyTuple_GET_ITEM(given.mark, 0) : given.mark;
      take_content(call, result, given.layout, mark);
      return true;
    }
    return false;
  }

  void take_whole(Ongoing& call, PyObject* result) {
    const Plan& plan = *call.plan;
    if (plan.has_effects) apply_effects(plan, call.inputs);
    if (plan.may_be_under_way) wait_for_copies(call);
    call.result = Ref::borrowed(result);
    call.digest.add(kResults);
    take_results(call, result);
    if (plan.written.empty()) return;
    const size_t returned = call.outputs.size();
    for (const Part& given : call.inputs) {  // arguments that are not among the results
      if (!Plan::has(plan.written, given.position)) continue;
      bool is_returned = false;
      for (size_t each = 0; each < returned && !is_returned; ++each)
        is_returned = call.outputs[each].tensor == given.tensor;
      if (!is_returned) take_output(call, given.tensor);
    }
  }

  void take_results(Ongoing& call, PyObject* result) {
    if (is_plain_tensor(Py_TYPE(result)) || is_tensor(result)) {
      take_output(call, result);
    } else if (PyList_Check(result) || PyTuple_Check(result)) {
      add_list(call, PySequence_Fast_GET_SIZE(result));
      for (Py_ssize_t each = 0; each < PySequence_Fast_GET_SIZE(result); ++each) {
        call.digest.add(kIndex);
        call.shape.add(static_cast<uint64_t>(each));
        take_results(call, PySequence_Fast_GET_ITEM(result, each));
      }
    } else if (!add_value(call.digest, result)) {
      add_odd(call.digest, result);
    }
  }

  // A copy to the host may be under way.
  void wait_for_copies(const Ongoing& ongoing) {
    const Ref name = checked(PyUnicode_InternFromString("non_blocking"));
    PyObject* value = PyDict_GetItemWithError(ongoing.kwargs.get(), name.get());
    const long place = position_of(*ongoing.plan, name.get());
    if (place < PyTuple_GET_SIZE(ongoing.args.get())) value = PyTuple_GET_ITEM(ongoing.args.get(), place);
    if (value == nullptr || PyObject_IsTrue(value) != 1) return;
    for (const Part& given : ongoing.inputs)
      if (!given.layout->is_on_host) call(synchronize_, given.layout->object.get());
  }

  // Values, as parts of a digest

  static void add_text(Digest& digest, PyObject* text) {
    Py_ssize_t length;
    const char* characters = PyUnicode_AsUTF8AndSize(text, &length);
    if (characters == nullptr) throw Raised();
    digest.add(characters, static_cast<size_t>(length));
  }

  // False: it is none of the usual ones.
  bool add_value(Digest& digest, PyObject* value) {
    PyTypeObject* kind = Py_TYPE(value);
    if (kind == &PyLong_Type) {
      int overflow;
      const long long number = PyLong_AsLongLongAndOverflow(value, &overflow);
      if (overflow) return false;
      digest.add(kInteger);
      digest.add(static_cast<uint64_t>(number));
    } else if (kind == &PyBool_Type) {
      digest.add(kBool);
      digest.add(value == Py_True ? 1u : 0u);
    } else if (value == Py_None) {
      digest.add(kNone);
    } else if (kind == &PyFloat_Type) {
      const double number = PyFloat_AS_DOUBLE(value);
      uint64_t bits = 0;  // of all that is no number
      if (!std::isnan(number)) std::memcpy(&bits, &number, 8);
      digest.add(kFloat);
      digest.add(bits);
      digest.add(std::isnan(number) ? 1u : 0u);
    } else if (kind == &PyUnicode_Type) {
      digest.add(kText);
      add_text(digest, value);
    } else if (kind == reinterpret_cast<PyTypeObject*>(dtype_type_.get())) {
      digest.add(kOdd);  // there is one object for each
      digest.add(value);
    } else {
      return false;
    }
    return true;
  }

  void add_odd(Digest& digest, PyObject* value) {
    const Ref key = call(key_of_odd_, value);
    PyObject* kept = PyDict_SetDefault(odd_keys_.get(), key.get(), key.get());
    if (kept == nullptr) throw Raised();
    digest.add(kOdd);
    digest.add(kept);
  }

  // Tensors

  bool is_plain_tensor(PyTypeObject* kind) const {
    return kind == reinterpret_cast<PyTypeObject*>(tensor_type_.get()) ||
        kind == reinterpret_cast<PyTypeObject*>(parameter_type_.get());
  }

  bool is_tensor(PyObject* value) const {
    return PyType_IsSubtype(Py_TYPE(value), reinterpret_cast<PyTypeObject*>(tensor_type_.get())) != 0;
  }

  PyObject* role_of(PyObject* tensor) {
    PyTypeObject* kind = Py_TYPE(tensor);
    if (kind == reinterpret_cast<PyTypeObject*>(parameter_type_.get())) return parameter_.get();
    if (kind != reinterpret_cast<PyTypeObject*>(tensor_type_.get())) {
      const int is_one = PyObject_IsInstance(tensor, parameter_type_.get());
      if (is_one < 0) throw Raised();
      if (is_one) return parameter_.get();
    }
    const Ref buffers = attribute(where_.get(), "buffers");
    if (PySet_GET_SIZE(buffers.get()) == 0) return no_role_.get();
    const Ref number = checked(PyLong_FromVoidPtr(tensor));
    const int is_buffer = PySet_Contains(buffers.get(), number.get());
    if (is_buffer < 0) throw Raised();
    return (is_buffer ? buffer_ : no_role_).get();
  }

  // A role, and why the tensor was not read; one object for the same.
  PyObject* marked(PyObject* role, PyObject* why) {
    const Ref pair = checked(PyTuple_Pack(2, role, why));
    PyObject* kept = PyDict_SetDefault(marks_.get(), pair.get(), pair.get());
    if (kept == nullptr) throw Raised();
    return kept;
  }

  Layout* reason(PyObject* tensor, const Unreadable& error, PyObject*& mark) {
    Layout* layout = layout_of_any(tensor);
    if (!layout->is_unread) {
      const Ref why = checked(PyUnicode_FromString(error.why.c_str()));
      mark = marked(mark, why.get());
    }
    return layout;
  }

  static bool has_plain_memory(const at::TensorImpl* tensor) {
    static const auto odd = c10::DispatchKeySet(
        {c10::DispatchKey::FuncTorchBatched, c10::DispatchKey::FuncTorchGradWrapper, c10::DispatchKey::Functionalize,
         c10::DispatchKey::ZeroTensor, c10::DispatchKey::NestedTensor, c10::DispatchKey::Python});
    return tensor->layout() == c10::kStrided && tensor->has_storage() && !tensor->has_symbolic_sizes_strides() &&
        !tensor->key_set().has_any(odd);
  }

  // Of a tensor of PyTorch's own type.
  Layout* layout_from(PyObject* tensor) {
    const at::TensorImpl* impl = THPVariable_Unpack(tensor).unsafeGetTensorImpl();
    if (!has_plain_memory(impl)) return layout_of_any(tensor);
    const Look look(impl);
    const Digest digest = look.digest();
    const auto found = looks_.find(digest);
    if (found != looks_.end()) return found->second;
    Layout* layout = known_layout(call(layout_of_, tensor));
    looks_.emplace(digest, layout);
    return layout;
  }

  Layout* layout_of_any(PyObject* tensor) { return known_layout(call(layout_of_any_, tensor)); }

  Layout* known_layout(const Ref& object) {
    std::unique_ptr<Layout>& layout = layouts_[object.get()];
    if (!layout) {
      layout = std::make_unique<Layout>(object.get());
      PyObject* kept = PyDict_SetDefault(regions_.get(), layout->region.get(), layout->region.get());
      if (kept == nullptr) throw Raised();
      layout->same_region = kept;
    }
    return layout.get();
  }

  // Memory, and what is known of it

  static c10::StorageImpl* storage_of(const at::TensorImpl* tensor) {
    return tensor->has_storage() ? tensor->unsafe_storage().unsafeGetStorageImpl() : nullptr;
  }

  static const char* start_of(const at::TensorImpl* tensor) {
    const char* memory = static_cast<const char*>(tensor->unsafe_storage().data());
    return memory == nullptr ? nullptr : memory + tensor->storage_offset() * static_cast<int64_t>(tensor->itemsize());
  }

  static const at::TensorImpl* impl_of(PyObject* tensor) {
    const at::TensorImpl* impl = THPVariable_Unpack(tensor).unsafeGetTensorImpl();
    if (!impl->has_storage()) throw Unreadable{"RuntimeError"};
    return impl;
  }

  // The number of what the tensor's memory holds, if that is known; 0 if it is not.
  int64_t found(PyObject* tensor, const Layout& layout) {
    if (is_anything_shifting) return 0;
    const at::TensorImpl* impl = impl_of(tensor);
    const auto storage = storages_.find(storage_of(impl));
    if (storage == storages_.end() || storage->second.is_shifting) return 0;
    Known* known = storage->second.find(start_of(impl), layout.same_region);
    return known != nullptr && is_still_there(*known, impl) ? known->number : 0;
  }

  // The same; it is read if it is not known.
  int64_t read(PyObject* tensor, Layout& layout, int64_t slack) {
    if (layout.nbytes == 0) return empty();
    const at::TensorImpl* impl = impl_of(tensor);
    c10::StorageImpl* storage_impl = storage_of(impl);
    const char* start = start_of(impl);
    auto place = storages_.find(storage_impl);
    if (place != storages_.end() && !place->second.is_shifting && !is_anything_shifting) {
      Known* known = place->second.find(start, layout.same_region);
      if (known != nullptr && is_still_there(*known, impl)) {
        known->slack += slack;
        return known->number;
      }
    }
    if (start == nullptr) throw Unreadable{"RuntimeError"};
    const bool is_shifting = to_keep(tensor, impl, layout).is_shifting;
    if (!layout.is_on_host) return keep(impl, layout, slack, put(tensor, impl, layout), nullptr);
    const void* memory = start;
    if (!layout.is_plain)
      memory = reinterpret_cast<const void*>(whole(call_for_reading(address_, tensor, layout.object.get()).get()));
    if (is_shifting) return read_again(impl, layout, slack, memory);
    const auto [number, row] = new_row();
    sum_up(memory, layout, row);
    return keep(impl, layout, slack, number, nullptr);
  }

  // What others write to is the same content if its checksum is the same.
  int64_t read_again(const at::TensorImpl* impl, const Layout& layout, int64_t slack, const void* memory) {
    char row[kRowSize];
    sum_up(memory, layout, row);
    uint64_t checksum;
    std::memcpy(&checksum, row + kChecksumPlace, 8);
    Known* last = storages_.at(storage_of(impl)).find(start_of(impl), layout.same_region);
    if (last != nullptr && last->has_checksum && last->checksum == checksum) {
      last->slack += slack;
      return last->number;
    }
    const auto [number, address] = new_row();
    std::memcpy(address, row, kRowSize);
    return keep(impl, layout, slack, number, &checksum);
  }

  int64_t empty() {
    if (empty_number_ == 0) empty_number_ = whole(call(empty_).get());
    return empty_number_;
  }

  void sum_up(const void* memory, const Layout& layout, void* row) const {
    const auto count = static_cast<uint64_t>(layout.numbers);
    if (layout.numbers <= most_short_) {
      short_(memory, layout.code, count, row);
    } else {
      Py_BEGIN_ALLOW_THREADS
      long_(memory, layout.code, count, row);
      Py_END_ALLOW_THREADS
    }
  }

  std::pair<int64_t, void*> new_row() {
    if (rows_->has_room(1)) {
      const int64_t used = rows_->used++;
      return {rows_->first + used + 1, rows_->address + used * kRowSize};
    }
    const Ref pair = call(row_);
    return {whole(PyTuple_GET_ITEM(pair.get(), 0)), reinterpret_cast<void*>(whole(PyTuple_GET_ITEM(pair.get(), 1)))};
  }

  int64_t put(PyObject* tensor, const at::TensorImpl* impl, Layout& layout) {
    if (!layout.is_queue_known) find_queue(tensor, layout);
    const char* start = start_of(impl);
    if (layout.queue == nullptr || !layout.queue->takes(start)) {
      const Ref number = call_for_reading(put_, tensor, layout.object.get());
      is_waiting_ = true;
      return whole(number.get());
    }
    if (queue_ != layout.queue && layout.queue->may_be_captured())
      call_for_reading(refuse_capturing_, layout.object.get());
    const auto [number, row] = new_row();
    if (queue_ != nullptr && queue_ != layout.queue) queue_->launch();  // another device's
    layout.queue->put(start, layout.code, layout.numbers, layout.nbytes, row);
    queue_ = layout.queue;
    return number;
  }

  void find_queue(PyObject* tensor, Layout& layout) {
    layout.is_queue_known = true;
    if (!layout.is_simple) return;
    const Ref queue = call(queue_for_, tensor, layout.object.get());
    layout.queue = reading_queue_of(queue.get());
    if (layout.queue != nullptr) queues_.push_back(queue);
  }

  // Have the devices read what was put, before its memory may be written to again.
  void launch() {
    if (queue_ != nullptr) {
      ReadingQueue* queue = std::exchange(queue_, nullptr);
      if (!is_waiting_) return queue->launch();
    }
    if (!is_waiting_) return;
    is_waiting_ = false;
    call(launch_);
  }

  // From now on the tensor's memory is known under this number.
  int64_t keep(
      const at::TensorImpl* impl, const Layout& layout, int64_t slack, int64_t number, const uint64_t* checksum) {
    const char* start = start_of(impl);
    Known known{start, start + layout.extent, layout.same_region, number, version_of(impl), slack, false, 0};
    if (checksum != nullptr) {
      known.has_checksum = true;
      known.checksum = *checksum;
    }
    const auto place = storages_.find(storage_of(impl));
    if (place == storages_.end()) return number;  // Python has had all forgotten meanwhile
    Known* last = place->second.find(start, layout.same_region);
    if (last != nullptr) {
      *last = known;
    } else {
      place->second.contents.push_back(known);
    }
    return number;
  }

  Storage& to_keep(PyObject* tensor, const at::TensorImpl* impl, const Layout& layout) {
    c10::StorageImpl* storage = storage_of(impl);
    auto place = storages_.find(storage);
    if (place != storages_.end() && place->second.is_shifting) return place->second;
    const bool is_shifting = is_anything_shifting || (layout.is_of_cpu && is_shared(tensor, storage));
    place = storages_.find(storage);
    if (place == storages_.end()) {
      if (storages_.size() >= purged_at_) purge();
      auto strong = c10::intrusive_ptr<c10::StorageImpl>::reclaim_copy(storage);
      place = storages_.emplace(storage, Storage(std::move(strong), is_shifting)).first;
    } else {
      place->second.is_shifting = is_shifting;
    }
    return place->second;
  }

  // Whether memory of the host belongs to somebody else as well: numpy, a buffer, another process.
  bool is_shared(PyObject* tensor, const c10::StorageImpl* storage) {
    if (storage->resizable() && storage->data_ptr().get_deleter() == host_deleter_) return false;
    return PyObject_IsTrue(call(is_shared_, tensor).get()) == 1;
  }

  void purge() {
    for (auto place = storages_.begin(); place != storages_.end();)
      place = place->second.weak.expired() ? storages_.erase(place) : std::next(place);
    purged_at_ = std::max(kFewestPurged, 2 * storages_.size());
  }

  void forget(PyObject* tensor, const Layout& layout) {
    const at::TensorImpl* impl = THPVariable_Unpack(tensor).unsafeGetTensorImpl();
    const auto place = storages_.find(storage_of(impl));
    if (place == storages_.end()) return;
    const char* start = start_of(impl);
    place->second.forget(start, start + layout.extent);
  }

  // What the call has written to is not known any more.
  void apply_effects(const Plan& plan, const std::vector<Part>& tensors) {
    for (const Part& each : tensors) {
      if (each.layout->is_unread) continue;
      if (plan.communicates || plan.waits) {
        const at::TensorImpl* impl = impl_of(each.tensor);
        Storage& storage = to_keep(each.tensor, impl, *each.layout);
        storage.contents.clear();
        storage.is_shifting = plan.communicates;
      } else if (!plan.is_described || (plan.is_uninitialised && Plan::has(plan.written, each.position))) {
        forget_storage(each.tensor);
      } else if (Plan::has(plan.written, each.position)) {
        forget(each.tensor, *each.layout);
      }
    }
  }

  void gather(std::vector<Part>& tensors, long position, PyObject* value) {
    if (is_tensor(value)) {
      Layout* layout = is_plain_tensor(Py_TYPE(value)) ? layout_from(value) : layout_of_any(value);
      tensors.push_back({value, position, layout, no_role_.get()});
    } else if (PyList_CheckExact(value) || PyTuple_CheckExact(value)) {
      for (Py_ssize_t each = 0; each < PySequence_Fast_GET_SIZE(value); ++each) {
        PyObject* item = PySequence_Fast_GET_ITEM(value, each);
        if (is_tensor(item)) gather(tensors, position, item);
      }
    }
  }

  // Plans and writing

  Plan* plan_of(PyObject* object) {
    std::unique_ptr<Plan>& plan = plans_[object];
    if (!plan) plan = std::make_unique<Plan>(object);
    return plan.get();
  }

  static long position_of(const Plan& plan, PyObject* name) {
    PyObject* position = PyDict_GetItemWithError(plan.positions.get(), name);
    if (position == nullptr && PyErr_Occurred()) throw Raised();
    return position == nullptr ? kNoArgument : static_cast<long>(whole(position));
  }

  void write(const Ongoing& ongoing, PyObject* step) {
    auto place = numbers_.find(ongoing.digest);
    if (place == numbers_.end()) {
      const std::pair<Ref, Ref> numbers = new_numbers(ongoing);
      if (numbers_.size() >= kMostSignatures) numbers_.clear();
      place = numbers_.emplace(ongoing.digest, numbers).first;
    }
    const Ref site = place->second.first, signature = place->second.second;
    const auto count = static_cast<int64_t>(ongoing.contents.size());
    if (calls_->has_room(1) && contents_->has_room(count)) {
      put_row(ongoing, whole(step), whole(site.get()), whole(signature.get()));
      return;
    }
    const Ref contents = checked(PyList_New(count));
    for (int64_t each = 0; each < count; ++each)
      PyList_SET_ITEM(
          contents.get(), each, checked(PyLong_FromLongLong(ongoing.contents[static_cast<size_t>(each)])).release());
    call(write_, step, site.get(), signature.get(), contents.get());
  }

  // What StatisticsWriter.call does while the blocks have room.
  void put_row(const Ongoing& ongoing, int64_t step, int64_t site, int64_t signature) {
    const auto count = static_cast<int64_t>(ongoing.contents.size());
    auto* contents = reinterpret_cast<uint32_t*>(contents_->address) + contents_->used;
    for (int64_t content : ongoing.contents) *contents++ = static_cast<uint32_t>(content);
    const CallRow row{
        static_cast<uint64_t>(contents_->first + contents_->used), static_cast<uint32_t>(count),
        static_cast<uint32_t>(step), static_cast<uint32_t>(site), static_cast<uint32_t>(signature)};
    contents_->used += count;
    std::memcpy(calls_->address + calls_->used * static_cast<int64_t>(sizeof row), &row, sizeof row);
    calls_->used += 1;
  }

  std::pair<Ref, Ref> new_numbers(const Ongoing& ongoing) {
    const Ref inputs = listed(ongoing.inputs), outputs = listed(ongoing.outputs);
    const Ref shape = checked(PyBytes_FromStringAndSize(reinterpret_cast<const char*>(&ongoing.shape), sizeof(Digest)));
    const Ref pair =
        call(new_numbers_, ongoing.plan->object.get(), ongoing.site.get(), ongoing.args.get(), ongoing.kwargs.get(),
             inputs.get(), outputs.get(), ongoing.result.get(), shape.get());
    return {Ref::borrowed(PyTuple_GET_ITEM(pair.get(), 0)), Ref::borrowed(PyTuple_GET_ITEM(pair.get(), 1))};
  }

  static Ref listed(const std::vector<Part>& parts) {
    Ref list = checked(PyList_New(0));
    for (const Part& each : parts) {
      const Ref position = checked(PyLong_FromLong(each.position));
      const Ref tuple = checked(PyTuple_Pack(4, each.tensor, position.get(), each.layout->object.get(), each.mark));
      if (PyList_Append(list.get(), tuple.get()) < 0) throw Raised();
    }
    return list;
  }

  Ref layout_of_, layout_of_any_, is_shared_, row_, address_, put_, launch_, refuse_capturing_, queue_for_, synchronize_, key_of_odd_;
  Ref new_numbers_, write_, where_, find_site_, acquire_, release_, caller_;
  Ref parameter_, buffer_, no_role_, overwritten_, uninitialised_, under_way_;
  Ref tensor_type_, parameter_type_, dtype_type_;
  Ref regions_, odd_keys_, marks_;  // dictionaries that keep one object for equal ones
  Block *rows_, *calls_, *contents_;
  Kernel short_, long_;
  int64_t most_short_;
  Ref empty_;
  int64_t empty_number_ = 0;  // of all tensors without elements; 0: there was none yet
  c10::DeleterFnPtr host_deleter_;
  bool is_waiting_ = false;  // what Python has been given to read
  ReadingQueue* queue_ = nullptr;  // that has something to read
  std::vector<Ref> queues_;
  size_t purged_at_ = kFewestPurged;
  std::unordered_map<Digest, Layout*, DigestHash> looks_;
  std::unordered_map<PyObject*, std::unique_ptr<Layout>> layouts_;
  std::unordered_map<PyObject*, std::unique_ptr<Plan>> plans_;
  std::unordered_map<c10::StorageImpl*, Storage> storages_;
  std::unordered_map<Digest, std::pair<Ref, Ref>, DigestHash> numbers_;
};

// What Python sees

struct ObserverObject {
  PyObject_HEAD
  Observer* observer;
};

Observer& observer_of(PyObject* self) { return *reinterpret_cast<ObserverObject*>(self)->observer; }

PyObject* new_observer(PyTypeObject* type, PyObject* args, PyObject*) {
  PyObject* helpers;
  if (!PyArg_ParseTuple(args, "O", &helpers)) return nullptr;
  return guarded([&]() -> PyObject* {
    auto observer = std::make_unique<Observer>(helpers);
    PyObject* self = type->tp_alloc(type, 0);
    if (self != nullptr) reinterpret_cast<ObserverObject*>(self)->observer = observer.release();
    return self;
  });
}

void free_observer(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  delete reinterpret_cast<ObserverObject*>(self)->observer;
  type->tp_free(self);
  Py_DECREF(type);
}

void free_ongoing(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  delete reinterpret_cast<OngoingObject*>(self)->call;
  type->tp_free(self);
  Py_DECREF(type);
}

PyObject* before(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  if (!has_arguments(count, 4)) return nullptr;
  return guarded([&]() -> PyObject* {
    std::unique_ptr<Ongoing> call(observer_of(self).before(args[0], args[1], args[2], args[3]));
    PyObject* made = ongoing_type->tp_alloc(ongoing_type, 0);
    if (made != nullptr) reinterpret_cast<OngoingObject*>(made)->call = call.release();
    return made;
  });
}

PyObject* take(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  if (!has_arguments(count, 3)) return nullptr;
  return guarded([&]() -> PyObject* {
    observer_of(self).take(*reinterpret_cast<OngoingObject*>(args[0])->call, args[1], args[2]);
    Py_RETURN_NONE;
  });
}

PyObject* observed(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  if (!has_arguments(count, 4)) return nullptr;
  return guarded([&]() -> PyObject* { return observer_of(self).observed(args[0], args[1], args[2], args[3]); });
}

PyObject* effects_of(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  if (!has_arguments(count, 3)) return nullptr;
  return guarded([&]() -> PyObject* {
    observer_of(self).effects_of(args[0], args[1], args[2]);
    Py_RETURN_NONE;
  });
}

PyObject* forget_all(PyObject* self, PyObject*) {
  observer_of(self).forget_all();
  Py_RETURN_NONE;
}

PyObject* forget_storage(PyObject* self, PyObject* tensor) {
  return guarded([&]() -> PyObject* {
    observer_of(self).forget_storage(tensor);
    Py_RETURN_NONE;
  });
}

PyObject* get_shifting(PyObject* self, void*) { return PyBool_FromLong(observer_of(self).is_anything_shifting); }

int set_shifting(PyObject* self, PyObject* value, void*) {
  observer_of(self).is_anything_shifting = value != nullptr && PyObject_IsTrue(value) == 1;
  return 0;
}

Py_ssize_t size(PyObject* self) { return static_cast<Py_ssize_t>(observer_of(self).size()); }

PyMethodDef observer_methods[] = {
    {"before", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(before)), METH_FASTCALL, nullptr},
    {"take", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(take)), METH_FASTCALL, nullptr},
    {"observed", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(observed)), METH_FASTCALL, nullptr},
    {"effects_of", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(effects_of)), METH_FASTCALL, nullptr},
    {"forget_all", forget_all, METH_NOARGS, nullptr},
    {"forget_storage", forget_storage, METH_O, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

PyGetSetDef observer_attributes[] = {
    {"is_anything_shifting", get_shifting, set_shifting, nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};

PyType_Slot observer_slots[] = {
    {Py_tp_new, reinterpret_cast<void*>(new_observer)},
    {Py_tp_dealloc, reinterpret_cast<void*>(free_observer)},
    {Py_tp_methods, observer_methods},
    {Py_tp_getset, observer_attributes},
    {Py_mp_length, reinterpret_cast<void*>(size)},
    {0, nullptr},
};
PyType_Spec observer_spec = {
    "torchferry_calls.QuickObserver", sizeof(ObserverObject), 0, Py_TPFLAGS_DEFAULT, observer_slots};

PyType_Slot ongoing_slots[] = {{Py_tp_dealloc, reinterpret_cast<void*>(free_ongoing)}, {0, nullptr}};
PyType_Spec ongoing_spec = {"torchferry_calls.Ongoing", sizeof(OngoingObject), 0, Py_TPFLAGS_DEFAULT, ongoing_slots};

PyModuleDef module_definition = {
    PyModuleDef_HEAD_INIT, "torchferry_calls", nullptr, -1, nullptr, nullptr, nullptr, nullptr, nullptr};

}  // namespace
}  // namespace torchferry

using namespace torchferry;

extern "C" __attribute__((visibility("default"))) PyObject* PyInit_torchferry_calls() {
  PyObject* module = PyModule_Create(&module_definition);
  if (module == nullptr) return nullptr;
  ongoing_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&ongoing_spec));
  PyObject* observer = PyType_FromSpec(&observer_spec);
  if (ongoing_type == nullptr || observer == nullptr || PyModule_AddObject(module, "QuickObserver", observer) < 0 || !add_reading_queue(module) ||
      !add_places(module) || !add_gradients(module)) {
    Py_DECREF(module);
    return nullptr;
  }
  return module;
}
