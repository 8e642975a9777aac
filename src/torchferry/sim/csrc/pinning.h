// Pinned host memory.
#pragma once

#include <c10/core/Allocator.h>

namespace ferry {

c10::Allocator* pinned_allocator();

// Whether a pointer lies in memory of that allocator.
bool is_pinned(const void* pointer);

} // namespace ferry
