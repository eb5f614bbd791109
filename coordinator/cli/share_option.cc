#include "coordinator/cli/share_option.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <string>

#include "common/base/text.h"

namespace proctor::cli {

CLI::Validator share(double least, double most) {
  return CLI::Validator(
      [=](const std::string& text) -> std::string {
        const bool plain = !text.empty() && text.size() <= 20 &&
                           text.find_first_not_of("0123456789.") == std::string::npos &&
                           std::ranges::count(text, '.') <= 1 && text != ".";
        const double value = plain ? std::strtod(text.c_str(), nullptr) : -1;
        if (least <= value && value <= most) return "";
        return "expected a share such as 0.05, not " + printable(text);
      },
      "SHARE");
}

}  // namespace proctor::cli
