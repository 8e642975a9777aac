#include "wording.h"

#include <cstdio>

namespace ferry {

std::string fill_in(
    std::string wording,
    std::initializer_list<std::pair<const char*, std::string>> values) {
  for (const auto& [name, value] : values) {
    const std::string placeholder = std::string("{") + name + "}";
    for (size_t at = wording.find(placeholder); at != std::string::npos;
         at = wording.find(placeholder, at + value.size())) {
      wording.replace(at, placeholder.size(), value);
    }
  }
  return wording;
}

std::string readable_bytes(int64_t bytes) {
  constexpr double kKiB = 1024.0;
  const char* unit = "bytes";
  double amount = static_cast<double>(bytes);
  for (const char* larger : {"KiB", "MiB", "GiB"}) {
    if (amount < kKiB) {
      break;
    }
    amount /= kKiB;
    unit = larger;
  }
  char text[64];
  std::snprintf(text, sizeof(text), bytes < kKiB ? "%.0f %s" : "%.2f %s", amount, unit);
  return text;
}

} // namespace ferry
