// The functions of HCCL that move data: they check, put the work on the stream and return.
#include "entries.h"

#include "collectives.h"
#include "errors.h"
#include "submission.h"

#include <numeric>

namespace collectives {
namespace {

void expect_pointer(const void* pointer, Kind kind, const char* parameter) {
  if (pointer == nullptr) {
    throw null_pointer(name_of(kind), parameter);
  }
}

void expect_rank(const Communicator& communicator, uint32_t rank, Kind kind, const char* parameter) {
  if (rank >= communicator.ranks()) {
    throw bad_argument(
        HCCL_E_PARA, name_of(kind), std::to_string(rank), parameter, "a rank of the communicator, less than " + std::to_string(communicator.ranks()));
  }
}

void check_kind(const Operation& operation) {
  switch (operation.kind) {
    case Kind::all_reduce:
    case Kind::reduce:
    case Kind::reduce_scatter:
      return check_reduction(operation.kind, operation.type, operation.op);
    default:
      return check_type(operation.kind, operation.type);
  }
}

void check_buffers(const Communicator& communicator, const Operation& operation) {
  const bool is_root = communicator.rank() == operation.root;
  if (operation.kind != Kind::broadcast && (operation.kind != Kind::scatter || is_root)) {
    expect_pointer(operation.input, operation.kind, "sendBuf");
  }
  if (operation.kind != Kind::reduce || is_root) {
    expect_pointer(operation.output, operation.kind, operation.kind == Kind::broadcast ? "buf" : "recvBuf");
  }
}

// As the documentation has it, nothing at all is done with 0 elements.
HcclResult collective(HcclComm comm, aclrtStream stream, const Operation& operation) {
  return guarded([&] {
    check_kind(operation);
    if (operation.count == 0) {
      return;
    }
    const Handle communicator = open(comm, name_of(operation.kind));
    check_buffers(*communicator, operation);
    expect_rank(*communicator, operation.root, operation.kind, "root");
    expect_usable(*communicator);
    submit(communicator, stream, operation);
  });
}

std::vector<uint64_t> copied(const void* values, uint32_t count, Kind kind, const char* parameter) {
  expect_pointer(values, kind, parameter);
  const auto* first = static_cast<const uint64_t*>(values);
  return {first, first + count};
}

// Counts and offsets of all ranks, whose arrays the caller may free at once.
Parts parts_of(const Communicator& communicator, Kind kind, const void* counts, const char* counts_name, const void* offsets, const char* offsets_name) {
  return {copied(counts, communicator.ranks(), kind, counts_name), copied(offsets, communicator.ranks(), kind, offsets_name)};
}

uint64_t total(const Parts& parts) {
  return std::accumulate(parts.counts.begin(), parts.counts.end(), uint64_t{0});
}

Parts one_after_another(std::vector<uint64_t> counts) {
  Parts parts{std::move(counts), {0}};
  for (size_t rank = 0; rank + 1 < parts.counts.size(); ++rank) {
    parts.offsets.push_back(parts.offsets.back() + parts.counts[rank]);
  }
  return parts;
}

void expect_own_count(const Communicator& communicator, Kind kind, const Parts& parts, uint64_t count, const char* parameter) {
  const uint64_t named = parts.counts[communicator.rank()];
  if (named != count) {
    throw bad_argument(HCCL_E_PARA, name_of(kind), std::to_string(count), parameter, std::to_string(named) + ", as the counts have it for this rank");
  }
}

// Where no element is moved at all, the caller's pointers may be null.
void submit_exchange(const Handle& communicator, aclrtStream stream, const Operation& operation) {
  if (total(operation.sent) > 0) {
    expect_pointer(operation.input, operation.kind, "sendBuf");
  }
  if (total(operation.received) > 0) {
    expect_pointer(operation.output, operation.kind, "recvBuf");
  }
  if (operation.input != nullptr && operation.input == operation.output) {
    throw bad_argument(HCCL_E_PARA, name_of(operation.kind), "sendBuf", "recvBuf", "another address than that of sendBuf");
  }
  expect_usable(*communicator);
  submit(communicator, stream, operation);
}

void expect_same_type(Kind kind, HcclDataType sent, HcclDataType received) {
  check_type(kind, sent);
  if (sent != received) {
    throw bad_argument(HCCL_E_PARA, name_of(kind), name_of(received), "recvType", "the sendType " + name_of(sent));
  }
}

HcclResult transfer(HcclComm comm, aclrtStream stream, const Transfer& transfer) {
  return guarded([&] {
    const bool sends = transfer.kind == Kind::send;
    check_type(transfer.kind, transfer.type);
    if (transfer.count == 0) {
      return;
    }
    const Handle communicator = open(comm, name_of(transfer.kind));
    expect_pointer(transfer.data, transfer.kind, sends ? "sendBuf" : "recvBuf");
    expect_rank(*communicator, transfer.peer, transfer.kind, sends ? "destRank" : "srcRank");
    expect_usable(*communicator);
    if (in_group()) {
      defer_transfer(communicator, stream, transfer);
      return;
    }
    submit(communicator, stream, std::vector{transfer});
  });
}

Transfer transfer_of(const HcclSendRecvItem& item) {
  if (item.sendRecvType != HCCL_SEND && item.sendRecvType != HCCL_RECV) {
    throw bad_argument(HCCL_E_PARA, "HcclBatchSendRecv", std::to_string(item.sendRecvType), "sendRecvType", "HCCL_SEND, HCCL_RECV");
  }
  const Kind kind = item.sendRecvType == HCCL_SEND ? Kind::send : Kind::receive;
  check_type(kind, item.dataType);
  return {kind, item.buf, item.count, item.dataType, item.remoteRank};
}

} // namespace
} // namespace collectives

using namespace collectives;

extern "C" {

HcclResult HcclAllReduce(void* input, void* output, uint64_t count, HcclDataType type, HcclReduceOp op, HcclComm comm, aclrtStream stream) {
  return collective(comm, stream, {.kind = Kind::all_reduce, .input = input, .output = output, .count = count, .type = type, .op = op});
}

HcclResult HcclReduce(
    void* input, void* output, uint64_t count, HcclDataType type, HcclReduceOp op, uint32_t root, HcclComm comm, aclrtStream stream) {
  return collective(
      comm, stream, {.kind = Kind::reduce, .input = input, .output = output, .count = count, .type = type, .op = op, .root = root});
}

HcclResult HcclReduceScatter(
    void* input, void* output, uint64_t count, HcclDataType type, HcclReduceOp op, HcclComm comm, aclrtStream stream) {
  return collective(comm, stream, {.kind = Kind::reduce_scatter, .input = input, .output = output, .count = count, .type = type, .op = op});
}

HcclResult HcclReduceScatterV(
    void* input,
    const void* counts,
    const void* offsets,
    void* output,
    uint64_t count,
    HcclDataType type,
    HcclReduceOp op,
    HcclComm comm,
    aclrtStream stream) {
  return guarded([&] {
    constexpr Kind kind = Kind::reduce_scatter_v;
    check_reduction(kind, type, op);
    const Handle communicator = open(comm, name_of(kind));
    Operation operation{.kind = kind, .input = input, .output = output, .count = count, .type = type, .op = op};
    operation.sent = parts_of(*communicator, kind, counts, "sendCounts", offsets, "sendDispls");
    expect_own_count(*communicator, kind, operation.sent, count, "recvCount");
    expect_pointer(input, kind, "sendBuf");
    if (count > 0) {
      expect_pointer(output, kind, "recvBuf");
    }
    expect_usable(*communicator);
    submit(communicator, stream, operation);
  });
}

HcclResult HcclBroadcast(void* buffer, uint64_t count, HcclDataType type, uint32_t root, HcclComm comm, aclrtStream stream) {
  return collective(comm, stream, {.kind = Kind::broadcast, .output = buffer, .count = count, .type = type, .root = root});
}

HcclResult HcclScatter(
    void* input, void* output, uint64_t count, HcclDataType type, uint32_t root, HcclComm comm, aclrtStream stream) {
  return collective(
      comm, stream, {.kind = Kind::scatter, .input = input, .output = output, .count = count, .type = type, .root = root});
}

HcclResult HcclAllGather(void* input, void* output, uint64_t count, HcclDataType type, HcclComm comm, aclrtStream stream) {
  return collective(comm, stream, {.kind = Kind::all_gather, .input = input, .output = output, .count = count, .type = type});
}

HcclResult HcclAllGatherV(
    void* input,
    uint64_t count,
    void* output,
    const void* counts,
    const void* offsets,
    HcclDataType type,
    HcclComm comm,
    aclrtStream stream) {
  return guarded([&] {
    constexpr Kind kind = Kind::all_gather_v;
    check_type(kind, type);
    const Handle communicator = open(comm, name_of(kind));
    Operation operation{.kind = kind, .input = input, .output = output, .count = count, .type = type};
    operation.received = parts_of(*communicator, kind, counts, "recvCounts", offsets, "recvDispls");
    expect_own_count(*communicator, kind, operation.received, count, "sendCount");
    if (count > 0) {
      expect_pointer(input, kind, "sendBuf");
    }
    expect_pointer(output, kind, "recvBuf");
    expect_usable(*communicator);
    submit(communicator, stream, operation);
  });
}

HcclResult HcclAlltoAll(
    const void* input,
    uint64_t count,
    HcclDataType type,
    const void* output,
    uint64_t received,
    HcclDataType received_type,
    HcclComm comm,
    aclrtStream stream) {
  constexpr Kind kind = Kind::all_to_all;
  const HcclResult checked = guarded([&] {
    expect_same_type(kind, type, received_type);
    if (count != received) {
      throw bad_argument(HCCL_E_PARA, name_of(kind), std::to_string(received), "recvCount", "the sendCount " + std::to_string(count));
    }
    if (count > 0 && input == output) {
      throw bad_argument(HCCL_E_PARA, name_of(kind), "sendBuf", "recvBuf", "another address than that of sendBuf");
    }
  });
  if (checked != HCCL_SUCCESS) {
    return checked;
  }
  return collective(comm, stream, {.kind = kind, .input = input, .output = const_cast<void*>(output), .count = count, .type = type});
}

HcclResult HcclAlltoAllV(
    const void* input,
    const void* sent,
    const void* sent_offsets,
    HcclDataType type,
    const void* output,
    const void* received,
    const void* received_offsets,
    HcclDataType received_type,
    HcclComm comm,
    aclrtStream stream) {
  return guarded([&] {
    constexpr Kind kind = Kind::all_to_all_v;
    expect_same_type(kind, type, received_type);
    const Handle communicator = open(comm, name_of(kind));
    Operation operation{.kind = kind, .input = input, .output = const_cast<void*>(output), .type = type};
    operation.sent = parts_of(*communicator, kind, sent, "sendCounts", sent_offsets, "sdispls");
    operation.received = parts_of(*communicator, kind, received, "recvCounts", received_offsets, "rdispls");
    submit_exchange(communicator, stream, operation);
  });
}

HcclResult HcclAlltoAllVC(
    const void* input, const void* matrix, HcclDataType type, const void* output, HcclDataType received_type, HcclComm comm, aclrtStream stream) {
  return guarded([&] {
    constexpr Kind kind = Kind::all_to_all_vc;
    expect_same_type(kind, type, received_type);
    const Handle communicator = open(comm, name_of(kind));
    const uint32_t ranks = communicator->ranks(), rank = communicator->rank();
    const std::vector<uint64_t> counts = copied(matrix, ranks * ranks, kind, "sendCountMatrix");
    std::vector<uint64_t> column;
    for (uint32_t from = 0; from < ranks; ++from) {
      column.push_back(counts[from * ranks + rank]);
    }
    Operation operation{.kind = kind, .input = input, .output = const_cast<void*>(output), .type = type};
    operation.sent = one_after_another({counts.begin() + rank * ranks, counts.begin() + (rank + 1) * ranks});
    operation.received = one_after_another(column);
    submit_exchange(communicator, stream, operation);
  });
}

HcclResult HcclBarrier(HcclComm comm, aclrtStream stream) {
  return guarded([&] {
    const Handle communicator = open(comm, "HcclBarrier");
    expect_usable(*communicator);
    submit(communicator, stream, {.kind = Kind::barrier});
  });
}

HcclResult HcclSend(void* data, uint64_t count, HcclDataType type, uint32_t peer, HcclComm comm, aclrtStream stream) {
  return transfer(comm, stream, {Kind::send, data, count, type, peer});
}

HcclResult HcclRecv(void* data, uint64_t count, HcclDataType type, uint32_t peer, HcclComm comm, aclrtStream stream) {
  return transfer(comm, stream, {Kind::receive, data, count, type, peer});
}

HcclResult HcclBatchSendRecv(HcclSendRecvItem* items, uint32_t count, HcclComm comm, aclrtStream stream) {
  return guarded([&] {
    if (items == nullptr) {
      throw null_pointer("HcclBatchSendRecv", "sendRecvInfo");
    }
    const Handle communicator = open(comm, "HcclBatchSendRecv");
    std::vector<Transfer> transfers;
    for (uint32_t index = 0; index < count; ++index) {
      const Transfer transfer = transfer_of(items[index]);
      if (transfer.count == 0) {
        continue;
      }
      expect_pointer(transfer.data, transfer.kind, "buf");
      expect_rank(*communicator, transfer.peer, transfer.kind, "remoteRank");
      transfers.push_back(transfer);
    }
    expect_usable(*communicator);
    if (!transfers.empty()) {
      submit(communicator, stream, transfers);
    }
  });
}

} // extern "C"
