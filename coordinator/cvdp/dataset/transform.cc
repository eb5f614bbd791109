#include "coordinator/cvdp/dataset/transform.h"

#include <algorithm>

#include "common/base/text.h"
#include "coordinator/cvdp/dataset/patch.h"

namespace proctor::cvdp {
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
