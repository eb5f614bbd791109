#include "tests/fault/liar/campaign.h"

#include "common/contract/campaign_parser.h"

namespace proctor::liar {

Status write_campaign(const fs::path& folder, bool tight) {
  PROCTOR_CHECK_OK(make_dirs(folder / "contracts"));
  const auto write = [&](const char* name, const std::string& text) {
    return write_file(folder / name, text, Durability::kLazy);
  };
  PROCTOR_CHECK_OK(
      write("campaign.yaml", std::string("name: camp\nmethods:\n  - noop\nreplicates: 3\nbudget:\n"
                                         "  global: \"") +
                                 (tight ? "3.20" : "200.00") +
                                 "\"\n  run: \"0.50\"\n  ledger: journal\n"
                                 "strata: [language, type]\n"));
  PROCTOR_CHECK_OK(
      write("contracts/fix.patch",
            "diff --git a/calc.sh b/calc.sh\n--- a/calc.sh\n+++ b/calc.sh\n@@ -1 +1 @@\n"
            "-echo $(($1 - $2))\n+echo $(($1 + $2))\n"));
  for (const std::string id : {"add", "sum"})
    PROCTOR_CHECK_OK(
        write(("contracts/" + id + ".yaml").c_str(),
              "id: " + id +
                  "\ntitle: Addition subtracts\ntype: bug_fix\nstrata: {language: shell}\n"
                  "briefing: calc.sh A B must print the sum.\nrepository:\n  source: ../repo\n"
                  "  commit: \"" +
                  std::string(40, '1') +
                  "\"\nchecks:\n  - {id: sums, command: sh tests/t.sh, kind: unit, timeout: 20s}\n"
                  "policy:\n  protected: [\"tests/**\"]\n  wall: 60s\nreference_patch: fix.patch\n"
                  "gates: {build: none}\n"));
  return ok_status();
}

Result<Played> read_campaign(const fs::path& folder) {
  Diagnostics diagnostics;
  Result<Campaign> campaign = load_campaign(folder, diagnostics);
  if (!diagnostics.empty()) return Error{Errc::kInvalid, diagnostics.text()};
  if (!campaign.ok()) return std::move(campaign).error();
  PROCTOR_TRY(Plan plan, draw_plan(shape_of(*campaign)));
  return Played{std::move(campaign).value(), std::move(plan)};
}

}  // namespace proctor::liar
