// Calls a function of Python's with the gradient of a tensor: a hook of autograd's own, at less than the cost of
// Tensor.register_hook, which makes an object of the tensor's node, a dictionary of hooks and a handle.

#include "gradients.h"

#include <ATen/core/Tensor.h>
#include <torch/csrc/Exceptions.h>
#include <torch/csrc/autograd/python_variable.h>

#include <memory>

namespace torchferry {
namespace {

// Graphs are let go of by any thread.
struct WithLock {
  WithLock() : state(PyGILState_Ensure()) {}
  ~WithLock() { PyGILState_Release(state); }
  PyGILState_STATE state;
};

void let_go(PyObject* object) {
  if (!Py_IsInitialized()) return;  // a graph that outlives Python
  const WithLock lock;
  Py_DECREF(object);
}

void hand_over(PyObject* function, const at::TensorBase& gradient) {
  const WithLock lock;
  const Ref wrapped(THPVariable_Wrap(gradient));
  const Ref answer(wrapped ? PyObject_CallOneArg(function, wrapped.get()) : nullptr);
  if (answer) return;
  python_error error;
  error.persist();
  throw error;
}

PyObject* watch_gradient(PyObject*, PyObject* const* args, Py_ssize_t count) {
  if (!has_arguments(count, 2)) return nullptr;
  return guarded([&]() -> PyObject* {
    Py_INCREF(args[1]);
    const std::shared_ptr<PyObject> function(args[1], let_go);
    THPVariable_Unpack(args[0]).register_hook(
        [function](const at::TensorBase& gradient) { hand_over(function.get(), gradient); });
    Py_RETURN_NONE;
  });
}

PyMethodDef methods[] = {
    {"watch_gradient", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(watch_gradient)), METH_FASTCALL, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

bool add_gradients(PyObject* module) { return PyModule_AddFunctions(module, methods) == 0; }

}  // namespace torchferry
