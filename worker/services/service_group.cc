#include "worker/services/service_group.h"
#include "common/base/words.h"

#include <algorithm>
#include <system_error>

namespace proctor {
std::string hosts_of_services(const std::vector<std::string>& names) {
  std::string out = "127.0.0.1\tlocalhost sandbox\n::1\tlocalhost\n";
  for (const std::string& name : names) out += "127.0.0.1\t" + name + "\n";
  return out;
}

std::string until_it_succeeds(const std::string& command, std::chrono::milliseconds pause) {
  constexpr std::int64_t kSecond = 1000;
  std::string fraction = std::to_string(kSecond + pause.count() % kSecond).substr(1);
  const std::string seconds = std::to_string(pause.count() / kSecond) + "." + fraction;
  // Not every sleep knows fractions.  The newline ends a comment in the command.
  return "until (\n" + command + "\n) </dev/null; do sleep " + seconds +
         " 2>/dev/null || sleep 1; done";
}

Blame blame_for(const std::vector<bool>& workspace, std::size_t failed) {
  const auto end = workspace.begin() + static_cast<std::ptrdiff_t>(failed) + 1;
  return std::find(workspace.begin(), end, true) == end ? Blame::kHost : Blame::kCandidate;
}

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

namespace {
// It ends when the check has; no check is given more.
constexpr milliseconds kLongest = std::chrono::hours(24 * 365);

// The time of an attempt stands still while it is suspended.
Clock::time_point now_of(const SandboxSpec& spec) {
  return spec.hold ? spec.hold->now() : Clock::now();
}

constexpr auto kEnds = each_once(std::to_array<Word<ExecOutcome::End>>(
    {{"ended with exit code ", ExecOutcome::End::kExited},
     {"was ended by signal ", ExecOutcome::End::kSignalled},
     {"took too long", ExecOutcome::End::kTimedOut},
     {"ran out of its memory", ExecOutcome::End::kMemory},
     {"used more of the disk than the policy allows", ExecOutcome::End::kDisk},
     {"used more CPU time than the policy allows", ExecOutcome::End::kCpu},
     {"was ended", ExecOutcome::End::kCancelled}}));

std::string described(const ExecOutcome& o) {
  std::string out(word_in(kEnds, o.end));
  if (o.end == ExecOutcome::End::kExited) out += std::to_string(o.exit_code);
  if (o.end == ExecOutcome::End::kSignalled) out += std::to_string(o.signal);
  return out;
}
}  // namespace

Result<std::optional<ServiceGroup::Failure>> ServiceGroup::start(std::vector<ServicePlan> plans,
                                                                 const std::stop_token& cancel) {
  std::vector<bool> workspace;
  for (const ServicePlan& plan : plans) workspace.push_back(plan.workspace);
  for (std::size_t i = 0; i < plans.size(); ++i) {
    const std::string name = plans[i].name;
    const auto in_context_of = [&](Error e) { return in_context("service " + name, std::move(e)); };
    if (plans[i].ready.port != 0) {
      const Result<bool> taken = network_->accepts(plans[i].ready.port);
      if (!taken.ok()) return in_context_of(taken.error());
      if (*taken)
        return std::optional(Failure{name,
                                     "port " + std::to_string(plans[i].ready.port) +
                                         " accepted before it was started: it is another's",
                                     blame_for(workspace, i)});
    }
    if (Status launched = launch(std::move(plans[i])); !launched.ok())
      return in_context_of(std::move(launched).error());
    Running& service = running_.back();
    const auto begun = now_of(service.plan.spec);
    Result<Wait> waited = await(service, cancel);
    if (!waited.ok()) return in_context_of(std::move(waited).error());
    if (*waited == Wait::kReady) {
      service.ready_after =
          std::chrono::duration_cast<milliseconds>(now_of(service.plan.spec) - begun);
      continue;
    }
    Result<std::string> why = why_not(service, *waited);
    if (!why.ok()) return in_context_of(std::move(why).error());
    return std::optional(Failure{name, std::move(*why), blame_for(workspace, i)});
  }
  return not_itself(workspace);
}

Result<std::optional<ServiceGroup::Failure>> ServiceGroup::not_itself(
    const std::vector<bool>& workspace) const {
  std::size_t i = 0;
  for (const Running& service : running_) {
    if (service.plan.ready.port != 0 && service.ended.stop_requested()) {
      Result<std::string> why = why_not(service, Wait::kEnded);
      if (!why.ok()) return in_context("service " + service.plan.name, std::move(why).error());
      return std::optional(Failure{service.plan.name, std::move(*why), blame_for(workspace, i)});
    }
    ++i;
  }
  return std::optional<Failure>();
}

Status ServiceGroup::launch(ServicePlan plan) {
  plan.spec.shared = network_;
  plan.spec.network = false;
  plan.exec.timeout = kLongest;
  PROCTOR_TRY(auto sandbox, engine_.open(plan.spec));
  Running& r = running_.emplace_back();
  r.plan = std::move(plan);
  r.sandbox = std::move(sandbox);
  r.plan.exec.begun = [this, &r] {
    {
      const std::lock_guard lock(mutex_);
      r.begun = true;
    }
    news_.notify_all();
  };
  try {
    r.thread = std::jthread([this, &r] {
      Result<ExecOutcome> outcome = r.sandbox->run(r.plan.exec, r.ask_to_end.get_token());
      {
        const std::lock_guard lock(mutex_);
        r.outcome.emplace(std::move(outcome));
      }
      r.ended.request_stop();
      news_.notify_all();
    });
  } catch (const std::system_error& e) {
    running_.pop_back();
    return Error{Errc::kUnavailable, std::string("no thread: ") + e.what()};
  }
  return ok_status();
}

Result<ServiceGroup::Wait> ServiceGroup::await(Running& service, const std::stop_token& cancel) {
  if (service.plan.ready.port != 0) return await_port(service, cancel);
  if (!service.plan.ready.command.empty()) return await_command(service, cancel);
  return await_begin(service, cancel);
}

Result<ServiceGroup::Wait> ServiceGroup::await_begin(Running& service,
                                                     const std::stop_token& cancel) {
  std::unique_lock lock(mutex_);
  news_.wait(lock, cancel, [&] { return service.begun || service.outcome.has_value(); });
  if (service.begun) return Wait::kReady;  // whatever became of it
  return service.outcome ? Wait::kEnded : Wait::kCancelled;
}

Result<ServiceGroup::Wait> ServiceGroup::await_port(Running& service,
                                                    const std::stop_token& cancel) {
  const Readiness& ready = service.plan.ready;
  const auto until = now_of(service.plan.spec) + ready.timeout;
  // Beside others a port may be one of theirs, which lets this one end: it is looked at twice.
  int looks = &service == &running_.front() ? 1 : 2;
  for (;;) {
    if (service.plan.spec.hold) service.plan.spec.hold->wait_until_off(cancel);
    if (cancel.stop_requested()) return Wait::kCancelled;
    // Before the look: a port that accepts is not this service's when it has ended.
    const bool ended = service.ended.stop_requested();
    PROCTOR_TRY(const bool accepts, network_->accepts(ready.port));
    if (ended) return Wait::kEnded;
    if (accepts && --looks <= 0) return Wait::kReady;
    if (until <= now_of(service.plan.spec)) return Wait::kTooLate;
    std::unique_lock lock(mutex_);
    news_.wait_for(lock, cancel, ready.interval, [&] { return service.outcome.has_value(); });
  }
}

Result<ServiceGroup::Wait> ServiceGroup::await_command(Running& service,
                                                       const std::stop_token& cancel) {
  const Readiness& ready = service.plan.ready;
  SandboxSpec spec = service.plan.spec;
  spec.label += "-ready";
  ExecSpec exec;
  exec.command = until_it_succeeds(ready.command, ready.interval);
  exec.timeout = ready.timeout;
  exec.stdout_file = service.plan.ready_stdout_file;
  exec.stderr_file = service.plan.ready_stderr_file;
  exec.output_max = kReadyOutputBytes;
  // A program of an image has no shell around it.
  if (spec.program)
    spec.program = SandboxProgram{{"/bin/sh", "-c", exec.command}, {}, spec.program->working_dir};
  std::stop_source enough;
  const auto ask = [&enough] { enough.request_stop(); };
  const std::stop_callback on_cancel(cancel, ask);
  const std::stop_callback on_end(service.ended.get_token(), ask);
  PROCTOR_TRY(const auto sandbox, engine_.open(spec));
  PROCTOR_TRY(const ExecOutcome outcome, sandbox->run(exec, enough.get_token()));
  if (cancel.stop_requested()) return Wait::kCancelled;
  if (service.ended.stop_requested()) return Wait::kEnded;
  if (outcome.end == ExecOutcome::End::kTimedOut) return Wait::kTooLate;
  if (outcome.end == ExecOutcome::End::kExited && outcome.exit_code == 0) return Wait::kReady;
  return Wait::kNotAsked;
}

Result<std::string> ServiceGroup::why_not(const Running& service, Wait wait) const {
  const Readiness& ready = service.plan.ready;
  const std::string asked =
      ready.port != 0 ? "port " + std::to_string(ready.port) : std::string("its readiness command");
  switch (wait) {
    case Wait::kReady:
      break;
    case Wait::kEnded:
      // Set before `ended` was.
      if (!service.outcome->ok()) return service.outcome->error();
      return described(**service.outcome) + " before it was ready";
    case Wait::kTooLate:
      return "not ready within " + std::to_string(ready.timeout.count()) + " ms (" + asked + ")";
    case Wait::kCancelled:
      return std::string("cancelled before it was ready");
    case Wait::kNotAsked:
      return asked + " could not be run to an end of its own";
  }
  return std::string();
}

std::vector<ServiceGroup::End> ServiceGroup::stop() {
  for (Running& r : running_) {
    r.asked = !r.ended.stop_requested();
    r.ask_to_end.request_stop();
  }
  std::vector<End> out;
  for (Running& r : running_) {
    if (r.thread.joinable()) r.thread.join();
    End end{r.plan.name, r.ready_after, !r.asked, std::nullopt, {}};
    if (r.outcome->ok())
      end.outcome = std::move(*r.outcome).value();
    else
      end.error = r.outcome->error().detail;
    out.push_back(std::move(end));
  }
  running_.clear();
  return out;
}
}  // namespace proctor
