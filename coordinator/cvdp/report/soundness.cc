#include "coordinator/cvdp/report/soundness.h"

namespace proctor::cvdp {
namespace {

std::string share(const Verdicts& t) {
  return std::to_string(t.passed) + " of " + std::to_string(t.verdicts);
}

std::string if_flaky(const Verdicts& t) {
  return 0 < t.passed && t.passed < t.verdicts ? "flaky: " : "";
}

}  // namespace

std::string unsound(const Verdicts& golden, const Verdicts& untouched, std::size_t samples) {
  if (golden.verdicts < samples || untouched.verdicts < samples)
    return "no verdict: " + (golden.why.empty() ? untouched.why : golden.why);
  std::string out;
  if (golden.passed < golden.verdicts)
    out = if_flaky(golden) + "the reference passed " + share(golden);
  if (0 < untouched.passed)
    out += (out.empty() ? "" : "; ") + if_flaky(untouched) + "without any change " +
           share(untouched) + " passed";
  return out;
}

}  // namespace proctor::cvdp
