// The control surface as torch operators: native.py gives each of them a type.
#include "device.h"
#include "generator.h"
#include "half_precision.h"
#include "layouts.h"
#include "memory.h"
#include "narrowing.h"
#include "operators.h"
#include "reference.h"
#include "registration.h"
#include "saturation.h"
#include "visible_devices.h"

#include <torch/library.h>

namespace ferry {
namespace {

void configure(int64_t devices, int64_t memory, std::string visible_variable, bool shared_randomness) {
  TORCH_CHECK(
      devices >= 1 && devices <= kMaxDevices, "there can be 1 to ", kMaxDevices, " simulated devices, not ", devices);
  set_machine(devices, std::move(visible_variable));
  set_memory_limits(memory);
  share_randomness(shared_randomness);
}

c10::DeviceIndex checked(int64_t device) {
  check_device_index(device);
  return static_cast<c10::DeviceIndex>(device);
}

std::vector<int64_t> memory_numbers(int64_t device) {
  const MemoryUse use = memory_use(checked(device));
  return {
      use.allocated,
      use.peak_allocated,
      use.reserved,
      use.peak_reserved,
      use.allocations,
      use.frees,
      use.blocks,
      use.out_of_memory,
      use.limit};
}

void set_messages(
    std::string missing,
    std::string fallback,
    std::string out_of_memory,
    std::string cast_dtype,
    std::string refused_dtype) {
  set_operator_messages(std::move(missing), std::move(fallback));
  set_out_of_memory_message(std::move(out_of_memory));
  set_dtype_messages(std::move(cast_dtype), std::move(refused_dtype));
}

TORCH_LIBRARY(torchferry_sim, m) {
  m.def("configure(int devices, int memory, str visible_variable, bool shared_randomness) -> ()", &configure);
  m.def("device_count() -> int", []() -> int64_t { return device_count(); });
  m.def("current_device() -> int", []() -> int64_t { return current_device(); });
  m.def("begin_use() -> ()", &begin_use);
  m.def("set_device(int device) -> ()", [](int64_t device) { set_current_device(checked(device)); });
  m.def("memory_use(int device) -> int[]", &memory_numbers);
  m.def("reset_peak_memory(int device) -> ()", [](int64_t device) { reset_peak_memory(checked(device)); });
  m.def("reset_accumulated_memory(int device) -> ()", [](int64_t device) {
    reset_accumulated_memory(checked(device));
  });
  m.def("empty_cache() -> ()", &empty_cache);
  m.def("set_memory_limit(int device, int limit) -> ()", [](int64_t device, int64_t limit) {
    set_memory_limit(checked(device), limit);
  });
  m.def("forbid_memory(str reason) -> ()", [](std::string reason) { forbid_memory(std::move(reason)); });
  m.def("use_cuda_autocast_policies() -> ()", &use_cuda_autocast_policies);
  m.def("compute_half_in_single() -> ()", &compute_half_in_single);
  m.def("add_sync_batch_norm() -> ()", &add_sync_batch_norm);
  m.def("watch_places(bool on) -> ()", &watch_places);
  m.def("set_current_place(int index) -> ()", &set_current_place);
  m.def("default_generator(int device) -> Generator?", [](int64_t device) -> at::Generator {
    return default_generator(checked(device));
  });
  m.def(
      "set_operator_facts(str[] names, str[] reported_as, int[] verdicts, int[] device_checks, int[] moves_data) -> ()",
      [](std::vector<std::string> names,
         std::vector<std::string> reported_as,
         std::vector<int64_t> verdicts,
         std::vector<int64_t> checks,
         std::vector<int64_t> moves_data) { set_operator_facts(names, reported_as, verdicts, checks, moves_data); });
  m.def("route_to_host(str[] names) -> ()", [](std::vector<std::string> names) { route_to_host(names); });
  m.def(
      "set_narrowing(ScalarType dtype, ScalarType becomes, int narrowing) -> ()",
      [](at::ScalarType dtype, at::ScalarType becomes, int64_t narrowing) {
        set_narrowing(dtype, becomes, static_cast<Narrowing>(narrowing));
      });
  m.def(
      "set_messages(str missing, str fallback, str out_of_memory, str cast_dtype, str refused_dtype) -> ()",
      &set_messages);
  m.def(
      "set_sparse_support(int missing, str raises, str falls_back, str[] kernels) -> ()",
      [](int64_t missing, std::string raises, std::string falls_back, std::vector<std::string> kernels) {
        set_sparse_support(missing, std::move(raises), std::move(falls_back), std::move(kernels));
      });
  m.def("set_unlisted_in_double(str[] names, str wording) -> ()", [](std::vector<std::string> names, std::string wording) {
    set_unlisted_in_double(names, std::move(wording));
  });
  m.def("route_composed() -> ()", &route_composed);
  m.def("set_saturation(ScalarType dtype) -> ()", &set_saturation);
  m.def("set_block_padding(int bytes) -> ()", &set_block_padding);
  m.def("operator_uses() -> (str[], int[], int[])", &operator_uses);
  m.def("narrowed_dtypes() -> (str[], int[])", &narrowed_dtypes);
  m.def("set_gate(bool on) -> bool", &set_limits_on);
}

} // namespace
} // namespace ferry
