#pragma once
// A price table from its rows: action_type,unit,unit_price,provider,model.
#include <doctest/doctest.h>

#include <string>

#include "common/contract/cost_model_parser.h"

namespace proctor::testing {

inline CostModel price_table(const std::string& rows) {
  Diagnostics out;
  CostModel m =
      parse_cost_model("action_type,unit,unit_price,provider,model\n" + rows, "p.csv", out);
  REQUIRE(out.text() == "");
  return m;
}

}  // namespace proctor::testing
