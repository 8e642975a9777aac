// Arithmetic of reductions.
#pragma once

#include <third_party/hccl/inc/hccl/hccl_types.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace collectives {

// Folds the inputs from the first to the last: result = inputs[n-1] op (... op (inputs[1] op inputs[0])). The result may be one of the inputs.
// float16 and bfloat16 are computed in float32 and rounded once; integers wrap.
void fold(HcclDataType type, HcclReduceOp op, void* result, const std::vector<const void*>& inputs, size_t elements);

// The order of ranks in which a part is folded that a ring brings to rank `owner` last: owner-1, owner-2, ..., owner. Gloo sums in this order.
std::vector<uint32_t> ring_order(uint32_t owner, uint32_t ranks);

// How many elements of an all-reduce each rank owns, in order of ranks; the last ones may own fewer, or none. Gloo's division of the buffer:
// with it all ranks' sums of float32 are Gloo's bit for bit.
size_t elements_of_owner(size_t elements, size_t element_bytes, uint32_t ranks);

} // namespace collectives
