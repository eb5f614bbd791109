// AttemptRun: the services beside a check: their sandboxes, their network, what they leave in the
// evidence, and whose fault it is when one does not get ready.
#include <algorithm>

#include "common/base/limits.h"
#include "worker/shell/attempt_run.h"
#include "worker/shell/disk_watch.h"
#include "worker/shell/run_events.h"

namespace proctor {
namespace {

constexpr const char* kServicesDir = "services";

fs::path stream_of(const fs::path& evidence, const std::string& service, const char* stream) {
  return evidence / kServicesDir / (service + "." + stream);
}

Json end_payload(const Check& check, const fs::path& evidence, const ServiceGroup::End& end) {
  Json out = {{"check", check.id},
              {"service", end.service},
              {"ready", end.ready_after.has_value()},
              {"by_itself", end.by_itself}};
  if (end.ready_after) out["ready_after_ms"] = end.ready_after->count();
  if (!end.outcome) {
    out["error"] = as_utf8(end.error);
    return out;
  }
  const ProgramEnd program = end_of(*end.outcome);
  out["ended"] = to_string(program.end);
  out["exit_code"] = program.exit_code;
  out["signal"] = program.signal;
  out["wall_ms"] = end.outcome->wall.count();
  out["cpu_ms"] = end.outcome->cpu.count();
  out["memory_peak"] = end.outcome->memory_peak;
  out["stdout"] =
      output_payload(stream_of(evidence, end.service, "stdout"), end.outcome->stdout_bytes);
  out["stderr"] =
      output_payload(stream_of(evidence, end.service, "stderr"), end.outcome->stderr_bytes);
  return out;
}

}  // namespace

void AttemptRun::ServedBy::give_to(SandboxSpec& spec) const {
  spec.network = false;
  spec.shared = network;
  spec.mounts.push_back({hosts, "/etc/hosts", false});
}

Result<SandboxEngine*> AttemptRun::served_engine(const Check& check,
                                                 const std::vector<std::size_t>& services) {
  std::vector<const ProgramContainer*> containers;
  if (check.container) containers.push_back(&*check.container);
  bool own = !check.container;
  for (const std::size_t i : services) {
    const Service& service = contract().services[i];
    own = own || !service.container;
    if (service.container) containers.push_back(&*service.container);
  }
  SandboxEngine* out = own ? engine_ : nullptr;
  for (const ProgramContainer* container : containers) {
    PROCTOR_TRY(SandboxEngine* const engine, container_engine(*container));
    if (out != nullptr && out != engine)
      return Error{Errc::kUnavailable,
                   "a check and its services share no network across " +
                       std::string(to_string(out->kind())) + " and " +
                       std::string(to_string(engine->kind())) +
                       ": import all of their images, or none (proctor images, --images)"};
    out = engine;
  }
  return out;
}

Result<AttemptRun::ServedBy> AttemptRun::share_network(SandboxEngine& engine, const Check& check,
                                                       const std::vector<std::size_t>& services,
                                                       const std::string& name) {
  const auto image_of = [&](const std::optional<ProgramContainer>& container) {
    return container && !container->image.empty() ? container->image : contract().environment.image;
  };
  ServedBy out;
  out.engine = &engine;
  PROCTOR_TRY(out.network,
              engine.open_network(label(name + "-network"), image_of(check.container)));
  std::vector<std::string> names;
  for (const std::size_t i : services) names.push_back(contract().services[i].name);
  out.hosts = dir_ / (name + "-hosts");
  PROCTOR_CHECK_OK(write_file(out.hosts, hosts_of_services(names), Durability::kLazy, kOpenFile));
  return out;
}

Result<ServicePlan> AttemptRun::service_plan(const Service& service, const std::string& name,
                                             const fs::path& evidence, const ServedBy& served) {
  ServicePlan out;
  out.name = service.name;
  out.workspace = runs_workspace(service);
  const std::string own_label = label(name + "-" + service.name);
  if (service.container) {
    PROCTOR_TRY(out.spec,
                container_spec(*served.engine, *service.container, Room::kAcceptance, own_label));
    if (out.workspace) {
      out.spec.disk.places.push_back({container_root(Room::kAcceptance), 0, 0});
      out.spec.disk.bytes = contract().policy.disk_bytes;
      out.spec.disk.files = limits::kSandboxFiles;
    }
  } else {
    PROCTOR_TRY(out.spec, spec_for(Room::kAcceptance, own_label));
    PROCTOR_CHECK_OK(show_contract_files(out.spec, FilesFor::kChecks));
    for (const auto& [key, value] : service.variables) out.spec.env[key] = value;
    out.exec.command = service.command;
  }
  if (service.memory_bytes) out.spec.memory_bytes = *service.memory_bytes;
  if (service.processes) out.spec.processes = *service.processes;
  served.give_to(out.spec);
  out.exec.stdout_file = stream_of(evidence, service.name, "stdout");
  out.exec.stderr_file = stream_of(evidence, service.name, "stderr");
  out.exec.output_max = kServiceOutputBytes;
  out.ready = service.ready;
  out.ready_stdout_file = stream_of(evidence, service.name, "ready.stdout");
  out.ready_stderr_file = stream_of(evidence, service.name, "ready.stderr");
  return out;
}

void AttemptRun::note_services(const Check& check, const fs::path& evidence,
                               const std::vector<ServiceGroup::End>& ends) {
  for (const ServiceGroup::End& end : ends) {
    note("service", Actor::kHarness, end_payload(check, evidence, end));
    // Their time is that of the check, which is counted; what else they used is theirs.
    if (end.outcome)
      meter_.executed(MeterPhase::kAcceptance,
                      {Millis(0), end.outcome->cpu, end.outcome->memory_peak});
  }
}

Result<AttemptRun::CheckEnd> AttemptRun::run_served(const Check& check, const fs::path& results,
                                                    const std::string& name,
                                                    const fs::path& evidence,
                                                    const ExecSpec& exec) {
  const std::vector<std::size_t> services = services_of(contract().services, check);
  if (services.empty()) return run_alone(check, results, name, exec, nullptr);
  PROCTOR_TRY(SandboxEngine* const engine, served_engine(check, services));
  PROCTOR_TRY(const ServedBy served, share_network(*engine, check, services, name));
  PROCTOR_CHECK_OK(make_dirs(evidence / kServicesDir));
  // Copied before the candidate's services run, which may write to what would be copied.
  if (check.container) PROCTOR_CHECK_OK(container_folder(*check.container, Room::kAcceptance));
  std::vector<ServicePlan> plans;
  for (const std::size_t i : services) {
    PROCTOR_TRY(ServicePlan plan, service_plan(contract().services[i], name, evidence, served));
    plans.push_back(std::move(plan));
  }
  SandboxSpec writers;  // all of them write to the same places, or to none
  for (const ServicePlan& plan : plans)
    if (!plan.spec.disk.places.empty()) writers.disk = plan.spec.disk;
  const SandboxSpec one_of_them = plans.front().spec;
  ServiceGroup group(*engine, served.network);
  disk_.begin();
  auto failed = group.start(std::move(plans), watch_.token());
  std::optional<Error> full = disk_.end([&] { return written_in(writers); });
  if (failed.ok() && !*failed) {
    auto end = run_alone(check, results, name, exec, &served);
    note_services(check, evidence, group.stop());
    return end;
  }
  note_services(check, evidence, group.stop());
  if (!failed.ok()) return std::move(failed).error();
  if (full) return *std::move(full);
  const std::string why = "service " + (*failed)->service + " " + (*failed)->why;
  if ((*failed)->blame == Blame::kHost) return Error{Errc::kUnavailable, why};
  CheckEnd end;
  end.never_ran = why;
  end.engine = engine;
  end.ran_as = one_of_them;
  // A check that never ran has said nothing.
  for (const fs::path& file : {exec.stdout_file, exec.stderr_file})
    PROCTOR_CHECK_OK(write_file(file, "", Durability::kLazy));
  return end;
}

}  // namespace proctor
