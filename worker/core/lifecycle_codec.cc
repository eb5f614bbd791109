#include "worker/core/lifecycle_codec.h"

#include <array>

#include "common/base/digest.h"
#include "common/base/parse.h"
#include "common/base/result.h"
#include "common/base/text.h"
#include "common/trace/json_fields.h"

namespace proctor {
namespace {

constexpr std::array kEnds = {ExecEnd::kExited,   ExecEnd::kSignalled, ExecEnd::kTimedOut,
                              ExecEnd::kMemory,   ExecEnd::kDisk,      ExecEnd::kCpu,
                              ExecEnd::kCancelled};

// A path may be any bytes, and JSON holds text only: what is none is told in hexadecimal digits.
constexpr std::string_view kHex = "hex:";

std::string as_text(const std::string& bytes) {
  if (is_utf8(bytes) && !bytes.starts_with(kHex)) return bytes;
  return std::string(kHex) + to_hex(bytes);
}

std::string as_bytes(std::string text) {
  if (!text.starts_with(kHex)) return text;
  const std::string_view digits = std::string_view(text).substr(kHex.size());
  std::string bytes;
  for (std::size_t i = 0; i + 1 < digits.size(); i += 2) {
    const auto byte = whole_number<unsigned>(digits.substr(i, 2), 16);
    if (!byte) return text;
    bytes += static_cast<char>(*byte);
  }
  return bytes;
}

Json all_as_text(std::vector<std::string> paths) {
  for (std::string& path : paths) path = as_text(path);
  return paths;
}

std::vector<std::string> all_as_bytes(std::vector<std::string> texts) {
  for (std::string& text : texts) text = as_bytes(std::move(text));
  return texts;
}

Json end_json(const ProgramEnd& e) {
  return {{"end", to_string(e.end)},
          {"exit_code", e.exit_code},
          {"signal", e.signal},
          {"wall_ms", e.wall.count()}};
}

Result<ProgramEnd> end_from(JsonFields& parent) {
  JsonFields in(parent, "exec");
  ProgramEnd out;
  const std::string word = in.text("end");
  bool known = false;
  for (const ExecEnd end : kEnds)
    if (to_string(end) == word) {
      out.end = end;
      known = true;
    }
  if (!known) in.refuse("end", "no such end");
  out.exit_code = static_cast<int>(in.integer("exit_code"));
  out.signal = static_cast<int>(in.integer("signal"));
  out.wall = std::chrono::milliseconds(in.integer("wall_ms"));
  PROCTOR_CHECK_OK(in.finish());
  return out;
}

Result<LifecycleEvent> read_event(JsonFields& in) {
  const std::string type = in.text("event");
  if (type == "snapshot") return LifecycleEvent(SnapshotReady{in.text("commit"), in.text("tree")});
  if (type == "done") return LifecycleEvent(StepDone{});
  if (type == "setup") {
    PROCTOR_TRY(const ProgramEnd exec, end_from(in));
    return LifecycleEvent(SetupEnded{exec, in.count("evidence")});
  }
  if (type == "agent") {
    PROCTOR_TRY(const ProgramEnd exec, end_from(in));
    AgentEnded out{in.boolean("ran_program"), exec, in.count("evidence"), in.texts("denied")};
    // A checkpoint from before these knew no agent that could not start.
    out.asked = !in.has("asked") || in.boolean("asked");
    if (in.has("words")) out.words = in.text("words");
    if (in.has("rung")) out.rung = in.text("rung");
    if (in.has("misfit")) out.misfit = in.text("misfit");
    if (in.has("no_model"))
      out.no_model = {in.text("no_model"), in.boolean("busy"), in.count("no_model_evidence"),
                      in.has("eaten") && in.boolean("eaten"),
                      in.has("later") && in.boolean("later")};
    return LifecycleEvent(std::move(out));
  }
  if (type == "budget")
    return LifecycleEvent(
        BudgetReached{in.text("cap"), in.count("evidence"), as_bytes(in.text("reason"))});
  if (type == "patch") {
    PatchExtracted out{all_as_bytes(in.texts("refused")),
                       all_as_bytes(in.texts("outside_writable")), as_bytes(in.text("unreadable"))};
    out.changed = !in.has("changed") || in.boolean("changed");
    if (in.has("conflicts")) out.conflicts = all_as_bytes(in.texts("conflicts"));
    return LifecycleEvent(std::move(out));
  }
  in.refuse("event", "no such event");
  return LifecycleEvent(StepDone{});
}

}  // namespace

std::optional<Json> event_json(const LifecycleEvent& event) {
  using Form = std::optional<Json>;
  return std::visit(
      Overload{
          [](const SnapshotReady& e) -> Form {
            return Json{{"event", "snapshot"}, {"commit", e.commit}, {"tree", e.tree}};
          },
          [](const StepDone&) -> Form {
            return Json{{"event", "done"}};
          },
          [](const SetupEnded& e) -> Form {
            if (!e.words.empty()) return std::nullopt;  // it failed, and nothing comes after it
            return Json{{"event", "setup"}, {"exec", end_json(e.exec)}, {"evidence", e.evidence}};
          },
          [](const AgentEnded& e) -> Form {
            Json out{{"event", "agent"},         {"ran_program", e.ran_program},
                     {"exec", end_json(e.exec)}, {"evidence", e.evidence},
                     {"denied", e.denied},       {"asked", e.asked},
                     {"words", e.words},         {"rung", e.rung},
                     {"misfit", e.misfit}};
            if (e.no_model.why.empty()) return out;
            out["no_model"] = e.no_model.why;
            out["busy"] = e.no_model.busy;
            out["no_model_evidence"] = e.no_model.evidence;
            if (e.no_model.eaten) out["eaten"] = true;
            if (e.no_model.later) out["later"] = true;
            return out;
          },
          [](const BudgetReached& e) -> Form {
            return Json{{"event", "budget"},
                        {"cap", e.cap},
                        {"evidence", e.evidence},
                        {"reason", as_text(e.reason)}};
          },
          [](const PatchExtracted& e) -> Form {
            return Json{{"event", "patch"},
                        {"refused", all_as_text(e.refused)},
                        {"outside_writable", all_as_text(e.outside_writable)},
                        {"unreadable", as_text(e.unreadable)},
                        {"changed", e.changed},
                        {"conflicts", all_as_text(e.conflicts)}};
          },
          [](const auto&) -> Form { return std::nullopt; }},
      event);
}

Result<LifecycleEvent> event_from(const Json& json) {
  JsonFields in(json, "event");
  PROCTOR_TRY(LifecycleEvent event, read_event(in));
  PROCTOR_CHECK_OK(in.finish());
  return event;
}

}  // namespace proctor
