#include "collectives.h"

#include "errors.h"
#include "reduction.h"

#include <algorithm>
#include <cstring>

namespace collectives {
namespace {

// One collective in the making. Data goes through the ranks' slots, step by step: write one's own, meet, read the others'.
class Run {
 public:
  Run(Communicator& communicator, const Operation& operation)
      : communicator_(communicator),
        operation_(operation),
        watch_(communicator, operation.kind, operation.count, operation.type),
        rank_(communicator.rank()),
        ranks_(communicator.ranks()),
        size_(bytes_of(operation.type)) {}

  void agree();
  void all_reduce(bool root_only);
  void broadcast();
  void scatter();
  void all_gather();
  // Every rank has something for every other one, which is moved or summed.
  void exchange();
  void reduce_scatter();

 private:
  const std::byte* input(uint64_t element) const {
    return static_cast<const std::byte*>(operation_.input) + element * size_;
  }
  std::byte* output(uint64_t element) const {
    return static_cast<std::byte*>(operation_.output) + element * size_;
  }

  void compare(const Record& mine, const Record& other, uint32_t rank);
  void expect_equal(const char* parameter, const std::string& mine, const std::string& other, uint32_t rank);
  void fold_owned(uint64_t begin, uint64_t first, uint64_t last);
  uint64_t sent_by(uint32_t from, uint32_t to) const {
    return communicator_.record(from).sent[to];
  }
  uint64_t largest_sent() const;
  size_t room_for_each() const {
    return communicator_.slot_bytes() / ranks_ / size_; // elements
  }
  void write_for_each(uint64_t done, size_t room);
  // The elements of a part that a step moves.
  static uint64_t now(uint64_t count, uint64_t done, uint64_t room) {
    return count <= done ? 0 : std::min(room, count - done);
  }

  Communicator& communicator_;
  const Operation& operation_;
  Watch watch_;
  const uint32_t rank_;
  const uint32_t ranks_;
  const size_t size_;
};

// All ranks say what they are about to do before anything moves; hardware would hang or mix data up where they differ.
void Run::agree() {
  communicator_.next_record();
  Record& mine = communicator_.record(rank_);
  mine.kind = operation_.kind;
  mine.type = operation_.type;
  mine.op = operation_.op;
  mine.root = operation_.root;
  mine.count = operation_.count;
  for (uint32_t rank = 0; rank < ranks_; ++rank) {
    mine.sent[rank] = operation_.sent.counts.empty() ? operation_.count : operation_.sent.counts[rank];
    mine.received[rank] = operation_.received.counts.empty() ? mine.sent[rank] : operation_.received.counts[rank];
  }
  watch_.meet();
  for (uint32_t rank = 0; rank < ranks_; ++rank) {
    compare(mine, communicator_.record(rank), rank);
  }
}

void Run::compare(const Record& mine, const Record& other, uint32_t rank) {
  expect_equal("cmdType", name_of(mine.kind), name_of(other.kind), rank);
  expect_equal("dataType", name_of(mine.type), name_of(other.type), rank);
  expect_equal("op", name_of(mine.op), name_of(other.op), rank);
  expect_equal("root", std::to_string(mine.root), std::to_string(other.root), rank);
  const bool is_uneven = !operation_.sent.counts.empty() || !operation_.received.counts.empty();
  if (!is_uneven) {
    expect_equal("count", std::to_string(mine.count), std::to_string(other.count), rank);
    return;
  }
  if (operation_.kind == Kind::all_to_all_v || operation_.kind == Kind::all_to_all_vc) {
    expect_equal("sendCounts", std::to_string(mine.sent[rank]), std::to_string(other.received[rank_]), rank);
    expect_equal("recvCounts", std::to_string(mine.received[rank]), std::to_string(other.sent[rank_]), rank);
    return;
  }
  for (uint32_t part = 0; part < ranks_; ++part) { // of which each rank has all counts
    expect_equal("counts", std::to_string(mine.received[part]), std::to_string(other.received[part]), rank);
  }
}

void Run::expect_equal(const char* parameter, const std::string& mine, const std::string& other, uint32_t rank) {
  if (mine == other) {
    return;
  }
  const auto said = [](const std::string& value, uint32_t who) { return value + " (rank " + std::to_string(who) + ")"; };
  watch_.fail(arguments_differ(
      name_of(operation_.kind), communicator_.settings().name, parameter, said(mine, rank_), said(other, rank)));
}

// Each rank sums a part of the step's elements for all.
void Run::all_reduce(bool root_only) {
  const uint64_t room = communicator_.slot_bytes() / size_;
  for (uint64_t done = 0; done < operation_.count; done += room) {
    const uint64_t count = now(operation_.count, done, room);
    communicator_.next_step();
    std::memcpy(communicator_.slot(rank_), input(done), count * size_);
    watch_.meet();
    const auto begin_of = [&](uint32_t rank) { return count * rank / ranks_; };
    fold_owned(done, begin_of(rank_), begin_of(rank_ + 1));
    watch_.meet();
    for (uint32_t rank = 0; rank < ranks_ && (!root_only || rank_ == operation_.root); ++rank) {
      const uint64_t begin = begin_of(rank);
      std::memcpy(output(done + begin), communicator_.slot(rank) + begin * size_, (begin_of(rank + 1) - begin) * size_);
    }
  }
}

// Elements `first` to `last` of a step that begins with element `begin` of the whole: into this rank's slot, where no other rank reads them yet.
void Run::fold_owned(uint64_t begin, uint64_t first, uint64_t last) {
  const uint64_t owned = elements_of_owner(operation_.count, size_, ranks_);
  while (first < last) {
    const auto owner = static_cast<uint32_t>((begin + first) / owned);
    const uint64_t until = std::min<uint64_t>(last, (owner + uint64_t{1}) * owned - begin);
    std::vector<const void*> inputs;
    for (const uint32_t rank : ring_order(owner, ranks_)) {
      inputs.push_back(communicator_.slot(rank) + first * size_);
    }
    fold(operation_.type, operation_.op, communicator_.slot(rank_) + first * size_, inputs, until - first);
    first = until;
  }
}

// The root has all slots to itself.
void Run::broadcast() {
  const uint64_t room = communicator_.slot_bytes() * ranks_ / size_;
  for (uint64_t done = 0; done < operation_.count; done += room) {
    const uint64_t bytes = now(operation_.count, done, room) * size_;
    communicator_.next_step();
    if (rank_ == operation_.root) {
      std::memcpy(communicator_.slot(0), output(done), bytes);
    }
    watch_.meet();
    if (rank_ != operation_.root) {
      std::memcpy(output(done), communicator_.slot(0), bytes);
    }
  }
}

void Run::scatter() {
  const uint64_t room = communicator_.slot_bytes() / size_;
  for (uint64_t done = 0; done < operation_.count; done += room) {
    const uint64_t bytes = now(operation_.count, done, room) * size_;
    communicator_.next_step();
    for (uint32_t rank = 0; rank < ranks_ && rank_ == operation_.root; ++rank) {
      std::memcpy(communicator_.slot(rank), input(rank * operation_.count + done), bytes);
    }
    watch_.meet();
    std::memcpy(output(done), communicator_.slot(rank_), bytes);
  }
}

void Run::all_gather() {
  const Parts& parts = operation_.received;
  const auto count_of = [&](uint32_t rank) { return parts.counts.empty() ? operation_.count : parts.counts[rank]; };
  const auto offset_of = [&](uint32_t rank) { return parts.offsets.empty() ? rank * operation_.count : parts.offsets[rank]; };
  const uint64_t room = communicator_.slot_bytes() / size_;
  uint64_t most = 0;
  for (uint32_t rank = 0; rank < ranks_; ++rank) {
    most = std::max(most, count_of(rank));
  }
  for (uint64_t done = 0; done < most; done += room) {
    communicator_.next_step();
    if (const uint64_t own = now(count_of(rank_), done, room); own > 0) {
      std::memcpy(communicator_.slot(rank_), input(done), own * size_);
    }
    watch_.meet();
    for (uint32_t rank = 0; rank < ranks_; ++rank) {
      if (const uint64_t other = now(count_of(rank), done, room); other > 0) {
        std::memcpy(output(offset_of(rank) + done), communicator_.slot(rank), other * size_);
      }
    }
  }
}

uint64_t Run::largest_sent() const {
  uint64_t most = 0;
  for (uint32_t from = 0; from < ranks_; ++from) {
    for (uint32_t to = 0; to < ranks_; ++to) {
      most = std::max(most, sent_by(from, to));
    }
  }
  return most;
}

void Run::write_for_each(uint64_t done, size_t room) {
  for (uint32_t to = 0; to < ranks_; ++to) {
    const uint64_t count = now(sent_by(rank_, to), done, room);
    const uint64_t offset = operation_.sent.offsets.empty() ? to * operation_.count : operation_.sent.offsets[to];
    if (count > 0) {
      std::memcpy(communicator_.slot(rank_) + to * room * size_, input(offset + done), count * size_);
    }
  }
}

void Run::exchange() {
  const size_t room = room_for_each();
  const uint64_t most = largest_sent();
  for (uint64_t done = 0; done < most; done += room) {
    communicator_.next_step();
    write_for_each(done, room);
    watch_.meet();
    for (uint32_t from = 0; from < ranks_; ++from) {
      const uint64_t count = now(sent_by(from, rank_), done, room);
      const uint64_t offset = operation_.received.offsets.empty() ? from * operation_.count : operation_.received.offsets[from];
      if (count > 0) {
        std::memcpy(output(offset + done), communicator_.slot(from) + rank_ * room * size_, count * size_);
      }
    }
  }
}

void Run::reduce_scatter() {
  const size_t room = room_for_each();
  const uint64_t most = largest_sent();
  for (uint64_t done = 0; done < most; done += room) {
    communicator_.next_step();
    write_for_each(done, room);
    watch_.meet();
    std::vector<const void*> inputs;
    for (const uint32_t from : ring_order(rank_, ranks_)) {
      inputs.push_back(communicator_.slot(from) + rank_ * room * size_);
    }
    if (const uint64_t count = now(sent_by(rank_, rank_), done, room); count > 0) {
      fold(operation_.type, operation_.op, output(done), inputs, count);
    }
  }
}

} // namespace

void run(Communicator& communicator, const Operation& operation) {
  const std::lock_guard lock(communicator.turn());
  Run run(communicator, operation);
  run.agree();
  switch (operation.kind) {
    case Kind::all_reduce:
      return run.all_reduce(false);
    case Kind::reduce:
      return run.all_reduce(true);
    case Kind::reduce_scatter:
    case Kind::reduce_scatter_v:
      return run.reduce_scatter();
    case Kind::broadcast:
      return run.broadcast();
    case Kind::scatter:
      return run.scatter();
    case Kind::all_gather:
    case Kind::all_gather_v:
      return run.all_gather();
    case Kind::all_to_all:
    case Kind::all_to_all_v:
    case Kind::all_to_all_vc:
      return run.exchange();
    default:
      return; // of a barrier the agreement is all
  }
}

} // namespace collectives
