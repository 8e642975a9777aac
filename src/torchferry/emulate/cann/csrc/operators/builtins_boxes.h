// Functions for the tables of operators on boxes. Each takes and gives values.
#pragma once

#include "values.h"

namespace cann::builtins {

// How much boxes (4, n) overlap each other: "giou", "diou" or "ciou"; [what is asked for, the difference of the angles].
IValue box_overlap(const IValue& kind, const IValue& boxes, const IValue& others, const IValue& is_centered, const IValue& is_cross, const IValue& mode);

// The gradients of both boxes, that of each box with the one in its place.
IValue box_overlap_backward(const IValue& kind, const IValue& grad, const IValue& boxes, const IValue& others, const IValue& is_centered);

// The intersection over the union, or over the second box alone, of boxes (n, 4) and (m, 4): (m, n).
IValue box_iou(const IValue& boxes, const IValue& others, const IValue& over_second, const IValue& epsilon);

// Places of the boxes that no box with a higher score covers; the highest score first.
IValue kept_boxes(const IValue& boxes, const IValue& scores, const IValue& least_score, const IValue& most_overlap, const IValue& most);

// [boxes, scores, classes, how many] of each of the batch.
IValue kept_boxes_of_classes(
    const IValue& boxes,
    const IValue& scores,
    const IValue& least_score,
    const IValue& most_overlap,
    const IValue& most_of_class,
    const IValue& most);

IValue roi_align(
    const IValue& features,
    const IValue& regions,
    const IValue& scale,
    const IValue& height,
    const IValue& width,
    const IValue& samples,
    const IValue& end_mode);

IValue roi_align_backward(
    const IValue& grad,
    const IValue& regions,
    const IValue& sizes,
    const IValue& scale,
    const IValue& height,
    const IValue& width,
    const IValue& samples,
    const IValue& end_mode);

} // namespace cann::builtins
