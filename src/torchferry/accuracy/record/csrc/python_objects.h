// Objects of Python's, and calls of them: an error of Python's is an exception until it goes back to Python.

#pragma once

#include <Python.h>

#include <cstdint>
#include <exception>
#include <stdexcept>
#include <string>
#include <utility>

namespace torchferry {

// A reference to an object of Python's.
class Ref {
 public:
  Ref() = default;
  explicit Ref(PyObject* owned) : object_(owned) {}
  Ref(const Ref& other) : object_(other.object_) { Py_XINCREF(object_); }
  Ref(Ref&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  Ref& operator=(Ref other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  ~Ref() { Py_XDECREF(object_); }
  static Ref borrowed(PyObject* object) {
    Py_XINCREF(object);
    return Ref(object);
  }
  PyObject* get() const { return object_; }
  PyObject* release() { return std::exchange(object_, nullptr); }
  explicit operator bool() const { return object_ != nullptr; }

 private:
  PyObject* object_ = nullptr;
};

// An error of Python's is set.
struct Raised {};
// A tensor can't be read: an error of this type, which Python would call a RuntimeError.
struct Unreadable {
  std::string why;
};

inline Ref checked(PyObject* owned) {
  if (owned == nullptr) throw Raised();
  return Ref(owned);
}

inline Ref attribute(PyObject* object, const char* name) { return checked(PyObject_GetAttrString(object, name)); }

inline bool truth(PyObject* object, const char* name) { return PyObject_IsTrue(attribute(object, name).get()) == 1; }

inline int64_t whole(PyObject* object) {
  const long long value = PyLong_AsLongLong(object);
  if (value == -1 && PyErr_Occurred()) throw Raised();
  return value;
}

inline int64_t whole(PyObject* object, const char* name) { return whole(attribute(object, name).get()); }

template <typename... Objects>
Ref call(const Ref& function, Objects... arguments) {
  PyObject* given[] = {nullptr, arguments...};
  return checked(
      PyObject_Vectorcall(function.get(), given + 1, sizeof...(arguments) | PY_VECTORCALL_ARGUMENTS_OFFSET, nullptr));
}

// The same, of what may raise a RuntimeError for a tensor that can't be read.
template <typename... Objects>
Ref call_for_reading(const Ref& function, Objects... arguments) {
  PyObject* given[] = {nullptr, arguments...};
  PyObject* answer =
      PyObject_Vectorcall(function.get(), given + 1, sizeof...(arguments) | PY_VECTORCALL_ARGUMENTS_OFFSET, nullptr);
  if (answer == nullptr) {
    if (!PyErr_ExceptionMatches(PyExc_RuntimeError)) throw Raised();
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    Unreadable error{reinterpret_cast<PyTypeObject*>(type)->tp_name};
    const size_t dot = error.why.rfind('.');
    if (dot != std::string::npos) error.why = error.why.substr(dot + 1);
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(trace);
    throw error;
  }
  return Ref(answer);
}

template <typename Function>
PyObject* guarded(Function function) {
  try {
    return function();
  } catch (const Raised&) {
  } catch (const Unreadable& error) {
    PyErr_SetString(PyExc_RuntimeError, error.why.c_str());
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
  }
  return nullptr;
}

inline bool has_arguments(Py_ssize_t count, Py_ssize_t expected) {
  if (count == expected) return true;
  PyErr_Format(PyExc_TypeError, "%zd arguments instead of %zd", count, expected);
  return false;
}

}  // namespace torchferry
