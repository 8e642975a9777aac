// Hooks for gradients.

#pragma once

#include "python_objects.h"

namespace torchferry {

bool add_gradients(PyObject* module);

}  // namespace torchferry
