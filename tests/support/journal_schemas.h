#pragma once
// Journals as older versions of Proctor left them.
#include <string>

namespace proctor::testing {

// SQL that takes out of a journal of a later schema what came after `schema`.
inline std::string as_schema(int schema) {
  std::string sql = "DROP TABLE IF EXISTS keyed_seal; ";
  if (schema < 4) sql += "DROP TABLE IF EXISTS seals; ";
  if (schema < 3)
    sql +=
        "DROP VIEW IF EXISTS attempt_story; DROP VIEW IF EXISTS balance; DROP TABLE IF EXISTS "
        "reviews; "
        "CREATE VIEW balance(spent, reserved, overrun, cap) AS SELECT 1, 2, 3, 4; "
        "CREATE VIEW attempt_story(run) AS SELECT run FROM attempts; ";
  if (schema < 2) sql += "ALTER TABLE attempts DROP COLUMN metered; ";
  return sql + "PRAGMA user_version = " + std::to_string(schema);
}

}  // namespace proctor::testing
