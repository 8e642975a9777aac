// The reference of a proof: which of the CPU's memory stands for that of a CUDA device, and of which.
//
// A storage that a program put on a device carries a mark, and so does what an operator makes of marked tensors: the
// rule by which PyTorch places results on a real device. Operators are observed as a profiler observes them; what
// they compute, and where PyTorch thinks that it lies (the CPU), does not change. A device of CUDA's is named `cpu:N`
// in this process; kUnnumbered is "cuda" without a number.
#ifndef NDEBUG
#define NDEBUG // RecordFunction has a member more without it; PyTorch itself is compiled with it
#endif
#include "reference.h"

#include <ATen/SparseTensorImpl.h>
#include <ATen/record_function.h>
#include <c10/core/StorageImpl.h>
#include <c10/util/SmallVector.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <optional>
#include <unordered_map>

namespace ferry {
namespace {

constexpr int kHost = -1;
constexpr int kNoStorage = -2;
constexpr int kUnnumbered = 127;

thread_local int current_device = 0;

// Storages on other devices than the first. They are held weakly: an address is not used again while it is here.
class OtherDevices {
 public:
  int index(c10::StorageImpl* storage) {
    if (is_empty_) {
      return 0;
    }
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto found = indices_.find(storage);
    return found == indices_.end() ? 0 : found->second.index;
  }

  void set(c10::StorageImpl* storage, int index) {
    if (index <= 0 && is_empty_) {
      return;
    }
    const std::lock_guard<std::mutex> lock(mutex_);
    indices_.erase(storage);
    if (index > 0) {
      indices_.emplace(storage, Entry{Weak::reclaim(storage_reference(storage)), index});
      is_empty_ = false;
      if (indices_.size() > limit_) {
        forget_dead_ones();
      }
    }
  }

 private:
  using Weak = c10::weak_intrusive_ptr<c10::StorageImpl>;
  struct Entry {
    Weak storage;
    int index;
  };

  static c10::StorageImpl* storage_reference(c10::StorageImpl* storage) {
    c10::raw::weak_intrusive_ptr::incref(storage);
    return storage;
  }

  void forget_dead_ones() {
    for (auto entry = indices_.begin(); entry != indices_.end();) {
      entry = entry->second.storage.expired() ? indices_.erase(entry) : std::next(entry);
    }
    limit_ = std::max<size_t>(kFirstLimit, 2 * indices_.size());
  }

  static constexpr size_t kFirstLimit = 4096;
  std::mutex mutex_;
  std::unordered_map<c10::StorageImpl*, Entry> indices_;
  std::atomic<bool> is_empty_{true};
  size_t limit_ = kFirstLimit;
};

OtherDevices& other_devices() {
  static auto* const devices = new OtherDevices(); // never destroyed: tensors outlive the exit of the process
  return *devices;
}

c10::StorageImpl* storage_of(const c10::TensorImpl* tensor) {
  if (tensor == nullptr || !tensor->is_cpu()) {
    return nullptr;
  }
  if (tensor->layout() == at::kSparse) {
    const at::Tensor values = static_cast<const at::SparseTensorImpl*>(tensor)->values();
    return values.defined() ? storage_of(values.unsafeGetTensorImpl()) : nullptr;
  }
  return tensor->has_storage() ? tensor->unsafe_storage().unsafeGetStorageImpl() : nullptr;
}

c10::StorageImpl* storage_of(const at::Tensor& tensor) {
  return tensor.defined() ? storage_of(tensor.unsafeGetTensorImpl()) : nullptr;
}

int place_of(c10::StorageImpl* storage) {
  return storage->received_cuda() ? other_devices().index(storage) : kHost; // a flag that the CPU has no use for
}

void put(c10::StorageImpl* storage, int place) {
  const int index = place == kUnnumbered ? current_device : place;
  storage->set_received_cuda(index != kHost);
  other_devices().set(storage, index);
}

template <typename Visit>
void each_tensor(const c10::IValue& value, const Visit& visit) {
  if (value.isTensor()) {
    visit(value.toTensor());
  } else if (value.isList()) {
    for (const c10::IValue& element : value.toListRef()) {
      if (element.isTensor()) {
        visit(element.toTensor());
      } else if (!element.isNone()) {
        return;
      }
    }
  }
}

// What an operator was given: its tensors' memory, where the first that is on a device is, and the device it was told.
struct Given : at::ObserverContext {
  c10::SmallVector<c10::StorageImpl*, 8> storages;
  int place = kHost;
  std::optional<int> told;

  void add(c10::StorageImpl* storage) {
    if (storage != nullptr) {
      storages.push_back(storage);
      place = place == kHost ? place_of(storage) : place;
    }
  }
};

std::unique_ptr<at::ObserverContext> before(const at::RecordFunction& call) {
  auto given = std::make_unique<Given>();
  for (const c10::IValue& input : call.inputs()) {
    if (input.isDevice()) {
      const c10::Device device = input.toDevice();
      if (device.is_cpu()) {
        given->told = device.has_index() ? device.index() : kHost;
      }
    } else if (input.isStorage()) {
      given->add(input.toStorage().unsafeGetStorageImpl());
    } else {
      each_tensor(input, [&](const at::Tensor& tensor) { given->add(storage_of(tensor)); });
    }
  }
  return given;
}

void after(const at::RecordFunction& call, at::ObserverContext* context) {
  const auto& given = *static_cast<Given*>(context);
  const int place = given.told.value_or(given.place);
  for (const c10::IValue& output : call.outputs()) {
    each_tensor(output, [&](const at::Tensor& tensor) {
      c10::StorageImpl* storage = storage_of(tensor);
      const auto& storages = given.storages;
      if (storage != nullptr && std::find(storages.begin(), storages.end(), storage) == storages.end()) {
        put(storage, place);
      }
    });
  }
}

std::optional<at::CallbackHandle> watching;

} // namespace

void watch_places(bool on) {
  if (on && !watching) {
    watching = at::addGlobalCallback(at::RecordFunctionCallback(before, after)
                                         .needsInputs(true)
                                         .needsOutputs(true)
                                         .scopes({at::RecordScope::FUNCTION}));
  } else if (!on && watching) {
    at::removeCallback(*watching);
    watching.reset();
  }
}

void set_current_place(int64_t index) {
  current_device = static_cast<int>(index);
}

} // namespace ferry

// Called without the dispatcher: asking where a tensor is must not be seen by whoever watches operators.
extern "C" {

C10_EXPORT int ferry_place_of_tensor(void* tensor) {
  c10::StorageImpl* storage = ferry::storage_of(static_cast<c10::TensorImpl*>(tensor));
  return storage == nullptr ? ferry::kNoStorage : ferry::place_of(storage);
}

C10_EXPORT void ferry_put_tensor(void* tensor, int place) {
  c10::StorageImpl* storage = ferry::storage_of(static_cast<c10::TensorImpl*>(tensor));
  if (storage != nullptr) {
    ferry::put(storage, place);
  }
}

C10_EXPORT int ferry_place_of_storage(void* storage) {
  return ferry::place_of(static_cast<c10::StorageImpl*>(storage));
}

C10_EXPORT void ferry_put_storage(void* storage, int place) {
  ferry::put(static_cast<c10::StorageImpl*>(storage), place);
}
}
