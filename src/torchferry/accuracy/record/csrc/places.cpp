// Where in the program a call is made: what Whereabouts.site does, at less than Python's cost. All that is known is kept
// in the Whereabouts, so that either can go on where the other has ended; whatever is rare is left to it.

#include "places.h"

#include <ATen/SequenceNumber.h>
#include <frameobject.h>
#include <torch/csrc/autograd/engine.h>

#include <cstring>
#include <limits>
#include <memory>
#include <typeindex>
#include <unordered_map>

namespace torchferry {
namespace {

// What Whereabouts.file_of answers for a piece of code.
struct File {
  Ref code;  // keeps it: files are found by its address
  Ref file;
  bool has_name, is_of_library;
  std::unordered_map<int64_t, Ref> lines;  // by the place in the code
};

class Places {
 public:
  explicit Places(PyObject* file_of) : file_of_(Ref::borrowed(file_of)) {}

  // The nearest line of the user's own code, beyond so many frames; of a library's where no code of the user's is on
  // the way.
  Ref place(int64_t skipped) {
    Ref frame(reinterpret_cast<PyObject*>(PyThreadState_GetFrame(PyThreadState_Get())));
    Ref in_library;
    for (; frame; frame = Ref(reinterpret_cast<PyObject*>(PyFrame_GetBack(frame_of(frame))))) {
      if (skipped-- > 0) continue;
      File& file = file_of(frame);
      if (!file.has_name) continue;
      if (!file.is_of_library) return line(file, frame);
      if (!in_library) in_library = line(file, frame);
    }
    return in_library ? in_library : checked(PyUnicode_FromString(""));
  }

 private:
  static PyFrameObject* frame_of(const Ref& frame) { return reinterpret_cast<PyFrameObject*>(frame.get()); }

  File& file_of(const Ref& frame) {
    Ref code(reinterpret_cast<PyObject*>(PyFrame_GetCode(frame_of(frame))));
    std::unique_ptr<File>& known = files_[code.get()];
    if (!known) {
      Ref file = call(file_of_, code.get());
      const bool has_name = PyObject_IsTrue(attribute(file.get(), "name").get()) == 1;
      const bool is_of_library = truth(file.get(), "is_of_library");
      known.reset(new File{code, std::move(file), has_name, is_of_library, {}});
    }
    return *known;
  }

  static Ref line(File& file, const Ref& frame) {
    const int64_t place = whole(frame.get(), "f_lasti");
    Ref& known = file.lines[place];
    if (!known) known = checked(PyObject_CallMethod(file.file.get(), "line", "O", frame.get()));
    return known;
  }

  Ref file_of_;
  std::unordered_map<PyObject*, std::unique_ptr<File>> files_;
};

constexpr Py_ssize_t kMostNodes = 100'000;  // beyond that Python forgets what is long gone
constexpr size_t kMade = 4;  // module, place, model, inside

Ref text(const char* characters) { return checked(PyUnicode_InternFromString(characters)); }

// Names of attributes and words of a site, one object for each.
struct Words {
  Ref modules = text("modules"), last_number = text("last_number"), empty = text(""), forward = text("forward"),
      backward = text("backward"), optimizer = text("optimizer"), root = text("_root"), inside = text("inside"),
      in_optimizer = text("_in_optimizer"), after_backward = text("_after_backward"), has_begun = text("has_begun");
};

class Sites {
 public:
  explicit Sites(PyObject* where)
      : places_(attribute(where, "file_of").get()),
        known_(attribute(where, "__dict__")),
        thread_(attribute(where, "_thread")),
        made_(attribute(where, "_made")),
        sites_(attribute(where, "_sites")),
        stack_(attribute(where, "_stack")),
        remember_(attribute(where, "_remember")),
        computed_again_(attribute(where, "_where_computed_again")),
        new_site_(attribute(where, "new_site")) {}

  Ref site(int64_t own) {
    const uint64_t number = at::sequence_number::peek();
    const Ref counted = checked(PyLong_FromUnsignedLongLong(number));
    if (torch::autograd::get_current_graph_task_id() != -1) return site_in_backward(counted);
    const Ref made = where_called(own);
    const int is_known = PyDict_Contains(made_.get(), counted.get());
    if (is_known < 0) throw Raised();
    if (!is_known) remember(counted, made);
    const bool is_in_module = PyTuple_GET_ITEM(made.get(), 2) != words_.empty.get();
    return site_of(phase(number, counted, is_in_module), made.get(), words_.empty);
  }

 private:
  Ref site_in_backward(const Ref& counted) {
    set(words_.has_begun, Py_True);
    set(words_.after_backward, Py_True);
    set_last_number(counted);
    const Ref inside = stack();
    if (PyList_GET_SIZE(inside.get()) != 0) {
      const Ref pair = call(computed_again_, counted.get());
      return site_of(words_.backward, PyTuple_GET_ITEM(pair.get(), 0), Ref::borrowed(PyTuple_GET_ITEM(pair.get(), 1)));
    }
    const std::shared_ptr<torch::autograd::Node> node = torch::autograd::get_current_node();
    if (!node) return site_of(words_.backward, nowhere().get(), words_.empty);
    // an in-place operator copies what its derivative needs: the copy's node comes before the operator's own call
    Ref made = where_made(node->sequence_nr(), 1);
    if (!made) made = where_made(node->sequence_nr(), 2);
    return site_of(words_.backward, (made ? made : nowhere()).get(), name_of(*node));
  }

  Ref where_made(uint64_t number, uint64_t beyond) const {
    if (number > std::numeric_limits<uint64_t>::max() / 2) return Ref();  // nodes that no operator made
    const Ref key = checked(PyLong_FromUnsignedLongLong(number + beyond));
    return found(made_.get(), key.get());
  }

  Ref where_called(int64_t own) {
    const Ref inside = stack(), place = places_.place(own);
    const Py_ssize_t depth = PyList_GET_SIZE(inside.get());
    PyObject* module = depth ? PyList_GET_ITEM(inside.get(), depth - 1) : words_.empty.get();
    const Ref root = depth ? get(words_.root) : words_.empty;
    return checked(PyTuple_Pack(kMade, module, place.get(), root.get(), get(words_.inside).get()));
  }

  // The first operator since a node was made is the node's.
  void remember(const Ref& counted, const Ref& made) {
    if (PyDict_Size(made_.get()) >= kMostNodes) {
      call(remember_, counted.get(), made.get());
    } else if (PyDict_SetItem(made_.get(), counted.get(), made.get()) < 0) {
      throw Raised();
    }
  }

  // An operator that autograd has made a node for is of a forward pass, though no module may be involved, and though an
  // optimizer may have asked for it.
  const Ref& phase(uint64_t number, const Ref& counted, bool is_in_module) {
    Ref last(PyObject_GetAttr(thread_.get(), words_.last_number.get()));
    if (!last) PyErr_Clear();
    const bool makes_node = last && number > static_cast<uint64_t>(whole(last.get()));
    set_last_number(counted);
    const bool is_forward = is_in_module || makes_node;
    if (is_true(words_.in_optimizer)) return is_forward ? words_.forward : words_.optimizer;
    if (is_forward) {
      set(words_.after_backward, Py_False);
      return words_.forward;
    }
    return is_true(words_.after_backward) ? words_.optimizer : words_.forward;
  }

  // The modules that this thread is in.
  Ref stack() const {
    Ref inside(PyObject_GetAttr(thread_.get(), words_.modules.get()));
    if (inside) return inside;
    PyErr_Clear();
    return call(stack_);
  }

  // ConvolutionBackward0
  Ref name_of(torch::autograd::Node& node) {
    // all functions of Python's are of one type, which not every release of PyTorch lets others refer to
    if (std::strcmp(typeid(node).name(), "N5torch8autograd6PyNodeE") == 0) return shown(node.name());
    Ref& known = names_[std::type_index(typeid(node))];
    if (!known) known = shown(node.name());
    return known;
  }

  static Ref shown(std::string name) {  // CppNode<...::Mine>
    const size_t colons = name.rfind("::");
    if (colons != std::string::npos) name = name.substr(colons + 2);
    if (!name.empty() && name.back() == '>') name.pop_back();
    return text(name.c_str());
  }

  Ref site_of(const Ref& phase, PyObject* made, const Ref& node) {
    const Ref key = checked(PyTuple_Pack(
        kMade + 2, phase.get(), PyTuple_GET_ITEM(made, 0), PyTuple_GET_ITEM(made, 1), PyTuple_GET_ITEM(made, 2),
        PyTuple_GET_ITEM(made, 3), node.get()));
    Ref site = found(sites_.get(), key.get());
    return site ? site : call(new_site_, key.get());
  }

  Ref nowhere() const {
    PyObject* empty = words_.empty.get();
    return checked(PyTuple_Pack(kMade, empty, empty, empty, empty));
  }

  static Ref found(PyObject* dictionary, PyObject* key) {
    PyObject* value = PyDict_GetItemWithError(dictionary, key);
    if (value == nullptr && PyErr_Occurred()) throw Raised();
    return Ref::borrowed(value);
  }

  Ref get(const Ref& name) const {
    Ref value = found(known_.get(), name.get());
    if (!value) throw std::runtime_error("a Whereabouts has lost an attribute");
    return value;
  }

  bool is_true(const Ref& name) const { return PyObject_IsTrue(get(name).get()) == 1; }

  void set(const Ref& name, PyObject* value) const {
    if (PyDict_SetItem(known_.get(), name.get(), value) < 0) throw Raised();
  }

  void set_last_number(const Ref& counted) const {
    if (PyObject_SetAttr(thread_.get(), words_.last_number.get(), counted.get()) < 0) throw Raised();
  }

  Words words_;
  Places places_;
  Ref known_, thread_, made_, sites_;  // of the Whereabouts, which keeps them for good
  Ref stack_, remember_, computed_again_, new_site_;
  std::unordered_map<std::type_index, Ref> names_;
};

struct SitesObject {
  PyObject_HEAD
  Sites* sites;
};

PyObject* new_sites(PyTypeObject* type, PyObject* args, PyObject*) {
  PyObject* where;
  if (!PyArg_ParseTuple(args, "O", &where)) return nullptr;
  return guarded([&]() -> PyObject* {
    auto sites = std::make_unique<Sites>(where);
    PyObject* self = type->tp_alloc(type, 0);
    if (self != nullptr) reinterpret_cast<SitesObject*>(self)->sites = sites.release();
    return self;
  });
}

void free_sites(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  delete reinterpret_cast<SitesObject*>(self)->sites;
  type->tp_free(self);
  Py_DECREF(type);
}

PyObject* site(PyObject* self, PyObject* own) {
  return guarded(
      [&]() -> PyObject* { return reinterpret_cast<SitesObject*>(self)->sites->site(whole(own)).release(); });
}

PyMethodDef methods[] = {{"site", site, METH_O, nullptr}, {nullptr, nullptr, 0, nullptr}};

PyType_Slot slots[] = {
    {Py_tp_new, reinterpret_cast<void*>(new_sites)},
    {Py_tp_dealloc, reinterpret_cast<void*>(free_sites)},
    {Py_tp_methods, methods},
    {0, nullptr},
};
PyType_Spec spec = {"torchferry_calls.Sites", sizeof(SitesObject), 0, Py_TPFLAGS_DEFAULT, slots};

}  // namespace

bool add_places(PyObject* module) {
  PyObject* type = PyType_FromSpec(&spec);
  return type != nullptr && PyModule_AddObject(module, "Sites", type) == 0;
}

}  // namespace torchferry
