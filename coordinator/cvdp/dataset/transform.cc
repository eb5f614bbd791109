#include "coordinator/cvdp/dataset/transform.h"

#include <algorithm>
#include <array>

#include "common/base/parse.h"
#include "common/base/text.h"
#include "coordinator/cvdp/pycompat/python_diff.h"
#include "coordinator/cvdp/pycompat/python_text.h"

namespace proctor::cvdp {
namespace {
constexpr std::string_view kBlanks = " \t\n\v\f\r\x1c\x1d\x1e\x1f";

std::string_view stripped(std::string_view s) {
  const std::size_t from = s.find_first_not_of(kBlanks);
  if (from == std::string_view::npos) return {};
  return s.substr(from, s.find_last_not_of(kBlanks) - from + 1);
}

// The line of the new text at which a hunk begins, read as upstream reads it: signs deleted, "@" at
// both ends stripped, the heading cut off.
Result<std::int64_t> hunk_start(std::string_view header) {
  std::string bare;
  for (const char c : header)
    if (c != '-' && c != '+') bare += c;
  std::string_view rest = bare;
  while (!rest.empty() && rest.front() == '@') rest.remove_prefix(1);
  while (!rest.empty() && rest.back() == '@') rest.remove_suffix(1);
  rest = stripped(rest.substr(0, rest.find(" @")));
  const auto wrong = [&] {
    return Error{Errc::kInvalid, "\"" + printable(header, 60) + "\" is no hunk header"};
  };
  const std::size_t blank = rest.find_first_of(" \t");
  if (blank == std::string_view::npos) return wrong();
  std::string_view second = stripped(rest.substr(blank));
  second = second.substr(0, second.find_first_of(", \t"));
  const auto out = whole_number<std::int64_t>(second);
  constexpr std::int64_t kLinesMax = 1'000'000'000'000;
  if (!out || kLinesMax < *out || *out < -kLinesMax) return wrong();
  return *out;
}

std::string out_of_range(std::string_view what, std::int64_t index, std::size_t size) {
  return "Warning: Cannot " + std::string(what) + " line at index " + std::to_string(index) +
         ", out of range (max: " + std::to_string(size) + ")";
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
    return join_lines(before_);
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
  std::string out;
  out.reserve(after.size() + new_lines.size() + path.size() + 60);
  out += "--- /dev/null\n+++ ";
  out += path;
  out += "\n@@ -0,0 +1," + std::to_string(new_lines.size()) + " @@";
  for (const std::string_view line : new_lines) {
    out += "\n+";
    out += line;
  }
  return out;
}

Result<Applied> apply_patch(std::string_view text, std::string_view patch) {
  Applied out;
  Page page(split_at_newlines(text));
  std::int64_t i = 0;
  bool in_hunk = false;
  for (const std::string_view line : split_at_newlines(patch)) {
    ++i;
    if (page.exhausted()) return Error{Errc::kExhausted, "this patch takes too long to apply"};
    if (line.starts_with("@")) {
      PROCTOR_TRY(const std::int64_t start, hunk_start(line));
      i = start - 1;
      in_hunk = true;
    } else if (line.starts_with("---") || line.starts_with("+++")) {
      out.reads_headers_in_body = out.reads_headers_in_body || in_hunk;
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
    out += "--- /dev/null\n+++ b/" + change.path + "\n@@ -0,0 +1," +
           std::to_string(new_lines.size()) + " @@\n";
    add_lines(out, '+', new_lines);
  } else if (!change.after) {
    out += "--- a/" + change.path + "\n+++ /dev/null\n@@ -1," + std::to_string(old_lines.size()) +
           " +0,0 @@\n";
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

Object* mapping(Object& of, std::string_view key) {
  Value* v = of.find(key);
  return v == nullptr ? nullptr : v->object();
}
std::string text_or_empty(const Value* v) {
  const std::string* s = v == nullptr ? nullptr : v->string();
  return s == nullptr ? std::string() : *s;
}

class ToAgentic {
 public:
  explicit ToAgentic(Transformed& out) : out_(out), top_(*out.value.object()) {}

  Status run() {
    Object* const input = mapping(top_, "input");
    if (input == nullptr || input->find("context") == nullptr) return ok_status();
    out_.changed = true;
    // transform() made room: what is added to the record moves none of its members.
    Value& context = top_.at("context");
    context = std::move(*mapping(top_, "input")->find("context"));
    const Object none;
    const Object& before = context.object() == nullptr ? none : *context.object();
    if (Value* prompt = input->find("prompt")) top_.set("prompt", std::move(*prompt));
    PROCTOR_CHECK_OK(patch(before));
    lift_harness();
    if (top_.find("categories") == nullptr)
      top_.set("categories", Array{Value("cat_0"), Value("medium")});
    top_.erase("input");
    top_.erase("output");
    return ok_status();
  }

 private:
  Status patch(const Object& before) {
    Object* const output = mapping(top_, "output");
    Object* after = output == nullptr ? nullptr : mapping(*output, "context");
    const std::string response = output == nullptr ? "" : text_or_empty(output->find("response"));
    if (!response.empty()) {
      if (after == nullptr) {
        output->set("context", Object());
        after = mapping(*output, "context");
      }
      after->set(kSubjective, response);
      top_.set("subjective_reference", response);
      after = mapping(*mapping(top_, "output"), "context");  // set() may have moved it
    }
    Object patches;
    if (after != nullptr) {
      patches.reserve(after->size());
      for (const Member& m : *after) {
        if (m.value.string() == nullptr)
          out_.warnings.push_back("output.context." + printable(m.key) + " is " +
                                  std::string(m.value.kind()) + ": taken as empty");
        const Value* old = before.find(m.key);
        const std::string* const old_text = old == nullptr ? nullptr : old->string();
        const std::string* const new_text = m.value.string();
        PROCTOR_TRY(std::string diff,
                    create_patch(old_text == nullptr ? std::string_view() : *old_text,
                                 new_text == nullptr ? std::string_view() : *new_text, m.key));
        patches.append(m.key, std::move(diff));
      }
    }
    top_.set("patch", std::move(patches));
    return ok_status();
  }

  void lift_harness() {
    Value* const harness = top_.find("harness");
    if (harness == nullptr || harness->object() == nullptr) return top_.set("harness", Object());
    Object& h = *harness->object();
    Value* const files = h.find("files");
    if (files == nullptr) return;
    Value inner = std::move(*files);
    h.erase("files");
    if (Object* o = inner.object())
      for (Member& m : o->members()) h.set(m.key, std::move(m.value));
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
    if (mapping(top_, "input") != nullptr && mapping(top_, "input")->find("context") != nullptr)
      return ok_status();
    if (top_.find("context") == nullptr && top_.find("patch") == nullptr) return ok_status();
    out_.changed = true;
    for (const char* key : {"input", "output"})
      if (mapping(top_, key) == nullptr) top_.set(key, Object());
    response();
    move("context", "context");
    move("prompt", "prompt");
    if (Value* reference = top_.find("subjective_reference")) {
      Value r = std::move(*reference);
      top_.erase("subjective_reference");
      mapping(top_, "output")->set("response", std::move(r));
    }
    PROCTOR_CHECK_OK(patches());
    Value* const harness = top_.find("harness");
    if (harness == nullptr) {
      top_.set("harness", Object());
    }
    if (Object* h = mapping(top_, "harness"); h != nullptr && h->find("files") == nullptr) {
      Object wrapped;
      wrapped.append("files", std::move(*h));
      top_.set("harness", std::move(wrapped));
    }
    return ok_status();
  }

 private:
  void move(std::string_view from, std::string_view to) {
    Value* const v = top_.find(from);
    if (v == nullptr) return;
    Value moved = std::move(*v);
    top_.erase(from);
    mapping(top_, "input")->set(to, std::move(moved));
  }

  void response() {
    Object* const context = mapping(top_, "context");
    Value* const text = context == nullptr ? nullptr : context->find(kSubjective);
    if (text == nullptr) return;
    Object& output = *mapping(top_, "output");
    if (const Value* r = output.find("response"); r == nullptr || !r->truthy())
      output.set("response", std::move(*text));
    context->erase(kSubjective);
  }

  Status patches() {
    Value* const found = top_.find("patch");
    Object& output = *mapping(top_, "output");
    if (mapping(output, "context") == nullptr) output.set("context", Object());
    if (found != nullptr && found->object() != nullptr) {
      const Object* before = mapping(*mapping(top_, "input"), "context");
      for (const Member& m : *found->object()) {
        if (m.key == kSubjective) continue;
        PROCTOR_CHECK_OK(apply_one(m, before, output));
      }
    }
    top_.erase("patch");
    mapping(*mapping(top_, "output"), "context")->erase(kSubjective);
    return ok_status();
  }

  Status apply_one(const Member& m, const Object* before, Object& output) {
    std::string old = text_or_empty(before == nullptr ? nullptr : before->find(m.key));
    const auto warn = [&](const std::string& text) {
      out_.warnings.push_back("patch." + printable(m.key) + ": " + text);
    };
    if (m.value.string() == nullptr) {
      warn("is " + std::string(m.value.kind()) + ": the file is kept as it was");
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
    mapping(output, "context")->set(m.key, std::move(old));
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
  if (before.empty())
    return "an empty text comes back as " + std::to_string(after.size()) + " bytes";
  return "comes back as another text (" + std::to_string(before.size()) + " bytes, then " +
         std::to_string(after.size()) + ")";
}

void compare(const Value* before, const Value* after, const std::string& field,
             std::vector<Loss>& out) {
  if (before == nullptr && after == nullptr) return;
  if (before == nullptr) return out.push_back({field, "is added"});
  if (after == nullptr) return out.push_back({field, "is lost"});
  if (before->object() != nullptr && after->object() != nullptr) {
    for (const Member& m : *before->object())
      compare(&m.value, after->object()->find(m.key), field + (field.empty() ? "" : ".") + m.key,
              out);
    for (const Member& m : *after->object())
      if (before->object()->find(m.key) == nullptr)
        out.push_back({field + (field.empty() ? "" : ".") + m.key, "is added"});
    return;
  }
  if (*before == *after) return;
  if (before->string() != nullptr && after->string() != nullptr)
    return out.push_back({field, difference(*before->string(), *after->string())});
  out.push_back(
      {field, "is " + std::string(before->kind()) + ", then " + std::string(after->kind())});
}
}  // namespace

Result<Transformed> transform(Value value, Shape to) {
  if (value.object() == nullptr)
    return Error{Errc::kInvalid, "a record is a mapping, found " + std::string(value.kind())};
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
  const std::size_t dot = file_name.rfind('.');
  const bool extended = dot != std::string_view::npos && dot != 0;
  return std::string(extended ? file_name.substr(0, dot) : file_name) + "." +
         std::string(to_string(to)) + "_transformed" +
         std::string(extended ? file_name.substr(dot) : std::string_view());
}
}  // namespace proctor::cvdp
