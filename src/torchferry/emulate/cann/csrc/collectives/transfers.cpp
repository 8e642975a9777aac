#include "transfers.h"

#include "errors.h"

#include <algorithm>
#include <cstring>

namespace collectives {
namespace {

constexpr uint32_t kBlocks = std::size(Channel{}.blocks);

// One transfer under way: as many blocks as the channel lets through each time.
class Way {
 public:
  Way(Communicator& communicator, const Transfer& transfer)
      : communicator_(communicator),
        transfer_(transfer),
        from_(transfer.kind == Kind::send ? communicator.rank() : transfer.peer),
        to_(transfer.kind == Kind::send ? transfer.peer : communicator.rank()),
        bytes_(transfer.count * bytes_of(transfer.type)) {}

  ~Way() {
    release();
  }

  Way(const Way&) = delete;
  Way& operator=(const Way&) = delete;

  bool is_done() const {
    return done_ == bytes_;
  }
  uint32_t peer() const {
    return transfer_.peer;
  }
  bool is_behind(const Way& other) const {
    return other.transfer_.kind == transfer_.kind && other.transfer_.peer == transfer_.peer;
  }

  // Whether anything has moved.
  bool move(Watch& watch) {
    if (is_done() || !take()) {
      return false;
    }
    const bool moved = transfer_.kind == Kind::send ? send() : receive(watch);
    if (is_done()) {
      release();
    }
    return moved;
  }

 private:
  // Another stream may be in the middle of a message.
  bool take() {
    bool is_free = false;
    has_channel_ = has_channel_ || use().compare_exchange_strong(is_free, true);
    return has_channel_;
  }

  void release() {
    if (has_channel_) {
      has_channel_ = false;
      use() = false;
      communicator_.ring(communicator_.rank()); // of another stream that waits for it
    }
  }

  std::atomic<bool>& use() {
    return communicator_.use_of(transfer_.kind == Kind::send, transfer_.peer);
  }

  std::byte* place() const {
    return static_cast<std::byte*>(transfer_.data) + done_;
  }

  bool send() {
    Channel& channel = communicator_.channel(from_, to_);
    bool moved = false;
    while (!is_done() && channel.written - channel.read < kBlocks) {
      const uint32_t index = channel.written;
      const uint64_t bytes = std::min<uint64_t>(communicator_.block_bytes(), bytes_ - done_);
      channel.blocks[index % kBlocks] = Block{bytes_, bytes};
      std::memcpy(communicator_.block(from_, to_, index), place(), bytes);
      done_ += bytes;
      ++channel.written;
      communicator_.ring(to_);
      moved = true;
    }
    return moved;
  }

  bool receive(Watch& watch) {
    Channel& channel = communicator_.channel(from_, to_);
    bool moved = false;
    while (!is_done() && channel.written != channel.read) {
      const uint32_t index = channel.read;
      const Block block = channel.blocks[index % kBlocks];
      if (block.message != bytes_) {
        refuse(watch, block.message);
      }
      std::memcpy(place(), communicator_.block(from_, to_, index), block.bytes);
      done_ += block.bytes;
      ++channel.read;
      communicator_.ring(from_);
      moved = true;
    }
    return moved;
  }

  [[noreturn]] void refuse(Watch& watch, uint64_t sent) {
    const auto said = [](uint64_t bytes, const char* what, uint32_t rank) {
      return std::to_string(bytes) + " bytes (" + what + " rank " + std::to_string(rank) + ")";
    };
    watch.fail(arguments_differ(
        name_of(transfer_.kind), communicator_.settings().name, "count", said(bytes_, "received by", to_), said(sent, "sent by", from_)));
  }

  Communicator& communicator_;
  const Transfer transfer_;
  const uint32_t from_;
  const uint32_t to_;
  const uint64_t bytes_;
  uint64_t done_ = 0;
  bool has_channel_ = false;
};

using Ways = std::vector<std::unique_ptr<Way>>;

// One pass over all that are first in their direction.
bool move_all(Ways& ways, Watch& watch) {
  bool moved = false;
  for (size_t index = 0; index < ways.size(); ++index) {
    Way& way = *ways[index];
    const bool has_to_wait = std::any_of(
        ways.begin(), ways.begin() + static_cast<std::ptrdiff_t>(index), [&](const auto& earlier) { return !earlier->is_done() && way.is_behind(*earlier); });
    moved = (!has_to_wait && way.move(watch)) || moved;
  }
  return moved;
}

} // namespace

void run(Communicator& communicator, const std::vector<Transfer>& transfers) {
  const Transfer& first = transfers.front();
  Watch watch(communicator, first.kind, first.count, first.type);
  Ways ways;
  for (const Transfer& transfer : transfers) {
    ways.push_back(std::make_unique<Way>(communicator, transfer));
  }
  const auto is_awaited = [&](uint32_t rank) {
    return rank != communicator.rank() &&
        std::any_of(ways.begin(), ways.end(), [&](const auto& way) { return !way->is_done() && way->peer() == rank; });
  };
  const auto are_done = [&] { return std::all_of(ways.begin(), ways.end(), [](const auto& way) { return way->is_done(); }); };
  while (!are_done()) {
    const uint32_t bell = communicator.seat(communicator.rank()).bell;
    if (!move_all(ways, watch) && !are_done()) {
      watch.sleep_until_bell(bell, is_awaited);
    }
  }
}

} // namespace collectives
