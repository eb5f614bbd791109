#include "coordinator/cvdp/dataset/transform.h"

#include <fmt/format.h>
#include <algorithm>
#include <array>

#include "common/base/parse.h"
#include "common/base/text.h"
#include "coordinator/cvdp/pycompat/python_diff.h"
#include "coordinator/cvdp/pycompat/python_text.h"

namespace proctor::cvdp {
namespace {
// The line of the new text at which a hunk begins, read as upstream reads it: signs deleted, "@" at
// both ends stripped, the heading cut off.
Result<std::int64_t> hunk_start(std::string_view header) {
  std::string bare;
  for (const char c : header)
    if (c != '-' && c != '+') bare += c;
  std::string_view rest = trimmed(bare, "@");
  rest = strip_text(rest.substr(0, rest.find(" @")));
  const auto wrong = [&] { return invalid("\"{}\" is no hunk header", printable(header, 60)); };
  const std::size_t blank = rest.find_first_of(" \t");
  if (blank == std::string_view::npos) return wrong();
  std::string_view second = strip_text(rest.substr(blank));
  second = second.substr(0, second.find_first_of(", \t"));
  const auto out = whole_number<std::int64_t>(second);
  constexpr std::int64_t kLinesMax = 1'000'000'000'000;
  if (!out || kLinesMax < *out || *out < -kLinesMax) return wrong();
  return *out;
}

std::string out_of_range(std::string_view what, std::int64_t index, std::size_t size) {
  return fmt::format("Warning: Cannot {} line at index {}, out of range (max: {})", what, index,
                     size);
}

// The lines of a text with a cursor: edits near it are cheap however long the text is.
class Page {
 public:
  explicit Page(std::vector<std::string_view> lines) : after_(lines.rbegin(), lines.rend()) {}
  std::size_t size() const { return before_.size() + after_.size(); }
  // Hunks that jump to and fro in a long text: more work than any honest patch is.
  bool exhausted() const { return kMovesMax < moves_; }
  void erase(std::size_t at) {
    move_to(at);
    after_.pop_back();
  }
  void insert(std::size_t at, std::string_view line) {
    move_to(at);
    before_.push_back(line);
  }
  std::string text() {
    move_to(size());
    return fmt::format("{}", fmt::join(before_, "\n"));
  }

 private:
  static constexpr std::uint64_t kMovesMax = 1'000'000'000;
  void move_to(std::size_t at) {
    moves_ += at < before_.size() ? before_.size() - at : at - before_.size();
    while (before_.size() < at) {
      before_.push_back(after_.back());
      after_.pop_back();
    }
    while (at < before_.size()) {
      after_.push_back(before_.back());
      before_.pop_back();
    }
  }
  std::vector<std::string_view> before_;
  std::vector<std::string_view> after_;  // the last line first
  std::uint64_t moves_ = 0;
};
}  // namespace

Result<std::string> create_patch(std::string_view before, std::string_view after,
                                 std::string_view path) {
  const auto new_lines = split_lines(after);
  if (!before.empty()) {
    const auto old_lines = split_lines(before);
    return unified_diff(old_lines, new_lines, path);
  }
  std::string out = fmt::format("--- /dev/null\n+++ {}\n@@ -0,0 +1,{} @@", path, new_lines.size());
  out.reserve(out.size() + after.size() + 2 * new_lines.size());
  for (const std::string_view line : new_lines) {
    out += "\n+";
    out += line;
  }
  return out;
}

Result<Applied> apply_patch(std::string_view text, std::string_view patch) {
  Applied out;
  Page page(split(text, '\n'));
  std::int64_t i = 0;
  for (const std::string_view line : split(patch, '\n')) {
    ++i;
    if (page.exhausted()) return Error{Errc::kExhausted, "this patch takes too long to apply"};
    if (line.starts_with("@")) {
      PROCTOR_TRY(const std::int64_t start, hunk_start(line));
      i = start - 1;
    } else if (line.starts_with("---") || line.starts_with("+++")) {
      // A header to upstream, also where it is a removed "--..." or an added "++..." line.
    } else if (line.starts_with("\\")) {
      --i;
    } else if (line.starts_with("-")) {
      if (0 < i && i <= static_cast<std::int64_t>(page.size()))
        page.erase(static_cast<std::size_t>(--i));
      else
        out.warnings.push_back(out_of_range("delete", i - 1, page.size() - 1));
    } else if (line.starts_with("+")) {
      if (0 < i && i - 1 <= static_cast<std::int64_t>(page.size()))
        page.insert(static_cast<std::size_t>(i - 1), line.substr(1));
      else
        out.warnings.push_back(out_of_range("insert", i - 1, page.size()));
    }
  }
  out.text = page.text();
  return out;
}

// agent_changes.patch of what an agent changed.

namespace {
constexpr std::array<std::string_view, 4> kFolders = {"docs/", "rundir/", "rtl/", "verif/"};

// How many bytes from `at` on are one character; 0: none, and `bad` says how many bytes count as
// one that is wrong (Unicode's "maximal subpart").
std::size_t character(std::string_view bytes, std::size_t at, std::size_t& bad) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(bytes[i]); };
  const unsigned first = byte(at);
  bad = 1;
  if (first < 0x80) return 1;
  if (first < 0xC2 || 0xF4 < first) return 0;
  const std::size_t size = first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
  for (std::size_t i = 1; i < size; ++i) {
    unsigned low = 0x80, high = 0xBF;
    if (i == 1 && first == 0xE0) low = 0xA0;
    if (i == 1 && first == 0xED) high = 0x9F;  // surrogates
    if (i == 1 && first == 0xF0) low = 0x90;
    if (i == 1 && first == 0xF4) high = 0x8F;
    if (bytes.size() <= at + i || byte(at + i) < low || high < byte(at + i)) {
      bad = i;
      return 0;
    }
  }
  return size;
}

void add_lines(std::string& out, char sign, const std::vector<std::string_view>& lines) {
  for (const std::string_view line : lines) {
    out += sign;
    out += line;
    out += '\n';
  }
}

Status add(std::string& out, const AgentChange& change) {
  const std::string before = text_of_bytes(change.before.value_or(""));
  const std::string after = text_of_bytes(change.after.value_or(""));
  const auto old_lines = split_lines(before), new_lines = split_lines(after);
  if (!change.before) {
    out +=
        fmt::format("--- /dev/null\n+++ b/{}\n@@ -0,0 +1,{} @@\n", change.path, new_lines.size());
    add_lines(out, '+', new_lines);
  } else if (!change.after) {
    out +=
        fmt::format("--- a/{}\n+++ /dev/null\n@@ -1,{} +0,0 @@\n", change.path, old_lines.size());
    add_lines(out, '-', old_lines);
  } else {
    if (before == after) return ok_status();
    PROCTOR_TRY(const std::string diff, unified_diff(old_lines, new_lines, change.path));
    out += diff;
    if (!diff.empty()) out += '\n';
  }
  out += '\n';
  return ok_status();
}
}  // namespace

std::string text_of_bytes(std::string_view bytes) {
  std::string out;
  out.reserve(bytes.size());
  for (std::size_t at = 0; at < bytes.size();) {
    std::size_t bad = 0;
    if (bytes[at] == '\r') {
      out += '\n';
      at += at + 1 < bytes.size() && bytes[at + 1] == '\n' ? 2U : 1U;
    } else if (const std::size_t size = character(bytes, at, bad); size != 0) {
      out += bytes.substr(at, size);
      at += size;
    } else {
      out += "\xEF\xBF\xBD";
      at += bad;
    }
  }
  return out;
}

Result<std::string> agent_changes(std::span<const AgentChange> changes) {
  std::vector<const AgentChange*> sorted;
  for (const AgentChange& change : changes) sorted.push_back(&change);
  std::ranges::sort(sorted, {}, [](const AgentChange* c) { return c->path; });
  std::string out;
  for (const std::string_view folder : kFolders)
    for (const AgentChange* change : sorted)
      if (change->path.starts_with(folder)) PROCTOR_CHECK_OK(add(out, *change));
  if (!out.empty()) out.pop_back();  // lines joined, the last one empty
  return out;
}

// A record of one shape as a record of the other.

namespace {
constexpr std::string_view kSubjective = "docs/subjective.txt";

std::string_view text_or_empty(const std::string* s) {
  return s == nullptr ? std::string_view() : std::string_view(*s);
}

class ToAgentic {
 public:
  explicit ToAgentic(Transformed& out) : out_(out), top_(*out.value.object()) {}

  Status run() {
    Object* const input = object_at(&top_, "input");
    if (value_at(input, "context") == nullptr) return ok_status();
    out_.changed = true;
    // transform() made room: what is added to the record moves none of its members.
    Value& context = top_.at("context");
    context = std::move(*value_at(object_at(&top_, "input"), "context"));
    const Object none;
    const Object& before = context.object() == nullptr ? none : *context.object();
    if (Value* prompt = value_at(input, "prompt")) top_.set("prompt", std::move(*prompt));
    PROCTOR_CHECK_OK(patch(before));
    lift_harness();
    if (value_at(&top_, "categories") == nullptr)
      top_.set("categories", Array{Value("cat_0"), Value("medium")});
    top_.erase("input");
    top_.erase("output");
    return ok_status();
  }

 private:
  Status patch(const Object& before) {
    Object* const output = object_at(&top_, "output");
    Object* after = object_at(output, "context");
    if (const std::string response(text_or_empty(text_at(output, "response"))); !response.empty()) {
      if (after == nullptr) {
        output->set("context", Object());
        after = object_at(output, "context");
      }
      after->set(kSubjective, response);
      top_.set("subjective_reference", response);
      after = object_at(object_at(&top_, "output"), "context");  // set() may have moved it
    }
    Object patches;
    if (after != nullptr) {
      patches.reserve(after->size());
      for (const Member& m : *after) {
        if (m.value.string() == nullptr)
          out_.warnings.push_back(fmt::format("output.context.{} is {}: taken as empty",
                                              printable(m.key), m.value.kind()));
        PROCTOR_TRY(std::string diff, create_patch(text_or_empty(text_at(before, m.key)),
                                                   text_or_empty(m.value.string()), m.key));
        patches.append(m.key, std::move(diff));
      }
    }
    top_.set("patch", std::move(patches));
    return ok_status();
  }

  void lift_harness() {
    Object* const h = object_at(&top_, "harness");
    if (h == nullptr) return top_.set("harness", Object());
    Value* const files = value_at(h, "files");
    if (files == nullptr) return;
    Value inner = std::move(*files);
    h->erase("files");
    if (Object* o = inner.object())
      for (Member& m : o->members()) h->set(m.key, std::move(m.value));
  }

  Transformed& out_;
  Object& top_;
};

// What upstream does to a patch before it applies it.
std::string ready_to_apply(std::string patch) {
  if (patch.find('\n') == std::string::npos) {
    std::string real;
    for (std::size_t i = 0; i < patch.size(); ++i) {
      if (patch.compare(i, 2, "\\n") == 0) {
        real += '\n';
        ++i;
      } else {
        real += patch[i];
      }
    }
    patch = std::move(real);
  }
  if (!patch.ends_with('\n')) patch += '\n';
  return patch;
}

class ToCopilot {
 public:
  explicit ToCopilot(Transformed& out) : out_(out), top_(*out.value.object()) {}

  Status run() {
    if (value_at(object_at(&top_, "input"), "context") != nullptr) return ok_status();
    if (value_at(&top_, "context") == nullptr && value_at(&top_, "patch") == nullptr)
      return ok_status();
    out_.changed = true;
    for (const char* key : {"input", "output"})
      if (object_at(&top_, key) == nullptr) top_.set(key, Object());
    response();
    move("context", "input", "context");
    move("prompt", "input", "prompt");
    move("subjective_reference", "output", "response");
    PROCTOR_CHECK_OK(patches());
    if (value_at(&top_, "harness") == nullptr) top_.set("harness", Object());
    Object* const h = object_at(&top_, "harness");
    if (h != nullptr && value_at(h, "files") == nullptr)
      top_.set("harness", object_of("files", std::move(*h)));
    return ok_status();
  }

 private:
  void move(std::string_view from, std::string_view part, std::string_view to) {
    Value* const v = top_.find(from);
    if (v == nullptr) return;
    Value moved = std::move(*v);
    top_.erase(from);
    object_at(&top_, part)->set(to, std::move(moved));
  }

  void response() {
    Object* const context = object_at(&top_, "context");
    Value* const text = value_at(context, kSubjective);
    if (text == nullptr) return;
    Object* const output = object_at(&top_, "output");
    if (const Value* r = value_at(output, "response"); r == nullptr || !r->truthy())
      output->set("response", std::move(*text));
    context->erase(kSubjective);
  }

  Status patches() {
    Object* const output = object_at(&top_, "output");
    if (object_at(output, "context") == nullptr) output->set("context", Object());
    if (const Object* const found = object_at(&top_, "patch")) {
      const Object* before = object_at(object_at(&top_, "input"), "context");
      for (const Member& m : *found)
        if (m.key != kSubjective) PROCTOR_CHECK_OK(apply_one(m, before, *output));
    }
    top_.erase("patch");
    object_at(object_at(&top_, "output"), "context")->erase(kSubjective);
    return ok_status();
  }

  Status apply_one(const Member& m, const Object* before, Object& output) {
    std::string old(text_or_empty(text_at(before, m.key)));
    const auto warn = [&](const std::string& text) {
      out_.warnings.push_back("patch." + printable(m.key) + ": " + text);
    };
    if (m.value.string() == nullptr) {
      warn(fmt::format("is {}: the file is kept as it was", m.value.kind()));
    } else {
      Result<Applied> applied = apply_patch(old, ready_to_apply(*m.value.string()));
      if (!applied.ok() && applied.error().code == Errc::kExhausted) return applied.error();
      if (!applied.ok()) {
        warn(applied.error().detail + ": the file is kept as it was");
      } else {
        for (const std::string& w : applied->warnings) warn(w);
        old = std::move(applied->text);
      }
    }
    object_at(&output, "context")->set(m.key, std::move(old));
    return ok_status();
  }

  Transformed& out_;
  Object& top_;
};

// Why `after` is not `before`, as well as can be said.
std::string difference(std::string_view before, std::string_view after) {
  if (std::string(before) + "\n" == after) return "a final newline is added";
  if (before.find_first_of("\r\v\f\x1c\x1d\x1e") != std::string_view::npos)
    return "line ends other than \\n become \\n";
  if (after == before.substr(0, after.size()) && after.size() + 1 == before.size())
    return "its final newline is lost";
  if (before.empty()) return fmt::format("an empty text comes back as {} bytes", after.size());
  return fmt::format("comes back as another text ({} bytes, then {})", before.size(), after.size());
}

void compare(const Value* before, const Value* after, const std::string& field,
             std::vector<Loss>& out) {
  if (before == nullptr && after == nullptr) return;
  if (before == nullptr) return out.push_back({field, "is added"});
  if (after == nullptr) return out.push_back({field, "is lost"});
  if (const Object* was = before->object(), *is = after->object();
      was != nullptr && is != nullptr) {
    const std::string within = field + (field.empty() ? "" : ".");
    for (const Member& m : *was) compare(&m.value, is->find(m.key), within + m.key, out);
    for (const Member& m : *is)
      if (was->find(m.key) == nullptr) out.push_back({within + m.key, "is added"});
    return;
  }
  if (*before == *after) return;
  if (before->string() != nullptr && after->string() != nullptr)
    return out.push_back({field, difference(*before->string(), *after->string())});
  out.push_back({field, fmt::format("is {}, then {}", before->kind(), after->kind())});
}
}  // namespace

Result<Transformed> transform(Value value, Shape to) {
  if (value.object() == nullptr) return invalid("a record is a mapping, found {}", value.kind());
  Transformed out;
  out.value = std::move(value);
  // Room for every member that is added: pointers into the record stay good.
  out.value.object()->reserve(out.value.object()->size() + 8);
  PROCTOR_CHECK_OK(to == Shape::kAgentic ? ToAgentic(out).run() : ToCopilot(out).run());
  return out;
}

Result<std::vector<Loss>> losses_of(const Value& value, Shape to) {
  PROCTOR_TRY(Transformed there, transform(value, to));
  std::vector<Loss> out;
  if (!there.changed) return out;
  for (const std::string& w : there.warnings) out.push_back({"", w});
  PROCTOR_TRY(
      const Transformed back,
      transform(std::move(there.value), to == Shape::kAgentic ? Shape::kCopilot : Shape::kAgentic));
  compare(&value, &back.value, "", out);
  return out;
}

std::string transformed_name(std::string_view file_name, Shape to) {
  std::size_t dot = file_name.rfind('.');
  if (dot == 0 || dot == file_name.npos) dot = file_name.size();
  return fmt::format("{}.{}_transformed{}", file_name.substr(0, dot), to_string(to),
                     file_name.substr(dot));
}
}  // namespace proctor::cvdp
