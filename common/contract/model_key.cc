#include "common/contract/model_key.h"

#include <sys/stat.h>

#include <cstdlib>

namespace proctor {
namespace {

Error none(std::string why) {
  return {Errc::kUnavailable, std::move(why)};
}

}  // namespace

Result<Secret> model_key(const ModelAccess& access) {
  constexpr std::size_t kKeyBytes = std::size_t{64} << 10;
  std::string key;
  if (!access.key_variable.empty()) {
    const char* value = std::getenv(access.key_variable.c_str());  // NOLINT(concurrency-mt-unsafe)
    if (value == nullptr || *value == '\0')
      return none("the variable " + access.key_variable + " has no key");
    key = value;
  } else if (!access.key_file.empty()) {
    struct stat looks {};
    if (::stat(access.key_file.c_str(), &looks) == 0 && (looks.st_mode & 077U) != 0)
      return none("the key file may be read by others than its owner: chmod 600 " +
                  access.key_file);
    Result<std::string> bytes = read_file(access.key_file, kKeyBytes);
    if (!bytes.ok()) return none("key file: " + bytes.error().detail);
    key = std::move(bytes).value();
    while (key.ends_with('\n') || key.ends_with('\r')) key.pop_back();
    if (key.empty()) return none("the key file is empty: " + access.key_file);
  }
  for (const char c : key)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F)
      return none("the key has control characters");
  return Secret(std::move(key));
}

}  // namespace proctor
