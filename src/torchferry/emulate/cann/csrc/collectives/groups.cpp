// HcclGroupStart and HcclGroupEnd: what a thread asks for in between is done at the end, side by side.
#include "entries.h"
#include "errors.h"
#include "submission.h"

#include <exception>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

namespace collectives {
namespace {

struct Batch {
  Handle communicator;
  aclrtStream stream;
  std::vector<Transfer> transfers;
};

struct Group {
  int depth = 0;
  std::vector<std::function<void()>> creations;
  std::vector<Batch> batches;
};

Group& group() {
  thread_local Group own;
  return own;
}

// Each waits for the others: in threads of their own. Throws the first refusal.
void create_all(const std::vector<std::function<void()>>& creations) {
  std::mutex mutex;
  std::optional<Refusal> refusal;
  std::vector<std::thread> threads;
  for (const auto& creation : creations) {
    threads.emplace_back([&] {
      try {
        creation();
      } catch (const Refusal& thrown) {
        const std::lock_guard lock(mutex);
        refusal = refusal ? refusal : thrown;
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  if (refusal) {
    throw Refusal(*refusal);
  }
}

void end_group() {
  Group& own = group();
  if (own.depth == 0) {
    throw bad_argument(HCCL_E_PARA, "HcclGroupEnd", "0", "group depth", "a call of HcclGroupStart before");
  }
  if (--own.depth > 0) {
    return;
  }
  const auto creations = std::exchange(own.creations, {});
  const auto batches = std::exchange(own.batches, {});
  create_all(creations);
  for (const Batch& batch : batches) {
    submit(batch.communicator, batch.stream, batch.transfers);
  }
}

} // namespace

bool in_group() {
  return group().depth > 0;
}

void defer_creation(std::function<void()> creation) {
  group().creations.push_back(std::move(creation));
}

void defer_transfer(const Handle& communicator, aclrtStream stream, const Transfer& transfer) {
  for (Batch& batch : group().batches) {
    if (batch.communicator == communicator && batch.stream == stream) {
      batch.transfers.push_back(transfer);
      return;
    }
  }
  group().batches.push_back({communicator, stream, {transfer}});
}

} // namespace collectives

using namespace collectives;

extern "C" {

HcclResult HcclGroupStart() {
  ++group().depth;
  return HCCL_SUCCESS;
}

HcclResult HcclGroupEnd() {
  return guarded(end_group);
}

HcclResult HcclGroupStatusGet(bool* is_in_group) {
  return guarded([&] {
    if (is_in_group == nullptr) {
      throw null_pointer("HcclGroupStatusGet", "isGroupEnabled");
    }
    *is_in_group = in_group();
  });
}

} // extern "C"
