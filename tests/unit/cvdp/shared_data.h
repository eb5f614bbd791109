#pragma once
// The upstream tool's own inputs and outputs, where they lie beside this clone
// (../shared/data/cvdp, or the folder that PROCTOR_CVDP_DATA names).  They are no part of this
// repository: a test that needs them says by name that it did not run.
#include <doctest/doctest.h>

#include <cstdlib>
#include <string>

#include "common/base/files.h"
#include "coordinator/cvdp/pycompat/python_text.h"
#include "tests/support/paths.h"

namespace proctor::cvdp::testing {

inline fs::path shared_data() {
  const char* named = std::getenv("PROCTOR_CVDP_DATA");
  return named != nullptr ? fs::path(named)
                          : ::proctor::testing::source_dir().parent_path() / "shared/data/cvdp";
}

inline bool have_shared_data(const char* test) {
  if (fs::exists(shared_data() / "README.md")) return true;
  MESSAGE("not run: there is no shared/data/cvdp beside this clone (" << test << ")");
  return false;
}

inline std::string bytes_of(const fs::path& path) {
  const auto bytes = read_file(path, std::size_t{64} << 20);
  if (!bytes.ok()) FAIL(bytes.error().detail);
  return *bytes;
}

inline Value json_of(std::string_view text) {
  auto value = read_json(text);
  if (!value.ok()) FAIL(value.error().detail);
  return std::move(*value);
}

// The list under `name` of units.json.
inline Value units(const std::string& name) {
  const Value all = json_of(bytes_of(shared_data() / "units.json"));
  return *all.object()->find(name);
}

inline const Value& in(const Value& object, std::string_view key) {
  const Value* found = object.object() == nullptr ? nullptr : object.object()->find(key);
  REQUIRE_MESSAGE(found != nullptr, std::string(key));
  return *found;
}
inline const std::string& text_in(const Value& object, std::string_view key) {
  const std::string* s = in(object, key).string();
  REQUIRE(s != nullptr);
  return *s;
}

}  // namespace proctor::cvdp::testing
