// Puts collectives and messages on a stream, where a profiler sees them.
#pragma once

#include "collectives.h"
#include "transfers.h"

#include <acl/acl.h>

namespace collectives {

void submit(const Handle& communicator, aclrtStream stream, Operation operation);
void submit(const Handle& communicator, aclrtStream stream, std::vector<Transfer> transfers);

} // namespace collectives
