#include "errors.h"

#include "../runtime/error.h"

#include <iterator>

namespace collectives {

using cann::headed;

// Names and wording of the codes: CANN's documentation of error codes, hcomm/docs/en/error_codes.

Refusal bad_variable(const std::string& value, const std::string& variable, const std::string& expected) {
  return Refusal(
      HCCL_E_PARA,
      headed(
          "Config_Error_Invalid_Environment_Variable(EI0001)",
          "Value " + value + " for environment variable " + variable + " is invalid. Expected value: " + expected + "."));
}

Refusal bad_argument(
    HcclResult result, const std::string& function, const std::string& value, const std::string& parameter, const std::string& expected) {
  return Refusal(
      result,
      headed(
          "Invalid_Argument_Collective_Communication_Operator(EI0003)",
          "Failed to verify parameters of operator " + function + " (operator name). Value " + value + " for parameter " + parameter +
              " is invalid. The expected value is " + expected + "."));
}

Refusal null_pointer(const std::string& function, const std::string& parameter) {
  return bad_argument(HCCL_E_PTR, function, "nullptr", parameter, "non-null pointer");
}

Refusal bad_rank_table(const std::string& file, const std::string& reason) {
  return Refusal(
      HCCL_E_PARA,
      headed("File_Operation_Error_Parse(EI0004)", "Failed to parse the ranktable file " + file + ". Reason: " + reason));
}

Refusal no_memory(const std::string& resource, uint64_t bytes) {
  return Refusal(
      HCCL_E_MEMORY,
      headed(
          "Resource_Error(EI0007)",
          "Failed to allocate resource " + resource + " with info size:" + std::to_string(bytes) +
              " bytes. Reason: Resources are exhausted."));
}

Refusal no_meeting(HcclResult result, const std::string& reason) {
  return Refusal(
      result,
      headed(
          "Communication_Error_Ranktable_Detect(EI0015)",
          "Failed to collect cluster information of the communicator based on rootInfo detection. Reason: " + reason +
              ". The time to wait is set with HCCL_CONNECT_TIMEOUT."));
}

Refusal not_emulated(const std::string& function) {
  return Refusal(HCCL_E_NOT_SUPPORT, headed("TorchFerry", function + " is not part of the emulated CANN"));
}

std::string arguments_differ(
    const std::string& function, const std::string& group, const std::string& parameter, const std::string& local, const std::string& remote) {
  return headed(
      "Invalid_Argument(EI0005)",
      "The arguments for collective communication are inconsistent between ranks, operator " + function + ", group " + group +
          ", parameter " + parameter + ", local rank " + local + ", remote rank " + remote + ".");
}

std::string waited_in_vain(uint32_t peer, const std::string& task, const std::string& operation, const std::string& communicator) {
  return headed(
      "Communication_Error_Timeout(EI0002)",
      "A timeout occurs when the Notify register waits for execution. Waiting peer rank: " + std::to_string(peer) +
          "; task information: " + task + "; communication operator information: " + operation + "; communicator: " + communicator + ".");
}

HcclResult refused(const Refusal& refusal) {
  cann::set_error(refusal.what());
  return refusal.result;
}

HcclResult refused(const std::exception& error) {
  cann::set_error(error.what());
  return HCCL_E_INTERNAL;
}

} // namespace collectives

extern "C" const char* HcclGetErrorString(HcclResult code) {
  // The comments of HcclResult in hccl_types.h, which are these strings.
  static const char* const texts[] = {
      "no error",
      "parameter error",
      "empty pointer",
      "memory error",
      "internal error",
      "not support feature",
      "not found specific resource",
      "resource unavailable",
      "call system interface error",
      "timeout",
      "open file fail",
      "tcp connect fail",
      "roce connect fail",
      "tcp transfer fail",
      "roce transfer fail",
      "call runtime api fail",
      "call driver api fail",
      "call profiling api fail",
      "call cce api fail",
      "call network api fail",
      "try again",
      "error cqe",
      "error communicator suspending",
      "retry constraint",
      "out of memory",
  };
  const auto index = static_cast<size_t>(code);
  return index < std::size(texts) ? texts[index] : "unknown error";
}
