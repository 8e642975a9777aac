// What operator functions take of their tensors: the made table of limits.tsv, checked in the first phase.
#pragma once

#include "values.h"

#include <acl/acl_base.h>

#include <cstdint>

namespace cann {

constexpr int kInvalidParameter = 161002; // ACLNN_ERR_PARAM_INVALID
constexpr const char* kParameterError = "AclNN_Parameter_Error(EZ1001)";

// A bit for each dtype of the toolkit, of which there are fewer than 64.
namespace dtypes {
#define CANN_DTYPE(name, number) constexpr uint64_t name = uint64_t{1} << (number)
CANN_DTYPE(FLOAT, ACL_FLOAT);
CANN_DTYPE(FLOAT16, ACL_FLOAT16);
CANN_DTYPE(INT8, ACL_INT8);
CANN_DTYPE(INT32, ACL_INT32);
CANN_DTYPE(UINT8, ACL_UINT8);
CANN_DTYPE(INT16, ACL_INT16);
CANN_DTYPE(UINT16, ACL_UINT16);
CANN_DTYPE(UINT32, ACL_UINT32);
CANN_DTYPE(INT64, ACL_INT64);
CANN_DTYPE(UINT64, ACL_UINT64);
CANN_DTYPE(DOUBLE, ACL_DOUBLE);
CANN_DTYPE(BOOL, ACL_BOOL);
CANN_DTYPE(COMPLEX64, ACL_COMPLEX64);
CANN_DTYPE(COMPLEX128, ACL_COMPLEX128);
CANN_DTYPE(BFLOAT16, ACL_BF16);
CANN_DTYPE(INT4, ACL_INT4);
CANN_DTYPE(COMPLEX32, ACL_COMPLEX32);
CANN_DTYPE(FLOAT8_E5M2, ACL_FLOAT8_E5M2);
CANN_DTYPE(FLOAT8_E4M3FN, ACL_FLOAT8_E4M3FN);
// headers of older plugins do not name these
CANN_DTYPE(HIFLOAT8, 34);
CANN_DTYPE(FLOAT8_E8M0, 37);
CANN_DTYPE(FLOAT4_E2M1, 40);
CANN_DTYPE(FLOAT4_E1M2, 41);
#undef CANN_DTYPE
constexpr uint64_t ANY = ~uint64_t{0};
} // namespace dtypes

constexpr int64_t kAnyDims = INT64_MAX;

struct Limit {
  const char* argument;
  uint64_t dtypes;
  int64_t least_dims;
  int64_t most_dims;
};

inline bool allows(const Limit& limit, int dtype) {
  return dtype >= 0 && dtype < 64 && (limit.dtypes >> dtype & 1) != 0;
}

// Keeps what is wrong with a tensor that a limit does not allow, as the thread's last error; the answer is its code.
int refuse(const Limit& limit, const aclTensor& tensor);

// Whether a function has to turn back; an argument that is left out is fine.
inline bool refuses(const Limit& limit, const aclTensor* tensor) {
  if (tensor == nullptr) {
    return false;
  }
  const int64_t dims = tensor->tensor.dim();
  if (allows(limit, tensor->dtype) && dims >= limit.least_dims && dims <= limit.most_dims) {
    return false;
  }
  return refuse(limit, *tensor) != 0;
}

inline bool refuses(const Limit& limit, const aclTensorList* list) {
  if (list != nullptr) {
    for (const aclTensor* tensor : list->tensors) {
      if (refuses(limit, tensor)) {
        return true;
      }
    }
  }
  return false;
}

} // namespace cann
