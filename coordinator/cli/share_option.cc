#include "coordinator/cli/share_option.h"

#include <algorithm>
#include <cstdlib>

#include "common/base/text.h"

namespace proctor::cli {

std::function<std::string(const std::string&)> share(double least, double most) {
  return [=](const std::string& text) -> std::string {
    const bool plain = !text.empty() && text.size() <= 20 &&
                       text.find_first_not_of("0123456789.") == std::string::npos &&
                       std::ranges::count(text, '.') <= 1 && text != ".";
    const double value = plain ? std::strtod(text.c_str(), nullptr) : -1;
    if (least <= value && value <= most) return "";
    return "expected a share such as 0.05, not " + printable(text);
  };
}

}  // namespace proctor::cli
