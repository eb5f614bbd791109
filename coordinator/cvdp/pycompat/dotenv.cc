#include "coordinator/cvdp/pycompat/dotenv.h"

#include <algorithm>
#include <array>

#include "common/base/parse.h"
#include "coordinator/cvdp/pycompat/values.h"

namespace proctor::cvdp {
namespace {

constexpr std::array<std::string_view, 16> kKnown = {
    "BENCHMARK_PREFIX", "BENCHMARK_THREADS",     "CLONE_HTTP",
    "DEFAULT_MODEL",    "CVDP_HEAVY_REPOS_PATH", "DOCKER_QUOTA_THRESHOLD_MB",
    "DOCKER_TIMEOUT",   "DOCKER_TIMEOUT_AGENT",  "LICENSE_NETWORK",
    "LLM_RETRY_COUNT",  "MODEL_TIMEOUT",         "OPENAI_USER_KEY",
    "OSS_PNR_IMAGE",    "OSS_SIM_IMAGE",         "VERIF_EDA_IMAGE",
    "PROCTOR_MODELS",
};

std::string_view without_quotes(std::string_view value) {
  const bool quoted = 2 <= value.size() && value.front() == value.back() &&
                      (value.front() == '"' || value.front() == '\'');
  return quoted ? value.substr(1, value.size() - 2) : value;
}

}  // namespace

std::vector<std::pair<std::string, std::string>> read_dotenv(std::string_view text) {
  std::vector<std::pair<std::string, std::string>> out;
  while (!text.empty()) {
    const std::string_view line = strip_text(take_until(text, '\n'));
    const std::size_t equals = line.find('=');
    if (line.starts_with('#') || equals == std::string_view::npos) continue;
    const std::string_view key = strip_text(line.substr(0, equals));
    const std::string_view value = without_quotes(strip_text(line.substr(equals + 1)));
    const bool twice = std::ranges::any_of(out, [&](const auto& p) { return p.first == key; });
    if (!twice && std::ranges::find(kKnown, key) != kKnown.end() &&
        value.find('\0') == std::string_view::npos)
      out.emplace_back(key, value);
  }
  return out;
}

}  // namespace proctor::cvdp
