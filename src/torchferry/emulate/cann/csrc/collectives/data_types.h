// Data types and reductions: their sizes and names, and which of them a collective takes on which generation of chips.
#pragma once

#include <third_party/hccl/inc/hccl/hccl_types.h>

#include <cstddef>
#include <string>

namespace collectives {

// 0: no such type
size_t bytes_of(HcclDataType type);
std::string name_of(HcclDataType type);
std::string name_of(HcclReduceOp op);

enum class Kind : uint32_t {
  all_reduce,
  reduce,
  reduce_scatter,
  reduce_scatter_v,
  broadcast,
  all_gather,
  all_gather_v,
  scatter,
  all_to_all,
  all_to_all_v,
  all_to_all_vc,
  barrier,
  send,
  receive,
};

// "HcclAllReduce"
std::string name_of(Kind kind);

// Throw what the function of the kind answers on this chip.
void check_type(Kind kind, HcclDataType type);
void check_reduction(Kind kind, HcclDataType type, HcclReduceOp op);

} // namespace collectives
