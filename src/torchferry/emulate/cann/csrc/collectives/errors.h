// What HCCL answers when it refuses or fails: a result code, and the text with the error code that users look up.
#pragma once

#include <third_party/hccl/inc/hccl/hccl_types.h>

#include <stdexcept>
#include <string>

namespace collectives {

// Thrown inside of functions of the C interface; the caller gets the result code, aclGetRecentErrMsg the text.
struct Refusal : std::runtime_error {
  Refusal(HcclResult result, const std::string& text) : std::runtime_error(text), result(result) {}

  HcclResult result;
};

// EI0001
Refusal bad_variable(const std::string& value, const std::string& variable, const std::string& expected);
// EI0003
Refusal bad_argument(
    HcclResult result, const std::string& function, const std::string& value, const std::string& parameter, const std::string& expected);
Refusal null_pointer(const std::string& function, const std::string& parameter);
// EI0004
Refusal bad_rank_table(const std::string& file, const std::string& reason);
// EI0007
Refusal no_memory(const std::string& resource, uint64_t bytes);
// EI0015
Refusal no_meeting(HcclResult result, const std::string& reason);
// Of CANN, not of this emulation
Refusal not_emulated(const std::string& function);

// EI0005, of work on a stream
std::string arguments_differ(
    const std::string& function, const std::string& group, const std::string& parameter, const std::string& local, const std::string& remote);
// EI0002, of work on a stream
std::string waited_in_vain(uint32_t peer, const std::string& task, const std::string& operation, const std::string& communicator);

// Runs the body of a function of the C interface; what it throws becomes a result code.
HcclResult refused(const Refusal& refusal);
HcclResult refused(const std::exception& error);

template <typename Body>
HcclResult guarded(const Body& body) {
  try {
    body();
    return HCCL_SUCCESS;
  } catch (const Refusal& refusal) {
    return refused(refusal);
  } catch (const std::exception& error) {
    return refused(error);
  }
}

} // namespace collectives
