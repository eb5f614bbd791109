#include "common/score/model_lack.h"

namespace proctor {
namespace {

constexpr std::string_view kNoModel = "its model could not be had: ";

}  // namespace

std::string no_model(std::string_view why) {
  return std::string(kNoModel).append(why);
}

bool is_no_model(std::string_view rationale) {
  return rationale.starts_with(kNoModel);
}

}  // namespace proctor
