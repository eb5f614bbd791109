#pragma once
// A campaign in a folder of its own, for tests of what is said of its files.
#include <doctest/doctest.h>

#include <string>
#include <string_view>

#include "common/base/files.h"
#include "common/contract/campaign_parser.h"
#include "common/contract/scaffold.h"
#include "tests/unit/contract/support.h"

namespace proctor::test {

// A scaffolded campaign on disk, as `proctor init` leaves it, with one text replaced.
class Folder {
 public:
  Folder() : dir_(TempDir::create("contract").value()) {
    for (const auto& [path, content] : scaffold_files("first")) {
      std::string text = content;
      if (const std::size_t at = text.find(kCommitPlaceholder); at != std::string::npos)
        text.replace(at, kCommitPlaceholder.size(), std::string(40, 'a'));
      // Lines are counted below from the first that is not for editors.
      if (text.starts_with("# yaml-language-server:")) text.erase(0, text.find('\n') + 1);
      put(path, text);
    }
  }
  void put(const std::string& path, std::string_view text) {
    const fs::path file = dir_.path() / path;
    REQUIRE(make_dirs(file.parent_path()).ok());
    REQUIRE(write_file(file, text, Durability::kLazy).ok());
  }
  std::string get(const std::string& path) const {
    return *read_file(dir_.path() / path, std::size_t{1} << 20);
  }
  void change(const std::string& path, std::string_view from, std::string_view to) {
    const std::string text = replaced(get(path), from, to);
    REQUIRE(text != "");
    put(path, text);
  }
  // All diagnostics, with file names relative to the campaign.
  std::string errors() const {
    Diagnostics out;
    const auto loaded = load_campaign(dir_.path(), out);
    CHECK(loaded.ok() == out.empty());
    if (loaded.ok()) check_own_modes(*loaded, out);
    std::string text = out.text();
    const std::string prefix = dir_.path().string() + "/";
    for (std::size_t at = text.find(prefix); at != std::string::npos; at = text.find(prefix))
      text.erase(at, prefix.size());
    return text;
  }
  const fs::path& path() const { return dir_.path(); }

 private:
  TempDir dir_;
};

inline constexpr const char* kYaml = "campaign.yaml";
inline constexpr const char* kTask = "contracts/fix-greeting.yaml";

}  // namespace proctor::test
