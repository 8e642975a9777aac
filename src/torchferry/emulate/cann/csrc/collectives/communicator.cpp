#include "communicator.h"

#include "errors.h"

#include "../profiling/recording.h"
#include "../runtime/error.h"

#include <acl/acl.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <new>

namespace collectives {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kLook = 100; // milliseconds between looks at the others while waiting
constexpr auto kPatienceAfterwards = std::chrono::seconds(10); // with operations of a communicator that is destroyed
constexpr size_t kSlotBytes = size_t{1} << 20;
constexpr size_t kBlocks = std::size(Channel{}.blocks);
constexpr size_t kPage = 4096;

size_t rounded_up(size_t value, size_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

// Memory that nobody writes to is not taken: this is a limit only.
size_t block_bytes_for(uint32_t ranks) {
  constexpr size_t kAll = size_t{512} << 20;
  return std::clamp<size_t>(kAll / kBlocks / (ranks * ranks) / kPage * kPage, kPage, 256 << 10);
}

struct Layout {
  explicit Layout(uint32_t ranks)
      : channels(rounded_up(sizeof(Board), kPage)),
        slots(rounded_up(channels + sizeof(Channel) * ranks * ranks, kPage)),
        blocks(slots + 2 * kSlotBytes * ranks),
        end(blocks + kBlocks * block_bytes_for(ranks) * ranks * ranks) {}

  size_t channels;
  size_t slots;
  size_t blocks;
  size_t end;
};

} // namespace

size_t bytes_to_share(uint32_t ranks) {
  return Layout(ranks).end;
}

Communicator::Communicator(const std::shared_ptr<SharedMemory>& memory, uint32_t rank, uint32_t ranks, const Settings& settings)
    : memory_(memory),
      board_(static_cast<Board*>(memory->data())),
      rank_(rank),
      settings_(settings),
      uses_(new std::atomic<bool>[2 * static_cast<size_t>(ranks)]) {
  // Fresh memory is all zero, which is what all of it begins with; these three every rank writes, to the same.
  board_->ranks = ranks;
  board_->slot_bytes = kSlotBytes;
  board_->block_bytes = block_bytes_for(ranks);
  for (uint32_t use = 0; use < 2 * ranks; ++use) {
    uses_[use] = false;
  }
  seat(rank).process = getpid();
  memory->sign(rank);
}

Communicator::~Communicator() {
  seat(rank_).has_left = 1;
  wake(board_->meetings);
  for (uint32_t rank = 0; rank < ranks(); ++rank) {
    ring(rank);
  }
}

std::byte* Communicator::at(size_t offset) const {
  return static_cast<std::byte*>(memory_->data()) + offset;
}

Record& Communicator::record(uint32_t rank) const {
  return seat(rank).records[operation_ % 2];
}

void Communicator::next_record() {
  ++operation_;
}

std::byte* Communicator::slot(uint32_t rank) const {
  return at(Layout(ranks()).slots + ((step_ % 2) * ranks() + rank) * slot_bytes());
}

void Communicator::next_step() {
  ++step_;
}

Channel& Communicator::channel(uint32_t from, uint32_t to) const {
  return reinterpret_cast<Channel*>(at(Layout(ranks()).channels))[from * ranks() + to];
}

std::byte* Communicator::block(uint32_t from, uint32_t to, uint32_t index) const {
  return at(Layout(ranks()).blocks + ((from * ranks() + to) * kBlocks + index % kBlocks) * block_bytes());
}

void Communicator::ring(uint32_t rank) const {
  ++seat(rank).bell;
  wake(seat(rank).bell);
}

Seat& Communicator::seat(uint32_t rank) const {
  return board_->seats[rank];
}

bool Communicator::is_here(uint32_t rank) const {
  const Seat& other = seat(rank);
  return other.has_left == 0 && (other.process == getpid() || memory_->is_signed(rank));
}

bool Communicator::has_failed() const {
  return board_->has_failed == 2;
}

std::string Communicator::reason() const {
  return has_failed() ? std::string(board_->reason, strnlen(board_->reason, sizeof(board_->reason))) : "";
}

void Communicator::fail(const std::string& reason) {
  uint32_t nobody = 0;
  if (!board_->has_failed.compare_exchange_strong(nobody, 1)) {
    return;
  }
  std::strncpy(board_->reason, reason.c_str(), sizeof(board_->reason) - 1);
  board_->has_failed = 2;
  wake(board_->meetings);
  for (uint32_t rank = 0; rank < ranks(); ++rank) {
    ring(rank);
  }
}

void Communicator::let_go() {
  let_go_at_ = Clock::now().time_since_epoch().count();
}

bool Communicator::is_forgotten() const {
  const int64_t at = let_go_at_;
  return at != 0 && Clock::now().time_since_epoch() > Clock::duration(at) + kPatienceAfterwards;
}

std::atomic<bool>& Communicator::use_of(bool sends, uint32_t peer) {
  return uses_[sends ? peer : ranks() + peer];
}

Watch::Watch(Communicator& communicator, Kind kind, uint64_t count, HcclDataType type)
    : communicator_(communicator),
      kind_(kind),
      count_(count),
      type_(type),
      end_(
          communicator.settings().seconds_to_run == 0 ? Clock::time_point::max()
                                                      : Clock::now() + std::chrono::seconds(communicator.settings().seconds_to_run)) {
  if (communicator.has_failed()) {
    throw cann::Failure(ACL_ERROR_RT_FFTS_PLUS_EXCEPTION, communicator.reason());
  }
}

void Watch::meet() {
  Board& board = communicator_.board();
  const uint32_t over = board.meetings; // cannot change before this rank has come
  const uint32_t mine = ++communicator_.seat(communicator_.rank()).meetings;
  if (++board.here == board.ranks) {
    board.here = 0;
    ++board.meetings;
    wake(board.meetings);
    return;
  }
  const auto is_awaited = [&](uint32_t rank) {
    return board.meetings == over && static_cast<int32_t>(communicator_.seat(rank).meetings - mine) < 0;
  };
  const cann::Waiting waiting;
  while (board.meetings == over) {
    sleep_on(board.meetings, over, kLook);
    if (board.meetings == over) {
      look(is_awaited);
    }
  }
}

void Watch::sleep_until_bell(uint32_t bell, const std::function<bool(uint32_t)>& is_awaited) {
  std::atomic<uint32_t>& own = communicator_.seat(communicator_.rank()).bell;
  const cann::Waiting waiting;
  sleep_on(own, bell, kLook);
  if (own == bell) {
    look(is_awaited);
  }
}

void Watch::look(const std::function<bool(uint32_t)>& is_awaited) {
  for (uint32_t rank = 0; rank < communicator_.ranks(); ++rank) {
    if (is_awaited(rank) && !communicator_.is_here(rank) && is_awaited(rank)) {
      give_up(rank, communicator_.seat(rank).has_left != 0 ? "it has destroyed its communicator" : "its process has exited");
    }
  }
  if (communicator_.has_failed()) {
    throw cann::Failure(ACL_ERROR_RT_FFTS_PLUS_EXCEPTION, communicator_.reason());
  }
  if (communicator_.is_forgotten()) {
    throw cann::Failure(ACL_ERROR_RT_FFTS_PLUS_EXCEPTION, task() + ": the communicator was destroyed while this rank waited");
  }
  if (Clock::now() < end_) {
    return;
  }
  for (uint32_t rank = 0; rank < communicator_.ranks(); ++rank) {
    if (is_awaited(rank)) {
      give_up(rank, "it has not come within HCCL_EXEC_TIMEOUT (" + std::to_string(communicator_.settings().seconds_to_run) + " s)");
    }
  }
}

void Watch::give_up(uint32_t peer, const std::string& why) {
  const std::string text = waited_in_vain(
      peer,
      task(),
      "remote rank:[" + std::to_string(peer) + "], count[" + std::to_string(count_) + "], dataType[" + name_of(type_) + "]",
      "group:[" + communicator_.settings().name + "], rankSize[" + std::to_string(communicator_.ranks()) + "], rankId[" +
          std::to_string(communicator_.rank()) + "]");
  const std::string full = text + " Rank " + std::to_string(peer) + " (process " +
      std::to_string(communicator_.seat(peer).process.load()) + "): " + why + ".";
  communicator_.fail(full);
  throw cann::Failure(ACL_ERROR_RT_FFTS_PLUS_TIMEOUT, full);
}

void Watch::fail(const std::string& text) {
  communicator_.fail(text);
  throw cann::Failure(ACL_ERROR_RT_FFTS_PLUS_EXCEPTION, text);
}

std::string Watch::task() const {
  return "taskType[Notify Wait], tag[" + name_of(kind_).substr(4) + "_" + communicator_.settings().name + "]";
}

} // namespace collectives
