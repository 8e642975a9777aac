#include "old_operators.h"

#include "error.h"

#include <acl/acl_op_compiler.h>

#include <algorithm>
#include <atomic>

struct aclTensorDesc {
  cann::OldTensor tensor;
};

struct aclDataBuffer {
  void* data;
  size_t bytes;
};

struct aclopAttr {
  std::map<std::string, cann::Attribute> values;
};

namespace cann {
namespace {

std::atomic<OldOperators> computing{nullptr};

std::vector<OldTensor> tensors(int count, const aclTensorDesc* const descriptions[], const aclDataBuffer* const buffers[]) {
  std::vector<OldTensor> made;
  for (int i = 0; i < count; ++i) {
    made.push_back(descriptions[i]->tensor);
    made.back().data = buffers[i] == nullptr ? nullptr : buffers[i]->data;
    made.back().bytes = buffers[i] == nullptr ? 0 : buffers[i]->bytes;
  }
  return made;
}

template <typename T>
aclError keep(aclopAttr* attributes, const char* name, T value) {
  attributes->values[name] = Attribute(std::move(value));
  return ACL_SUCCESS;
}

void call(const OldCall& call, aclrtStream stream) {
  const OldOperators operators = computing;
  if (operators == nullptr || !operators(call, stream)) {
    set_error(
        "EZ3002",
        "Optype [" + call.name + "] of Ops kernel [AIcoreEngine] is unsupported. Reason: the emulated CANN does not have the operator " +
            call.name + " (called the old way, with aclopCompileAndExecute).");
    throw Failure(ACL_ERROR_OP_NOT_FOUND, aclGetRecentErrMsg());
  }
}

} // namespace

void set_old_operators(OldOperators operators) {
  computing = operators;
}

} // namespace cann

extern "C" {

aclTensorDesc* aclCreateTensorDesc(aclDataType dtype, int dimensions, const int64_t* sizes, aclFormat format) {
  auto* made = new aclTensorDesc;
  made->tensor.dtype = dtype;
  made->tensor.format = format;
  made->tensor.sizes.assign(sizes, sizes + std::max(dimensions, 0));
  return made;
}

void aclDestroyTensorDesc(const aclTensorDesc* description) {
  delete description;
}

aclDataType aclGetTensorDescType(const aclTensorDesc* description) {
  return static_cast<aclDataType>(description->tensor.dtype);
}

aclFormat aclGetTensorDescFormat(const aclTensorDesc* description) {
  return static_cast<aclFormat>(description->tensor.format);
}

size_t aclGetTensorDescNumDims(const aclTensorDesc* description) {
  return description->tensor.sizes.size();
}

aclError aclGetTensorDescDimV2(const aclTensorDesc* description, size_t index, int64_t* size) {
  if (index >= description->tensor.sizes.size()) {
    return ACL_ERROR_INVALID_PARAM;
  }
  *size = description->tensor.sizes[index];
  return ACL_SUCCESS;
}

void aclSetTensorDescName(aclTensorDesc* description, const char* name) {
  description->tensor.name = name;
}

// How it is stored does not matter: the plugin is told that there are base formats only.
aclError aclSetTensorFormat(aclTensorDesc*, aclFormat) {
  return ACL_SUCCESS;
}

aclError aclSetTensorShape(aclTensorDesc*, int, const int64_t*) {
  return ACL_SUCCESS;
}

aclError aclSetTensorPlaceMent(aclTensorDesc* description, aclMemType place) {
  description->tensor.on_host = place != ACL_MEMTYPE_DEVICE;
  return ACL_SUCCESS;
}

aclDataBuffer* aclCreateDataBuffer(void* data, size_t bytes) {
  return new aclDataBuffer{data, bytes};
}

aclError aclDestroyDataBuffer(const aclDataBuffer* buffer) {
  delete buffer;
  return ACL_SUCCESS;
}

aclopAttr* aclopCreateAttr() {
  return new aclopAttr;
}

void aclopDestroyAttr(const aclopAttr* attributes) {
  delete attributes;
}

aclError aclopSetAttrBool(aclopAttr* attributes, const char* name, uint8_t value) {
  return cann::keep(attributes, name, value != 0);
}

aclError aclopSetAttrInt(aclopAttr* attributes, const char* name, int64_t value) {
  return cann::keep(attributes, name, value);
}

aclError aclopSetAttrFloat(aclopAttr* attributes, const char* name, float value) {
  return cann::keep(attributes, name, value);
}

aclError aclopSetAttrString(aclopAttr* attributes, const char* name, const char* value) {
  return cann::keep(attributes, name, std::string(value));
}

aclError aclopSetAttrDataType(aclopAttr* attributes, const char* name, aclDataType value) {
  return cann::keep(attributes, name, static_cast<int64_t>(value));
}

aclError aclopSetAttrListBool(aclopAttr* attributes, const char* name, int count, const uint8_t* values) {
  return cann::keep(attributes, name, std::vector<uint8_t>(values, values + count));
}

aclError aclopSetAttrListInt(aclopAttr* attributes, const char* name, int count, const int64_t* values) {
  return cann::keep(attributes, name, std::vector<int64_t>(values, values + count));
}

aclError aclopSetAttrListFloat(aclopAttr* attributes, const char* name, int count, const float* values) {
  return cann::keep(attributes, name, std::vector<float>(values, values + count));
}

aclError aclopSetAttrListListInt(
    aclopAttr* attributes, const char* name, int count, const int* lengths, const int64_t* const values[]) {
  std::vector<std::vector<int64_t>> lists;
  for (int i = 0; i < count; ++i) {
    lists.emplace_back(values[i], values[i] + lengths[i]);
  }
  return cann::keep(attributes, name, std::move(lists));
}

aclError aclopCompileAndExecute(
    const char* name,
    int input_count,
    const aclTensorDesc* const input_descriptions[],
    const aclDataBuffer* const inputs[],
    int output_count,
    const aclTensorDesc* const output_descriptions[],
    aclDataBuffer* const outputs[],
    const aclopAttr* attributes,
    aclopEngineType,
    aclopCompileType,
    const char*,
    aclrtStream stream) {
  return cann::guarded([&] {
    cann::call(
        {name,
         cann::tensors(input_count, input_descriptions, inputs),
         cann::tensors(output_count, output_descriptions, outputs),
         attributes == nullptr ? decltype(attributes->values){} : attributes->values},
        stream);
  });
}

aclError aclopCompileAndExecuteV2(
    const char* name,
    int input_count,
    aclTensorDesc* input_descriptions[],
    aclDataBuffer* inputs[],
    int output_count,
    aclTensorDesc* output_descriptions[],
    aclDataBuffer* outputs[],
    aclopAttr* attributes,
    aclopEngineType engine,
    aclopCompileType compiling,
    const char* path,
    aclrtStream stream) {
  return aclopCompileAndExecute(
      name, input_count, input_descriptions, inputs, output_count, output_descriptions, outputs, attributes, engine, compiling, path, stream);
}

} // extern "C"
