#include <doctest/doctest.h>

#include "tests/hostile/kind.h"
#include "tests/integration/sandbox/docker_fixture.h"

namespace proctor::testing {
namespace {

struct Docker final : Kind {
  std::string id;
  std::string image() const override { return id; }
};

}  // namespace

std::unique_ptr<Kind> make_docker_kind(Tools tools) {
  if (!docker_call("GET", "/version").ok()) {
    MESSAGE("not run: no Docker Engine answers at " << docker_socket());
    return nullptr;
  }
  const Result<std::string> id = tools == Tools::kPython ? python_test_image() : test_image();
  if (!id.ok()) FAIL(id.error().detail);
  auto kind = std::make_unique<Docker>();
  kind->id = *id;
  return kind;
}

}  // namespace proctor::testing
