#include "values.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/empty_strided.h>
#include <ATen/ops/from_blob.h>
#include <acl/acl.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include "../runtime/error.h"

namespace cann {
namespace {

struct DtypeName {
  int acl;
  at::ScalarType aten;
  const char* name;
};

constexpr DtypeName kDtypes[] = {
    {ACL_FLOAT, at::kFloat, "DT_FLOAT"},
    {ACL_FLOAT16, at::kHalf, "DT_FLOAT16"},
    {ACL_INT8, at::kChar, "DT_INT8"},
    {ACL_INT32, at::kInt, "DT_INT32"},
    {ACL_UINT8, at::kByte, "DT_UINT8"},
    {ACL_INT16, at::kShort, "DT_INT16"},
    {ACL_UINT16, at::kUInt16, "DT_UINT16"},
    {ACL_UINT32, at::kUInt32, "DT_UINT32"},
    {ACL_INT64, at::kLong, "DT_INT64"},
    {ACL_UINT64, at::kUInt64, "DT_UINT64"},
    {ACL_DOUBLE, at::kDouble, "DT_DOUBLE"},
    {ACL_BOOL, at::kBool, "DT_BOOL"},
    {ACL_COMPLEX64, at::kComplexFloat, "DT_COMPLEX64"},
    {ACL_COMPLEX128, at::kComplexDouble, "DT_COMPLEX128"},
    {ACL_BF16, at::kBFloat16, "DT_BFLOAT16"},
    {ACL_COMPLEX32, at::kComplexHalf, "DT_COMPLEX32"},
    {ACL_FLOAT8_E5M2, at::kFloat8_e5m2, "DT_FLOAT8_E5M2"},
    {ACL_FLOAT8_E4M3FN, at::kFloat8_e4m3fn, "DT_FLOAT8_E4M3FN"},
};

const DtypeName* find(int acl_dtype) {
  for (const DtypeName& known : kDtypes) {
    if (known.acl == acl_dtype) {
      return &known;
    }
  }
  return nullptr;
}

at::Scalar read_scalar(const void* data, int acl_dtype) {
  switch (acl_dtype) {
    case ACL_FLOAT:
      return *static_cast<const float*>(data);
    case ACL_DOUBLE:
      return *static_cast<const double*>(data);
    case ACL_FLOAT16:
      return static_cast<float>(*static_cast<const at::Half*>(data));
    case ACL_BF16:
      return static_cast<float>(*static_cast<const at::BFloat16*>(data));
    case ACL_INT64:
      return *static_cast<const int64_t*>(data);
    case ACL_INT32:
      return static_cast<int64_t>(*static_cast<const int32_t*>(data));
    case ACL_INT16:
      return static_cast<int64_t>(*static_cast<const int16_t*>(data));
    case ACL_INT8:
      return static_cast<int64_t>(*static_cast<const int8_t*>(data));
    case ACL_UINT8:
      return static_cast<int64_t>(*static_cast<const uint8_t*>(data));
    case ACL_BOOL:
      return *static_cast<const bool*>(data);
    case ACL_COMPLEX64:
      return *static_cast<const c10::complex<float>*>(data);
    case ACL_COMPLEX128:
      return *static_cast<const c10::complex<double>*>(data);
    default:
      throw Failure(ACL_ERROR_UNSUPPORTED_DATA_TYPE, std::string("a scalar can't be of ") + dtype_name(acl_dtype));
  }
}

// Dispatch knows these tensors as the CPU's alone: no autograd, whatever the calling thread is up to.
at::Tensor tensor_over(void* data, at::IntArrayRef sizes, at::IntArrayRef strides, at::ScalarType dtype) {
  const at::AutoDispatchBelowADInplaceOrView below;
  const c10::impl::ExcludeDispatchKeyGuard no_python(
      c10::DispatchKeySet({c10::DispatchKey::Python, c10::DispatchKey::PythonTLSSnapshot}));
  const auto options = at::TensorOptions().dtype(dtype);
  for (const int64_t size : sizes) {
    if (size == 0) {
      return at::empty_strided(sizes, strides, options);
    }
  }
  return at::from_blob(data, sizes, strides, options);
}

template <typename T>
void delete_all(const std::vector<T*>& values) {
  for (T* one : values) {
    delete one;
  }
}

} // namespace

std::optional<at::ScalarType> scalar_type(int acl_dtype) {
  const DtypeName* known = find(acl_dtype);
  return known == nullptr ? std::nullopt : std::make_optional(known->aten);
}

const char* dtype_name(int acl_dtype) {
  const DtypeName* known = find(acl_dtype);
  return known == nullptr ? "DT_UNDEFINED" : known->name;
}

IValue value(const aclTensor* tensor) {
  return tensor == nullptr ? IValue() : IValue(tensor->tensor);
}

IValue value(const aclTensorList* tensors) {
  if (tensors == nullptr) {
    return IValue();
  }
  c10::List<at::Tensor> list;
  for (const aclTensor* tensor : tensors->tensors) {
    list.push_back(tensor == nullptr ? at::Tensor() : tensor->tensor);
  }
  return IValue(std::move(list));
}

IValue value(const aclScalar* scalar) {
  return scalar == nullptr ? IValue() : IValue(scalar->scalar);
}

IValue value(const aclScalarList* scalars) {
  if (scalars == nullptr) {
    return IValue();
  }
  c10::impl::GenericList list(c10::NumberType::get());
  for (const aclScalar* scalar : scalars->scalars) {
    list.push_back(IValue(scalar->scalar));
  }
  return IValue(std::move(list));
}

IValue value(const aclIntArray* array) {
  return array == nullptr ? IValue() : IValue(array->values);
}

IValue value(const aclBoolArray* array) {
  if (array == nullptr) {
    return IValue();
  }
  c10::List<bool> list;
  for (const uint8_t one : array->values) {
    list.push_back(one != 0);
  }
  return IValue(std::move(list));
}

IValue value(const aclFloatArray* array) {
  return array == nullptr ? IValue() : IValue(std::vector<double>(array->values.begin(), array->values.end()));
}

IValue value(const char* text) {
  return text == nullptr ? IValue() : IValue(std::string(text));
}

IValue value_of_dtype(int acl_dtype) {
  const auto dtype = scalar_type(acl_dtype);
  return dtype.has_value() ? IValue(static_cast<int64_t>(*dtype)) : IValue();
}

} // namespace cann

extern "C" {

aclTensor* aclCreateTensor(
    const int64_t* sizes,
    uint64_t count,
    int dtype,
    const int64_t* strides,
    int64_t offset,
    int format,
    const int64_t* storage_sizes,
    uint64_t storage_count,
    void* data) {
  const auto aten_dtype = cann::scalar_type(dtype).value_or(at::kByte); // bits and halves of bytes: operators know better
  const at::IntArrayRef size_array(sizes, count);
  std::vector<int64_t> own_strides;
  if (strides == nullptr) {
    own_strides.resize(count, 1);
    for (size_t i = count; i-- > 1;) {
      own_strides[i - 1] = own_strides[i] * sizes[i];
    }
  } else {
    own_strides.assign(strides, strides + count);
  }
  auto* first = static_cast<char*>(data) + offset * static_cast<int64_t>(c10::elementSize(aten_dtype));
  return new aclTensor{
      cann::tensor_over(first, size_array, own_strides, aten_dtype),
      dtype,
      format,
      std::vector<int64_t>(storage_sizes, storage_sizes + storage_count)};
}

int aclDestroyTensor(const aclTensor* tensor) {
  delete tensor;
  return 0;
}

int aclGetViewShape(const aclTensor* tensor, int64_t** sizes, uint64_t* count) {
  const auto given = tensor->tensor.sizes();
  *count = given.size();
  *sizes = new int64_t[given.size()];
  std::copy(given.begin(), given.end(), *sizes);
  return 0;
}

aclScalar* aclCreateScalar(void* data, int dtype) {
  return new aclScalar{cann::read_scalar(data, dtype)};
}

int aclDestroyScalar(const aclScalar* scalar) {
  delete scalar;
  return 0;
}

aclIntArray* aclCreateIntArray(const int64_t* values, uint64_t count) {
  return new aclIntArray{{values, values + count}};
}

int aclDestroyIntArray(const aclIntArray* array) {
  delete array;
  return 0;
}

aclBoolArray* aclCreateBoolArray(const bool* values, uint64_t count) {
  return new aclBoolArray{{values, values + count}};
}

int aclDestroyBoolArray(const aclBoolArray* array) {
  delete array;
  return 0;
}

aclFloatArray* aclCreateFloatArray(const float* values, uint64_t count) {
  return new aclFloatArray{{values, values + count}};
}

int aclDestroyFloatArray(const aclFloatArray* array) {
  delete array;
  return 0;
}

aclTensorList* aclCreateTensorList(aclTensor* const* tensors, uint64_t count) {
  return new aclTensorList{{tensors, tensors + count}};
}

int aclDestroyTensorList(const aclTensorList* list) {
  cann::delete_all(list->tensors);
  delete list;
  return 0;
}

aclScalarList* aclCreateScalarList(aclScalar* const* scalars, uint64_t count) {
  return new aclScalarList{{scalars, scalars + count}};
}

int aclDestroyScalarList(const aclScalarList* list) {
  cann::delete_all(list->scalars);
  delete list;
  return 0;
}

} // extern "C"
