// The collectives themselves, as work on a stream: all throw cann::Failure.
#pragma once

#include "communicator.h"

#include <cstdint>
#include <vector>

namespace collectives {

// Elements that go to or come from each rank, and where they begin.
struct Parts {
  std::vector<uint64_t> counts;
  std::vector<uint64_t> offsets;
};

struct Operation {
  Kind kind{};
  const void* input = nullptr;
  void* output = nullptr;
  uint64_t count = 0;
  HcclDataType type = HCCL_DATA_TYPE_INT8;
  HcclReduceOp op = HCCL_REDUCE_SUM;
  uint32_t root = 0;
  Parts sent = {}; // of the kinds whose counts differ by rank
  Parts received = {};
};

void run(Communicator& communicator, const Operation& operation);

} // namespace collectives
