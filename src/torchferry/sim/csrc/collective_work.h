// What a collective of the simulated devices answers: it is done when the host's collective is, and its tensors are
// those of the device.
#pragma once

#include <torch/csrc/distributed/c10d/Work.hpp>

#include <functional>
#include <vector>

namespace ferry {

using WorkPtr = c10::intrusive_ptr<c10d::Work>;

// One collective on the host, or several that count as one, and what is left to do when they are done.
struct HostWork {
  std::vector<WorkPtr> parts;
  std::vector<std::function<void()>> afterwards;

  void add(HostWork other);
};

// For host collectives that report their end themselves.
WorkPtr collective_work(int rank, c10d::OpType type, std::vector<at::Tensor> outputs, HostWork host);

// For host works that end only while somebody waits for them: sending, receiving, and groups of works.
WorkPtr waited_work(int rank, c10d::OpType type, std::vector<at::Tensor> outputs, std::vector<WorkPtr> parts);

} // namespace ferry
