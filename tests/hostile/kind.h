#pragma once
// Which kind of sandbox the hostile campaigns of this binary run in; one implementation is linked.
#include <memory>
#include <string>

namespace proctor::testing {

class Kind {
 public:
  virtual ~Kind() = default;
  // What contracts name as environment.image; empty: none.
  virtual std::string image() const = 0;
};

// Null, with a MESSAGE that names the reason, when this machine has no such kind.
std::unique_ptr<Kind> make_kind();

}  // namespace proctor::testing
