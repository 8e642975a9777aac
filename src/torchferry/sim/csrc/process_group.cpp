// Process groups of the simulated devices: Gloo's collectives on the bytes of the device tensors.
#include "collective_tensors.h"
#include "collective_work.h"
#include "host_call.h"
#include "wording.h"

#include <ATen/Functions.h>
#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/GroupRegistry.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <torch/library.h>
#include <torch/version.h>

#include <algorithm>
#include <chrono>
#include <future>
#include <memory>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <unordered_set>

namespace ferry {
namespace {

using at::Tensor;
using c10d::OpType;
using Tensors = std::vector<Tensor>;

// How many bytes go to or come from each rank: splits are counted in rows of the first dimension.
std::vector<int64_t> bytes_of_splits(const std::vector<int64_t>& splits, const Tensor& tensor, int ranks) {
  c10d::checkSplitSizes(splits, tensor, ranks);
  const int64_t bytes = static_cast<int64_t>(tensor.nbytes());
  if (splits.empty()) {
    return std::vector<int64_t>(ranks, bytes / ranks);
  }
  const int64_t row = tensor.size(0) == 0 ? 0 : bytes / tensor.size(0);
  std::vector<int64_t> sizes(splits);
  for (int64_t& size : sizes) {
    size *= row;
  }
  return sizes;
}

std::vector<int64_t> lengths(const Tensors& flat) {
  std::vector<int64_t> lengths;
  for (const Tensor& tensor : flat) {
    lengths.push_back(tensor.numel());
  }
  return lengths;
}

bool all_as_long(const Tensors& tensors, const Tensor& as) {
  return std::all_of(
      tensors.begin(), tensors.end(), [&](const Tensor& tensor) { return tensor.nbytes() == as.nbytes(); });
}

constexpr std::chrono::milliseconds kLongestEnd(200); // it takes a few

// The vendor's library has no reduction of these dtypes; set once, before there are groups.
std::map<at::ScalarType, std::string>& refused_reductions() {
  static std::map<at::ScalarType, std::string> refused;
  return refused;
}

void check_reduction(at::ScalarType dtype) {
  const auto found = refused_reductions().find(dtype);
  TORCH_CHECK(
      found == refused_reductions().end(), fill_in(found->second, {{"dtype", c10::toString(dtype)}}));
}

class DeviceGroup;

// The groups that live, and those that are ending. Never destroyed: threads may outlive the static objects.
struct Groups {
  std::mutex lock;
  std::unordered_set<DeviceGroup*> living;
  std::vector<std::shared_future<void>> endings;
};

Groups& groups() {
  static Groups* const all = new Groups;
  return *all;
}

// Gloo waits for its threads to end. One of them may still let go of a tensor, and need Python for that, which older
// releases of PyTorch hold while a group ends: so the wait is in a thread of its own.
std::shared_future<void> end_aside(c10::intrusive_ptr<c10d::Backend> host) {
  auto ended = std::make_shared<std::promise<void>>();
  std::shared_future<void> end = ended->get_future().share();
  {
    std::lock_guard<std::mutex> guard(groups().lock);
    auto& endings = groups().endings;
    const auto is_over = [](const auto& other) {
      return other.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
    };
    endings.erase(std::remove_if(endings.begin(), endings.end(), is_over), endings.end());
    endings.push_back(end);
  }
  std::thread([host = std::move(host), ended]() mutable {
    host.reset();
    ended->set_value();
  }).detach();
  return end;
}

// Functions that are virtual in some releases only carry no `override`.
class DeviceGroup final : public c10d::Backend {
 public:
  DeviceGroup(c10::intrusive_ptr<c10d::Backend> host, std::string name)
      : c10d::Backend(host->getRank(), host->getSize()), host_(std::move(host)), name_(std::move(name)) {
    std::lock_guard<std::mutex> guard(groups().lock);
    groups().living.insert(this);
  }

  ~DeviceGroup() {
    {
      std::lock_guard<std::mutex> guard(groups().lock);
      groups().living.erase(this);
    }
    if (host_) {
      end_aside(std::move(host_)).wait_for(kLongestEnd);
    }
  }

  c10::intrusive_ptr<c10d::Backend> take_host() {
    return std::move(host_);
  }

  const std::string getBackendName() const {
    return name_;
  }

  bool supportsCoalescing() const {
    return true;
  }

  void startCoalescing() {
    coalesced_.emplace();
  }

  WorkPtr endCoalescing() {
    TORCH_CHECK(coalesced_.has_value(), "endCoalescing() without startCoalescing()");
    Coalesced all = std::move(*coalesced_);
    coalesced_.reset();
    return waited_work(rank_, OpType::COALESCED, std::move(all.outputs), std::move(all.works));
  }

#if TORCH_VERSION_MAJOR > 2 || TORCH_VERSION_MINOR >= 9
  c10::intrusive_ptr<Options> getBackendOptions() {
    return host()->getBackendOptions();
  }

  void setTimeout(std::chrono::milliseconds timeout) {
    host()->setTimeout(timeout);
  }
#endif

  void setSequenceNumberForGroup() {
    host()->setSequenceNumberForGroup();
  }

  uint64_t getSequenceNumberForGroup() {
    return host()->getSequenceNumberForGroup();
  }

  WorkPtr broadcast(Tensors& tensors, const c10d::BroadcastOptions& options) {
    HostOnly host_only;
    Tensors bytes{flat_bytes(only(tensors))};
    return launched(OpType::BROADCAST, tensors, {{host()->broadcast(bytes, options)}, {}});
  }

  WorkPtr allreduce(Tensors& tensors, const c10d::AllreduceOptions& options) {
    HostOnly host_only;
    return launched(OpType::ALLREDUCE, tensors, reduced_everywhere(in_place(only(tensors), options.reduceOp), options));
  }

  WorkPtr allreduce_coalesced(Tensors& tensors, const c10d::AllreduceCoalescedOptions& options) {
    HostOnly host_only;
    HostWork all;
    for (const Tensor& tensor : tensors) {
      all.add(reduced_everywhere(in_place(tensor, options.reduceOp), options));
    }
    return launched(OpType::ALLREDUCE_COALESCED, tensors, std::move(all));
  }

  WorkPtr reduce(Tensors& tensors, const c10d::ReduceOptions& options) {
    HostOnly host_only;
    const Tensor& tensor = only(tensors);
    // Gloo leaves sums of some ranks behind in the tensors of the others; on devices those stay as they are.
    const bool receives = options.rootRank == rank_;
    Reduction reduction = receives ? in_place(tensor, options.reduceOp)
                                   : aside(flat_host_view(tensor), Tensor(), 0, options.reduceOp);
    c10d::ReduceOptions on_host = options;
    on_host.reduceOp = reduction.op;
    Tensors buffer{reduction.buffer};
    return launched(OpType::REDUCE, tensors, {{host()->reduce(buffer, on_host)}, {reduction.deliver}});
  }

  WorkPtr allgather(std::vector<Tensors>& outputs, Tensors& inputs, const c10d::AllgatherOptions& options) {
    HostOnly host_only;
    const Tensor& input = only(inputs);
    const Tensors& gathered = list_of_every_rank(outputs);
    HostWork host = all_as_long(gathered, input) ? gathered_alike(gathered, input, options)
                                                 : gathered_by_broadcasts(gathered, input, options);
    return launched(OpType::ALLGATHER, gathered, std::move(host));
  }

  WorkPtr _allgather_base(Tensor& output, Tensor& input, const c10d::AllgatherOptions& options) {
    HostOnly host_only;
    return launched(OpType::_ALLGATHER_BASE, {output}, gathered_flat(output, input, options));
  }

  WorkPtr allgather_into_tensor_coalesced(
      Tensors& outputs,
      Tensors& inputs,
      const c10d::AllgatherOptions& options) {
    HostOnly host_only;
    TORCH_CHECK(outputs.size() == inputs.size(), "there must be as many outputs as inputs");
    HostWork all;
    for (size_t i = 0; i < inputs.size(); ++i) {
      all.add(gathered_flat(outputs[i], inputs[i], options));
    }
    return launched(OpType::COALESCED, outputs, std::move(all));
  }

  WorkPtr gather(std::vector<Tensors>& outputs, Tensors& inputs, const c10d::GatherOptions& options) {
    HostOnly host_only;
    Tensors from{flat_bytes(only(inputs))};
    std::vector<Tensors> to;
    Tensors gathered;
    if (options.rootRank == rank_) {
      gathered = list_of_every_rank(outputs);
      TORCH_CHECK(all_as_long(gathered, inputs[0]), "the tensors of a gather must have the same size");
      to.push_back(flat_bytes(gathered));
    } else {
      TORCH_CHECK(outputs.empty(), "requires empty output on non-root");
    }
    return launched(OpType::GATHER, gathered, {{host()->gather(to, from, options)}, {}});
  }

  WorkPtr scatter(Tensors& outputs, std::vector<Tensors>& inputs, const c10d::ScatterOptions& options) {
    HostOnly host_only;
    Tensors to{flat_bytes(only(outputs))};
    std::vector<Tensors> from;
    if (options.rootRank == rank_) {
      TORCH_CHECK(
          all_as_long(list_of_every_rank(inputs), outputs[0]), "the tensors of a scatter must have the same size");
      from.push_back(flat_bytes(inputs[0]));
    } else {
      TORCH_CHECK(inputs.empty(), "requires empty input on non-root");
    }
    return launched(OpType::SCATTER, outputs, {{host()->scatter(to, from, options)}, {}});
  }

  WorkPtr reduce_scatter(
      Tensors& outputs,
      std::vector<Tensors>& inputs,
      const c10d::ReduceScatterOptions& options) {
    HostOnly host_only;
    const Tensor& output = only(outputs);
    Tensors flat;
    int64_t begin = 0;
    for (const Tensor& input : list_of_every_rank(inputs)) {
      if (flat.size() < static_cast<size_t>(rank_)) {
        begin += input.numel();
      }
      flat.push_back(flat_host_view(input));
    }
    TORCH_CHECK(flat[rank_].numel() == output.numel(), "the output of a reduce_scatter must be as large as its part");
    return launched(OpType::REDUCE_SCATTER, outputs, reduced_part(at::cat(flat), output, begin, options));
  }

  WorkPtr _reduce_scatter_base(Tensor& output, Tensor& input, const c10d::ReduceScatterOptions& options) {
    HostOnly host_only;
    return launched(OpType::_REDUCE_SCATTER_BASE, {output}, reduced_flat(output, input, options));
  }

  WorkPtr reduce_scatter_tensor_coalesced(
      Tensors& outputs,
      Tensors& inputs,
      const c10d::ReduceScatterOptions& options) {
    HostOnly host_only;
    TORCH_CHECK(outputs.size() == inputs.size(), "there must be as many outputs as inputs");
    HostWork all;
    for (size_t i = 0; i < inputs.size(); ++i) {
      all.add(reduced_flat(outputs[i], inputs[i], options));
    }
    return launched(OpType::COALESCED, outputs, std::move(all));
  }

  WorkPtr alltoall_base(
      Tensor& output,
      Tensor& input,
      std::vector<int64_t>& output_splits,
      std::vector<int64_t>& input_splits,
      const c10d::AllToAllOptions& options) {
    HostOnly host_only;
    TORCH_CHECK(output.scalar_type() == input.scalar_type(), "Tensors must have identical type");
    std::vector<int64_t> received = bytes_of_splits(output_splits, output, size_);
    std::vector<int64_t> sent = bytes_of_splits(input_splits, input, size_);
    Tensor to = flat_bytes(output);
    Tensor from = flat_bytes(input);
    return launched(OpType::ALLTOALL_BASE, {output}, {{host()->alltoall_base(to, from, received, sent, options)}, {}});
  }

  WorkPtr alltoall(Tensors& outputs, Tensors& inputs, const c10d::AllToAllOptions& options) {
    HostOnly host_only;
    TORCH_CHECK(
        outputs.size() == static_cast<size_t>(size_) && inputs.size() == outputs.size(),
        "alltoall needs a tensor for each rank on both sides");
    const Tensors to = flat_bytes(outputs);
    const Tensors from = flat_bytes(inputs);
    std::vector<int64_t> received = lengths(to);
    std::vector<int64_t> sent = lengths(from);
    Tensor all_sent = at::cat(from);
    Tensor all_received = at::empty({c10::sum_integers(received)}, at::kByte);
    const auto hand_out = [to, received, all_received] {
      const Tensors parts = all_received.split_with_sizes(received);
      for (size_t i = 0; i < to.size(); ++i) {
        to[i].copy_(parts[i]);
      }
    };
    WorkPtr part = host()->alltoall_base(all_received, all_sent, received, sent, options);
    return launched(OpType::ALLTOALL, outputs, {{part}, {hand_out}});
  }

  WorkPtr send(Tensors& tensors, int to_rank, int tag) {
    HostOnly host_only;
    Tensors bytes{flat_bytes(only(tensors))};
    return transferred(OpType::SEND, tensors, host()->send(bytes, to_rank, tag));
  }

  WorkPtr recv(Tensors& tensors, int from_rank, int tag) {
    HostOnly host_only;
    Tensors bytes{flat_bytes(only(tensors))};
    return transferred(OpType::RECV, tensors, host()->recv(bytes, from_rank, tag));
  }

  WorkPtr recvAnysource(Tensors& tensors, int tag) {
    HostOnly host_only;
    Tensors bytes{flat_bytes(only(tensors))};
    return transferred(OpType::RECVANYSOURCE, tensors, host()->recvAnysource(bytes, tag));
  }

  WorkPtr barrier(const c10d::BarrierOptions& options) {
    return launched(OpType::BARRIER, {}, {{host()->barrier(options)}, {}});
  }

 private:
  struct Coalesced {
    std::vector<WorkPtr> works;
    Tensors outputs;
  };

  WorkPtr launched(OpType type, const Tensors& outputs, HostWork host) {
    return noted(collective_work(rank_, type, outputs, std::move(host)), outputs);
  }

  WorkPtr transferred(OpType type, const Tensors& tensors, WorkPtr part) {
    return noted(waited_work(rank_, type, tensors, {std::move(part)}), tensors);
  }

  WorkPtr noted(WorkPtr work, const Tensors& outputs) {
    if (coalesced_.has_value()) {
      coalesced_->works.push_back(work);
      coalesced_->outputs.insert(coalesced_->outputs.end(), outputs.begin(), outputs.end());
    }
    return work;
  }

  const Tensors& list_of_every_rank(const std::vector<Tensors>& lists) const {
    TORCH_CHECK(
        lists.size() == 1 && lists[0].size() == static_cast<size_t>(size_),
        "expected one list with a tensor for each of the ", size_, " ranks");
    return lists[0];
  }

  Reduction in_place(const Tensor& tensor, const c10d::ReduceOp& op) const {
    check_reduction(tensor.scalar_type());
    return reduction_in_place(tensor, {op, size_, name_});
  }

  Reduction aside(const Tensor& flat, const Tensor& target, int64_t begin, const c10d::ReduceOp& op) const {
    check_reduction(flat.scalar_type());
    return reduction_aside(flat, target, begin, {op, size_, name_});
  }

  HostWork reduced_everywhere(const Reduction& reduction, const c10d::AllreduceOptions& options) {
    c10d::AllreduceOptions on_host = options;
    on_host.reduceOp = reduction.op;
    Tensors buffer{reduction.buffer};
    return {{host()->allreduce(buffer, on_host)}, {reduction.deliver}};
  }

  // Gloo can't do this in every release; adding up everything gives the same numbers.
  HostWork reduced_part(
      const Tensor& flat,
      const Tensor& output,
      int64_t begin,
      const c10d::ReduceScatterOptions& options) {
    TORCH_CHECK(flat.scalar_type() == output.scalar_type(), "Tensors must have identical type");
    c10d::AllreduceOptions everywhere;
    everywhere.timeout = options.timeout;
    return reduced_everywhere(aside(flat, output, begin, options.reduceOp), everywhere);
  }

  HostWork reduced_flat(const Tensor& output, const Tensor& input, const c10d::ReduceScatterOptions& options) {
    TORCH_CHECK(
        input.numel() == output.numel() * size_,
        "input tensor must be the same size as output size times world size");
    return reduced_part(flat_host_view(input), output, output.numel() * rank_, options);
  }

  HostWork gathered_flat(const Tensor& output, const Tensor& input, const c10d::AllgatherOptions& options) {
    TORCH_CHECK(output.scalar_type() == input.scalar_type(), "output tensor must have the same type as input tensor");
    TORCH_CHECK(
        output.numel() == input.numel() * size_,
        "output tensor size must be equal to world_size times input tensor size");
    Tensor to = flat_bytes(output);
    Tensor from = flat_bytes(input);
    return {{host()->_allgather_base(to, from, options)}, {}};
  }

  HostWork gathered_alike(const Tensors& outputs, const Tensor& input, const c10d::AllgatherOptions& options) {
    std::vector<Tensors> to{flat_bytes(outputs)};
    Tensors from{flat_bytes(input)};
    return {{host()->allgather(to, from, options)}, {}};
  }

  // Tensors of different sizes: each rank sends its own to all.
  HostWork gathered_by_broadcasts(const Tensors& outputs, const Tensor& input, const c10d::AllgatherOptions& options) {
    Tensors to = flat_bytes(outputs);
    to[rank_].copy_(flat_bytes(input));
    HostWork all;
    for (int root = 0; root < size_; ++root) {
      c10d::BroadcastOptions from_root;
      from_root.rootRank = root;
      from_root.timeout = options.timeout;
      Tensors one{to[root]};
      all.parts.push_back(host()->broadcast(one, from_root));
    }
    return all;
  }

  const c10::intrusive_ptr<c10d::Backend>& host() const {
    TORCH_CHECK(host_, "the process group has ended with the program");
    return host_;
  }

  c10::intrusive_ptr<c10d::Backend> host_;
  std::string name_;
  std::optional<Coalesced> coalesced_; // between startCoalescing() and endCoalescing()
};

// The group of that name has a backend for the host; it gets one for the device that works through it.
void add_device_backend(const std::string& group_name, std::string backend_name) {
  const auto group = c10d::resolve_process_group(group_name);
  group->setBackend(
      c10::DeviceType::PrivateUse1,
      c10d::ProcessGroup::BackendType::CUSTOM,
      c10::make_intrusive<DeviceGroup>(group->getBackend(c10::DeviceType::CPU), std::move(backend_name)));
}

// A thread of Gloo that is the last to hold a tensor's Python object while Python goes away ends the process with an
// error. So all groups end before, as far as they can: one may wait for a rank that is no more.
void end_groups(int64_t milliseconds) {
  std::vector<c10::intrusive_ptr<c10d::Backend>> hosts;
  {
    std::lock_guard<std::mutex> guard(groups().lock);
    for (DeviceGroup* group : groups().living) {
      hosts.push_back(group->take_host());
    }
  }
  for (auto& host : hosts) {
    if (host) {
      end_aside(std::move(host));
    }
  }
  std::unique_lock<std::mutex> guard(groups().lock);
  const std::vector<std::shared_future<void>> endings = std::move(groups().endings);
  guard.unlock();
  const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(milliseconds);
  for (const auto& end : endings) {
    end.wait_until(until);
  }
}

TORCH_LIBRARY_FRAGMENT(torchferry_sim, m) {
  m.def("refuse_reduction(ScalarType dtype, str message) -> ()", [](at::ScalarType dtype, std::string message) {
    refused_reductions()[dtype] = std::move(message);
  });
  m.def("end_groups(int milliseconds) -> ()", &end_groups);
  m.def("add_device_backend(str group_name, str backend_name) -> ()", [](std::string group, std::string backend) {
    add_device_backend(group, std::move(backend));
  });
}

} // namespace
} // namespace ferry
