// What a profiler is told of an operator's call.
#pragma once

#include "functions.h"

#include <string>

namespace cann {

// "0:Float:2,3;1:Long:" : of each tensor the number of its argument, its type and its sizes.
std::string described(const Arguments& arguments);

} // namespace cann
