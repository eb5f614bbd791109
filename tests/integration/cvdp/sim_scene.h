#pragma once
// What CVDP runs need on a host: images by either kind of runner, and problems that use them.
#include <string>

#include "common/base/json.h"
#include "tests/integration/cvdp/run_proctor.h"

namespace proctor::testing {

// While it lives, the programs we start find images in one place only: in the store `store` and no
// engine anywhere, or in the engine and an empty store.
class ImagesOf {
 public:
  enum class Runner { kOci, kDocker };
  ImagesOf(Runner runner, const fs::path& store);
  ImagesOf(const ImagesOf&) = delete;
  ImagesOf& operator=(const ImagesOf&) = delete;
  ~ImagesOf();

 private:
  TempDir empty_;
  std::string store_before_, socket_before_;
};

// Can OCI containers run here, does an engine answer?  Says by name what did not run.
bool have_oci(const char* test);
bool have_docker(const char* test);

// One line of an agentic dataset: the patch turns rtl/a.sv from "x" into "y".
struct ShellProblem {
  std::string id = "cvdp_agentic_a_0001";
  std::string compose;            // docker-compose.yml
  Json more = Json::object();     // further harness files
  Json context = Json::object();  // beside rtl/a.sv
};
std::string line_of(const ShellProblem& problem);
// `sh -c` with this line, in which compose must replace nothing.
std::string compose_words(const std::string& command);
// A service of `image` that runs `command` with sh; its environment has PATH, and B as "two".
std::string service(const std::string& image, const std::string& command,
                    const std::string& more = "");

}  // namespace proctor::testing
