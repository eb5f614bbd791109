#include "worker/shell/checkpoint.h"

#include <algorithm>
#include <utility>

#include "common/base/digest.h"
#include "common/base/json_fields.h"
#include "worker/shell/host_facts.h"

namespace proctor {
namespace {
constexpr const char* kCheckpoint = "checkpoint";
constexpr std::size_t kCheckpointBytes = std::size_t{16} << 20;  // of paths, mostly
constexpr std::size_t kDigestHex = 64;

Result<Checkpoint> parse(std::string_view text) {
  PROCTOR_TRY(const Json json, parse_json(text, {kCheckpointBytes, 8}));
  std::string problem, boot;
  std::vector<Json> told;
  Checkpoint c;
  JsonReader v(json, "", problem);
  v("boot", boot);
  if (boot == "unknown" || boot != kernel_boot())
    return Error{Errc::kNotFound, "of another boot of the kernel"};
  v("told", told);
  fields(v, c);
  v.finish();
  if (!v.ok()) return Error{Errc::kInvalid, std::move(problem)};
  for (const Json& form : told) {
    PROCTOR_TRY(LifecycleEvent event, event_from(form));
    c.told.push_back(std::move(event));
  }
  return c;
}

// kNotFound: there is none that can be believed.
Result<Checkpoint> read_checkpoint(const fs::path& dir) {
  PROCTOR_TRY(const std::string bytes, read_file(dir / kCheckpoint, kCheckpointBytes));
  const auto text = std::string_view(bytes).substr(std::min(bytes.size(), kDigestHex + 1));
  if (bytes.size() <= kDigestHex || bytes[kDigestHex] != '\n' ||
      sha256(text).hex() != bytes.substr(0, kDigestHex))
    return Error{Errc::kNotFound, "a checkpoint that is not whole"};
  return parse(text);
}

// What this life and the next say together: was the agent's program under way?
bool fits(const Checkpoint& c, const std::optional<MeterBook::Command>& command) {
  const bool agent = command && command->phase == MeterPhase::kAgent;
  if (c.ended) return agent || !command;
  return c.program.has_value() == agent;
}
}  // namespace

Status write_checkpoint(const fs::path& dir, const Checkpoint& c) {
  std::vector<Json> told;
  for (const LifecycleEvent& event : c.told) {
    std::optional<Json> form = event_json(event);
    if (!form) return Error{Errc::kInvalid, "checkpoint: an event without a form"};
    told.push_back(*std::move(form));
  }
  JsonWriter v;
  v("boot", kernel_boot());
  v("told", told);
  fields(v, c);
  const std::string text = v.take().dump(-1, Json::Utf8::kReplace);
  return write_file(dir / kCheckpoint, sha256(text).hex() + "\n" + text, Durability::kLazy);
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
