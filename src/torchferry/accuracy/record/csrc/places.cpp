// Where in the program a call is made: what Whereabouts._place does, frame by frame, at less than Python's cost.

#include "places.h"

#include <frameobject.h>

#include <memory>
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

struct PlacesObject {
  PyObject_HEAD
  Places* places;
};

PyObject* new_places(PyTypeObject* type, PyObject* args, PyObject*) {
  PyObject* file_of;
  if (!PyArg_ParseTuple(args, "O", &file_of)) return nullptr;
  return guarded([&]() -> PyObject* {
    auto places = std::make_unique<Places>(file_of);
    PyObject* self = type->tp_alloc(type, 0);
    if (self != nullptr) reinterpret_cast<PlacesObject*>(self)->places = places.release();
    return self;
  });
}

void free_places(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  delete reinterpret_cast<PlacesObject*>(self)->places;
  type->tp_free(self);
  Py_DECREF(type);
}

constexpr int64_t kAskers = 2;  // frames of Whereabouts' own: site() and what it calls

PyObject* place(PyObject* self, PyObject* own) {
  return guarded([&]() -> PyObject* {
    return reinterpret_cast<PlacesObject*>(self)->places->place(kAskers + whole(own)).release();
  });
}

PyMethodDef methods[] = {{"place", place, METH_O, nullptr}, {nullptr, nullptr, 0, nullptr}};

PyType_Slot slots[] = {
    {Py_tp_new, reinterpret_cast<void*>(new_places)},
    {Py_tp_dealloc, reinterpret_cast<void*>(free_places)},
    {Py_tp_methods, methods},
    {0, nullptr},
};
PyType_Spec spec = {"torchferry_calls.Places", sizeof(PlacesObject), 0, Py_TPFLAGS_DEFAULT, slots};

}  // namespace

bool add_places(PyObject* module) {
  PyObject* type = PyType_FromSpec(&spec);
  return type != nullptr && PyModule_AddObject(module, "Places", type) == 0;
}

}  // namespace torchferry
