// Functions for the tables of what moves elements. Each takes and gives values.
#pragma once

#include "values.h"

namespace cann::builtins {

// Into the first elements of memory that has room for the most that there can be; the caller asks for the shape afterwards.
IValue fill_front(const IValue& target, const IValue& result);

// A tensor of a list of whole numbers.
IValue whole_numbers(const IValue& list);

// Numbers of a tensor as a list, a list as it is.
IValue numbers(const IValue& values);

IValue infinity();

// Between two views of memory: (memory, sizes, strides, offset) of the target, then of the source.
IValue copy_view(const IValue& inputs);

} // namespace cann::builtins
