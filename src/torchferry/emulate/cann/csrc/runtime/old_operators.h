// Operators of the old way: called by a name, with descriptions of tensors and named attributes.
#pragma once

#include <acl/acl.h>

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <variant>
#include <vector>

namespace cann {

struct OldTensor {
  std::string name;
  int dtype = ACL_DT_UNDEFINED;
  int format = ACL_FORMAT_ND;
  std::vector<int64_t> sizes;
  bool on_host = false; // a constant, read when the operator is called
  void* data = nullptr;
  size_t bytes = 0;
};

using Attribute = std::variant<bool, int64_t, float, std::string, std::vector<uint8_t>, std::vector<int64_t>, std::vector<float>, std::vector<std::vector<int64_t>>>;

struct OldCall {
  std::string name;
  std::vector<OldTensor> inputs;
  std::vector<OldTensor> outputs;
  std::map<std::string, Attribute> attributes;
};

// What computes them; says false for a name that it does not know. The operators' library sets it.
using OldOperators = bool (*)(const OldCall& call, aclrtStream stream);
void set_old_operators(OldOperators operators);

} // namespace cann
