#include "visible_devices.h"

#include <atomic>
#include <cctype>
#include <cstdlib>
#include <mutex>
#include <set>

namespace ferry {
namespace {

std::mutex lock;
int machine_devices = 1;
std::string variable;
constexpr int kUndecided = -1;
std::atomic<int> decided{kUndecided};

std::string_view stripped(std::string_view text) {
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.front()))) {
    text.remove_prefix(1);
  }
  return text;
}

// The number that an entry begins with, -1 for none: CUDA reads "1x" as 1.
int leading_number(std::string_view entry) {
  constexpr int kMore = 1 << 20; // than any machine has
  int number = -1;
  for (const char digit : stripped(entry)) {
    if (!std::isdigit(static_cast<unsigned char>(digit))) {
      break;
    }
    number = std::min(kMore, (number < 0 ? 0 : number * 10) + (digit - '0'));
  }
  return number;
}

// As CUDA reads its variable: an entry that is no device ends the list, one that comes twice leaves no device.
// Ascend's documents say the first as well. What other vendors do with such lists is not documented.
int count_listed(std::string_view list) {
  std::set<int> seen;
  while (true) {
    const size_t comma = list.find(',');
    const int number = leading_number(list.substr(0, comma));
    if (number < 0 || number >= machine_devices) {
      break;
    }
    if (!seen.insert(number).second) {
      return 0;
    }
    if (comma == std::string_view::npos) {
      break;
    }
    list.remove_prefix(comma + 1);
  }
  return static_cast<int>(seen.size());
}

int count_now() {
  const char* list = variable.empty() ? nullptr : std::getenv(variable.c_str());
  return list == nullptr ? machine_devices : count_listed(list);
}

} // namespace

void set_machine(int64_t devices, std::string limiting_variable) {
  std::lock_guard<std::mutex> guard(lock);
  machine_devices = static_cast<int>(devices);
  variable = std::move(limiting_variable);
}

int visible_devices() {
  const int number = decided.load(std::memory_order_relaxed);
  if (number != kUndecided) {
    return number;
  }
  std::lock_guard<std::mutex> guard(lock);
  return count_now();
}

void begin_use() {
  if (decided.load(std::memory_order_relaxed) != kUndecided) {
    return;
  }
  std::lock_guard<std::mutex> guard(lock);
  decided = count_now();
}

} // namespace ferry
