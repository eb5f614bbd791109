#pragma once
// What several samples of one dataset say of each problem; upstream's estimates, mistakes included.
// Private to the room: composite.cc reads, composite_text.cc draws, pass_k.cc estimates anew.
// Source: CVDP 9.5, 9.6.
#include <cstdint>
#include <string>
#include <vector>

#include "common/base/result.h"
#include "coordinator/cvdp/pycompat/values.h"

namespace proctor::cvdp {

struct SampledProblem {
  std::string id;
  std::string category;
  std::string difficulty;
  bool scored = false;
  std::vector<bool> passed;    // by sample; of problems that pass or fail
  std::vector<double> scores;  // by sample; of scored ones: the average of their cell, as upstream
  // What upstream counts: samples passed, or the sum of the scores.
  double pass_count() const;
  // 1 - (1 - c/n)^k, or the mean score whatever k is.
  double probability(std::int64_t k) const;
};

struct Composite {
  std::int64_t n = 0;
  std::int64_t k = 1;
  const Object* metadata = nullptr;
  std::vector<const Object*> samples;    // a report.json each
  std::vector<SampledProblem> problems;  // in the order of the samples' logs
};

// Points into `composite`.  kInvalid: no composite report.
Result<Composite> read_composite(const Value& composite, std::int64_t k);

}  // namespace proctor::cvdp
