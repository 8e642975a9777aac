#include "registration.h"

#include "host_call.h"

#include <torch/library.h>
#include <torch/version.h>

#include <set>

namespace ferry {

TORCH_LIBRARY_IMPL(_, PrivateUse1, m) {
  m.fallback(torch::CppFunction::makeFromBoxedFunction<&call_on_host>());
}

// From 2.8 on PyTorch registers this one itself.
#if TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR < 8
TORCH_LIBRARY_IMPL(_, AutogradPrivateUse1, m) {
  m.fallback(torch::CppFunction::makeFallthrough());
}
#endif

void route_to_host(const std::vector<std::string>& names) {
  static auto* library =
      new torch::Library(torch::Library::IMPL, "aten", c10::DispatchKey::PrivateUse1, __FILE__, __LINE__);
  static auto* routed = new std::set<std::string>();
  for (const auto& name : names) {
    if (routed->insert(name).second) {
      library->impl(name.c_str(), torch::CppFunction::makeFromBoxedFunction<&call_on_host>());
    }
  }
}

} // namespace ferry
