#pragma once
// Secret: text with no stream, no formatter and no codec.  Reading it is a word one can grep for.
#include <string>
#include <utility>

namespace proctor {

class Secret {
 public:
  Secret() = default;
  explicit Secret(std::string text) : text_(std::move(text)) {}
  const std::string& reveal() const { return text_; }
  bool empty() const { return text_.empty(); }

 private:
  std::string text_;
};

}  // namespace proctor
