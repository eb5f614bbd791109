#pragma once
// The part of a peek that reads what a request is made of: messages, items, parts of content and
// tools, each by the rule of its type (body_shapes.h).  Internal to this room; one thread.
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "worker/gateway/body_peek.h"
#include "worker/gateway/body_shapes.h"

namespace proctor {

// kInvalid: of a member that is not what its API has there.
Error wrong_member(std::string_view member, std::string_view expected);

class BodyParts {
 public:
  // `text` and `out` outlive this.
  BodyParts(ModelApi api, const JsonText& text, BodyPeek& out)
      : api_(api), text_(text), out_(out) {}

  // "messages", "input" or "system".
  Status read(const JsonMember& m);
  Result<PeekedTool> read_tool(JsonSpan e) const;
  void cut(JsonSpan list, const std::vector<JsonSpan>& elements);
  void refuse(const std::string& member, std::string how, std::string instead);

 private:
  using Members = std::vector<JsonMember>;
  bool is_null(const JsonMember& m) const { return text_.kind(m.value) == 'n'; }
  Status inputs(const JsonMember& m);
  Result<std::vector<JsonSpan>> listed(JsonSpan list, const std::string& where);
  bool is_messages() const;
  bool has(const Members& members, std::string_view key) const;
  bool has_text(const Members& members, std::string_view key) const;
  bool has_some(const Members& members, std::string_view key) const;
  bool lies_inside(const Members& members, const std::string& where, bool picture);
  Status message(JsonSpan e, const std::string& where);
  Status content(const JsonMember* m, const std::string& where, std::size_t depth);
  Status part(JsonSpan e, const std::string& where, std::size_t depth);
  Status item(JsonSpan e, const std::string& where);
  Status shape(JsonSpan e, const std::string& where, Level level, std::size_t depth);
  Status unknown(JsonSpan e, const Members& members, const std::string& where,
                 const std::string& word, std::size_t depth);
  Status found(JsonSpan list, const std::string& where);
  Status inside(const ShapeRule& rule, const Members& members, const std::string& where,
                std::size_t depth);
  Status picture(const Members& members, const std::string& where);
  std::optional<JsonSpan> picture_data(const Members& members) const;
  Status read_inner(const JsonMember* list, PeekedTool& tool) const;
  void result(const Members& members);

  static constexpr std::size_t kDepth = 6;  // of parts within parts
  ModelApi api_;
  const JsonText& text_;
  BodyPeek& out_;
};

}  // namespace proctor
