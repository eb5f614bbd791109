#pragma once
// A journal's file as somebody with a shell sees and changes it.
#include <doctest/doctest.h>
#include <sqlite3.h>

#include <string>

#include "common/base/files.h"
#include "tests/support/journal_schemas.h"

namespace proctor::test {

// The first column of the first row; "" without one.
inline std::string first_text(const fs::path& file, const char* sql) {
  sqlite3* db = nullptr;
  REQUIRE(sqlite3_open(file.c_str(), &db) == SQLITE_OK);
  std::string out;
  const auto keep = [](void* to, int, char** values, char**) {
    auto& text = *static_cast<std::string*>(to);
    if (text.empty() && values[0] != nullptr) text = values[0];
    return 0;
  };
  CHECK(sqlite3_exec(db, sql, keep, &out, nullptr) == SQLITE_OK);
  sqlite3_close(db);
  return out;
}
inline void run_sql(const fs::path& file, const char* sql) {
  (void)first_text(file, sql);
}

}  // namespace proctor::test
