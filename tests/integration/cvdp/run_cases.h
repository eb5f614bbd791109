#pragma once
// Cases of `proctor cvdp run` that must come out the same whoever runs the images.
#include <optional>

#include "tests/integration/cvdp/sim_scene.h"
#include "tests/support/test_image.h"

namespace proctor::testing {

using Runner = ImagesOf::Runner;

// This machine's shell.
inline constexpr const char* kImage = "proctor-cvdp-test:latest";
inline constexpr const char* kIsY = "grep -q y /code/rtl/a.sv";

// The image in a store or in the engine, and a prefix "work".
struct RunScene {
  explicit RunScene(Runner runner);
  fs::path dataset(const std::string& lines) const;
  // `proctor cvdp COMMAND` on these lines; checks that nothing is left over.
  CommandOutcome run(const std::string& lines, std::vector<std::string> more,
                     const char* command = "run") const;
  std::string text(const std::string& path) const;  // below the prefix
  Json raw(const std::string& sample = "") const;
  TempDir dir;
  TestImage image;
  std::optional<ImagesOf> images;
};

void sees_what_upstream_shows(Runner runner);
void tells_services_apart(Runner runner);
void agent_sees_what_upstream_shows(Runner runner);
void agent_is_stopped_at_its_disk_limit(Runner runner);
void agent_is_given_its_key_and_a_network(Runner runner);
// An image whose program is this script; imported where the scene's runner finds it.
void import_agent(Runner runner, const fs::path& dir, const std::string& script);

}  // namespace proctor::testing
