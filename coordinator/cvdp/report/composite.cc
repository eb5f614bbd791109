#include "coordinator/cvdp/report/composite.h"

#include <cmath>
#include <map>
#include <set>

#include "common/base/parse.h"
#include "coordinator/cvdp/report/report_cells.h"

namespace proctor::cvdp {
namespace {

// "p.test3" and "p.3" are tests of p.
std::string problem_of(const std::string& test_id) {
  const std::size_t dot = test_id.rfind('.');
  if (dot == std::string::npos) return test_id;
  std::string_view tail = std::string_view(test_id).substr(dot + 1);
  take_word(tail, "test");
  return all_digits(tail) ? test_id.substr(0, dot) : test_id;
}

struct SampleVerdicts {
  std::map<std::string, std::string> difficulty;
  std::set<std::string> passing;
  std::set<std::string> failing;
};

SampleVerdicts verdicts_of(const Object& sample) {
  SampleVerdicts out;
  const Value* details = sample.find("test_details");
  for (const char* list : {"passing_tests", "failing_tests"}) {
    const Value* tests = details == nullptr || details->object() == nullptr
                             ? nullptr
                             : details->object()->find(list);
    if (tests == nullptr || tests->array() == nullptr) continue;
    for (const Value& t : *tests->array()) {
      const std::string* id = text_at(t, "test_id");
      if (id == nullptr) continue;
      const std::string problem = problem_of(*id);
      (std::string_view(list) == "passing_tests" ? out.passing : out.failing).insert(problem);
      out.difficulty[problem] = text_or(*t.object(), "difficulty", "");
    }
  }
  return out;
}

// Each problem once, as the logs of the samples name it.
void collect(Composite& out, const std::vector<SampleVerdicts>& verdicts) {
  std::set<std::string> seen;
  for (std::size_t s = 0; s < out.samples.size(); ++s) {
    for (const Member& m : *out.samples[s]) {
      const Value* logs = m.value.object() == nullptr ? nullptr : m.value.object()->find("logs");
      if (logs == nullptr || logs->array() == nullptr) continue;
      for (const Value& log : *logs->array()) {
        const std::string* id = text_at(log, "id");
        if (id == nullptr || !seen.insert(problem_of(*id)).second) continue;
        SampledProblem p;
        p.id = problem_of(*id);
        p.category = m.key;
        p.scored = is_scored_category(m.key);
        if (const auto it = verdicts[s].difficulty.find(p.id); it != verdicts[s].difficulty.end())
          p.difficulty = it->second;
        out.problems.push_back(std::move(p));
      }
    }
  }
}

void judge(Composite& out, const std::vector<SampleVerdicts>& verdicts) {
  for (SampledProblem& p : out.problems) {
    for (std::size_t s = 0; s < out.samples.size(); ++s) {
      if (!p.scored) {
        p.passed.push_back(verdicts[s].passing.contains(p.id) &&
                           !verdicts[s].failing.contains(p.id));
        continue;
      }
      const Value* category = out.samples[s]->find(p.category);
      const Tally t = category == nullptr || category->object() == nullptr
                          ? Tally()
                          : tally_of(*category->object(), p.difficulty.c_str(), "Problems");
      p.scores.push_back(t.total.value == 0 ? 0 : t.passed.value / t.total.value);
    }
  }
}

}  // namespace

double SampledProblem::pass_count() const {
  double sum = 0;
  for (const bool b : passed) sum += b ? 1 : 0;
  for (const double s : scores) sum += s;
  return sum;
}

double SampledProblem::probability(std::int64_t k) const {
  const double n = static_cast<double>(passed.size() + scores.size());
  if (n == 0) return 0;
  const double rate = pass_count() / n;
  return scored ? rate : 1 - std::pow(1 - rate, static_cast<double>(k));
}

bool is_composite(const Value& report) {
  const Object* metadata = object_at(report, "metadata");
  const Value* flag = metadata == nullptr ? nullptr : metadata->find("composite");
  return flag != nullptr && flag->truthy();
}

Result<Composite> read_composite(const Value& composite, std::int64_t k) {
  const Value* samples =
      composite.object() == nullptr ? nullptr : composite.object()->find("samples");
  if (!is_composite(composite) || samples == nullptr || samples->array() == nullptr)
    return Error{Errc::kInvalid,
                 "no composite report: \"samples\" and metadata.composite are expected"};
  Composite out;
  out.metadata = object_at(composite, "metadata");
  out.k = k;
  if (k == 0) {
    const Value* own = out.metadata->find("k_threshold");
    out.k = own == nullptr ? 1 : static_cast<std::int64_t>(own->as_double().value_or(1));
  }
  std::vector<SampleVerdicts> verdicts;
  for (const Value& s : *samples->array()) {
    if (s.object() == nullptr) return Error{Errc::kInvalid, "a sample is no mapping"};
    out.samples.push_back(s.object());
    verdicts.push_back(verdicts_of(*s.object()));
  }
  out.n = static_cast<std::int64_t>(out.samples.size());
  constexpr std::int64_t kMost = 1'000'000;
  if (out.n == 0) return Error{Errc::kInvalid, "a composite report without samples"};
  if (out.k < 1 || kMost < out.k) return Error{Errc::kInvalid, "k must be from 1 to 1000000"};
  collect(out, verdicts);
  judge(out, verdicts);
  return out;
}

Result<Value> make_composite(const std::vector<Value>& reports, const CompositeMetadata& m) {
  if (reports.empty()) return Error{Errc::kInvalid, "no sample has a report"};
  Object metadata;
  metadata.append("timestamp", m.timestamp);
  metadata.append("n_samples", static_cast<std::int64_t>(reports.size()));
  metadata.append("k_threshold", m.k);
  Array prefixes;
  for (const std::string& p : m.prefixes) prefixes.push_back(p);
  metadata.append("sample_prefixes", std::move(prefixes));
  metadata.append("composite", true);
  Array samples;
  for (const Value& report : reports) {
    const Object* own = object_at(report, "metadata");
    if (own == nullptr) return Error{Errc::kInvalid, "a sample's report has no metadata"};
    if (samples.empty())
      for (const Member& member : *own)
        if (metadata.find(member.key) == nullptr) metadata.append(member.key, member.value);
    Object sample = *report.object();
    sample.set("sample_index", static_cast<std::int64_t>(samples.size()));
    samples.push_back(std::move(sample));
  }
  Object out;
  out.append("metadata", std::move(metadata));
  out.append("samples", std::move(samples));
  return Value(std::move(out));
}

}  // namespace proctor::cvdp
