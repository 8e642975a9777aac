// How an operator function is written in C++: OPERATOR(aclnnName) { ... }, its arguments `a` in the order of its interface.
#pragma once

#include "functions.h"

#define OPERATOR(name) void compute_##name(cann::Arguments& a)
