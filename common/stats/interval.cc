#include "common/stats/interval.h"

namespace proctor {

std::string_view words(Why why) {
  switch (why) {
    case Why::kOk:
      return "";
    case Why::kNothing:
      return "no data";
    case Why::kOneTask:
      return "one task only: no interval";
    case Why::kOneGroup:
      return "one repository only: no interval";
    case Why::kNoVariance:
      return "all tasks agree: the error is not known";
    case Why::kNoSuccess:
      return "no success to divide by";
    case Why::kUnbounded:
      return "the data bound it on one side at most";
    case Why::kTooFew:
      return "too few data";
    case Why::kNotPaired:
      return "no task in common";
    case Why::kNotDefined:
      return "not defined for these data";
  }
  return "";
}

}  // namespace proctor
