#include "data_types.h"

#include "errors.h"

#include <acl/acl.h>

#include <array>
#include <string_view>
#include <vector>

namespace collectives {
namespace {

// Numbers of hccl_types.h that the headers of earlier releases do not name.
constexpr auto kHifloat8 = static_cast<HcclDataType>(14);
constexpr auto kFloat8E4M3 = static_cast<HcclDataType>(15);
constexpr auto kFloat8E5M2 = static_cast<HcclDataType>(16);
constexpr auto kFloat8E8M0 = static_cast<HcclDataType>(17);

struct Type {
  HcclDataType type;
  size_t bytes;
  const char* name;
};

constexpr std::array kTypes{
    Type{HCCL_DATA_TYPE_INT8, 1, "int8"},
    Type{HCCL_DATA_TYPE_INT16, 2, "int16"},
    Type{HCCL_DATA_TYPE_INT32, 4, "int32"},
    Type{HCCL_DATA_TYPE_FP16, 2, "float16"},
    Type{HCCL_DATA_TYPE_FP32, 4, "float32"},
    Type{HCCL_DATA_TYPE_INT64, 8, "int64"},
    Type{HCCL_DATA_TYPE_UINT64, 8, "uint64"},
    Type{HCCL_DATA_TYPE_UINT8, 1, "uint8"},
    Type{HCCL_DATA_TYPE_UINT16, 2, "uint16"},
    Type{HCCL_DATA_TYPE_UINT32, 4, "uint32"},
    Type{HCCL_DATA_TYPE_FP64, 8, "float64"},
    Type{HCCL_DATA_TYPE_BFP16, 2, "bfloat16"},
    Type{kHifloat8, 1, "hifloat8"},
    Type{kFloat8E4M3, 1, "float8-e4m3"},
    Type{kFloat8E5M2, 1, "float8-e5m2"},
    Type{kFloat8E8M0, 1, "float8-e8m0"},
};

const Type* find(HcclDataType type) {
  for (const Type& known : kTypes) {
    if (known.type == type) {
      return &known;
    }
  }
  return nullptr;
}

// Generations as the documentation groups the products.
enum Chip : uint32_t { a1 = 1, p310 = 2, a2 = 4, a3 = 8, a5 = 16 };

Chip chip_of(std::string_view name) {
  if (name.starts_with("Ascend950")) {
    return a5;
  }
  if (name.starts_with("Ascend910_93")) {
    return a3;
  }
  if (name.starts_with("Ascend910B") && name.size() > 10 && name[10] >= '1' && name[10] <= '9') {
    return a2;
  }
  if (name.starts_with("Ascend310P")) {
    return p310;
  }
  return name.starts_with("Ascend910") ? a1 : a2;
}

Chip chip() {
  const char* name = aclrtGetSocName();
  return chip_of(name == nullptr ? "" : name);
}

// Sections "dataType" and "op" of hccl/docs/zh/api_ref/comm_op_interface/Hccl*.md of CANN (2026), for each product.
constexpr uint32_t kEvery = a1 | p310 | a2 | a3 | a5;

struct Allowed {
  HcclDataType type;
  uint32_t chips;
};

constexpr std::array kReduced{ // AllReduce, Reduce, ReduceScatter
    Allowed{HCCL_DATA_TYPE_INT8, kEvery},
    Allowed{HCCL_DATA_TYPE_INT16, p310 | a2 | a3 | a5},
    Allowed{HCCL_DATA_TYPE_INT32, kEvery},
    Allowed{HCCL_DATA_TYPE_INT64, a1 | a2 | a3 | a5},
    Allowed{HCCL_DATA_TYPE_FP16, kEvery},
    Allowed{HCCL_DATA_TYPE_FP32, kEvery},
    Allowed{HCCL_DATA_TYPE_BFP16, a2 | a3 | a5},
    Allowed{HCCL_DATA_TYPE_UINT64, a5},
    Allowed{HCCL_DATA_TYPE_FP64, a5},
};

constexpr std::array kReducedUneven{ // ReduceScatterV
    Allowed{HCCL_DATA_TYPE_INT8, a2 | a3 | a5},
    Allowed{HCCL_DATA_TYPE_INT16, p310 | a2 | a3 | a5},
    Allowed{HCCL_DATA_TYPE_INT32, a2 | a3 | a5},
    Allowed{HCCL_DATA_TYPE_INT64, a3 | a5},
    Allowed{HCCL_DATA_TYPE_FP16, p310 | a2 | a3 | a5},
    Allowed{HCCL_DATA_TYPE_FP32, p310 | a2 | a3 | a5},
    Allowed{HCCL_DATA_TYPE_BFP16, a2 | a3 | a5},
};

constexpr std::array kMoved{ // all others
    Allowed{HCCL_DATA_TYPE_INT8, kEvery},
    Allowed{HCCL_DATA_TYPE_UINT8, kEvery},
    Allowed{HCCL_DATA_TYPE_INT16, kEvery},
    Allowed{HCCL_DATA_TYPE_UINT16, kEvery},
    Allowed{HCCL_DATA_TYPE_INT32, kEvery},
    Allowed{HCCL_DATA_TYPE_UINT32, kEvery},
    Allowed{HCCL_DATA_TYPE_INT64, kEvery},
    Allowed{HCCL_DATA_TYPE_UINT64, kEvery},
    Allowed{HCCL_DATA_TYPE_FP16, kEvery},
    Allowed{HCCL_DATA_TYPE_FP32, kEvery},
    Allowed{HCCL_DATA_TYPE_FP64, kEvery},
    Allowed{HCCL_DATA_TYPE_BFP16, a2 | a3 | a5},
    Allowed{kHifloat8, a5},
    Allowed{kFloat8E4M3, a5},
    Allowed{kFloat8E5M2, a5},
    Allowed{kFloat8E8M0, a5},
};

// The product of int16 and bfloat16 is none of these; of 310P no max, min or prod of int16.
bool takes(Chip chip, Kind kind, HcclDataType type, HcclReduceOp op) {
  if (op == HCCL_REDUCE_SUM) {
    return true;
  }
  if (chip == p310) {
    return type != HCCL_DATA_TYPE_INT16 && kind != Kind::reduce_scatter_v;
  }
  if (op != HCCL_REDUCE_PROD) {
    return true;
  }
  const bool is_refused_type = type == HCCL_DATA_TYPE_INT16 || type == HCCL_DATA_TYPE_BFP16;
  return !is_refused_type && (kind != Kind::reduce_scatter_v || chip == a5);
}

template <typename Table>
void check_in(const Table& table, Kind kind, HcclDataType type) {
  const Chip here = chip();
  std::string expected;
  for (const Allowed& allowed : table) {
    if ((allowed.chips & here) == 0) {
      continue;
    }
    if (allowed.type == type) {
      return;
    }
    expected += (expected.empty() ? "" : ", ") + name_of(allowed.type);
  }
  throw bad_argument(HCCL_E_NOT_SUPPORT, name_of(kind), name_of(type), "dataType", expected);
}

} // namespace

size_t bytes_of(HcclDataType type) {
  const Type* found = find(type);
  return found == nullptr ? 0 : found->bytes;
}

std::string name_of(HcclDataType type) {
  const Type* found = find(type);
  return found == nullptr ? "HcclDataType(" + std::to_string(type) + ")" : found->name;
}

std::string name_of(HcclReduceOp op) {
  switch (op) {
    case HCCL_REDUCE_SUM:
      return "sum";
    case HCCL_REDUCE_PROD:
      return "prod";
    case HCCL_REDUCE_MAX:
      return "max";
    case HCCL_REDUCE_MIN:
      return "min";
    default:
      return "HcclReduceOp(" + std::to_string(op) + ")";
  }
}

std::string name_of(Kind kind) {
  static constexpr std::array names{
      "HcclAllReduce",
      "HcclReduce",
      "HcclReduceScatter",
      "HcclReduceScatterV",
      "HcclBroadcast",
      "HcclAllGather",
      "HcclAllGatherV",
      "HcclScatter",
      "HcclAlltoAll",
      "HcclAlltoAllV",
      "HcclAlltoAllVC",
      "HcclBarrier",
      "HcclSend",
      "HcclRecv",
  };
  return names.at(static_cast<size_t>(kind));
}

void check_type(Kind kind, HcclDataType type) {
  if (kind == Kind::all_reduce || kind == Kind::reduce || kind == Kind::reduce_scatter) {
    check_in(kReduced, kind, type);
  } else if (kind == Kind::reduce_scatter_v) {
    check_in(kReducedUneven, kind, type);
  } else {
    check_in(kMoved, kind, type);
  }
}

void check_reduction(Kind kind, HcclDataType type, HcclReduceOp op) {
  check_type(kind, type);
  if (op < HCCL_REDUCE_SUM || op > HCCL_REDUCE_MIN) {
    throw bad_argument(HCCL_E_NOT_SUPPORT, name_of(kind), name_of(op), "op", "sum, prod, max, min");
  }
  if (!takes(chip(), kind, type, op)) {
    throw bad_argument(
        HCCL_E_NOT_SUPPORT, name_of(kind), name_of(type), "dataType", "a data type that op " + name_of(op) + " takes on this product");
  }
}

} // namespace collectives
