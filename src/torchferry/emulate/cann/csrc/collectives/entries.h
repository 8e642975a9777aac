// What the functions of the C interface share.
#pragma once

#include "communicator.h"
#include "transfers.h"

#include <acl/acl.h>
#include <third_party/hccl/inc/hccl/hccl.h>

#include <functional>
#include <memory>
#include <string>

namespace collectives {

// Handles that are open. Throws Refusal for what is none.
Handle open(HcclComm handle, const std::string& function);
HcclComm publish(const Handle& made);
// Nothing, if it was closed before.
Handle withdraw(HcclComm handle);

// Between HcclGroupStart and HcclGroupEnd of this thread, what is to be done at its end.
bool in_group();
void defer_creation(std::function<void()> creation);
void defer_transfer(const Handle& communicator, aclrtStream stream, const Transfer& transfer);

// Whether the caller has to be told that the communicator does not work any more.
void expect_usable(const Communicator& communicator);

} // namespace collectives
