// Filling the vendor's message forms.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <utility>

namespace ferry {

// Replace each {name} of a wording by its value.
std::string fill_in(
    std::string wording,
    std::initializer_list<std::pair<const char*, std::string>> values);

// 1.50 GiB, as PyTorch's own allocators write it.
std::string readable_bytes(int64_t bytes);

} // namespace ferry
