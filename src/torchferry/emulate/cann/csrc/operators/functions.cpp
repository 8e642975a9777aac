#include "functions.h"

#include "argument_limits.h"
#include "described.h"
#include "random.h"

#include "../profiling/recording.h"
#include "../runtime/stream.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <acl/acl.h>

#include <memory>
#include <mutex>
#include <string>

namespace cann {
namespace {

struct Executor {
  Function* function;
  Arguments arguments;
  bool is_kept = false; // by the plugin, to be launched again
};

struct Functions {
  std::mutex mutex;
  std::vector<Function*> all;
};

Functions& functions() {
  static auto* known = new Functions;
  return *known;
}

void compute(Function& function, Arguments arguments) {
  const at::AutoDispatchBelowADInplaceOrView below;
  const std::string name = function.name;
  try {
    function.compute(arguments);
  } catch (const Failure&) {
    throw;
  } catch (const c10::IndexError& error) { // data, which a kernel meets
    throw Failure(ACL_ERROR_RT_AICORE_EXCEPTION, headed("EZ9999", name + ": " + error.what_without_backtrace()));
  } catch (const c10::Error& error) { // the toolkit finds this in the first phase; not everything is in limits.tsv
    throw Failure(kInvalidParameter, headed(kParameterError, name + ": " + error.what_without_backtrace()));
  } catch (const std::exception& error) {
    throw Failure(ACL_ERROR_RT_AICORE_EXCEPTION, headed("EZ9999", name + ": " + error.what()));
  }
}

} // namespace

Function::Function(const char* name, Compute compute, bool draws) : name(name), compute(compute), draws(draws) {
  const std::lock_guard lock(functions().mutex);
  functions().all.push_back(this);
}

int plan(Function& function, Arguments arguments, uint64_t* workspace_bytes, void** executor) {
  *workspace_bytes = 0;
  *executor = new Executor{&function, std::move(arguments)};
  ++function.calls;
  return ACL_SUCCESS;
}

int launch(void* handle, void* stream) {
  return guarded([&] {
    auto* executor = static_cast<Executor*>(handle);
    Function* function = executor->function;
    auto arguments = std::make_shared<Arguments>(executor->is_kept ? executor->arguments : std::move(executor->arguments));
    if (!executor->is_kept) {
      delete executor;
    }
    const Call call(function->name);
    Stream& own = stream_of(stream);
    const auto describe = [&] { return Task{"KERNEL", function->name, described(*arguments)}; };
    own.push(told_to_profiler(own, describe, [function, arguments] { compute(*function, *arguments); }));
    if (function->draws && shares_randomness()) {
      own.wait(); // the program draws from the same numbers next
    }
  });
}

} // namespace cann

extern "C" {

int aclSetAclOpExecutorRepeatable(void* executor) {
  static_cast<cann::Executor*>(executor)->is_kept = true;
  return 0;
}

int aclDestroyAclOpExecutor(void* executor) {
  delete static_cast<cann::Executor*>(executor);
  return 0;
}

// Operator functions and how often they were called, as JSON.
const char* torchferry_uses() {
  thread_local std::string text;
  const std::lock_guard lock(cann::functions().mutex);
  text = "{";
  for (const cann::Function* function : cann::functions().all) {
    if (function->calls > 0) {
      text += (text.size() > 1 ? ", \"" : "\"") + std::string(function->name) + "\": " + std::to_string(function->calls);
    }
  }
  text += "}";
  return text.c_str();
}

} // extern "C"
