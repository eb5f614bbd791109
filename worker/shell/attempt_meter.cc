#include "worker/shell/attempt_meter.h"

#include <algorithm>
#include <utility>

#include "common/base/json_fields.h"
#include "common/base/result.h"
#include "common/base/system_clock.h"
#include "common/base/text.h"
#include "worker/meter/meter_protocol.h"

namespace proctor {
namespace {
Json operation_json(const MeterRequest& request) {
  JsonWriter v;
  v("id", request.id);
  v("op", kMeterOps.at(request.operation.index()));
  const auto amount = [&](const char* name, const Amount& a) {
    v.section(name, [&](JsonWriter& inner) { amount_fields(inner, a); });
  };
  std::visit(Overload{[&](const MeterReserve& r) {
                        action_fields(v, r.action);
                        amount("most", r.most);
                      },
                      [&](const MeterCharge& r) {
                        amount("actual", r.actual);
                        v("failed", r.actual.failed, kOptional);
                      },
                      [](const auto&) {}},
             request.operation);
  return v.take();
}

Json answer_json(const MeterAnswer& answer) {
  JsonWriter v;
  std::visit(Overload{[&](const MeterGranted& a) {
                        v("granted_micros", a.held);
                        v("default_price", a.defaulted);
                      },
                      [&](const MeterDenied& a) {
                        v("denied", a.cap);
                        v("short_by", a.short_by);
                        v("reason", a.reason);
                      },
                      [&](const MeterCharged& a) {
                        v("charged_micros", a.charged);
                        v("overrun", a.overrun);
                      },
                      [&](const MeterReleased&) { v("released", true); }},
             answer);
  return v.take();
}

// What the worker reserves for itself, its gateway's calls and its tools, is not the agent's to
// charge or to give back: no id that comes over the socket has such a byte.
template <class Operation>
Operation as_own(Operation operation) {
  const auto mark = [](std::string& id) { id.insert(id.begin(), '\x01'); };
  std::visit(Overload{[&](MeterFit& f) { mark(f.request.id); }, [&](auto& o) { mark(o.id); }},
             operation);
  return operation;
}

template <class Operation>
Result<MeterAnswer> asked(RunMeter& meter, Instant now, const Operation& operation) {
  return std::visit(
      Overload{[&](const MeterReserve& r) { return meter.reserve(r, now); },
               [&](const MeterFit& f) { return meter.fit(f, now); },
               [&](const MeterCharge& r) { return meter.charge(r); },
               [&](const MeterRelease& r) { return meter.release(r); },
               [](const MeterStatus&) -> Result<MeterAnswer> { return MeterAnswer{}; }},
      operation);
}
}  // namespace

AttemptMeter::AttemptMeter(MeterPlan plan, std::string run_name, Hooks hooks, MeterBook* book)
    : meter_(std::move(plan)),
      run_name_(std::move(run_name)),
      hooks_(std::move(hooks)),
      book_(book) {}

void AttemptMeter::keep(bool counts) {
  if (book_ != nullptr) book_->write(meter_.ceiling(), command_, meter_.free());
  if (counts) cover();
}

void AttemptMeter::go_on(const Usage& so_far, const std::optional<MeterBook::Command>& program) {
  {
    const std::lock_guard lock(mutex_);
    meter_.go_on(so_far, program ? std::optional(program->limit) : std::nullopt);
    command_ = program;
    program_ = program.has_value();
    if (program) program_since_ = program->since;
    keep();
  }
  publish();
}

void AttemptMeter::command_begins(MeterPhase phase, Millis limit, bool docker) {
  const std::lock_guard lock(mutex_);
  command_ = MeterBook::Command{phase, mono_now(), limit, docker};
  keep();
}

void AttemptMeter::command_failed() {
  const std::lock_guard lock(mutex_);
  command_.reset();
  keep();
}

std::string AttemptMeter::answer(std::string_view line) {
  Reply r;
  {
    const std::lock_guard lock(mutex_);
    r = reply(line);
  }
  recorded(r.event);
  publish();
  return std::move(r.line);
}

void AttemptMeter::recorded(const Json& event) {
  if (event.is_null()) return;
  const std::uint64_t seq = hooks_.record(event);
  const std::lock_guard lock(mutex_);
  if (meter_.stop() && evidence_ == 0) evidence_ = seq;
}

Json AttemptMeter::applied(Json event, const MeterAnswer& answer) {
  // What reaches a cap is evidence of how the run ended: always an event.
  const bool reaches = meter_.stop() && evidence_ == 0;
  if (kEventsMax < ++operations_ && !reaches) return nullptr;
  event["answer"] = answer_json(answer);
  return event;
}

Result<MeterAnswer> AttemptMeter::act(
    const std::variant<MeterReserve, MeterCharge, MeterRelease>& operation) {
  const std::string id = std::visit([](const auto& o) { return o.id; }, operation);
  Json event;
  std::optional<MeterAnswer> answer;
  {
    const std::lock_guard lock(mutex_);
    PROCTOR_TRY(answer, asked(meter_, hooks_.now(), as_own(operation)));
    keep();  // before the call is made
    MeterRequest request{"", id, {}};
    std::visit([&](const auto& o) { request.operation = o; }, operation);
    event = applied(operation_json(request), *answer);
  }
  recorded(event);
  publish();
  return *answer;
}

Result<MeterAnswer> AttemptMeter::act_for_agent(
    const std::variant<MeterFit, MeterCharge, MeterRelease>& operation) {
  std::unique_lock lock(mutex_);
  PROCTOR_TRY(MeterAnswer answer, asked(meter_, hooks_.now(), as_own(operation)));
  if (!std::holds_alternative<MeterDenied>(answer)) keep(false);
  lock.unlock();  // no call waits because another one waits for the disk
  if (std::holds_alternative<MeterCharged>(answer)) cover();
  // The tick tells the totals: several calls at a time would tell them out of order.
  return answer;
}

void AttemptMeter::count_calls(const CallCounts& seen) {
  const std::lock_guard lock(mutex_);
  meter_.count_calls(seen);
}

void AttemptMeter::reached_by(std::uint64_t evidence) {
  const std::lock_guard lock(mutex_);
  if (meter_.stop() && evidence_ == 0) evidence_ = evidence;
}

void AttemptMeter::order_stop(std::string_view cap, const std::string& reason,
                              std::uint64_t evidence) {
  const std::lock_guard lock(mutex_);
  if (meter_.stop()) return;  // a cap was faster
  meter_.order_stop(std::string(cap), reason);
  evidence_ = evidence;
}

std::string AttemptMeter::status_line() const {
  const std::lock_guard lock(mutex_);
  return meter_status_line(meter_);
}

AttemptMeter::Reply AttemptMeter::reply(std::string_view line) {
  Result<MeterRequest> request = parse_meter_request(line);
  if (!request.ok()) {
    ++errors_;
    return {meter_error_line("", request.error().detail), nullptr};
  }
  if (!request->run.empty() && request->run != run_name_) {
    ++errors_;
    return {meter_error_line(request->id, "run: this is the meter of " + run_name_), nullptr};
  }
  if (std::holds_alternative<MeterStatus>(request->operation))
    return {meter_status_line(meter_), nullptr};
  Result<MeterAnswer> answer = asked(meter_, hooks_.now(), request->operation);
  if (!answer.ok()) {
    ++errors_;
    return {meter_error_line(request->id, answer.error().detail), nullptr};
  }
  keep();  // before the agent hears of it
  Json event = operation_json(*request);
  event["self_reported"] = true;
  return {meter_line(request->id, *answer), applied(std::move(event), *answer)};
}

Millis AttemptMeter::running_for() const {
  if (program_end_) return program_end_->wall;
  return program_since_ ? hooks_.now() - *program_since_ : Millis(0);
}

void AttemptMeter::publish() {
  Usage now;
  std::uint64_t milestones = 0;
  {
    const std::lock_guard lock(mutex_);
    now = meter_.usage();
    milestones = meter_.milestones();
    published_ = std::max(published_, running_for());
    now.agent_ms += static_cast<std::uint64_t>(published_.count());
  }
  hooks_.totals(now, milestones);
}

std::string AttemptMeter::tick() {
  publish();
  const auto [why, order] = ordered_ ? std::pair<std::string, std::uint64_t>() : hooks_.ordered();
  std::optional<MeterStop> reached;
  std::uint64_t evidence = 0;
  bool kill = false;
  {
    const std::lock_guard lock(mutex_);
    ordered_ = ordered_ || !why.empty();
    if (!why.empty() && !meter_.stop()) {  // else a cap was faster
      meter_.order_stop("dominance", why);
      evidence_ = order;
    }
    if (!meter_.stop() || killed_) return "";
    if (!kill_at_) {
      reached = meter_.stop();
      kill_at_ = hooks_.now() + stop_grace(*reached);
      evidence = evidence_;
    } else if (*kill_at_ <= hooks_.now()) {
      kill = killed_ = true;
    }
  }
  if (kill) hooks_.kill();
  if (!reached) return "";
  hooks_.reached(*reached, evidence);
  return meter_stop_line(*reached, stop_grace(*reached));
}

void AttemptMeter::executed(MeterPhase phase, const Execution& e) {
  {
    const std::lock_guard lock(mutex_);
    meter_.executed(phase, e);
    command_.reset();
    keep();
  }
  publish();
}

std::optional<Millis> AttemptMeter::start_program(bool docker) {
  std::optional<Millis> time;
  {
    const std::lock_guard lock(mutex_);
    time = meter_.start_program();
    program_ = time.has_value();
    if (time) command_ = MeterBook::Command{MeterPhase::kAgent, mono_now(), *time, docker};
    keep();
  }
  publish();
  return time;
}

void AttemptMeter::program_runs() {
  const std::lock_guard lock(mutex_);
  program_since_ = hooks_.now();
}

void AttemptMeter::program_ended(const Execution& e) {
  const std::lock_guard lock(mutex_);
  program_end_ = e;
}

void AttemptMeter::agent_gone() {
  {
    const std::lock_guard lock(mutex_);
    if (program_) {
      Execution whole = program_end_.value_or(Execution{running_for(), Millis(0), 0});
      // Totals never go back; a container's start counts.
      whole.wall = std::max(whole.wall, published_);
      meter_.program_ended(whole);
      program_ = false;
      program_since_.reset();
      program_end_.reset();
      published_ = Millis(0);
    }
    meter_.agent_gone();
    if (!command_) keep();
  }
  publish();
}

void AttemptMeter::agent_kept() {
  const std::lock_guard lock(mutex_);
  if (!command_ || command_->phase != MeterPhase::kAgent) return;
  command_.reset();
  keep();
}

std::optional<MeterStop> AttemptMeter::time_is_up(bool wall_is_policy) {
  const std::lock_guard lock(mutex_);
  return meter_.time_is_up(wall_is_policy);
}

void AttemptMeter::stored(std::uint64_t bytes) {
  {
    const std::lock_guard lock(mutex_);
    meter_.stored(bytes);
    keep();
  }
  publish();
}

Usage AttemptMeter::usage() const {
  const std::lock_guard lock(mutex_);
  return meter_.usage();
}

std::optional<MeterStop> AttemptMeter::stop() const {
  const std::lock_guard lock(mutex_);
  return meter_.stop();
}

Json AttemptMeter::totals_payload() const {
  const std::lock_guard lock(mutex_);
  const Usage& u = meter_.usage();
  JsonWriter v;
  v("operations", operations_);
  v("errors", errors_);
  v("recorded", std::min(operations_, kEventsMax));
  v("limit_micros", meter_.limit());
  v("spent_micros", meter_.spent());
  v("overrun_micros", meter_.overrun());
  v("model_calls", u.model_calls);
  v("tokens", u.input_tokens + u.output_tokens);
  v("tool_calls", u.tool_calls);
  v("self_reported_micros", u.reported_micros);
  v("charges_at_default", u.defaulted);
  v("charges_cut", u.overruns);
  return v.take();
}
}  // namespace proctor
