#include "registration.h"

#include "host_call.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/library.h>

#include <set>

namespace ferry {

TORCH_LIBRARY_IMPL(_, PrivateUse1, m) {
  m.fallback(torch::CppFunction::makeFromBoxedFunction<&call_on_host>());
}

namespace {

// Newer releases of PyTorch let autograd pass operators without a formula themselves, and refuse a second fallback.
struct PassAutograd {
  PassAutograd() {
    constexpr auto key = c10::DispatchKey::AutogradPrivateUse1;
    if (!c10::Dispatcher::singleton().hasBackendFallbackForDispatchKey(key)) {
      static torch::Library library(torch::Library::IMPL, "_", key, __FILE__, __LINE__);
      library.fallback(torch::CppFunction::makeFallthrough());
    }
  }
} pass_autograd;

} // namespace

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
