#include "meeting.h"

#include "errors.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <map>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

namespace collectives {
namespace {

using Clock = std::chrono::steady_clock;

// What goes over the sockets. A guest says who it is; the host answers with the memory; the guest that it has signed; the host that all have.
struct Hello {
  uint32_t ranks;
  uint32_t rank;
};

struct Answer {
  uint32_t result;
  char text[508];
};

constexpr char kSigned = 's';
constexpr char kAllSigned = 'a';

class Socket {
 public:
  explicit Socket(int file) : file_(file) {}
  Socket(Socket&& other) noexcept : file_(std::exchange(other.file_, -1)) {}
  Socket& operator=(Socket&& other) noexcept {
    std::swap(file_, other.file_);
    return *this;
  }
  ~Socket() {
    if (file_ >= 0) {
      close(file_);
    }
  }

  int file() const {
    return file_;
  }

 private:
  int file_;
};

std::pair<sockaddr_un, socklen_t> address_of(const std::string& name) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string path = "torchferry-hccl-" + std::to_string(getuid()) + "-" + name;
  const size_t length = std::min(path.size(), sizeof(address.sun_path) - 1);
  std::memcpy(address.sun_path + 1, path.data(), length); // a first byte of 0: the abstract namespace
  return {address, static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + length)};
}

int new_socket() {
  const int file = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (file < 0) {
    throw Refusal(HCCL_E_SYSCALL, std::string("socket: ") + std::strerror(errno));
  }
  return file;
}

bool is_same_user(int socket) {
  ucred peer{};
  socklen_t length = sizeof(peer);
  return getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0 && peer.uid == getuid();
}

// False: the other side is gone.
bool send_all(int socket, const void* data, size_t bytes) {
  const auto* next = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t sent = send(socket, next, bytes, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) {
      continue;
    }
    if (sent <= 0) {
      return false;
    }
    next += sent;
    bytes -= static_cast<size_t>(sent);
  }
  return true;
}

// Until the time: nothing. An answer of poll() otherwise.
bool is_readable(int socket, Clock::time_point end) {
  while (true) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now()).count();
    pollfd asked{socket, POLLIN, 0};
    const int answer = poll(&asked, 1, static_cast<int>(std::max<long>(0, left)));
    if (answer > 0) {
      return true;
    }
    if (answer == 0 || errno != EINTR) {
      return false;
    }
  }
}

enum class Received { all, gone, late };

Received receive_all(int socket, void* data, size_t bytes, Clock::time_point end, int* file = nullptr) {
  auto* next = static_cast<char*>(data);
  while (bytes > 0) {
    if (!is_readable(socket, end)) {
      return Received::late;
    }
    iovec part{next, bytes};
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    const ssize_t got = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
    if (got < 0 && errno == EINTR) {
      continue;
    }
    if (got <= 0) {
      return Received::gone;
    }
    const cmsghdr* head = CMSG_FIRSTHDR(&message);
    if (file != nullptr && head != nullptr && head->cmsg_type == SCM_RIGHTS) {
      std::memcpy(file, CMSG_DATA(head), sizeof(int));
    }
    next += got;
    bytes -= static_cast<size_t>(got);
  }
  return Received::all;
}

bool send_file(int socket, const Answer& answer, int file) {
  iovec part{const_cast<Answer*>(&answer), sizeof(answer)};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  cmsghdr* head = CMSG_FIRSTHDR(&message);
  head->cmsg_level = SOL_SOCKET;
  head->cmsg_type = SCM_RIGHTS;
  head->cmsg_len = CMSG_LEN(sizeof(int));
  std::memcpy(CMSG_DATA(head), &file, sizeof(int));
  return sendmsg(socket, &message, MSG_NOSIGNAL) == static_cast<ssize_t>(sizeof(answer));
}

using Guests = std::map<uint32_t, Socket>;

std::string listed(const std::vector<uint32_t>& ranks) {
  std::string text = "\"[";
  for (const uint32_t rank : ranks) {
    text += std::to_string(rank) + ",";
  }
  return text + "]\"";
}

Refusal still_missing(const Invitation& invitation, const Guests& guests) {
  std::vector<uint32_t> missing;
  for (uint32_t rank = 0; rank < invitation.ranks; ++rank) {
    if (rank != invitation.rank && !guests.contains(rank)) {
      missing.push_back(rank);
    }
  }
  return no_meeting(
      HCCL_E_TIMEOUT,
      "Not all ranks of the communicator can connect to the root node within the timeout period. List of unconnected ranks: " +
          listed(missing));
}

Refusal lost(uint32_t rank) {
  return no_meeting(HCCL_E_REMOTE, "The process of rank " + std::to_string(rank) + " has exited while the communicator was created");
}

void tell(const Socket& guest, const Refusal& refusal) {
  Answer answer{};
  answer.result = refusal.result;
  std::strncpy(answer.text, refusal.what(), sizeof(answer.text) - 1);
  send_all(guest.file(), &answer, sizeof(answer));
}

// Why this one cannot be let in; "" if it can.
std::string objection(const Hello& hello, const Invitation& invitation, const Guests& guests) {
  const std::string name = "Rank " + std::to_string(hello.rank);
  if (hello.ranks != invitation.ranks) {
    return name + " names " + std::to_string(hello.ranks) + " ranks, rank " + std::to_string(invitation.rank) + " names " +
        std::to_string(invitation.ranks);
  }
  if (hello.rank >= invitation.ranks) {
    return name + " is none of " + std::to_string(invitation.ranks);
  }
  return hello.rank == invitation.rank || guests.contains(hello.rank) ? name + " has come twice" : "";
}

// One that has come; nothing, if it is none of ours.
std::optional<std::pair<uint32_t, Socket>> let_in(const Door& door, const Invitation& invitation, const Guests& guests, Clock::time_point end) {
  Socket guest(accept4(door.socket(), nullptr, nullptr, SOCK_CLOEXEC));
  Hello hello{};
  if (guest.file() < 0 || !is_same_user(guest.file()) || receive_all(guest.file(), &hello, sizeof(hello), end) != Received::all) {
    return std::nullopt;
  }
  const std::string reason = objection(hello, invitation, guests);
  if (!reason.empty()) {
    const Refusal refusal = no_meeting(HCCL_E_PARA, reason);
    tell(guest, refusal);
    throw Refusal(refusal);
  }
  return std::pair(hello.rank, std::move(guest));
}

// A guest says nothing before it is answered: what is readable is its end.
void look_after(const std::vector<pollfd>& asked, const Guests& guests) {
  size_t index = 1;
  for (const auto& [rank, guest] : guests) {
    if (asked[index++].revents != 0) {
      throw lost(rank);
    }
  }
}

void gather(const Door& door, const Invitation& invitation, Guests& guests, Clock::time_point end) {
  while (guests.size() + 1 < invitation.ranks) {
    std::vector<pollfd> asked{{door.socket(), POLLIN, 0}};
    for (const auto& [rank, guest] : guests) {
      asked.push_back({guest.file(), POLLIN, 0});
    }
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now()).count();
    if (left <= 0) {
      throw still_missing(invitation, guests);
    }
    if (poll(asked.data(), asked.size(), static_cast<int>(left)) <= 0) {
      continue;
    }
    look_after(asked, guests);
    if (asked.front().revents != 0) {
      if (auto guest = let_in(door, invitation, guests, end)) {
        guests.insert(std::move(*guest));
      }
    }
  }
}

void expect_signed(const Guests& guests, Clock::time_point end) {
  for (const auto& [rank, guest] : guests) {
    char word = 0;
    if (receive_all(guest.file(), &word, 1, end) != Received::all || word != kSigned) {
      throw lost(rank);
    }
  }
}

void tell(const Guests& guests, const Refusal& refusal) {
  for (const auto& [rank, guest] : guests) {
    tell(guest, refusal);
  }
}

std::optional<Socket> connected(const std::string& name) {
  Socket made(new_socket());
  const auto [address, length] = address_of(name);
  if (connect(made.file(), reinterpret_cast<const sockaddr*>(&address), length) != 0 || !is_same_user(made.file())) {
    return std::nullopt;
  }
  return made;
}

// The host of a name that all know may come later than its guests.
Socket connect_in_time(const Invitation& invitation, bool is_open, Clock::time_point end) {
  std::chrono::milliseconds pause{1};
  while (true) {
    if (auto made = connected(invitation.name)) {
      return std::move(*made);
    }
    if (is_open) {
      throw no_meeting(HCCL_E_TCP_CONNECT, "The process of the root rank has exited, or is on another machine");
    }
    if (Clock::now() >= end) {
      throw no_meeting(HCCL_E_TIMEOUT, "The root rank has not come within the timeout period");
    }
    std::this_thread::sleep_for(pause);
    pause = std::min(pause * 2, std::chrono::milliseconds(50));
  }
}

void expect(Received received) {
  if (received == Received::late) {
    throw no_meeting(HCCL_E_TIMEOUT, "The root rank has not answered within the timeout period");
  }
  if (received == Received::gone) {
    throw no_meeting(HCCL_E_REMOTE, "The process of the root rank has exited while the communicator was created");
  }
}

} // namespace

Door::Door(const std::string& name) : socket_(new_socket()) {
  const auto [address, length] = address_of(name);
  if (bind(socket_, reinterpret_cast<const sockaddr*>(&address), length) != 0 || listen(socket_, 128) != 0) {
    const std::string reason = std::strerror(errno);
    close(socket_);
    throw no_meeting(HCCL_E_UNAVAIL, "The root rank cannot listen for the others: " + reason);
  }
}

Door::~Door() {
  close(socket_);
}

void host(const Door& door, const Invitation& invitation, size_t bytes, const Enter& enter) {
  const auto end = Clock::now() + std::chrono::seconds(invitation.seconds);
  Guests guests;
  try {
    gather(door, invitation, guests, end);
    const auto memory = SharedMemory::create(invitation.name, bytes);
    enter(memory);
    for (const auto& [rank, guest] : guests) {
      if (!send_file(guest.file(), Answer{}, memory->file())) {
        throw lost(rank);
      }
    }
    expect_signed(guests, end);
  } catch (const Refusal& refusal) {
    tell(guests, refusal);
    throw;
  }
  for (const auto& [rank, guest] : guests) {
    send_all(guest.file(), &kAllSigned, 1);
  }
}

void join(const Invitation& invitation, bool is_open, const Enter& enter) {
  constexpr int kLonger = 20; // than the host waits, to be told why it gave up; the documented difference
  const auto end = Clock::now() + std::chrono::seconds(invitation.seconds + kLonger);
  const Socket guest = connect_in_time(invitation, is_open, end);
  const Hello hello{invitation.ranks, invitation.rank};
  Answer answer{};
  int file = -1;
  if (!send_all(guest.file(), &hello, sizeof(hello))) {
    expect(Received::gone);
  }
  expect(receive_all(guest.file(), &answer, sizeof(answer), end, &file));
  if (answer.result != HCCL_SUCCESS) {
    throw Refusal(static_cast<HcclResult>(answer.result), answer.text);
  }
  enter(SharedMemory::attach(invitation.name, file));
  char word = kSigned;
  if (!send_all(guest.file(), &word, 1)) {
    expect(Received::gone);
  }
  expect(receive_all(guest.file(), &word, 1, end));
  if (word != kAllSigned) {
    throw no_meeting(HCCL_E_REMOTE, "Another rank has exited while the communicator was created");
  }
}

int seconds_to_connect() {
  const char* ours = std::getenv("TORCHFERRY_EMULATE_CONNECT_TIMEOUT"); // shorter than HCCL allows: tests do not wait two minutes
  if (ours != nullptr) {
    return std::max(1, std::atoi(ours));
  }
  const char* text = std::getenv("HCCL_CONNECT_TIMEOUT");
  if (text == nullptr || *text == 0) {
    return 120;
  }
  char* end = nullptr;
  const long seconds = std::strtol(text, &end, 10);
  if (*end != 0 || seconds < 120 || seconds > 7200) {
    throw bad_variable(text, "HCCL_CONNECT_TIMEOUT", "range[120, 7200]");
  }
  return static_cast<int>(seconds);
}

std::string random_name() {
  std::array<unsigned char, 12> bytes{};
  if (getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) {
    throw Refusal(HCCL_E_SYSCALL, std::string("getrandom: ") + std::strerror(errno));
  }
  constexpr char digits[] = "0123456789abcdef";
  std::string name;
  for (const unsigned char byte : bytes) {
    name += digits[byte >> 4];
    name += digits[byte & 15];
  }
  return name;
}

} // namespace collectives
