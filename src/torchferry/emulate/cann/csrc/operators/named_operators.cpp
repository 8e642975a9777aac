#include "named_operators.h"

#include "../runtime/error.h"
#include "../runtime/old_operators.h"

#include <ATen/ops/from_blob.h>

#include <map>
#include <string>

namespace cann {
namespace {

using at::Tensor;

std::map<std::string, NamedOperator*>& known() {
  static auto* operators = new std::map<std::string, NamedOperator*>;
  return *operators;
}

Tensor tensor_of(const OldTensor& given) {
  const auto dtype = scalar_type(given.dtype);
  if (!dtype.has_value() || (given.data == nullptr && given.bytes > 0)) {
    return {};
  }
  const Tensor tensor = at::from_blob(given.data, given.sizes, at::TensorOptions().dtype(*dtype));
  return given.on_host ? tensor.clone() : tensor; // the plugin frees what is on the host when the call returns
}

c10::List<Tensor> tensors_of(const std::vector<OldTensor>& given) {
  c10::List<Tensor> tensors;
  for (const OldTensor& one : given) {
    tensors.push_back(tensor_of(one));
  }
  return tensors;
}

struct AsValue {
  IValue operator()(bool one) const { return one; }
  IValue operator()(int64_t one) const { return one; }
  IValue operator()(float one) const { return static_cast<double>(one); }
  IValue operator()(const std::string& one) const { return one; }
  IValue operator()(const std::vector<int64_t>& list) const { return list; }
  IValue operator()(const std::vector<float>& list) const { return std::vector<double>(list.begin(), list.end()); }

  IValue operator()(const std::vector<uint8_t>& list) const {
    c10::List<bool> bools;
    for (const uint8_t one : list) {
      bools.push_back(one != 0);
    }
    return bools;
  }

  IValue operator()(const std::vector<std::vector<int64_t>>&) const {
    throw Failure(ACL_ERROR_INVALID_PARAM, "an attribute that is a list of lists");
  }
};

Arguments arguments_of(const NamedOperator& of, const OldCall& call) {
  Arguments arguments{tensors_of(call.inputs), tensors_of(call.outputs)};
  for (const char* name : of.attributes) {
    const auto found = call.attributes.find(name);
    arguments.push_back(found == call.attributes.end() ? IValue() : std::visit(AsValue(), found->second));
  }
  return arguments;
}

bool run(const OldCall& call, aclrtStream stream) {
  const auto found = known().find(call.name);
  if (found == known().end()) {
    return false;
  }
  NamedOperator* of = found->second;
  uint64_t workspace_bytes = 0;
  void* executor = nullptr;
  plan(of->function, arguments_of(*of, call), &workspace_bytes, &executor);
  const int code = launch(executor, stream);
  if (code != ACL_SUCCESS) {
    throw Failure(code, aclGetRecentErrMsg());
  }
  return true;
}

const bool is_set = (set_old_operators(run), true);

} // namespace

NamedOperator::NamedOperator(const char* name, Compute compute, std::vector<const char*> attributes)
    : function(name, compute, false), attributes(std::move(attributes)) {
  known()[name] = this;
}

} // namespace cann
