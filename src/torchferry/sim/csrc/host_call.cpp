#include "host_call.h"

#include "conversion.h"
#include "device.h"
#include "generator.h"
#include "half_precision.h"
#include "host_view.h"
#include "layouts.h"
#include "narrowing.h"
#include "operators.h"
#include "saturation.h"

#include <ATen/Functions.h>
#include <c10/util/SmallVector.h>

#include <algorithm>
#include <optional>
#include <vector>

namespace ferry {

using at::Tensor;
using c10::IValue;
using torch::jit::Stack;

namespace {

// Above the kernels: what they would add has happened on the device tensors already.
const c10::DispatchKeySet kAboveKernels =
    c10::autograd_dispatch_keyset_with_ADInplaceOrView | c10::autocast_dispatch_keyset;
// The same, but for the layer that counts versions.
const c10::DispatchKeySet kAboveVersions = c10::autograd_dispatch_keyset | c10::autocast_dispatch_keyset;

// What PyTorch says where the CPU has no kernel for a dtype that devices have one for.
bool lacks_half_kernel(const c10::Error& error) {
  const std::string message = error.what_without_backtrace();
  for (const char* dtype : {"'Half'", "'BFloat16'", "'ComplexHalf'"}) {
    if (message.find(std::string("not implemented for ") + dtype) != std::string::npos) {
      return true;
    }
  }
  return false;
}

class HostCall {
 public:
  HostCall(const c10::OperatorHandle& handle, Operator& op, Stack& stack, c10::DispatchKey key)
      : handle_(handle), op_(op), stack_(stack), key_(key), begin_(stack.size() - op.arguments.size()) {}

  void run() {
    find_device();
    move_arguments();
    const bool saturates = is_saturating() && (!op_.moves_data || casts());
    try {
      draw_and_invoke();
    } catch (...) {
      if (op_.writes) {
        follow_written(); // a kernel may have resized out= before it found what is wrong
      }
      throw;
    }
    if (saturates) {
      saturate_results();
    }
    if (op_.writes) {
      follow_written();
    }
    move_returns();
  }

 private:
  struct Pair {
    Tensor device;
    Tensor host;
  };

  template <typename Visit>
  void each_tensor(Visit visit) const {
    for (size_t i = 0; i < op_.arguments.size(); ++i) {
      const IValue& value = stack_[begin_ + i];
      if (op_.arguments[i].kind == ArgumentKind::tensor && value.isTensor()) {
        visit(i, value.toTensor());
      } else if (op_.arguments[i].kind == ArgumentKind::tensor_list && value.isList()) {
        for (const IValue& element : value.toListRef()) {
          if (element.isTensor()) {
            visit(i, element.toTensor());
          }
        }
      }
    }
  }

  // The device of the call is that of its tensors, else the one asked for, else the current one.
  void find_device() {
    bool host_tensors = false;
    each_tensor([&](size_t, const Tensor& tensor) {
      if (is_on_device(tensor)) {
        if (device_ < 0) {
          device_ = tensor.device().index();
        } else if (device_ != tensor.device().index()) {
          host_tensors = true;
        }
      } else if (tensor.defined()) {
        host_tensors = true;
      }
      note_dtype(tensor);
    });
    if (host_tensors && device_ >= 0 && op_.device_check != DeviceCheck::none) {
      check_devices();
    }
  }

  // A Python number comes as a float64 tensor, but has no say in the dtype of a result.
  void note_dtype(const Tensor& tensor) {
    if (tensor.defined() && !tensor.unsafeGetTensorImpl()->is_wrapped_number()) {
      const at::ScalarType dtype = tensor.scalar_type();
      widen_from_ = single_precision_of(dtype).has_value() ? dtype : widen_from_;
      if (dtype == at::kDouble && op_.unlisted_in_double) {
        warn_of_double(op_);
      }
      narrow_from_ = !op_.moves_data && computed_dtype(dtype) != dtype ? dtype : narrow_from_;
    }
  }

  void check_devices() const {
    const c10::Device expected(c10::DeviceType::PrivateUse1, device_);
    each_tensor([&](size_t i, const Tensor& tensor) {
      if (!tensor.defined() || tensor.device() == expected || tensor.unsafeGetTensorImpl()->is_wrapped_number()) {
        return;
      }
      const bool may_join = op_.device_check == DeviceCheck::host_tensors ||
          (op_.device_check == DeviceCheck::host_scalars && tensor.dim() == 0);
      if (may_join && tensor.device().is_cpu()) {
        return;
      }
      TORCH_CHECK(
          false,
          "Expected all tensors to be on the same device, but found at least two devices, ", expected, " and ",
          tensor.device(), "! (when checking argument ", handle_.schema().arguments()[i].name(), " in method ",
          op_.name, ")");
    });
  }

  void move_arguments() {
    for (size_t i = 0; i < op_.arguments.size(); ++i) {
      IValue& value = stack_[begin_ + i];
      switch (op_.arguments[i].kind) {
        case ArgumentKind::tensor:
          if (value.isTensor()) {
            keep_written(i, value);
            move_tensor(value);
          }
          break;
        case ArgumentKind::tensor_list:
          if (value.isList()) {
            keep_written(i, value);
            move_list(value);
          }
          break;
        case ArgumentKind::device:
          move_device(value);
          break;
        case ArgumentKind::generator:
          move_generator(value);
          break;
        default:
          break;
      }
    }
    if (device_ < 0) {
      device_ = current_device();
    }
  }

  void keep_written(size_t i, const IValue& value) {
    if (op_.arguments[i].written) {
      written_.emplace_back(i, value);
    }
  }

  void move_tensor(IValue& value) {
    const Tensor& tensor = value.toTensor();
    if (is_on_device(tensor)) {
      const Tensor host = host_of(tensor);
      value = op_.takes_int32_labels && host.scalar_type() == at::kInt ? host.to(at::kLong) : host;
    }
  }

  // One host view for one device tensor: kernels ask whether out and self are the same tensor.
  Tensor host_of(const Tensor& tensor) {
    constexpr size_t kFew = 8;
    if (op_.writes && pairs_.size() <= kFew) {
      for (const Pair& pair : pairs_) {
        if (pair.device.is_same(tensor)) {
          return pair.host;
        }
      }
    }
    Tensor host = host_view(tensor);
    if (op_.bumps_versions) {
      host.unsafeGetTensorImpl()->set_version_counter(tensor.unsafeGetTensorImpl()->version_counter());
    }
    pairs_.push_back({tensor, host});
    if (key_ != c10::DispatchKey::CPU && is_composed(tensor)) {
      for (auto& [part, host_part] : parts_of(tensor, host)) {
        pairs_.push_back({part, host_part});
      }
    }
    return host;
  }

  void move_list(IValue& value) {
    if (value.isTensorList()) {
      c10::List<Tensor> hosts;
      hosts.reserve(value.toListRef().size());
      for (const IValue& element : value.toListRef()) {
        const Tensor& tensor = element.toTensor();
        hosts.push_back(is_on_device(tensor) ? host_of(tensor) : tensor);
      }
      value = std::move(hosts);
      return;
    }
    c10::List<std::optional<Tensor>> hosts;
    for (const IValue& element : value.toListRef()) {
      if (!element.isTensor()) {
        hosts.push_back(std::nullopt);
      } else {
        const Tensor& tensor = element.toTensor();
        hosts.push_back(is_on_device(tensor) ? host_of(tensor) : tensor);
      }
    }
    value = std::move(hosts);
  }

  void move_device(IValue& value) {
    if (value.isDevice() && value.toDevice().type() == c10::DeviceType::PrivateUse1) {
      const c10::Device asked = value.toDevice();
      device_ = asked.has_index() ? asked.index() : current_device();
      value = c10::Device(c10::DeviceType::CPU);
    }
  }

  void move_generator(IValue& value) {
    if (device_ < 0) {
      device_ = current_device();
    }
    const bool given = !value.isNone() && value.toGenerator().defined();
    value = host_generator(given ? value.toGenerator() : default_generator(device_));
  }

  void draw_and_invoke() {
    if (op_.draws_from_process_wide_generator) {
      LendEngine lend(device_);
      invoke();
    } else {
      invoke();
    }
  }

  void invoke() {
    const HostOnly host_only(op_.bumps_versions ? kAboveVersions : kAboveKernels);
    const Inside inside;
    if (narrow_from_ != at::ScalarType::Undefined) {
      count_narrowed(narrow_from_);
      return invoke_converted(narrow_from_, computed_dtype(narrow_from_));
    }
    if (widen_from_ == at::ScalarType::Undefined) {
      return invoke_plain();
    }
    prepare_half_in_single();
    if (op_.half_in_single) {
      if (const auto conversion = to_single(op_, stack_, begin_)) {
        return invoke_converted(conversion->from, conversion->to);
      }
    }
    invoke_half();
  }

  void invoke_plain() {
    handle_.redispatchBoxed(c10::DispatchKeySet(key_), &stack_);
  }

  void invoke_half() {
    const c10::SmallVector<IValue, 8> arguments(stack_.begin() + static_cast<std::ptrdiff_t>(begin_), stack_.end());
    try {
      invoke_plain();
    } catch (const c10::Error& error) {
      stack_.resize(begin_);
      stack_.insert(stack_.end(), arguments.begin(), arguments.end());
      if (!lacks_half_kernel(error) || !invoke_widened()) {
        throw;
      }
    }
  }

  bool invoke_widened() {
    try {
      invoke_converted(widen_from_, *single_precision_of(widen_from_));
      return true;
    } catch (const c10::Error&) {
      return false; // not a matter of dtype: the first error is the one to show
    }
  }

  void invoke_converted(at::ScalarType from, at::ScalarType to) {
    call_converted(op_, stack_, begin_, {from, to}, [this] { invoke_plain(); });
  }

  // Results of out= may have another geometry, or another memory, than before.
  void follow_written() {
    for (const Pair& pair : pairs_) {
      follow_host_view(pair.device, pair.host);
    }
  }

  bool casts() const {
    return op_.copies && stack_[begin_].toTensor().scalar_type() != stack_[begin_ + 1].toTensor().scalar_type();
  }

  // As cards do that have no infinities. They note an overflow, which the unscaling of gradients asks for.
  void saturate_results() const {
    HostOnly host_only;
    const Inside inside;
    for (size_t i = begin_; i < stack_.size(); ++i) {
      if (stack_[i].isTensor()) {
        saturate(stack_[i].toTensor());
      }
    }
    for (const auto& [i, value] : written_) {
      if (value.isTensorList()) {
        for (const IValue& element : value.toListRef()) {
          saturate(host_view(element.toTensor()));
        }
      }
    }
    if (op_.notes_overflow && take_overflow()) {
      written_[1].second.toTensor().fill_(1);
    }
  }

  void move_returns() {
    for (size_t i = 0; i < op_.returns.size(); ++i) {
      IValue& value = stack_[begin_ + i];
      const int argument = op_.returns[i].argument;
      if (argument >= 0) {
        value = written_argument(argument);
      } else if (op_.packs_sequences && i == 1) {
        continue;
      } else if (value.isTensor()) {
        value = device_of(value.toTensor());
      } else if (value.isTensorList()) {
        c10::List<Tensor> list;
        list.reserve(value.toListRef().size());
        for (const IValue& element : value.toListRef()) {
          list.push_back(device_of(element.toTensor()));
        }
        value = std::move(list);
      }
    }
  }

  IValue written_argument(int argument) const {
    for (const auto& [i, value] : written_) {
      if (static_cast<int>(i) == argument) {
        return value;
      }
    }
    return IValue();
  }

  // A result is one of the arguments, a view of one, or new; also a view of an earlier result.
  Tensor device_of(const Tensor& result) {
    if (!result.defined()) {
      return result;
    }
    if (!result.has_storage() || is_composed(result)) {
      return composed_device_of(result);
    }
    const c10::Storage& storage = result.storage();
    if (storage.use_count() > 1) {
      for (const Pair& pair : pairs_) {
        if (pair.host.is_same(result)) {
          return pair.device;
        }
        if (!is_composed(pair.host) && pair.host.storage().is_alias_of(storage)) {
          return device_view(result, pair.device);
        }
      }
    }
    pairs_.push_back({adopt_host_tensor(result, device_), result});
    return pairs_.back().device;
  }

  Tensor composed_device_of(const Tensor& result) const {
    for (const Pair& pair : pairs_) {
      if (pair.host.is_same(result)) {
        return pair.device;
      }
    }
    return adopt_host_tensor(result, device_);
  }

  const c10::OperatorHandle& handle_;
  Operator& op_;
  Stack& stack_;
  const c10::DispatchKey key_;
  const size_t begin_;
  c10::DeviceIndex device_ = -1;
  at::ScalarType widen_from_ = at::ScalarType::Undefined;
  at::ScalarType narrow_from_ = at::ScalarType::Undefined;
  c10::SmallVector<Pair, 6> pairs_;
  c10::SmallVector<std::pair<size_t, IValue>, 2> written_;
};

} // namespace

HostOnly::HostOnly() : HostOnly(kAboveKernels) {}

HostOnly::HostOnly(c10::DispatchKeySet left_out) : guard_(left_out) {}

Inside::Inside() {
  if (at::getStepCallbacksUnlessEmpty(at::RecordScope::FUNCTION).has_value()) {
    unseen_.emplace();
  }
}

void call_on_host(const c10::OperatorHandle& handle, c10::DispatchKeySet, Stack* stack) {
  Operator& op = operator_of(handle);
  const Passage passage(op);
  TORCH_CHECK_NOT_IMPLEMENTED(
      op.has_host_kernel, "Could not run '", op.name, "' on the simulated device: PyTorch has no CPU kernel for it.");
  HostCall(handle, op, *stack, c10::DispatchKey::CPU).run();
}

void call_host_kernel(const c10::OperatorHandle& handle, Stack* stack, c10::DispatchKey key) {
  Operator& op = operator_of(handle);
  TORCH_CHECK_NOT_IMPLEMENTED(
      handle.hasComputedKernelForDispatchKey(key),
      "Could not run '", op.name, "' on the simulated device: PyTorch has no ", key, " kernel for it.");
  HostCall(handle, op, *stack, key).run();
}

} // namespace ferry
