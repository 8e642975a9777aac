// What the device knows of each operator: how its arguments travel to the host kernel, and what the vendor's table
// says of it.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/record_function.h>

#include <atomic>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

namespace ferry {

// The numbers are shared with Verdict in native.py.
enum class Verdict : int { unknown = 0, kernel = 1, falls_back = 2, raises = 3 };

// Which tensors an operator may mix: all on one device, host scalars or host tensors among them, or anything.
// The numbers are shared with Devices in native.py.
enum class DeviceCheck : int { same_device = 0, host_scalars = 1, none = 2, host_tensors = 3 };

enum class ArgumentKind : uint8_t { other, tensor, tensor_list, device, generator, dtype };

struct Argument {
  ArgumentKind kind;
  bool written;
  bool always_single; // in single precision whatever the other tensors are in
};

struct Return {
  int argument; // the one that it is, or -1
  bool always_single;
};

struct Operator {
  std::string name;
  std::string reported_as; // the name in messages
  std::vector<Argument> arguments;
  std::vector<Return> returns;
  bool has_host_kernel;
  bool moves_data = false; // computes nothing: no dtype is narrowed on the way
  bool unlisted_in_double = false; // the vendor's list of what was tried does not have it in double precision
  bool copies; // from one tensor to another, perhaps in another dtype
  bool writes;
  bool bumps_versions; // a list of tensors in place, which PyTorch's own layers above the kernels leave to the kernel
  bool notes_overflow; // unscales gradients: asks cards without infinities whether something overflowed
  bool half_in_single; // computed in single precision where its tensors are in a half one
  bool draws_from_process_wide_generator;
  bool takes_int32_labels; // as devices do; the CPU's kernels want int64
  bool packs_sequences; // the sizes of the batches that it returns second stay on the host
  Verdict verdict = Verdict::unknown;
  DeviceCheck device_check = DeviceCheck::same_device;
  std::atomic<bool> warned{false};
  std::atomic<bool> warned_of_double{false};
  std::atomic<int64_t> calls{0};
};

// The entry of an operator, made at its first call.
Operator& operator_of(const c10::OperatorHandle& handle);

// The call of an operator on the device: counted, and refused, warned about or let pass as the vendor's table says.
// As long as this lives, a profiler sees that an operator runs on the CPU which the vendor has no kernel for.
class Passage {
 public:
  explicit Passage(Operator& op);

  // For own kernels, which do not come through the fallback.
  Passage(const char* name, const char* overload);

 private:
  std::optional<at::RecordFunction> on_host_;
};

void set_operator_facts(
    const std::vector<std::string>& names,
    const std::vector<std::string>& reported_as,
    const std::vector<int64_t>& verdicts,
    const std::vector<int64_t>& device_checks,
    const std::vector<int64_t>& moves_data);
// Operators, by their names without overload, to warn about once when they compute in double precision.
void set_unlisted_in_double(const std::vector<std::string>& names, std::string wording);
void warn_of_double(Operator& op);
void set_operator_messages(std::string missing, std::string fallback);
std::tuple<std::vector<std::string>, std::vector<int64_t>, std::vector<int64_t>> operator_uses();

// The vendor's limits in this thread: off while a tensor is printed, for instance.
bool limits_on();
bool set_limits_on(bool on);

} // namespace ferry
