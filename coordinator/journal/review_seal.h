#pragma once
// The seal of a booked review: SHA-256 over the canonical JSON of the review and of the seal before
// it.  No other row of the journal repeats what a review says, so this is what shows that one was
// changed.  Pure.
#include <string>

#include "common/base/digest.h"
#include "common/base/result.h"
#include "coordinator/core/records.h"

namespace proctor {

// `before`: of the review with the number before; zeros for the first.  kInvalid: a number beyond
// 2^53 - 1 or a text that is not UTF-8.
Result<Digest> seal_of(const Digest& before, const RunReviewed& review);

// The meta entry that says how many there are and the last one's seal: "3 <64 hex digits>".
inline constexpr const char* kMetaReviews = "reviews";
std::string reviews_head(std::uint32_t count, const Digest& last);

}  // namespace proctor
