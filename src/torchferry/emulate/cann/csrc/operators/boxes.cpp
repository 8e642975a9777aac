#include "builtins_boxes.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>
#include <ATen/ops/maximum.h>
#include <ATen/ops/minimum.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <string>
#include <utility>

namespace cann::builtins {
namespace {

using at::Tensor;

constexpr double kTiny = 1e-9;

// A number with its slope by each of eight others.
struct Slope {
  double value = 0;
  std::array<double, 8> by{};

  Slope() = default;
  Slope(double value) : value(value) {}
};

Slope joined(const Slope& a, const Slope& b, double value, double by_a, double by_b) {
  Slope made(value);
  for (size_t i = 0; i < made.by.size(); ++i) {
    made.by[i] = by_a * a.by[i] + by_b * b.by[i];
  }
  return made;
}

Slope operator+(const Slope& a, const Slope& b) { return joined(a, b, a.value + b.value, 1, 1); }
Slope operator-(const Slope& a, const Slope& b) { return joined(a, b, a.value - b.value, 1, -1); }
Slope operator*(const Slope& a, const Slope& b) { return joined(a, b, a.value * b.value, b.value, a.value); }
Slope operator/(const Slope& a, const Slope& b) {
  return joined(a, b, a.value / b.value, 1 / b.value, -a.value / (b.value * b.value));
}
Slope least(const Slope& a, const Slope& b) { return a.value <= b.value ? a : b; }
Slope most(const Slope& a, const Slope& b) { return a.value >= b.value ? a : b; }
Slope atan(const Slope& a) { return joined(a, a, std::atan(a.value), 1 / (1 + a.value * a.value), 0); }

struct Box {
  Slope left, top, right, bottom;

  Slope width() const { return right - left; }
  Slope height() const { return bottom - top; }
};

Box box_at(const Tensor& boxes, int64_t index, bool is_centered, size_t first) {
  const auto place = boxes.accessor<float, 2>();
  std::array<Slope, 4> numbers;
  for (size_t i = 0; i < numbers.size(); ++i) {
    numbers[i] = Slope(place[static_cast<int64_t>(i)][index]);
    numbers[i].by[first + i] = 1;
  }
  if (!is_centered) {
    return {numbers[0], numbers[1], numbers[2], numbers[3]};
  }
  const Slope half_width = numbers[2] / Slope(2);
  const Slope half_height = numbers[3] / Slope(2);
  return {numbers[0] - half_width, numbers[1] - half_height, numbers[0] + half_width, numbers[1] + half_height};
}

// How far the centers are from each other, against the diagonal of what encloses both.
Slope center_distance(const Box& a, const Box& b) {
  const Slope width = most(a.right, b.right) - least(a.left, b.left);
  const Slope height = most(a.bottom, b.bottom) - least(a.top, b.top);
  const Slope across = b.left + b.right - a.left - a.right;
  const Slope down = b.top + b.bottom - a.top - a.bottom;
  return (across * across + down * down) / Slope(4) / (width * width + height * height + Slope(kTiny));
}

struct Overlap {
  Slope amount;
  double angle = 0; // of the second box's diagonal less the first's
};

Overlap overlap_of(const std::string& kind, const Box& a, const Box& b, bool over_second) {
  const Slope shared = most(Slope(0), least(a.right, b.right) - most(a.left, b.left)) *
      most(Slope(0), least(a.bottom, b.bottom) - most(a.top, b.top));
  const Slope both = a.width() * a.height() + b.width() * b.height() - shared + Slope(kTiny);
  const Slope ratio = shared / (over_second ? b.width() * b.height() + Slope(kTiny) : both);
  if (kind == "giou") {
    const Slope around = (most(a.right, b.right) - least(a.left, b.left)) * (most(a.bottom, b.bottom) - least(a.top, b.top));
    return {ratio - (around - both) / (around + Slope(kTiny))};
  }
  const Slope near = ratio - center_distance(a, b);
  if (kind == "diou") {
    return {near};
  }
  TORCH_CHECK(kind == "ciou", "no overlap is called ", kind);
  const Slope angle = atan(b.width() / (b.height() + Slope(kTiny))) - atan(a.width() / (a.height() + Slope(kTiny)));
  const Slope shape = angle * angle * Slope(4 / (std::numbers::pi * std::numbers::pi));
  const Slope weight(shape.value / (1 + kTiny - ratio.value + shape.value)); // has no slope of its own
  return {near - shape * weight, angle.value};
}

Tensor plain(const IValue& boxes) {
  return boxes.toTensor().to(at::kFloat).contiguous();
}

int64_t sample_count(int64_t given, double length, int64_t bins) {
  return given > 0 ? given : static_cast<int64_t>(std::ceil(length / static_cast<double>(bins)));
}

// Where a region lies among the features.
struct Region {
  int64_t image;
  double top, left, height, width;
};

enum EndMode { kAsGiven = 0, kOneMore = 1, kOneMoreToo = 2, kHalfPixel = 3 };

Region region_of(const Tensor& regions, int64_t index, double scale, int64_t end_mode) {
  const auto place = regions.accessor<float, 2>()[index];
  const double shift = end_mode == kHalfPixel ? 0.5 : 0;
  const double more = end_mode == kOneMore || end_mode == kOneMoreToo ? 1 : 0;
  const double left = place[1] * scale - shift;
  const double top = place[2] * scale - shift;
  double width = (place[3] + more) * scale - shift - left;
  double height = (place[4] + more) * scale - shift - top;
  if (end_mode != kHalfPixel) {
    width = std::max(width, 1.0);
    height = std::max(height, 1.0);
  }
  return {static_cast<int64_t>(place[0]), top, left, height, width};
}

// The neighbours of a place between pixels, and what each counts; all 0 outside.
struct Corners {
  std::array<std::array<int64_t, 2>, 4> places{};
  std::array<float, 4> weights{};
};

std::pair<int64_t, double> clipped(double place, int64_t size) {
  const double inside = std::max(place, 0.0);
  const auto low = static_cast<int64_t>(inside);
  return low >= size - 1 ? std::make_pair(size - 1, 0.0) : std::make_pair(low, inside - static_cast<double>(low));
}

Corners corners_at(double y, double x, int64_t height, int64_t width) {
  if (y < -1 || y > static_cast<double>(height) || x < -1 || x > static_cast<double>(width)) {
    return {};
  }
  const auto [top, down] = clipped(y, height);
  const auto [left, across] = clipped(x, width);
  const int64_t bottom = std::min(top + 1, height - 1);
  const int64_t right = std::min(left + 1, width - 1);
  return {
      {{{top, left}, {top, right}, {bottom, left}, {bottom, right}}},
      {static_cast<float>((1 - down) * (1 - across)),
       static_cast<float>((1 - down) * across),
       static_cast<float>(down * (1 - across)),
       static_cast<float>(down * across)}};
}

struct Pooling {
  double scale;
  int64_t height, width, samples, end_mode;
};

// Calls `visit(region, image, row, column, place, weight)` for each pixel that counts.
template <typename Visit>
void visit_pixels(const Tensor& regions, const Pooling& of, int64_t feature_height, int64_t feature_width, Visit visit) {
  for (int64_t index = 0; index < regions.size(0); ++index) {
    const Region region = region_of(regions, index, of.scale, of.end_mode);
    const double bin_height = region.height / static_cast<double>(of.height);
    const double bin_width = region.width / static_cast<double>(of.width);
    const int64_t down = sample_count(of.samples, region.height, of.height);
    const int64_t across = sample_count(of.samples, region.width, of.width);
    const auto share = static_cast<float>(1.0 / static_cast<double>(std::max<int64_t>(down * across, 1)));
    for (int64_t bin = 0; bin < of.height * of.width; ++bin) {
      const int64_t row = bin / of.width;
      const int64_t column = bin % of.width;
      for (int64_t sample = 0; sample < down * across; ++sample) {
        const double y = region.top + bin_height * (static_cast<double>(row) + (static_cast<double>(sample / across) + 0.5) / static_cast<double>(down));
        const double x = region.left + bin_width * (static_cast<double>(column) + (static_cast<double>(sample % across) + 0.5) / static_cast<double>(across));
        const Corners corners = corners_at(y, x, feature_height, feature_width);
        for (size_t i = 0; i < corners.places.size(); ++i) {
          visit(index, region.image, row, column, corners.places[i], corners.weights[i] * share);
        }
      }
    }
  }
}

} // namespace

IValue box_overlap(const IValue& kind, const IValue& boxes, const IValue& others, const IValue& is_centered, const IValue& is_cross, const IValue& mode) {
  const Tensor first = plain(boxes);
  const Tensor second = plain(others);
  const int64_t rows = is_cross.toBool() ? second.size(1) : 1;
  Tensor amounts = at::zeros({rows, first.size(1)});
  Tensor angles = at::zeros_like(amounts);
  const bool over_second = mode.toStringRef() == "iof";
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < first.size(1); ++j) {
      const Box a = box_at(first, j, is_centered.toBool(), 0);
      const Box b = box_at(second, is_cross.toBool() ? i : j, is_centered.toBool(), 4);
      const Overlap found = overlap_of(kind.toStringRef(), a, b, over_second);
      amounts.accessor<float, 2>()[i][j] = static_cast<float>(found.amount.value);
      angles.accessor<float, 2>()[i][j] = static_cast<float>(found.angle);
    }
  }
  return c10::List<Tensor>({amounts, angles});
}

IValue box_overlap_backward(const IValue& kind, const IValue& grad, const IValue& boxes, const IValue& others, const IValue& is_centered) {
  const Tensor first = plain(boxes);
  const Tensor second = plain(others);
  const Tensor by_amount = plain(grad).reshape({-1});
  Tensor of_first = at::zeros_like(first);
  Tensor of_second = at::zeros_like(second);
  for (int64_t j = 0; j < first.size(1); ++j) {
    const Box a = box_at(first, j, is_centered.toBool(), 0);
    const Box b = box_at(second, j, is_centered.toBool(), 4);
    const Slope amount = overlap_of(kind.toStringRef(), a, b, false).amount;
    const double given = by_amount.accessor<float, 1>()[j];
    for (int64_t i = 0; i < 4; ++i) {
      of_first.accessor<float, 2>()[i][j] = static_cast<float>(amount.by[static_cast<size_t>(i)] * given);
      of_second.accessor<float, 2>()[i][j] = static_cast<float>(amount.by[static_cast<size_t>(i + 4)] * given);
    }
  }
  return c10::List<Tensor>({of_first, of_second});
}

IValue box_iou(const IValue& boxes, const IValue& others, const IValue& over_second, const IValue& epsilon) {
  const double more = epsilon.toDouble();
  const Tensor first = plain(boxes).unsqueeze(0);
  const Tensor second = plain(others).unsqueeze(1);
  const auto side = [](const Tensor& of, int64_t index) { return of.select(2, index); };
  const auto area = [&](const Tensor& of) { return (side(of, 2) - side(of, 0) + more) * (side(of, 3) - side(of, 1) + more); };
  const Tensor width = at::minimum(side(first, 2), side(second, 2)) - at::maximum(side(first, 0), side(second, 0));
  const Tensor height = at::minimum(side(first, 3), side(second, 3)) - at::maximum(side(first, 1), side(second, 1));
  const Tensor shared = width.clamp_min(0) * height.clamp_min(0);
  return shared / (over_second.toBool() ? area(second).expand_as(shared) : area(first) + area(second) - shared);
}

IValue kept_boxes(const IValue& boxes, const IValue& scores, const IValue& least_score, const IValue& most_overlap, const IValue& most) {
  const Tensor all = plain(boxes);
  const Tensor score = plain(scores);
  const Tensor order = std::get<1>(score.sort(true, 0, true)).contiguous();
  const Tensor overlaps = box_iou(all, all, false, 0.0).toTensor().contiguous();
  std::vector<int64_t> kept;
  for (int64_t i = 0; i < order.size(0) && static_cast<int64_t>(kept.size()) < most.toInt(); ++i) {
    const int64_t place = order.accessor<int64_t, 1>()[i];
    if (!(score.accessor<float, 1>()[place] > least_score.toDouble())) {
      break;
    }
    const auto covers = [&](int64_t other) { return overlaps.accessor<float, 2>()[other][place] > most_overlap.toDouble(); };
    if (std::none_of(kept.begin(), kept.end(), covers)) {
      kept.push_back(place);
    }
  }
  return at::tensor(kept, at::kLong);
}

IValue kept_boxes_of_classes(
    const IValue& boxes,
    const IValue& scores,
    const IValue& least_score,
    const IValue& most_overlap,
    const IValue& most_of_class,
    const IValue& most) {
  const Tensor all = plain(boxes); // (batch, boxes, 1 or classes, 4)
  const Tensor score = plain(scores); // (batch, boxes, classes)
  const int64_t count = most.toInt();
  Tensor kept = at::zeros({all.size(0), count, 4});
  Tensor kept_scores = at::zeros({all.size(0), count});
  Tensor kept_classes = at::zeros({all.size(0), count});
  Tensor counts = at::zeros({all.size(0)}, at::kInt);
  for (int64_t image = 0; image < all.size(0); ++image) {
    std::vector<Tensor> found, found_scores, found_classes;
    for (int64_t one = 0; one < score.size(2); ++one) {
      const Tensor of_class = all[image].select(1, all.size(2) == 1 ? 0 : one);
      const Tensor of_scores = score[image].select(1, one);
      const Tensor places = kept_boxes(of_class, of_scores, least_score, most_overlap, most_of_class).toTensor();
      found.push_back(of_class.index_select(0, places));
      found_scores.push_back(of_scores.index_select(0, places));
      found_classes.push_back(at::full({places.size(0)}, static_cast<double>(one)));
    }
    const Tensor every = at::cat(found_scores);
    const Tensor best = std::get<1>(every.sort(true, 0, true)).narrow(0, 0, std::min(count, every.size(0)));
    kept[image].narrow(0, 0, best.size(0)).copy_(at::cat(found).index_select(0, best));
    kept_scores[image].narrow(0, 0, best.size(0)).copy_(every.index_select(0, best));
    kept_classes[image].narrow(0, 0, best.size(0)).copy_(at::cat(found_classes).index_select(0, best));
    counts[image].fill_(best.size(0));
  }
  return c10::List<Tensor>({kept, kept_scores, kept_classes, counts});
}

IValue roi_align(
    const IValue& features,
    const IValue& regions,
    const IValue& scale,
    const IValue& height,
    const IValue& width,
    const IValue& samples,
    const IValue& end_mode) {
  const Tensor given = plain(features);
  const Tensor places = plain(regions);
  const Pooling of{scale.toDouble(), height.toInt(), width.toInt(), samples.toInt(), end_mode.toInt()};
  Tensor made = at::zeros({places.size(0), given.size(1), of.height, of.width});
  auto into = made.accessor<float, 4>();
  const auto from = given.accessor<float, 4>();
  visit_pixels(places, of, given.size(2), given.size(3), [&](int64_t region, int64_t image, int64_t row, int64_t column, const auto& place, float weight) {
    for (int64_t channel = 0; channel < given.size(1); ++channel) {
      into[region][channel][row][column] += from[image][channel][place[0]][place[1]] * weight;
    }
  });
  return made;
}

IValue roi_align_backward(
    const IValue& grad,
    const IValue& regions,
    const IValue& sizes,
    const IValue& scale,
    const IValue& height,
    const IValue& width,
    const IValue& samples,
    const IValue& end_mode) {
  const Tensor given = plain(grad);
  const Tensor places = plain(regions);
  const Pooling of{scale.toDouble(), height.toInt(), width.toInt(), samples.toInt(), end_mode.isNone() ? kOneMore : end_mode.toInt()};
  Tensor made = at::zeros(sizes.toIntVector());
  auto into = made.accessor<float, 4>();
  const auto from = given.accessor<float, 4>();
  visit_pixels(places, of, made.size(2), made.size(3), [&](int64_t region, int64_t image, int64_t row, int64_t column, const auto& place, float weight) {
    for (int64_t channel = 0; channel < made.size(1); ++channel) {
      into[image][channel][place[0]][place[1]] += from[region][channel][row][column] * weight;
    }
  });
  return made;
}

} // namespace cann::builtins
