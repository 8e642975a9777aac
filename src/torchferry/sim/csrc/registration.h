// Which operators go to the host kernels explicitly.
#pragma once

#include <string>
#include <vector>

namespace ferry {

// Operators that also have a composite kernel: PyTorch would take that one instead of asking the fallback.
void route_to_host(const std::vector<std::string>& names);

} // namespace ferry
