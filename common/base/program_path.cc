#include "common/base/program_path.h"

#include <locale.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "common/base/parse.h"

namespace proctor {

fs::path find_on_path(const char* program) {
  const char* path = ::getenv("PATH");  // NOLINT(concurrency-mt-unsafe): nobody calls setenv
  // Runtimes are in sbin, which a user's PATH may lack.
  std::string places = path == nullptr ? "/usr/local/bin:/usr/bin:/bin" : path;
  places += ":/usr/local/sbin:/usr/sbin:/sbin";
  std::string_view left = places;
  while (!left.empty()) {
    const fs::path file = fs::path(take_until(left, ':')) / program;
    if (file.is_absolute() && ::access(file.c_str(), X_OK) == 0) return file;
  }
  return {};
}

bool has_locale(const std::string& name) {
  const locale_t made = ::newlocale(LC_ALL_MASK, name.c_str(), static_cast<locale_t>(nullptr));
  if (made == static_cast<locale_t>(nullptr)) return false;
  ::freelocale(made);
  return true;
}

bool knows_time_zone(const std::string& name) {
  if (name == "UTC") return true;  // also where there is no tzdata
  constexpr std::string_view kMagic = "TZif";
  std::error_code ec;
  const fs::path file = fs::path("/usr/share/zoneinfo") / name;  // an absolute name is itself
  if (fs::is_regular_file(file, ec)) {
    const Result<std::string> bytes = read_file(file, std::size_t{1} << 20);
    return bytes.ok() && bytes->starts_with(kMagic);
  }
  // A name, hours west of Greenwich, and maybe the same of summer.
  std::string_view rest = name;
  const auto eat = [&rest](std::string_view what) {
    const std::size_t n = std::min(rest.find_first_not_of(what), rest.size());
    rest.remove_prefix(n);
    return n;
  };
  constexpr std::string_view kLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
  constexpr std::string_view kDigits = "0123456789";
  const bool named = 3 <= eat(kLetters);
  const bool signed_once = eat("+-") <= 1;
  const std::size_t hours = eat(kDigits);
  if (!named || !signed_once || hours == 0 || 2 < hours) return false;
  if (rest.empty()) return true;
  const bool summer = 3 <= eat(kLetters);
  return summer && eat("+-") <= 1 && eat(kDigits) <= 2 && rest.empty();
}

}  // namespace proctor
