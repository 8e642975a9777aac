// Functions of HCCL that are not emulated: memory that cards show each other, other network adapters. They say so.
#include "errors.h"

#define TF_REFUSED(name)                                                          \
  extern "C" HcclResult name() {                                                  \
    return collectives::guarded([] { throw collectives::not_emulated(#name); }); \
  }

TF_REFUSED(HcclCommRegister)
TF_REFUSED(HcclCommDeregister)
TF_REFUSED(HcclCommExchangeMem)
TF_REFUSED(HcclCommWorkingDevNicSet)
TF_REFUSED(HcclCommSetMemoryRange)
TF_REFUSED(HcclCommUnsetMemoryRange)
TF_REFUSED(HcclCommActivateCommMemory)
TF_REFUSED(HcclCommDeactivateCommMemory)
TF_REFUSED(HcclCommSymWinRegister)
TF_REFUSED(HcclCommSymWinDeregister)
TF_REFUSED(HcclCommSymWinGet)
TF_REFUSED(HcclConfigGetInfo)
TF_REFUSED(HcclCommGetStatus)
TF_REFUSED(HcclCommRegCommStateCallback)
