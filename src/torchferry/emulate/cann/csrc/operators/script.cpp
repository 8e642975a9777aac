#include "script.h"

#include <c10/util/Exception.h>

#include <cmath>

namespace cann::script {
namespace {

using at::Tensor;

template <typename T>
IValue computed(char operation, T left, T right) {
  switch (operation) {
    case '+':
      return left + right;
    case '-':
      return left - right;
    case '*':
      return left * right;
    default:
      TORCH_CHECK(operation == '/' || operation == 'f', "no operation ", operation);
      return operation == '/' ? IValue(static_cast<double>(left) / static_cast<double>(right))
                              : IValue(static_cast<T>(std::floor(static_cast<double>(left) / static_cast<double>(right))));
  }
}

template <typename T>
bool compared(char operation, const T& left, const T& right) {
  switch (operation) {
    case '<':
      return left < right;
    case '>':
      return left > right;
    case 'l':
      return left <= right;
    case 'g':
      return left >= right;
    default:
      return left == right;
  }
}

void write_tensor(const Tensor& target, const Tensor& result) {
  if (!target.defined() || !result.defined() || target.is_same(result)) {
    return;
  }
  TORCH_CHECK(
      target.numel() == result.numel(), "the result has the shape ", result.sizes(), ", the caller has room for ", target.sizes());
  target.copy_(result.sizes() == target.sizes() ? result : result.reshape(target.sizes()));
}

bool is_whole(const IValue& value) {
  return value.isInt() || value.isBool();
}

int64_t whole(const IValue& value) {
  return value.isBool() ? static_cast<int64_t>(value.toBool()) : value.toInt();
}

} // namespace

bool truth(const IValue& value) {
  if (value.isNone()) {
    return false;
  }
  if (value.isTensor()) {
    return value.toTensor().defined();
  }
  if (value.isList() || value.isTuple()) {
    return length(value) > 0;
  }
  if (value.isString()) {
    return !value.toStringRef().empty();
  }
  return value.toScalar().toDouble() != 0;
}

IValue item(const IValue& of, int64_t index) {
  if (index < 0) {
    index += length(of);
  }
  TORCH_CHECK(index >= 0 && index < length(of), "there is no item ", index, " among ", length(of));
  return of.isTuple() ? of.toTupleRef().elements()[static_cast<size_t>(index)] : of.toList().get(static_cast<size_t>(index));
}

int64_t length(const IValue& of) {
  return static_cast<int64_t>(of.isTuple() ? of.toTupleRef().elements().size() : of.toList().size());
}

IValue listed(std::initializer_list<IValue> values) {
  const auto all = [&](auto is) { return std::all_of(values.begin(), values.end(), is); };
  if (all([](const IValue& value) { return value.isInt(); })) {
    std::vector<int64_t> ints;
    for (const IValue& value : values) {
      ints.push_back(value.toInt());
    }
    return ints;
  }
  if (all([](const IValue& value) { return value.isBool(); })) {
    c10::List<bool> bools;
    for (const IValue& value : values) {
      bools.push_back(value.toBool());
    }
    return bools;
  }
  TORCH_CHECK(
      all([](const IValue& value) { return value.isTensor() || value.isNone(); }), "a list is of whole numbers, truth values or tensors");
  c10::List<Tensor> tensors;
  for (const IValue& value : values) {
    tensors.push_back(value.isNone() ? Tensor() : value.toTensor());
  }
  return tensors;
}

IValue arithmetic(char operation, const IValue& left, const IValue& right) {
  if (left.isIntList() && right.isIntList()) {
    TORCH_CHECK(operation == '+', "lists can be put together only");
    std::vector<int64_t> both = left.toIntVector();
    const auto more = right.toIntVector();
    both.insert(both.end(), more.begin(), more.end());
    return both;
  }
  if (is_whole(left) && is_whole(right)) {
    return computed(operation, whole(left), whole(right));
  }
  return computed(operation, left.toScalar().toDouble(), right.toScalar().toDouble());
}

bool compare(char operation, const IValue& left, const IValue& right) {
  if (left.isNone() || right.isNone()) {
    return operation == '=' && left.isNone() && right.isNone();
  }
  if (left.isString()) {
    return right.isString() && compared(operation, left.toStringRef(), right.toStringRef());
  }
  if (left.isIntList()) {
    return right.isIntList() && compared(operation, left.toIntVector(), right.toIntVector());
  }
  return compared(operation, left.toScalar().toDouble(), right.toScalar().toDouble());
}

void write(const IValue& target, const IValue& result) {
  if (target.isNone() || result.isNone()) {
    return;
  }
  if (target.isTensor()) {
    return write_tensor(target.toTensor(), result.toTensor());
  }
  const auto targets = target.toTensorVector();
  const auto results = result.toTensorVector();
  TORCH_CHECK(targets.size() == results.size(), results.size(), " results, and room for ", targets.size());
  for (size_t i = 0; i < targets.size(); ++i) {
    write_tensor(targets[i], results[i]);
  }
}

} // namespace cann::script
