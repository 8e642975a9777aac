// A rank's place in a communicator: the memory that its ranks share, and waiting for each other in it.
#pragma once

#include "data_types.h"
#include "meeting.h"
#include "shared_memory.h"

#include <third_party/hccl/inc/hccl/hccl_types.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

namespace collectives {

constexpr uint32_t kMostRanks = 64;

// What a rank is about to do. All ranks of a collective must say the same; counts by rank are those of its own.
struct Record {
  Kind kind;
  HcclDataType type;
  HcclReduceOp op;
  uint32_t root;
  uint64_t count;
  uint64_t sent[kMostRanks]; // to each rank, where that differs; elements
  uint64_t received[kMostRanks]; // from each rank
};

// A rank's place in the shared memory.
struct Seat {
  std::atomic<int32_t> process;
  std::atomic<uint32_t> has_left;
  std::atomic<uint32_t> meetings; // that it has come to
  std::atomic<uint32_t> bell; // rung when something has changed in one of its channels
  Record records[2]; // of this operation and of the one before: a slow rank may still read that
};

// Blocks of a message on the way from one rank to another.
struct Block {
  uint64_t message; // bytes of all of it
  uint64_t bytes; // of this one
};

struct Channel {
  std::atomic<uint32_t> written; // blocks, from the beginning
  std::atomic<uint32_t> read;
  Block blocks[4];
};

// What lies at the beginning of the shared memory. Slots and the channels' contents follow.
struct Board {
  uint32_t ranks;
  uint64_t slot_bytes;
  uint64_t block_bytes;
  std::atomic<uint32_t> here; // ranks that wait in the present meeting
  std::atomic<uint32_t> meetings; // that are over
  std::atomic<uint32_t> has_failed;
  char reason[1024];
  Seat seats[kMostRanks];
};

class Communicator;
using Handle = std::shared_ptr<Communicator>;

struct Settings {
  std::string name;
  std::string token; // of the shared memory
  int seconds_to_run = 0; // 0: without end
  int device = 0;
};

size_t bytes_to_share(uint32_t ranks);

class Communicator {
 public:
  Communicator(const std::shared_ptr<SharedMemory>& memory, uint32_t rank, uint32_t ranks, const Settings& settings);
  // What was enqueued holds the communicator: this is after the last operation.
  ~Communicator();

  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  uint32_t rank() const {
    return rank_;
  }
  uint32_t ranks() const {
    return board_->ranks;
  }
  const Settings& settings() const {
    return settings_;
  }

  // The rank's record of the operation that begins, and those of all once `meet` is over.
  Record& record(uint32_t rank) const;
  void next_record();

  // A part of the memory for each rank, in two halves that take turns with each step: what is written in one may be read while the next is written.
  size_t slot_bytes() const {
    return board_->slot_bytes;
  }
  std::byte* slot(uint32_t rank) const;
  void next_step();

  Channel& channel(uint32_t from, uint32_t to) const;
  std::byte* block(uint32_t from, uint32_t to, uint32_t index) const;
  size_t block_bytes() const {
    return board_->block_bytes;
  }
  void ring(uint32_t rank) const;
  Seat& seat(uint32_t rank) const;

  bool is_here(uint32_t rank) const;
  bool has_failed() const;
  std::string reason() const;
  // For all ranks; the first reason stays.
  void fail(const std::string& reason);

  void suspend(bool on) {
    is_suspended_ = on;
  }
  bool is_suspended() const {
    return is_suspended_;
  }

  // The owner has destroyed it: what still waits then gives up after a while.
  void let_go();
  bool is_forgotten() const;

  Board& board() const {
    return *board_;
  }
  // One collective at a time; its streams may be several.
  std::mutex& turn() {
    return turn_;
  }
  // One end of a channel is used by one stream at a time.
  std::atomic<bool>& use_of(bool sends, uint32_t peer);

 private:
  std::byte* at(size_t offset) const;

  const std::shared_ptr<SharedMemory> memory_;
  Board* const board_;
  const uint32_t rank_;
  const Settings settings_;
  uint64_t step_ = 0;
  uint64_t operation_ = 0;
  std::atomic<bool> is_suspended_ = false;
  std::atomic<int64_t> let_go_at_ = 0; // nanoseconds of the steady clock
  std::mutex turn_;
  std::unique_ptr<std::atomic<bool>[]> uses_;
};

// Waiting within one operation: how long, for what, and what is said when it is in vain.
class Watch {
 public:
  Watch(Communicator& communicator, Kind kind, uint64_t count, HcclDataType type);

  // All ranks have come here. Throws cann::Failure.
  void meet();
  // Something has changed in a channel of this rank since the bell was read, or may have. `peers`: who is waited for.
  void sleep_until_bell(uint32_t bell, const std::function<bool(uint32_t)>& is_awaited);

  // Ends the operation here and on all other ranks.
  [[noreturn]] void fail(const std::string& text);
  std::string task() const;

 private:
  // `is_awaited` is asked again after a rank has been found to be gone: it may have done its part before.
  void look(const std::function<bool(uint32_t)>& is_awaited);
  [[noreturn]] void give_up(uint32_t peer, const std::string& why);

  Communicator& communicator_;
  const Kind kind_;
  const uint64_t count_;
  const HcclDataType type_;
  const std::chrono::steady_clock::time_point end_;
};

} // namespace collectives
