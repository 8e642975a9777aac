// What the code that entries.py makes of the operators' tables is written with.
#pragma once

#include "aten.h"
#include "functions.h"

#include <initializer_list>

namespace cann::script {

bool truth(const IValue& value);
IValue item(const IValue& of, int64_t index);
int64_t length(const IValue& of);
IValue listed(std::initializer_list<IValue> values);

// In one of + - * / and // (written 'f').
IValue arithmetic(char operation, const IValue& left, const IValue& right);
// In one of < > and == (written '='), <= (written 'l'), >= (written 'g').
bool compare(char operation, const IValue& left, const IValue& right);

// Into the memory of a tensor, or of each of a list; nothing where the caller does not want the result.
void write(const IValue& target, const IValue& result);

} // namespace cann::script
