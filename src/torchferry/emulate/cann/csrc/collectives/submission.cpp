#include "submission.h"

#include "../profiling/recording.h"

#include <numeric>

namespace collectives {
namespace {

// Details: group|rank|ranks|elements|type|bytes|other ranks of messages.
cann::Task task(const Communicator& communicator, const std::string& name, uint64_t count, HcclDataType type, const std::string& peers) {
  const std::string details = communicator.settings().name + "|" + std::to_string(communicator.rank()) + "|" + std::to_string(communicator.ranks()) +
      "|" + std::to_string(count) + "|" + name_of(type) + "|" + std::to_string(count * bytes_of(type)) + "|" + peers;
  return {"COMMUNICATION", name, details};
}

cann::Task described(const Communicator& communicator, const Operation& operation) {
  const auto& sent = operation.sent.counts;
  const uint64_t count = sent.empty() ? operation.count : std::accumulate(sent.begin(), sent.end(), uint64_t{0});
  return task(communicator, name_of(operation.kind), count, operation.type, "");
}

cann::Task described(const Communicator& communicator, const std::vector<Transfer>& transfers) {
  uint64_t count = 0;
  std::string peers;
  for (const Transfer& transfer : transfers) {
    count += transfer.count;
    peers += (peers.empty() ? "" : ",") + std::to_string(transfer.peer);
  }
  const std::string name = transfers.size() == 1 ? name_of(transfers.front().kind) : "HcclBatchSendRecv";
  return task(communicator, name, count, transfers.front().type, peers);
}

template <typename Done>
void submit_any(const Handle& communicator, aclrtStream handle, Done done) {
  cann::Stream& stream = cann::stream_of(handle);
  const auto describe = [&] { return described(*communicator, done); };
  stream.push(cann::told_to_profiler(stream, describe, [communicator, done] { run(*communicator, done); }));
}

} // namespace

void submit(const Handle& communicator, aclrtStream stream, Operation operation) {
  submit_any(communicator, stream, std::move(operation));
}

void submit(const Handle& communicator, aclrtStream stream, std::vector<Transfer> transfers) {
  submit_any(communicator, stream, std::move(transfers));
}

} // namespace collectives
