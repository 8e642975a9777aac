// Lines of the program that calls are made from.

#pragma once

#include "python_objects.h"

namespace torchferry {

bool add_places(PyObject* module);

}  // namespace torchferry
