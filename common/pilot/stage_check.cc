#include "common/pilot/stage_check.h"

#include <algorithm>

#include "common/base/json_fields.h"

namespace proctor {
namespace {
using Value = StageAnswer::Value;

std::string of(std::uint64_t part, std::uint64_t whole) {
  return std::to_string(part) + " of " + std::to_string(whole);
}

// part / whole <= share, exactly.  Plans have fewer than 2^32 runs.
bool is_within(std::uint64_t part, std::uint64_t whole, std::uint32_t share_millionths) {
  constexpr std::uint64_t kMillion = 1'000'000;
  return part * kMillion <= whole * share_millionths;
}

std::string counted_over(const StageFacts& s) {
  std::string out = std::to_string(s.ended()) + (s.ended() == 1 ? " run" : " runs") + " ended";
  for (const auto& [n, word] : {std::pair{s.parked, " parked"},
                                {s.cancelled, " cancelled"},
                                {s.removed, " removed"},
                                {s.open, " not over"}})
    if (0 < n) out += ", " + std::to_string(n) + word;
  return out;
}

class Answer {
 public:
  explicit Answer(const StageFacts& stage) : s_(stage) {}

  StageAnswer to(const StageCriterion& c) const {
    StageAnswer out{std::string(word_of(c.is)), parameter_of(c), Value::kUnknown, "", {}};
    switch (c.is) {
      case StagePredicate::kClosed:
        closed(out);
        break;
      case StagePredicate::kCompleteOrStopped:
        over(out);
        break;
      case StagePredicate::kEndpointComputable:
        endpoint(out);
        break;
      case StagePredicate::kInvalidShare:
        invalid_share(out, c.millionths);
        break;
      case StagePredicate::kInfrastructureShare:
        infrastructure_share(out, c.millionths);
        break;
      case StagePredicate::kSpendWithin:
        spend(out);
        break;
    }
    return out;
  }

 private:
  void over(StageAnswer& out) const {
    out.value = s_.open == 0 ? Value::kYes : Value::kNo;
    out.text = counted_over(s_);
    out.facts = {{"ended", s_.ended()},
                 {"parked", s_.parked},
                 {"cancelled", s_.cancelled},
                 {"removed", s_.removed},
                 {"open", s_.open}};
  }

  // With all that its exit came to: who approves an entry approves that as well.
  void closed(StageAnswer& out) const {
    over(out);
    Json exit = Json::array();
    for (const StageAnswer& a : check_exit(s_)) {
      exit.push_back(to_json(a));
      if (a.value == Value::kYes) continue;
      if (!a.holds() && out.value != Value::kNo) out.value = a.value;
      out.text +=
          "; " + a.name + " of its exit: " + std::string(to_string(a.value)) + ", " + a.text;
    }
    if (!exit.empty()) out.facts["exit"] = std::move(exit);
  }

  void endpoint(StageAnswer& out) const {
    out.facts = {{"without_verdict", s_.without_verdict_total}};
    if (s_.no_task) {
      out.text = s_.closed ? "no task of it ended under every method" : "no task of it is left";
      return;
    }
    out.value = s_.without_verdict_total == 0 ? Value::kYes : Value::kNo;
    if (s_.without_verdict_total == 0) {
      out.text = "every task has a run that came to a verdict under every method";
      if (s_.closed) out.text += ", of those that ended under each";
      return;
    }
    for (const std::string& cell : s_.without_verdict)
      out.text += (out.text.empty() ? "" : ", ") + cell;
    if (s_.without_verdict.size() < s_.without_verdict_total)
      out.text +=
          " and " + std::to_string(s_.without_verdict_total - s_.without_verdict.size()) + " more";
    out.text += s_.without_verdict_total == 1 ? " has no run that came to a verdict"
                                              : " have no run that came to a verdict";
  }

  void invalid_share(StageAnswer& out, std::uint32_t most) const {
    out.value = s_.methods.empty() ? Value::kUnknown : Value::kYes;
    for (const StageFacts::Method& m : s_.methods) {
      out.facts[m.name] = {{"ended", m.ended}, {"invalid", m.invalid}};
      out.text += (out.text.empty() ? "" : ", ") + m.name + " " + of(m.invalid, m.ended);
      if (m.ended == 0 && out.value == Value::kYes) out.value = Value::kUnknown;
      if (m.ended != 0 && !is_within(m.invalid, m.ended, most)) out.value = Value::kNo;
    }
    out.text = "invalid: " + (out.text.empty() ? "no method" : out.text);
  }

  void infrastructure_share(StageAnswer& out, std::uint32_t most) const {
    out.facts = {{"attempts", s_.attempts}, {"infrastructure", s_.infrastructure}};
    out.text = of(s_.infrastructure, s_.attempts) + " attempts were spoiled by infrastructure";
    if (s_.attempts == 0) return;
    out.value = is_within(s_.infrastructure, s_.attempts, most) ? Value::kYes : Value::kNo;
  }

  void spend(StageAnswer& out) const {
    out.facts = {{"held_micro_usd", s_.spent.micros()},
                 {"registered_micro_usd", s_.registered.micros()},
                 {"cap_micro_usd", s_.cap.micros()}};
    out.text = format_usd(s_.spent) + " of " + format_usd(s_.registered);
    if (s_.cap != s_.registered)
      out.text += ", and its envelope was raised to " + format_usd(s_.cap);
    out.value = s_.spent <= s_.registered ? Value::kYes : Value::kNo;
  }

  const StageFacts& s_;
};

StageAnswer waivable(StageAnswer a, const std::string& side, const std::set<std::string>& waived) {
  if (a.value != Value::kYes && waived.contains(side + a.label())) a.value = Value::kWaived;
  return a;
}
}  // namespace

std::uint64_t StageFacts::ended() const {
  std::uint64_t out = 0;
  for (const Method& m : methods) out += m.ended;
  return out;
}

bool StageCheck::holds() const {
  return std::ranges::all_of(predicates, &StageAnswer::holds);
}

std::string StageCheck::canonical() const {
  const Result<std::string> text = canonical_json(to_json(*this));
  PROCTOR_ASSERT(text.ok());  // whole numbers, and names that were read from a file
  return *text;
}

Digest StageCheck::digest() const {
  return sha256(canonical());
}

StageCheck check_entry(const std::string& campaign, const std::string& stage,
                       const std::vector<StageCriterion>& entry, const std::string& previous,
                       const StagesBefore& before, const std::set<std::string>& waived) {
  StageCheck out{campaign, stage, {}};
  const auto ask = [&](const StageCriterion& c, const std::string& of) {
    out.predicates.push_back(waivable(Answer(before.at(of)).to(c), "entry ", waived));
  };
  const StageCriterion ended{StagePredicate::kClosed, previous};
  if (!previous.empty()) ask(ended, previous);
  for (const StageCriterion& c : entry) {
    if (c == ended) continue;
    ask(c, c.is == StagePredicate::kClosed ? c.stage : previous);
  }
  return out;
}

std::vector<StageAnswer> check_exit(const StageFacts& stage) {
  std::vector<StageAnswer> out;
  for (const StageCriterion& c : stage.rules.exit)
    out.push_back(waivable(Answer(stage).to(c), "exit ", stage.waived));
  return out;
}

Result<bool> check_holds(const Json& check) {
  const Error wrong{Errc::kCorrupt, "no check of a stage"};
  if (!check.is_object() || !check.contains("predicates") || !check["predicates"].is_array())
    return wrong;
  bool all = true;
  for (const Json& p : check["predicates"].list()) {
    if (!p.is_object() || !p.contains("value") || !p["value"].is_string()) return wrong;
    all = all && (p["value"] == to_string(Value::kYes) || p["value"] == to_string(Value::kWaived));
  }
  return all;
}
}  // namespace proctor
