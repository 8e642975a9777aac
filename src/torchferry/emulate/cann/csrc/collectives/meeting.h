// How the ranks of a communicator find each other and get the memory that they share.
#pragma once

#include "shared_memory.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace collectives {

// A socket in the abstract namespace that waits for ranks: it has no file, and is gone with its process.
class Door {
 public:
  // Throws Refusal where the name is taken.
  explicit Door(const std::string& name);
  ~Door();

  Door(const Door&) = delete;
  Door& operator=(const Door&) = delete;

  int socket() const {
    return socket_;
  }

 private:
  int socket_ = -1;
};

// What a rank comes with. All ranks of a meeting have the same name.
struct Invitation {
  std::string name;
  uint32_t ranks = 1;
  uint32_t rank = 0;
  int seconds = 120; // to wait for the others
};

// The host makes the memory when all ranks are there. It has signed when `enter` returns, and all others before it returns from here.
using Enter = std::function<void(const std::shared_ptr<SharedMemory>&)>;

void host(const Door& door, const Invitation& invitation, size_t bytes, const Enter& enter);

// `is_open`: the host's door has been opened before. Otherwise nobody there means that the host comes later.
void join(const Invitation& invitation, bool is_open, const Enter& enter);

// HCCL_CONNECT_TIMEOUT
int seconds_to_connect();

// For names that nobody else has.
std::string random_name();

} // namespace collectives
