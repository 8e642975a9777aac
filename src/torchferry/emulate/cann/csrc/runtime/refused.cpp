// Functions that the plugin is linked with, and that need what is not emulated: kernels compiled for the hardware.
#include "error.h"

#include <acl/acl.h>

namespace {

int refuse(const char* function) {
  cann::set_error(std::string(function) + ": the emulated device runs no kernels compiled for the hardware");
  return ACL_ERROR_RT_FEATURE_NOT_SUPPORT;
}

} // namespace

#define REFUSED(function) \
  int function() { \
    return refuse(#function); \
  }

extern "C" {

aclError aclrtBinaryGetFunction(const aclrtBinHandle, const char*, aclrtFuncHandle*) {
  return refuse("aclrtBinaryGetFunction");
}

aclError aclrtBinaryLoadFromData(const void*, size_t, const aclrtBinaryLoadOptions*, aclrtBinHandle*) {
  return refuse("aclrtBinaryLoadFromData");
}

aclError aclrtGetFunctionAddr(aclrtFuncHandle, void**, void**) {
  return refuse("aclrtGetFunctionAddr");
}

REFUSED(rtDevBinaryRegister)
REFUSED(rtFunctionRegister)
REFUSED(rtGetC2cCtrlAddr)
REFUSED(rtKernelLaunch)

} // extern "C"
