#include "common/trace/breakers.h"

#include <algorithm>
#include <utility>

#include "common/base/text.h"
#include "common/trace/model_calls.h"
#include "common/trace/payloads.h"

namespace proctor {
namespace {
constexpr std::size_t kCountsMost = 20'000, kOpenMost = 20'000;
constexpr std::uint64_t kWaitMost = 60;

bool is_write(std::string_view tool) {
  return tool == "write_file" || tool == "edit_file" || tool == "apply_patch";
}
bool is_read(std::string_view tool) {
  return tool == "list_dir" || tool == "read_file" || tool == "search";
}

// 2, 4, 8 ... 60 s.
std::uint64_t growing(std::uint64_t step) {
  constexpr std::uint64_t kDoublings = 5;
  return std::min(std::uint64_t{2} << std::min(step, kDoublings), kWaitMost);
}

std::string times_of(std::uint64_t n) {
  return counted(n, "time");
}
}  // namespace

Json alert_json(const BreakerTrip& trip, const std::string& stage) {
  return events::kAlert.json(trip.code, trip.signals, stage, trip.why);
}

Json intervention_json(const BreakerTrip& trip, std::uint64_t alert) {
  return events::kIntervention.json(std::string(to_string(trip.action)), alert, trip.code,
                                    std::nullopt);
}

Breakers breakers_in(const Json& payload) {
  Breakers out;
  const auto list = payload.find("breakers");
  if (list == payload.end() || !list->is_object()) return out;
  for (const BreakerKind& kind : kBreakerKinds) {
    const auto rule = list->find(std::string(kind.code));
    if (rule == list->end() || !rule->is_object()) continue;
    Breakers::Rule& read = out.rules[std::string(kind.code)];
    for (const BreakerParameter& p : kind.all())
      read[std::string(p.name)] = count_in(*rule, std::string(p.name).c_str());
  }
  return out;
}

bool BreakerFold::hears(std::string_view type) {
  constexpr std::array<std::string_view, 8> kTypes{
      "workspace.state", "model.request", "model.response",     "model.refused",
      "tool.call",       "tool.result",   "dependency.install", "stage.changed"};
  return std::find(kTypes.begin(), kTypes.end(), type) != kTypes.end();
}

std::vector<BreakerTrip> BreakerFold::on(std::string_view type, const Json& p) {
  if (stopped_ || !breakers_.any() || !hears(type)) return {};
  now_ms_ = std::max(now_ms_, count_in(p, "at_ms"));
  if (type == "workspace.state") new_state(text_in(p, "digest"));
  if (type == "stage.changed") stage_ = printable(text_in(p, "to"), 100);
  if (type == "model.request") {
    ++model_calls_;
    if (requests_.size() < kOpenMost) requests_[count_in(p, "call")] = text_in(p, "key");
  }
  if (type == "model.response") answered(p);
  if (type == "model.refused") refused(p);
  if (type == "tool.call") tool_call(p);
  if (type == "tool.result") tool_result(p);
  if (type == "dependency.install") installed(p);
  progress();
  ceiling();
  return std::exchange(trips_, {});
}

std::uint64_t BreakerFold::wait_seconds(const std::string& key) const {
  const auto throttle = limit("identical_call", "throttle");
  if (!throttle || key.empty() || state_.empty()) return next_wait_;
  const std::uint64_t times = count_of(in_state("request " + key));
  return std::max(next_wait_, times < *throttle ? 0 : growing(times - *throttle));
}

std::optional<std::uint64_t> BreakerFold::limit(std::string_view code,
                                                std::string_view parameter) const {
  const auto rule = breakers_.rules.find(std::string(code));
  if (rule == breakers_.rules.end()) return std::nullopt;
  const auto value = rule->second.find(std::string(parameter));
  if (value == rule->second.end() || value->second == 0) return std::nullopt;
  return value->second;
}

std::string BreakerFold::in_state(std::string_view what) const {
  std::string out = state_;
  out += ' ';
  return out += what;
}

// Of what lies longest behind nothing is known any more: what a trace can hold is bounded.
std::uint64_t BreakerFold::counted(const std::string& what) {
  const auto [at, fresh] = counts_.try_emplace(what, 0);
  const std::uint64_t times = ++at->second;
  if (!fresh) return times;
  counts_order_.push_back(what);
  if (kCountsMost < counts_order_.size()) {
    counts_.erase(counts_order_.front());
    counts_order_.pop_front();
  }
  return times;
}

std::uint64_t BreakerFold::count_of(const std::string& what) const {
  const auto at = counts_.find(what);
  return at == counts_.end() ? 0 : at->second;
}

void BreakerFold::trip(std::string_view code, BreakerAction action, Json signals, std::string why) {
  if (stopped_) return;
  stopped_ = action == BreakerAction::kStop;
  trips_.push_back({std::string(code), action, std::move(signals), std::move(why)});
}

// Throttled from one count on, stopped at another.
void BreakerFold::stepped(std::string_view code, std::uint64_t times, Json signals,
                          const std::string& why) {
  const auto throttle = limit(code, "throttle"), stop = limit(code, "stop");
  signals["times"] = times;
  if (stop && *stop <= times)
    trip(code, BreakerAction::kStop, std::move(signals), why);
  else if (throttle && times == *throttle)
    trip(code, BreakerAction::kThrottle, std::move(signals), why);
  if (throttle && *throttle <= times) next_wait_ = std::max(next_wait_, growing(times - *throttle));
}

void BreakerFold::identical(std::uint64_t times, std::string_view what, Json signals) {
  std::string why(what);
  why += " came " + times_of(times) + " without a change to the workspace";
  stepped("identical_call", times, std::move(signals), why);
}

void BreakerFold::new_state(std::string state) {
  state_ = std::move(state);
  if (state_.empty() || !states_.insert(state_).second) return;
  if (kCountsMost < states_.size()) states_.erase(states_.begin());
  model_calls_since_ = tool_calls_since_ = 0;
  progress_ms_ = now_ms_;
  progress_told_ = 0;
}

void BreakerFold::answered(const Json& p) {
  constexpr std::uint64_t kOk = 200, kMultiple = 300;
  const auto open = requests_.find(count_in(p, "call"));
  const std::string key = open == requests_.end() ? std::string() : open->second;
  if (open != requests_.end()) requests_.erase(open);
  const std::uint64_t status = count_in(p, "status");
  if (status < kOk || kMultiple <= status) return;
  refused_ = 0;
  next_wait_ = 0;
  ++model_calls_since_;
  if (state_.empty()) return;
  if (!key.empty()) {
    identical(counted(in_state("request " + key)), "the same request of a model", {{"key", key}});
    next_wait_ = 0;  // other requests are not slowed down by it: wait_seconds() asks by key
  }
  // What the model asks for is what its agent does next.
  const auto asked = p.find("tool_calls");
  if (asked == p.end() || !asked->is_array()) return;
  for (const Json& tool : *asked) {
    const std::string name = text_in(tool, "name"), digest = text_in(tool, "digest");
    std::string what = "asked ";
    what += name + " " + digest;
    identical(counted(in_state(what)), "the same call of the tool " + printable(name, 60),
              {{"tool", name}, {"arguments", digest}});
  }
}

void BreakerFold::refused(const Json& p) {
  if (p.value("final", Json(false)) == true) return;
  requests_.erase(count_in(p, "call"));
  ++refused_;
  if (const auto stop = limit("refused_streak", "stop"); stop && *stop <= refused_)
    trip("refused_streak", BreakerAction::kStop, {{"times", refused_}},
         times_of(refused_) + " in a row a call was refused");
}

void BreakerFold::tool_call(const Json& p) {
  ++tool_calls_;
  ++tool_calls_since_;
  next_wait_ = 0;
  if (tools_.size() < kOpenMost)
    tools_[text_in(p, "id")] = {text_in(p, "tool"), text_in(p, "arguments_digest")};
  const auto most = limit("burst", "tool_calls"), within = limit("burst", "seconds");
  if (!most || !within) return;
  constexpr std::uint64_t kMs = 1'000;
  recent_tools_.push_back(now_ms_);
  while (!recent_tools_.empty() && recent_tools_.front() + *within * kMs < now_ms_)
    recent_tools_.pop_front();
  if (recent_tools_.size() <= *most) return;
  next_wait_ = growing(0);
  trip("burst", BreakerAction::kThrottle, {{"tool_calls", recent_tools_.size()}},
       std::to_string(recent_tools_.size()) + " calls of tools within " + std::to_string(*within) +
           " s");
  recent_tools_.clear();  // told once for each burst
}

void BreakerFold::tool_result(const Json& p) {
  const auto open = tools_.find(text_in(p, "id"));
  if (open == tools_.end()) return;
  const Tool tool = open->second;
  tools_.erase(open);
  const bool ok = p.value("ok", Json(false)) == true;
  if (p.contains("state")) new_state(text_in(p, "state"));
  if (is_read(tool.name) && suspended_) {
    ++reads_;
    if (limit("failed_writes", "reads").value_or(1) <= reads_) suspended_ = false;
  }
  if (is_write(tool.name)) write_ended(!ok);
  if (state_.empty()) return;
  std::string what = "ran ";
  what += tool.name + " " + tool.arguments;
  const std::uint64_t times = counted(in_state(what));
  identical(times, "the same call of the tool " + printable(tool.name, 60),
            {{"tool", tool.name}, {"arguments", tool.arguments}});
  constexpr std::uint64_t kMs = 1'000;
  const std::uint64_t wall = count_in(p, "wall_ms");
  if (const auto slow = limit("expensive_repeat", "seconds");
      slow && *slow * kMs < wall && 1 < times) {
    next_wait_ = std::max(next_wait_, growing(times - 2));
    trip("expensive_repeat", BreakerAction::kThrottle,
         {{"tool", tool.name}, {"times", times}, {"wall_ms", wall}},
         "a call of the tool " + printable(tool.name, 60) + " that takes " +
             std::to_string(wall / kMs) + " s was repeated without a change to the workspace");
  }
  if (tool.name == "run_tests") test_ended(tool, !ok);
}

void BreakerFold::write_ended(bool failed) {
  failed_writes_ = failed ? failed_writes_ + 1 : 0;
  const auto most = limit("failed_writes", "suspend");
  if (!most || failed_writes_ < *most) return;
  trip("failed_writes", BreakerAction::kSuspendWrites, {{"times", failed_writes_}},
       std::to_string(failed_writes_) + " edits in a row did not apply");
  failed_writes_ = reads_ = 0;
  suspended_ = true;
}

void BreakerFold::test_ended(const Tool& tool, bool failed) {
  if (!failed) {
    failed_in_.clear();
    return;
  }
  std::string suite = "failed ";
  suite += tool.arguments;
  const std::uint64_t times = counted(in_state(suite));
  stepped("failing_suite", times, {{"suite", tool.arguments}},
          "a suite failed " + times_of(times) + " without a change to the workspace");
  const auto rounds = limit("oscillation", "rounds");
  if (!rounds || (!failed_in_.empty() && failed_in_.back() == state_)) return;
  failed_in_.push_back(state_);
  const std::size_t needed = 2 * *rounds;
  if (needed < failed_in_.size()) failed_in_.erase(failed_in_.begin());
  if (failed_in_.size() < needed || failed_in_[0] == failed_in_[1]) return;
  for (std::size_t i = 2; i < needed; ++i)
    if (failed_in_[i] != failed_in_[i - 2]) return;
  ++oscillations_;
  const Json signals = {{"states", {failed_in_[0], failed_in_[1]}}, {"rounds", *rounds}};
  failed_in_.clear();
  suspended_ = true;
  reads_ = 0;
  trip("oscillation", oscillations_ == 1 ? BreakerAction::kSuspendWrites : BreakerAction::kStop,
       signals, "the workspace went to and fro between two states in which a suite fails");
}

void BreakerFold::installed(const Json& p) {
  std::string what = "installed ";
  what += text_in(p, "locks");
  const std::uint64_t times = counted(what);
  stepped("reinstall", times, {{"locks", text_in(p, "locks")}},
          "dependencies were installed " + times_of(times) + " by the same lock files");
}

void BreakerFold::progress() {
  if (state_.empty() || stage_ == "read") return;
  constexpr std::uint64_t kMs = 1'000;
  const std::uint64_t since = (now_ms_ - progress_ms_) / kMs;
  const auto level = [&](std::string_view parameter, std::uint64_t n) {
    const auto most = limit("no_progress", parameter);
    return !most || n < *most ? 0 : n < 2 * *most ? 1 : 2;
  };
  const int reached = std::max({level("model_calls", model_calls_since_),
                                level("tool_calls", tool_calls_since_), level("seconds", since)});
  if (reached <= progress_told_) return;
  progress_told_ = reached;
  trip("no_progress", reached == 1 ? BreakerAction::kNote : BreakerAction::kStop,
       {{"model_calls", model_calls_since_}, {"tool_calls", tool_calls_since_}, {"seconds", since}},
       "the workspace has not come to a new state for " + std::to_string(model_calls_since_) +
           " calls of models, " + std::to_string(tool_calls_since_) + " of tools and " +
           std::to_string(since) + " s");
}

void BreakerFold::ceiling() {
  constexpr std::uint64_t kMs = 1'000;
  const auto beyond = [&](std::string_view parameter, std::uint64_t n) {
    const auto most = limit("run_ceiling", parameter);
    return most && *most < n;
  };
  const std::uint64_t seconds = now_ms_ / kMs;
  if (!beyond("model_calls", model_calls_) && !beyond("tool_calls", tool_calls_) &&
      !beyond("seconds", seconds))
    return;
  trip("run_ceiling", BreakerAction::kStop,
       {{"model_calls", model_calls_}, {"tool_calls", tool_calls_}, {"seconds", seconds}},
       "the run has had " + std::to_string(model_calls_) + " calls of models, " +
           std::to_string(tool_calls_) + " of tools and " + std::to_string(seconds) + " s");
}
}  // namespace proctor
