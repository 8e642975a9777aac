#include "described.h"

namespace cann {
namespace {

void add(std::string& text, size_t number, const at::Tensor& tensor) {
  if (!tensor.defined()) {
    return;
  }
  text += (text.empty() ? "" : ";") + std::to_string(number) + ":" + c10::toString(tensor.scalar_type()) + ":";
  for (int64_t dim = 0; dim < tensor.dim(); ++dim) {
    text += (dim == 0 ? "" : ",") + std::to_string(tensor.size(dim));
  }
}

} // namespace

std::string described(const Arguments& arguments) {
  std::string text;
  for (size_t number = 0; number < arguments.size(); ++number) {
    if (arguments[number].isTensor()) {
      add(text, number, arguments[number].toTensor());
    } else if (arguments[number].isTensorList()) {
      for (const at::Tensor& tensor : arguments[number].toTensorVector()) {
        add(text, number, tensor);
      }
    }
  }
  return text;
}

} // namespace cann
