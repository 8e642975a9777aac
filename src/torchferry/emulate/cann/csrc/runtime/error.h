// What went wrong, as the toolkit's callers ask for it: a code now, the text with the next question.
#pragma once

#include <stdexcept>
#include <string>

namespace cann {

// Thrown by work on a stream, and inside of functions of the C interface.
struct Failure : std::runtime_error {
  Failure(int code, const std::string& text) : std::runtime_error(text), code(code) {}

  int code;
};

// What aclGetRecentErrMsg answers next, on this thread.
void set_error(std::string message);

// A message with the head that the toolkit's have: process, time, an error code of its own ("EL0004").
std::string headed(const char* error_code, const std::string& message);
void set_error(const char* error_code, const std::string& message);

// Keeps the failure's text for aclGetRecentErrMsg; the answer is its code.
int told(const Failure& failure);

// Runs the body of a function of the C interface; what it throws becomes a code.
template <typename Body>
int guarded(const Body& body) {
  try {
    body();
    return 0;
  } catch (const Failure& failure) {
    return told(failure);
  } catch (const std::exception& error) {
    return told(Failure(500000, error.what())); // ACL_ERROR_INTERNAL_ERROR
  }
}

} // namespace cann
