#include "conversion.h"

#include <ATen/Functions.h>
#include <ATen/native/TypeProperties.h>
#include <c10/util/SmallVector.h>

#include <vector>

namespace ferry {
namespace {

using at::Tensor;
using c10::IValue;

template <typename Convert>
void convert_argument(ArgumentKind kind, IValue& value, Conversion conversion, const Convert& convert) {
  if (kind == ArgumentKind::tensor && value.isTensor()) {
    value = convert(value.toTensor());
  } else if (kind == ArgumentKind::tensor_list && value.isTensorList()) {
    c10::List<Tensor> list;
    for (const IValue& element : value.toListRef()) {
      list.push_back(convert(element.toTensor()));
    }
    value = std::move(list);
  } else if (kind == ArgumentKind::dtype && value.isInt() && value.toScalarType() == conversion.from) {
    value = static_cast<int64_t>(conversion.to);
  }
}

Tensor converted_back(const Tensor& tensor, Conversion conversion) {
  return tensor.defined() && tensor.scalar_type() == conversion.to ? tensor.to(conversion.from) : tensor;
}

void convert_back(IValue& value, Conversion conversion) {
  if (value.isTensor()) {
    value = converted_back(value.toTensor(), conversion);
  } else if (value.isTensorList()) {
    c10::List<Tensor> list;
    for (const IValue& element : value.toListRef()) {
      list.push_back(converted_back(element.toTensor(), conversion));
    }
    value = std::move(list);
  }
}

} // namespace

std::optional<at::ScalarType> single_precision_of(at::ScalarType dtype) {
  switch (dtype) {
    case at::ScalarType::Half:
    case at::ScalarType::BFloat16:
      return at::ScalarType::Float;
    case at::ScalarType::ComplexHalf:
      return at::ScalarType::ComplexFloat;
    default:
      return std::nullopt;
  }
}

void call_converted(
    const Operator& op, torch::jit::Stack& stack, size_t begin, Conversion conversion, const std::function<void()>& invoke) {
  c10::SmallVector<std::pair<Tensor, Tensor>, 2> written; // the tensor, and what the kernel writes to instead
  std::vector<Tensor> given;
  bool had_target = false;
  for (size_t i = 0; i < op.arguments.size(); ++i) {
    const Argument& argument = op.arguments[i];
    if (argument.always_single) {
      continue;
    }
    convert_argument(argument.kind, stack[begin + i], conversion, [&](const Tensor& tensor) -> Tensor {
      if (tensor.defined()) {
        given.push_back(tensor);
        had_target |= tensor.scalar_type() == conversion.to;
      }
      if (!tensor.defined() || tensor.scalar_type() != conversion.from) {
        return tensor;
      }
      const Tensor other = tensor.to(conversion.to);
      if (argument.written) {
        written.emplace_back(tensor, other);
      }
      return other;
    });
  }
  invoke();
  // Of arguments in both dtypes the result has the one that they are promoted to.
  const bool stays = had_target && at::native::result_type(given) != conversion.from;
  for (size_t i = begin; i < stack.size() && !stays; ++i) {
    if (!op.returns[i - begin].always_single) {
      convert_back(stack[i], conversion);
    }
  }
  for (const auto& [tensor, other] : written) {
    tensor.resize_(other.sizes()).copy_(other);
  }
}

} // namespace ferry
