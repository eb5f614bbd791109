// composite_report.json as composite_report.txt.
#include <algorithm>
#include <cmath>
#include <functional>

#include "coordinator/cvdp/report/composite.h"
#include "coordinator/cvdp/report/report_cells.h"

namespace proctor::cvdp {
namespace {

// Which problems a row is about.
struct Slice {
  std::string category;    // empty: all
  std::string difficulty;  // empty: all
  bool holds(const SampledProblem& p) const {
    return (category.empty() || p.category == category) &&
           (difficulty.empty() || p.difficulty == difficulty);
  }
};

struct SliceStats {
  Count total;
  double passed = 0;
  std::vector<double> rates;  // per cent by sample, of samples that have such problems
  double rate() const { return total.value == 0 ? 0 : passed / total.value * 100; }
  Count passed_count() const { return {passed, true}; }
  Count failed_count() const { return {total.value - passed, true}; }
};

double mean_of(const std::vector<double>& v) {
  double sum = 0;
  for (const double x : v) sum += x;
  return v.empty() ? 0 : sum / static_cast<double>(v.size());
}

std::string spread(const std::vector<double>& v) {
  if (v.size() < 2) return "N/A";
  const double mean = mean_of(v);
  double squares = 0;
  for (const double x : v) squares += (x - mean) * (x - mean);
  return percent(std::sqrt(squares / static_cast<double>(v.size() - 1)));
}

Tally sample_tally(const Object& sample, const Slice& slice) {
  Tally out;
  for (const auto& [name, category] : categories_of(sample)) {
    if (!slice.category.empty() && slice.category != name) continue;
    for (const auto& d : kDifficulties)
      if (slice.difficulty.empty() || slice.difficulty == d.key)
        out.add(tally_of(*category, d.key, "Problems"));
  }
  return out;
}

class CompositeText {
 public:
  explicit CompositeText(const Composite& c)
      : c_(c), n_(std::to_string(c.n)), label_("Pass@" + std::to_string(c.k) + ", n=" + n_) {
    for (const SampledProblem& p : c.problems) categories_.push_back(p.category);
    std::sort(categories_.begin(), categories_.end());
    categories_.erase(std::unique(categories_.begin(), categories_.end()), categories_.end());
  }

  std::string text() const {
    const std::string k = std::to_string(c_.k);
    std::string out = report_head(*c_.metadata) +
                      "\n=== Composite Report ===\nNumber of samples: " + n_ + "\n" + label_ +
                      " threshold: A problem passes if it passes in at least " + k + " out of " +
                      n_ + " samples\n" + std::string(23, '=') + "\n\n";
    out += samples() + overall() + by_difficulty() + by_category() + matrix() + distribution() +
           by_pass_count();
    const SliceStats all = stats({});
    return out + "\nOverall " + label_ + " probability: " + percent(all.rate()) + "\n";
  }

 private:
  SliceStats stats(const Slice& slice) const {
    SliceStats out;
    for (const SampledProblem& p : c_.problems) {
      if (!slice.holds(p)) continue;
      ++out.total;
      out.passed += p.probability(c_.k);
    }
    for (const Object* s : c_.samples) {
      const Tally t = sample_tally(*s, slice);
      if (t.total.value != 0) out.rates.push_back(t.rate());
    }
    return out;
  }

  std::string samples() const {
    Grid g;
    g.header = {"Sample #", "Total Problems", "Passed Problems", "Pass Rate", "Prefix"};
    const Value* prefixes = c_.metadata->find("sample_prefixes");
    std::vector<double> rates;
    for (std::size_t s = 0; s < c_.samples.size(); ++s) {
      const Tally t = sample_tally(*c_.samples[s], {});
      rates.push_back(t.rate());
      std::string prefix;
      if (prefixes != nullptr && prefixes->array() != nullptr && s < prefixes->array()->size())
        if (const std::string* p = (*prefixes->array())[s].string()) prefix = *p;
      const Value passed = t.passed.json();
      g.rows.push_back({std::to_string(s + 1), t.total.rounded(), passed.number()->text,
                        percent(t.rate()), prefix});
    }
    std::string out = section("Sample Statistics", g);
    if (1 < c_.n)
      out += "\nPass Rate Statistics: Mean = " + percent(mean_of(rates)) +
             ", StdDev = " + spread(rates) + "\n";
    return out;
  }

  std::string titled(const std::string& title, const Grid& g) const {
    return section(title + " (" + label_ + ")", g);
  }

  std::string overall() const {
    const SliceStats all = stats({});
    Grid g;
    g.rows = {{"Total Problems", all.total.rounded()},
              {"Passed Problems", all.passed_count().rounded()},
              {"Failed Problems", all.failed_count().rounded()},
              {"Problem Pass Rate", percent(all.rate())},
              {"Pass Rate StdDev", spread(all.rates)}};
    return titled("Overall Problem Statistics", g);
  }

  static std::vector<std::string> row(std::string name, const SliceStats& s) {
    return {std::move(name),
            s.total.rounded(),
            s.passed_count().rounded(),
            s.failed_count().rounded(),
            percent(s.rate()),
            spread(s.rates)};
  }

  std::string by_difficulty() const {
    Grid g;
    g.header = {"Difficulty", "Total", "Pass", "Fail", "Rate", "StdDev"};
    for (const auto& d : kDifficulties)
      if (const SliceStats s = stats({"", d.key}); s.total.value != 0)
        g.rows.push_back(row(d.title, s));
    return titled("Problem Results by Difficulty", g);
  }

  std::string footnote() const {
    return std::any_of(categories_.begin(), categories_.end(), is_scored_category)
               ? std::string(kFootnote)
               : "";
  }

  std::string by_category() const {
    Grid g;
    g.header = {"Cat", "Total", "Pass", "Fail", "Rate", "StdDev"};
    for (const std::string& c : categories_)
      g.rows.push_back(row(category_title(c), stats({c, ""})));
    return titled("Problem Results by Category", g) + footnote();
  }

  std::string matrix() const {
    Grid g;
    g.header = {"Cat",     "Easy",  "Medium",  "Hard",      "Easy%",
                "Medium%", "Hard%", "Easy SD", "Medium SD", "Hard SD"};
    for (const std::string& c : categories_) {
      std::vector<std::string> cells = {category_title(c)};
      std::vector<std::string> rates;
      std::vector<std::string> spreads;
      for (const auto& d : kDifficulties) {
        const SliceStats s = stats({c, d.key});
        const bool none = s.total.value == 0;
        cells.push_back(none ? "-" : s.passed_count().rounded() + "/" + s.total.rounded());
        rates.push_back(none ? "-" : percent(s.rate()));
        spreads.push_back(none ? "-" : spread(s.rates));
      }
      cells.insert(cells.end(), rates.begin(), rates.end());
      cells.insert(cells.end(), spreads.begin(), spreads.end());
      g.rows.push_back(std::move(cells));
    }
    return titled("Problem Results by Category and Difficulty", g) + footnote();
  }

  struct Group {
    std::vector<const SampledProblem*> problems;
    bool scored = false;  // any of them
  };
  std::map<double, Group> groups() const {
    std::map<double, Group> out;
    for (const SampledProblem& p : c_.problems) {
      Group& g = out[p.scored ? rounded_to(p.pass_count(), 1) : p.pass_count()];
      g.problems.push_back(&p);
      g.scored = g.scored || p.scored;
    }
    return out;
  }
  double group_probability(double count, bool scored) const {
    const double rate = count / static_cast<double>(c_.n);
    return 100 * (scored ? rate : 1 - std::pow(1 - rate, static_cast<double>(c_.k)));
  }

  std::string distribution() const {
    Grid g;
    g.header = {"Pass Count", "Problems", "% of Dataset", label_ + " Probability"};
    for (const auto& [count, group] : groups()) {
      const bool whole = count == std::floor(count);
      const auto size = static_cast<double>(group.problems.size());
      g.rows.push_back({fixed(count, whole ? 0 : 1) + "/" + n_, fixed(size, 0),
                        percent(size / static_cast<double>(c_.problems.size()) * 100),
                        percent(group_probability(count, group.scored))});
    }
    const std::string k = std::to_string(c_.k);
    return "\n=== Pass@" + k + " Distribution (n=" + n_ + ") ===\nPass@" + k +
           " measures the probability of a problem passing in at least " + k + " of " + n_ +
           " randomly-selected samples\n" + render_grid(g) + "\n";
  }

  std::string by_pass_count() const {
    constexpr std::size_t kBar = 35;
    std::string thin;
    std::string thick;
    for (std::size_t i = 0; i < kBar; ++i) {
      thin += "\xE2\x94\x80";
      thick += "\xE2\x95\x90";
    }
    Grid g;
    g.header = {"Problem ID", "Category (Difficulty)"};
    for (auto& [count, group] : groups()) {
      if (!g.rows.empty()) {
        g.rows.insert(g.rows.end(), 2, {"", ""});
        g.rows.push_back({thick, thick});
      }
      const double rate = count / static_cast<double>(c_.n);
      g.rows.push_back({"Pass Count: " + fixed(count, group.scored ? 1 : 0) + "/" + n_,
                        "Total: " + std::to_string(group.problems.size()) + " problems"});
      g.rows.push_back({(group.scored ? "Avg Score: " : "Pass Rate: ") + fixed(rate, 4),
                        (group.scored ? "Score-based Probability: " : label_ + " Probability: ") +
                            percent(group_probability(count, group.scored))});
      g.rows.push_back({thin, thin});
      std::vector<const SampledProblem*> sorted = group.problems;
      std::sort(sorted.begin(), sorted.end(),
                [](const auto* a, const auto* b) { return a->id < b->id; });
      for (const SampledProblem* p : sorted)
        g.rows.push_back({p->id, p->category + " (" + p->difficulty + ")"});
    }
    return titled("Problems by Pass Count", g);
  }

  const Composite& c_;
  std::string n_;
  std::string label_;
  std::vector<std::string> categories_;
};

}  // namespace

Result<std::string> render_composite(const Value& composite, std::int64_t k) {
  PROCTOR_TRY(const Composite c, read_composite(composite, k));
  return CompositeText(c).text();
}

}  // namespace proctor::cvdp
