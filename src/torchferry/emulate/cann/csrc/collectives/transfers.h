// Messages from one rank to another.
#pragma once

#include "communicator.h"

#include <cstdint>
#include <vector>

namespace collectives {

struct Transfer {
  Kind kind{}; // send or receive
  void* data = nullptr;
  uint64_t count = 0;
  HcclDataType type = HCCL_DATA_TYPE_INT8;
  uint32_t peer = 0;
};

// All of them side by side, those of one direction between two ranks in their order. Work on a stream: throws cann::Failure.
void run(Communicator& communicator, const std::vector<Transfer>& transfers);

} // namespace collectives
