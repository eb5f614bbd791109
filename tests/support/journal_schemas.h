#pragma once
// Journals as older versions of Proctor left them.
#include <string>

namespace proctor::testing {

// SQL that takes out of a journal of schema `from` what came after `schema`.  Seals of rows that
// had facts of schema 6 do not fit then: for 4 and 5 take 3 first, and let a writer upgrade it.
inline std::string as_schema(int schema, int from = 7) {
  std::string sql;
  if (schema < 7 && 7 <= from)
    for (const char* column : {"gates", "score", "tags", "configuration", "networked"})
      sql += std::string("ALTER TABLE attempts DROP COLUMN ") + column + "; ";
  if (schema < 6 && 6 <= from)
    for (const char* column : {"fault", "agent_exit", "patch", "violations", "violated", "cap",
                               "no_model", "not_judged"})
      sql += std::string("ALTER TABLE attempts DROP COLUMN ") + column + "; ";
  if (schema < 5) sql += "DROP TABLE IF EXISTS keyed_seal; ";
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
