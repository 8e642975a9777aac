// What the plugin hands to operator functions: tensors, scalars, arrays, as the values that ATen computes with.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>
#include <c10/core/ScalarType.h>

#include <optional>
#include <vector>

struct aclTensor {
  at::Tensor tensor;
  int dtype;
  int format;
  std::vector<int64_t> storage_sizes;
};

struct aclScalar {
  at::Scalar scalar;
};

struct aclIntArray {
  std::vector<int64_t> values;
};

struct aclBoolArray {
  std::vector<uint8_t> values;
};

struct aclFloatArray {
  std::vector<float> values;
};

// The lists own what is in them.
struct aclTensorList {
  std::vector<aclTensor*> tensors;
};

struct aclScalarList {
  std::vector<aclScalar*> scalars;
};

namespace cann {

using c10::IValue;

// ATen's dtype for the toolkit's; nothing where ATen has none.
std::optional<at::ScalarType> scalar_type(int acl_dtype);

// The toolkit's name of a dtype, as its messages have it: DT_FLOAT.
const char* dtype_name(int acl_dtype);

IValue value(const aclTensor* tensor);
IValue value(const aclTensorList* tensors);
IValue value(const aclScalar* scalar);
IValue value(const aclScalarList* scalars);
IValue value(const aclIntArray* array);
IValue value(const aclBoolArray* array);
IValue value(const aclFloatArray* array);
IValue value(const char* text);
IValue value_of_dtype(int acl_dtype);

} // namespace cann
