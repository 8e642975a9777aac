// Functions for the operators' tables that no operator of ATen's is. Each takes and gives values.
#pragma once

#include "builtins_boxes.h"
#include "builtins_fused.h"
#include "builtins_moving.h"
#include "builtins_networks.h"
#include "values.h"

namespace cann::builtins {

// Of a tensor, or of a scalar where that makes sense.
IValue sizes(const IValue& tensor);
IValue size(const IValue& tensor, const IValue& dimension);
IValue dim(const IValue& tensor);
IValue numel(const IValue& tensor);
IValue dtype(const IValue& tensor);
IValue is_floating(const IValue& tensor);
IValue is_complex(const IValue& tensor);
// The dtype that ATen has for one of the toolkit's that was handed over as a number.
IValue aten_dtype(const IValue& acl_dtype);

IValue length(const IValue& list);
// [0, 1, ... count - 1]
IValue range(const IValue& count);
IValue concatenated(const IValue& lists);

// A tensor of one element as a number.
IValue number(const IValue& tensor);

// What draws random numbers that depend on a seed and a place in its sequence alone.
IValue generator(const IValue& seed, const IValue& offset);

// Bits as bytes, and bytes as bits, as dropout keeps its masks: eight elements a byte, the first the lowest.
IValue packed_bits(const IValue& mask);
IValue unpacked_bits(const IValue& bytes, const IValue& sizes);

// Always throws: what can't be computed is never zeros.
IValue refuse(const IValue& reason);

} // namespace cann::builtins
