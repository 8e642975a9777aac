// The tensors of a collective as the host's collective takes them.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/csrc/distributed/c10d/Types.hpp>

#include <functional>
#include <string>
#include <vector>

namespace ferry {

// The elements of a device tensor in the order of its memory, as a flat host tensor over the same bytes. Raises what
// vendors' backends raise for tensors of another device or with gaps.
at::Tensor flat_host_view(const at::Tensor& tensor);

// The same as bytes: enough for collectives that only move data, and there is no dtype that they lack.
at::Tensor flat_bytes(const at::Tensor& tensor);
std::vector<at::Tensor> flat_bytes(const std::vector<at::Tensor>& tensors);

// The one tensor of a list: a process has one device.
const at::Tensor& only(const std::vector<at::Tensor>& tensors);

// A reduction over all ranks: the host adds up `buffer` in place with `op`, then `deliver` is called.
struct Reduction {
  at::Tensor buffer;
  c10d::ReduceOp op;
  std::function<void()> deliver;
};

// What a reduction needs to know beside the tensors.
struct ReductionCall {
  c10d::ReduceOp op;
  int ranks;
  std::string backend; // for messages
};

// `target` becomes the reduction of the targets of all ranks; it is the buffer itself where the host can compute in
// its dtype.
Reduction reduction_in_place(const at::Tensor& target, const ReductionCall& call);

// `target` becomes a part of the reduction of `source`, which stays as it is: from `begin` on, in elements. An undefined
// target takes nothing.
Reduction reduction_aside(const at::Tensor& source, const at::Tensor& target, int64_t begin, const ReductionCall& call);

} // namespace ferry
