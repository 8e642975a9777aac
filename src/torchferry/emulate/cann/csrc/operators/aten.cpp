#include "aten.h"

#include <ATen/ops/scalar_tensor.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <string_view>

namespace cann {
namespace {

using at::Tensor;
using torch::jit::Stack;

constexpr std::string_view kHalfInSingle[] = {
    "aten::mm", "aten::addmm", "aten::bmm", "aten::baddbmm", "aten::addbmm", "aten::convolution", "aten::convolution_overrideable",
    "aten::convolution_backward", "aten::addmv", "aten::mv", "aten::dot", "aten::matmul", "aten::addr",
    "aten::_scaled_dot_product_flash_attention_for_cpu", "aten::_scaled_dot_product_flash_attention_for_cpu_backward"};

bool computes_half_in_single(const std::string& name) {
  return std::find(std::begin(kHalfInSingle), std::end(kHalfInSingle), name) != std::end(kHalfInSingle);
}

bool is_half(at::ScalarType dtype) {
  return dtype == at::kHalf || dtype == at::kBFloat16 || dtype == at::kComplexHalf;
}

at::ScalarType single_of(at::ScalarType half) {
  return half == at::kComplexHalf ? at::kComplexFloat : at::kFloat;
}

IValue fitted_list(const IValue& given, const c10::TypePtr& element) {
  if (element->kind() == c10::TypeKind::OptionalType && given.isTensorList()) {
    c10::List<std::optional<Tensor>> list;
    for (const Tensor& tensor : given.toTensorVector()) {
      list.push_back(tensor.defined() ? std::make_optional(tensor) : std::nullopt);
    }
    return list;
  }
  switch (element->kind()) {
    case c10::TypeKind::IntType:
    case c10::TypeKind::SymIntType:
      return given.isInt() ? IValue(std::vector<int64_t>{given.toInt()}) : given;
    case c10::TypeKind::TensorType:
      if (given.isList() && given.toListRef().empty()) {
        return c10::List<Tensor>();
      }
      return given.isTensor() ? IValue(c10::List<Tensor>({given.toTensor()})) : given;
    case c10::TypeKind::FloatType:
      return given.isIntList() ? IValue(std::vector<double>(given.toIntVector().begin(), given.toIntVector().end())) : given;
    default:
      return given;
  }
}

// A value as the type that the schema wants, where there is one obvious way.
IValue fitted(const IValue& given, const c10::TypePtr& type) {
  if (type->kind() == c10::TypeKind::OptionalType) {
    return given.isNone() ? given : fitted(given, type->castRaw<c10::OptionalType>()->getElementType());
  }
  switch (type->kind()) {
    case c10::TypeKind::ListType:
      return fitted_list(given, type->castRaw<c10::ListType>()->getElementType());
    case c10::TypeKind::TensorType:
      if (given.isScalar()) { // int, float, bool, complex
        Tensor wrapped = at::scalar_tensor(given.toScalar(), at::TensorOptions().dtype(given.toScalar().type()));
        wrapped.unsafeGetTensorImpl()->set_wrapped_number(true);
        return wrapped;
      }
      return given.isNone() ? IValue(Tensor()) : given;
    case c10::TypeKind::FloatType:
      return given.isScalar() ? IValue(given.toScalar().toDouble()) : given;
    case c10::TypeKind::IntType:
    case c10::TypeKind::SymIntType:
      return given.isScalar() ? IValue(given.toScalar().toLong()) : given;
    case c10::TypeKind::BoolType:
      return given.isScalar() ? IValue(given.toScalar().toBool()) : given;
    default:
      return given;
  }
}

bool lacks_half(const c10::Error& error) {
  const std::string_view what = error.what_without_backtrace();
  if (what.find("not implemented for") == what.npos && what.find("not support") == what.npos && what.find("nsupported") == what.npos) {
    return false;
  }
  return what.find("Half") != what.npos || what.find("BFloat16") != what.npos;
}

// The stack with each half-precision tensor in single precision; what the operator writes to is copied back.
class InSingle {
 public:
  InSingle(Stack& stack, const c10::FunctionSchema& schema) : schema_(schema) {
    for (size_t i = 0; i < stack.size(); ++i) {
      const auto* alias = schema.arguments()[i].alias_info();
      is_written_ = alias != nullptr && alias->isWrite();
      stack[i] = widened(stack[i], schema.arguments()[i].name());
    }
  }

  bool has_any() const {
    return half_ != at::ScalarType::Undefined;
  }

  void narrow(Stack& results) {
    for (const auto& [half, single] : written_) {
      half.copy_(single);
    }
    for (size_t i = 0; i < results.size(); ++i) {
      results[i] = narrowed(results[i]);
    }
  }

 private:
  Tensor widened(const Tensor& tensor) {
    if (!tensor.defined() || !is_half(tensor.scalar_type())) {
      return tensor;
    }
    half_ = tensor.scalar_type();
    const Tensor single = tensor.to(single_of(half_));
    if (is_written_) {
      written_.emplace_back(tensor, single);
    }
    return single;
  }

  IValue widened(const IValue& given, const std::string& name) {
    if (given.isTensor()) {
      return widened(given.toTensor());
    }
    if (given.isTensorList()) {
      c10::List<Tensor> list;
      for (const Tensor& tensor : given.toTensorVector()) {
        list.push_back(widened(tensor));
      }
      return list;
    }
    if (given.isInt() && name == "dtype" && is_half(given.toScalarType())) {
      half_ = given.toScalarType();
      return static_cast<int64_t>(single_of(half_));
    }
    return given;
  }

  IValue narrowed(const IValue& given) const {
    if (given.isTensor() && given.toTensor().defined() && given.toTensor().scalar_type() == single_of(half_)) {
      return given.toTensor().to(half_);
    }
    if (given.isTensorList()) {
      c10::List<Tensor> list;
      for (const Tensor& tensor : given.toTensorVector()) {
        list.push_back(narrowed(tensor).toTensor());
      }
      return list;
    }
    return given;
  }

  const c10::FunctionSchema& schema_;
  at::ScalarType half_ = at::ScalarType::Undefined;
  bool is_written_ = false;
  std::vector<std::pair<Tensor, Tensor>> written_;
};

bool call_in_single(const c10::OperatorHandle& handle, Stack& stack) {
  InSingle single(stack, handle.schema());
  if (!single.has_any()) {
    return false;
  }
  handle.callBoxed(stack);
  single.narrow(stack);
  return true;
}

void call(const c10::OperatorHandle& handle, Stack& stack, bool half_in_single) {
  Stack given = stack;
  if (half_in_single && call_in_single(handle, given)) {
    stack = std::move(given);
    return;
  }
  given = stack;
  try {
    handle.callBoxed(stack);
  } catch (const c10::Error& error) {
    if (!lacks_half(error) || !call_in_single(handle, given)) {
      throw;
    }
    stack = std::move(given);
  }
}

} // namespace

Aten::Aten(const char* name, const char* overload)
    : handle_(c10::Dispatcher::singleton().findSchemaOrThrow(name, overload)),
      half_in_single_(computes_half_in_single(handle_.operator_name().name)) {}

IValue Aten::operator()(std::initializer_list<IValue> positional, std::initializer_list<std::pair<const char*, IValue>> named) const {
  const auto& arguments = handle_.schema().arguments();
  TORCH_CHECK(positional.size() <= arguments.size(), handle_.operator_name().name, " takes ", arguments.size(), " arguments");
  Stack stack;
  stack.reserve(arguments.size());
  for (const IValue& given : positional) {
    stack.push_back(fitted(given, arguments[stack.size()].type()));
  }
  for (size_t i = stack.size(); i < arguments.size(); ++i) {
    const auto found = std::find_if(named.begin(), named.end(), [&](const auto& pair) { return arguments[i].name() == pair.first; });
    if (found != named.end()) {
      stack.push_back(fitted(found->second, arguments[i].type()));
    } else {
      TORCH_CHECK(arguments[i].default_value().has_value(), handle_.operator_name().name, " needs ", arguments[i].name());
      stack.push_back(*arguments[i].default_value());
    }
  }
  call(handle_, stack, half_in_single_);
  if (stack.size() == 1) {
    return std::move(stack[0]);
  }
  return stack.empty() ? IValue() : IValue(c10::ivalue::Tuple::create(std::move(stack)));
}

} // namespace cann
