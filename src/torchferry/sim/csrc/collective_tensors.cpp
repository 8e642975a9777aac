#include "collective_tensors.h"

#include "host_view.h"

#include <ATen/Functions.h>

#include <algorithm>
#include <cctype>
#include <iterator>

namespace ferry {
namespace {

using at::Tensor;
using c10d::ReduceOp;

std::string in_capitals(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::toupper(c); });
  return text;
}

void check_operation(at::ScalarType dtype, const ReductionCall& call) {
  const ReduceOp::RedOpType op = call.op.op_;
  const char* bitwise = op == ReduceOp::BAND ? "BAND"
      : op == ReduceOp::BOR                  ? "BOR"
      : op == ReduceOp::BXOR                 ? "BXOR"
                                             : nullptr;
  TORCH_CHECK_VALUE(
      bitwise == nullptr, "Cannot use ReduceOp.", bitwise ? bitwise : "", " with ", in_capitals(call.backend));
  TORCH_CHECK_TYPE(!(dtype == at::kBool && op == ReduceOp::AVG), "Cannot use ReduceOp.AVG with boolean inputs");
  const bool linear = op == ReduceOp::SUM || op == ReduceOp::AVG || op == ReduceOp::PREMUL_SUM;
  TORCH_CHECK_VALUE(
      !at::isComplexType(dtype) || linear, "complex tensors can be added up or averaged across ranks, nothing else");
}

// The dtype in which the host reduces: Gloo has no kernels for some, and loses digits in half precision.
at::ScalarType reduced_as(at::ScalarType dtype) {
  switch (dtype) {
    case at::kFloat:
    case at::kDouble:
    case at::kChar:
    case at::kByte:
    case at::kInt:
    case at::kLong:
      return dtype;
    case at::kBool:
      return at::kByte;
    case at::kShort:
    case at::kUInt16:
      return at::kInt;
    case at::kUInt32:
      return at::kLong;
    case at::kComplexFloat:
      return at::kFloat;
    case at::kComplexDouble:
      return at::kDouble;
    default:
      TORCH_CHECK_TYPE(at::isFloatingType(dtype), "tensors of dtype ", dtype, " can't be reduced across ranks");
      return at::kFloat;
  }
}

// The flat tensor as the numbers that are reduced, over the same bytes as far as that is possible.
Tensor as_numbers(const Tensor& flat) {
  const at::ScalarType dtype = flat.scalar_type();
  if (dtype == at::kBool) {
    return flat.view(at::kByte);
  }
  return at::isComplexType(dtype) ? at::view_as_real(flat).view(-1) : flat;
}

ReduceOp host_operation(at::ScalarType dtype, const ReduceOp& op) {
  if (op.op_ == ReduceOp::AVG || op.op_ == ReduceOp::PREMUL_SUM) {
    return ReduceOp(ReduceOp::SUM);
  }
  // The sum of truth values is "any of them"; as bytes it could overflow.
  return dtype == at::kBool && op.op_ == ReduceOp::SUM ? ReduceOp(ReduceOp::MAX) : op;
}

void multiply_before(const Tensor& buffer, const ReduceOp& op) {
  if (op.op_ != ReduceOp::PREMUL_SUM) {
    return;
  }
  const auto& factor = static_cast<const c10d::NCCLPreMulSumSupplement&>(*op.supplement_);
  if (!factor.tensor_factor.defined()) {
    buffer.mul_(factor.double_factor);
    return;
  }
  const Tensor& given = factor.tensor_factor;
  buffer.mul_((is_on_device(given) ? host_view(given) : given).to(buffer.scalar_type()));
}

void divide_after(const Tensor& buffer, const ReductionCall& call) {
  if (call.op.op_ != ReduceOp::AVG) {
    return;
  }
  if (buffer.is_floating_point()) {
    buffer.div_(call.ranks);
  } else {
    buffer.div_(call.ranks, "trunc");
  }
}

Reduction prepared(const Tensor& flat, Tensor buffer, const ReductionCall& call) {
  multiply_before(buffer, call.op);
  return {std::move(buffer), host_operation(flat.scalar_type(), call.op), nullptr};
}

} // namespace

Tensor flat_host_view(const Tensor& tensor) {
  TORCH_CHECK(is_on_device(tensor), "Tensors must be on the device and dense, got one on ", tensor.device());
  TORCH_CHECK(tensor.is_contiguous(tensor.suggest_memory_format()), "Tensors must be contiguous");
  TORCH_CHECK(
      !tensor.is_conj() && !tensor.is_neg(),
      "a tensor with a pending conjugation or negation can't travel between ranks: call resolve_conj() and "
      "resolve_neg() first");
  const Tensor host = host_view(tensor);
  return host.as_strided({host.numel()}, {1}, host.storage_offset());
}

Tensor flat_bytes(const Tensor& tensor) {
  return flat_host_view(tensor).view(at::kByte);
}

std::vector<Tensor> flat_bytes(const std::vector<Tensor>& tensors) {
  std::vector<Tensor> bytes;
  bytes.reserve(tensors.size());
  std::transform(tensors.begin(), tensors.end(), std::back_inserter(bytes), [](const Tensor& tensor) {
    return flat_bytes(tensor);
  });
  return bytes;
}

const Tensor& only(const std::vector<Tensor>& tensors) {
  TORCH_CHECK(!tensors.empty(), "Tensor list must be nonempty");
  TORCH_CHECK(tensors.size() == 1, "Expecting one tensor only but got ", tensors.size());
  return tensors.front();
}

Reduction reduction_in_place(const Tensor& target, const ReductionCall& call) {
  const Tensor flat = flat_host_view(target);
  check_operation(flat.scalar_type(), call);
  const Tensor numbers = as_numbers(flat);
  Reduction reduction = prepared(flat, numbers.to(reduced_as(flat.scalar_type())), call);
  reduction.deliver = [numbers, buffer = reduction.buffer, call] {
    divide_after(buffer, call);
    if (!buffer.is_same(numbers)) {
      numbers.copy_(buffer);
    }
  };
  return reduction;
}

Reduction reduction_aside(const Tensor& source, const Tensor& target, int64_t begin, const ReductionCall& call) {
  const at::ScalarType dtype = source.scalar_type();
  check_operation(dtype, call);
  Reduction reduction = prepared(source, as_numbers(source).to(reduced_as(dtype), false, true), call);
  if (target.defined()) {
    const Tensor numbers = as_numbers(flat_host_view(target));
    const int64_t first = at::isComplexType(dtype) ? 2 * begin : begin;
    reduction.deliver = [numbers, part = reduction.buffer.narrow(0, first, numbers.numel()), call] {
      divide_after(part, call);
      numbers.copy_(part);
    };
  } else {
    reduction.deliver = [] {};
  }
  return reduction;
}

} // namespace ferry
