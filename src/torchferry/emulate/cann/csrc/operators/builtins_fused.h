// Functions for the tables of fused operators. Each takes and gives values.
#pragma once

#include "values.h"

namespace cann::builtins {

// Attention with its tensors [query, its part with places, key, its part with places, value, bias, what dropout keeps, mask,
// sink], numbers [tokens before, tokens after, heads, sparse mode, kind of bias]; writes [largest, sum, out], in the backward
// pass from [gradient, largest, sum] the gradients [query, its part, key, its part, value, bias, sink].
IValue flash_attention(
    const IValue& tensors,
    const IValue& prefix,
    const IValue& query_ends,
    const IValue& key_ends,
    const IValue& query_start,
    const IValue& key_start,
    const IValue& scale,
    const IValue& keep,
    const IValue& numbers,
    const IValue& layout,
    const IValue& softmax_layout,
    const IValue& results);
IValue flash_attention_backward(
    const IValue& tensors,
    const IValue& prefix,
    const IValue& query_ends,
    const IValue& key_ends,
    const IValue& query_start,
    const IValue& key_start,
    const IValue& scale,
    const IValue& keep,
    const IValue& numbers,
    const IValue& layout,
    const IValue& softmax_layout,
    const IValue& kept_results,
    const IValue& results);

// Attention without a backward pass, with lengths that are counted and caches of blocks: others [bias, mask, blocks, sink],
// numbers [tokens before, tokens after, heads, heads of the keys, sparse mode]; writes [out, logarithm of the sums].
IValue inference_attention(
    const IValue& query,
    const IValue& keys,
    const IValue& values,
    const IValue& others,
    const IValue& query_lengths,
    const IValue& key_lengths,
    const IValue& scale,
    const IValue& numbers,
    const IValue& layout,
    const IValue& results);

} // namespace cann::builtins
