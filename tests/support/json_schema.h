#pragma once
// The published schemas against what is really written, by a validator that is not ours.  Its own
// file and library: valijson is slow to compile.
#include <memory>
#include <string>
#include <string_view>

#include "common/base/json.h"

namespace proctor::testing {

class JsonSchema {
 public:
  // schemas/NAME.schema.json
  explicit JsonSchema(const std::string& name);
  ~JsonSchema();
  const Json& document() const;
  bool accepts(const Json& value) const;
  // What does not fit, a line each; empty when it is accepted.
  std::string violations(const Json& value) const;

 private:
  struct Compiled;
  std::unique_ptr<Compiled> compiled_;
};

// As a reader of CSV with a header gives it: one object of texts per record.
Json csv_rows(std::string_view csv);

}  // namespace proctor::testing
