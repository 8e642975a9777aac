#include "argument_limits.h"

#include "../runtime/error.h"

#include <string>

namespace cann {
namespace {

std::string listed(const Limit& limit) {
  std::string text;
  for (int dtype = 0; dtype < 64; ++dtype) {
    if (allows(limit, dtype) && scalar_type(dtype).has_value()) {
      text += std::string(dtype_name(dtype)) + ",";
    }
  }
  return text;
}

std::string about_dtype(const Limit& limit, int dtype) {
  return std::string("Tensor ") + limit.argument + " not implemented for " + dtype_name(dtype) + ", should be in dtype support list [" +
      listed(limit) + "].";
}

std::string about_dims(const Limit& limit, int64_t dims) {
  const bool few = dims < limit.least_dims;
  return std::string("The ") + limit.argument + " tensor cannot be " + (few ? "smaller" : "larger") + " than " +
      std::to_string(few ? limit.least_dims : limit.most_dims) + " dimensions.";
}

} // namespace

int refuse(const Limit& limit, const aclTensor& tensor) {
  const bool is_of_dtype = allows(limit, tensor.dtype);
  const std::string text = is_of_dtype ? about_dims(limit, tensor.tensor.dim()) : about_dtype(limit, tensor.dtype);
  return told(Failure(kInvalidParameter, headed(kParameterError, text)));
}

} // namespace cann
