#include "worker/shell/checkpoint.h"

#include <algorithm>
#include <utility>

#include "common/base/digest.h"
#include "common/trace/json_fields.h"
#include "common/trace/run_report.h"
#include "worker/shell/host_facts.h"

namespace proctor {
namespace {
constexpr const char* kCheckpoint = "checkpoint";
constexpr std::size_t kCheckpointBytes = std::size_t{16} << 20;  // of paths, mostly
constexpr std::size_t kDigestHex = 64;

Json assignment_json(const wire::Assignment& a) {
  return {{"run", a.attempt.run.raw()},
          {"attempt", a.attempt.no.raw()},
          {"run_name", a.run_name},
          {"contract", a.contract.hex()},
          {"method", a.method.hex()},
          {"replicate", a.replicate},
          {"seed", a.seed},
          {"ask_micros", a.ask.micros()},
          {"stage", a.stage}};
}

std::uint32_t count32(JsonFields& in, const char* key) {
  return static_cast<std::uint32_t>(in.count(key, UINT32_MAX));
}

Result<wire::Assignment> assignment_from(JsonFields& parent) {
  JsonFields in(parent, "assignment");
  wire::Assignment a;
  a.attempt = {RunId(count32(in, "run")), AttemptNo(count32(in, "attempt"))};
  a.run_name = in.text("run_name");
  a.contract = in.digest("contract");
  a.method = in.digest("method");
  a.replicate = count32(in, "replicate");
  a.seed = count32(in, "seed");
  a.ask = MicroUsd::from_micros(in.integer("ask_micros"));
  a.stage = count32(in, "stage");
  PROCTOR_CHECK_OK(in.finish());
  return a;
}

Json trace_json(const RunRecorder::Mark& m) {
  return {{"events", m.events},
          {"origin", m.origin},
          {"patch", m.patch ? Json(m.patch->hex()) : Json(nullptr)},
          {"manifest", m.manifest.hex()}};
}

Result<RunRecorder::Mark> trace_from(JsonFields& parent) {
  JsonFields in(parent, "trace");
  RunRecorder::Mark m;
  m.events = in.count("events");
  m.origin = in.count("origin");
  m.patch = in.optional_digest("patch");
  m.manifest = in.digest("manifest");
  PROCTOR_CHECK_OK(in.finish());
  return m;
}

Result<Checkpoint> parse(std::string_view text) {
  PROCTOR_TRY(const Json json, parse_json(text, {kCheckpointBytes, 8}));
  JsonFields in(json, "");
  Checkpoint c;
  if (const std::string boot = in.text("boot"); boot == "unknown" || boot != kernel_boot())
    return Error{Errc::kNotFound, "of another boot of the kernel"};
  c.campaign = in.text("campaign");
  c.epoch = Epoch(in.count("epoch"));
  c.settings = in.digest("settings");
  c.lives = count32(in, "lives");
  PROCTOR_TRY(c.assignment, assignment_from(in));
  PROCTOR_TRY(c.trace, trace_from(in));
  for (const Json& event : in.array("told")) {
    PROCTOR_TRY(LifecycleEvent told, event_from(event));
    c.told.push_back(std::move(told));
  }
  if (in.has("setup_makes")) c.setup_makes = in.texts("setup_makes");
  if (in.has("program")) {
    JsonFields program(in, "program");
    Checkpoint::Program p;
    p.container = program.text("container");
    p.workspace = {program.text("workspace"), program.text("volume")};
    if (program.has("disk_free")) p.disk_free = program.count("disk_free");
    PROCTOR_CHECK_OK(program.finish());
    c.program = std::move(p);
  }
  if (in.has("ended")) {
    JsonFields ended(in, "ended");
    Checkpoint::Ended e;
    e.workspace = {ended.text("workspace"), ended.text("volume")};
    PROCTOR_TRY(e.usage, usage_from(ended, "usage"));
    PROCTOR_CHECK_OK(ended.finish());
    c.ended = std::move(e);
  }
  PROCTOR_CHECK_OK(in.finish());
  return c;
}

// What this life and the next say together: was the agent's program under way?
bool fits(const Checkpoint& c, const std::optional<MeterBook::Command>& command) {
  const bool agent = command && command->phase == MeterPhase::kAgent;
  if (c.ended) return agent || !command;
  return c.program.has_value() == agent;
}
}  // namespace

Status write_checkpoint(const fs::path& dir, const Checkpoint& c) {
  Json told = Json::array();
  for (const LifecycleEvent& event : c.told) {
    std::optional<Json> form = event_json(event);
    if (!form) return Error{Errc::kInvalid, "checkpoint: an event without a form"};
    told.push_back(*std::move(form));
  }
  Json json = {{"boot", kernel_boot()},
               {"campaign", c.campaign},
               {"epoch", c.epoch.raw()},
               {"settings", c.settings.hex()},
               {"lives", c.lives},
               {"assignment", assignment_json(c.assignment)},
               {"trace", trace_json(c.trace)},
               {"told", std::move(told)}};
  if (!c.setup_makes.empty()) json["setup_makes"] = c.setup_makes;
  if (c.program) {
    json["program"] = {{"container", c.program->container},
                       {"workspace", c.program->workspace.dir.string()},
                       {"volume", c.program->workspace.volume},
                       {"disk_free", c.program->disk_free}};
  }
  if (c.ended) {
    json["ended"] = {{"workspace", c.ended->workspace.dir.string()},
                     {"volume", c.ended->workspace.volume},
                     {"usage", to_json(c.ended->usage)}};
  }
  const std::string text = json.dump(-1, Json::Utf8::kReplace);
  return write_file(dir / kCheckpoint, sha256(text).hex() + "\n" + text, Durability::kLazy);
}

Result<Checkpoint> read_checkpoint(const fs::path& dir) {
  PROCTOR_TRY(const std::string bytes, read_file(dir / kCheckpoint, kCheckpointBytes));
  const auto text = std::string_view(bytes).substr(std::min(bytes.size(), kDigestHex + 1));
  if (bytes.size() <= kDigestHex || bytes[kDigestHex] != '\n' ||
      sha256(text).hex() != bytes.substr(0, kDigestHex))
    return Error{Errc::kNotFound, "a checkpoint that is not whole"};
  return parse(text);
}

LeftCommand LeftAttempt::command() const {
  return {checkpoint.program->container,
          std::chrono::steady_clock::time_point(book.command->since.time_since_epoch())};
}

std::vector<LeftAttempt> find_left_attempts(const fs::path& runs, const std::string& campaign,
                                            const std::set<AttemptId>& with_result,
                                            std::vector<MeterBook::Left>& books) {
  std::vector<LeftAttempt> out;
  std::erase_if(books, [&](MeterBook::Left& book) {
    if (book.before || book.campaign != campaign || with_result.contains(book.so_far.attempt))
      return false;
    const std::string name = campaign + "-" + to_string(book.so_far.attempt);
    Result<Checkpoint> c = read_checkpoint(runs / name);
    if (!c.ok() || c->campaign != campaign || c->assignment.attempt != book.so_far.attempt ||
        kLivesMax <= ++c->lives)
      return false;
    // The one that could not be written any more says what was before.
    if (!fits(*c, book.command)) return false;
    // Nothing is counted between the agent's end and its checkpoint.
    if (c->ended && book.command) {
      book.so_far.usage = c->ended->usage;
      book.command.reset();
    }
    // First of all, so that one that kills its workers at once is counted too.
    if (!write_checkpoint(runs / name, *c).ok()) return false;
    out.push_back({std::move(c).value(), std::move(book)});
    return true;
  });
  return out;
}
}  // namespace proctor
