#include "worker/shell/host_facts.h"

#include <doctest/doctest.h>

using namespace proctor;

namespace {

constexpr const char* kStatus = R"(Package: git
Status: install ok installed
Version: 1:2.39.5-0

Package: left
Status: deinstall ok config-files
Version: 1.0

Package: some-library
Status: install ok installed
Description: a text
 Version: 9 of something else
Version: 3.2

)";

}  // namespace

TEST_SUITE("host facts") {
  TEST_CASE("versions of tools are told and all packages are bound by a digest") {
    const auto packages = packages_of(kStatus);
    CHECK(packages.size() == 2);
    CHECK(packages.at("git") == "1:2.39.5-0");
    CHECK(packages.at("dpkg").starts_with("all packages sha256:"));
    std::string upgraded = kStatus;
    upgraded.replace(upgraded.find("3.2"), 3, "3.3");
    CHECK(packages_of(upgraded).at("dpkg") != packages.at("dpkg"));
    std::string described = kStatus;
    described.replace(described.find("a text"), 6, "b text");
    CHECK(packages_of(described) == packages);
    CHECK(packages_of("").empty());
    CHECK(packages_of("not a list\n\n\n").empty());
  }

  TEST_CASE("a toolchain's version is read from what its folder says of itself") {
    const TempDir temp = TempDir::create().value();
    const fs::path dir = temp.path() / "1.75.0-x86_64";
    REQUIRE(make_dirs(dir).ok());
    REQUIRE(fs::exists(dir));
    fs::create_symlink(dir, temp.path() / "current");
    CHECK(toolchain_version(temp.path() / "current") == "1.75.0-x86_64");
    REQUIRE(write_file(dir / "pyvenv.cfg", "home = /usr/bin\nversion = 3.11.2\n").ok());
    CHECK(toolchain_version(dir) == "3.11.2");
    REQUIRE(write_file(dir / "VERSION", "go1.22.1\ntime 2024\n").ok());
    CHECK(toolchain_version(dir) == "go1.22.1");
    CHECK(toolchain_version(temp.path() / "nothing").empty());
  }

  TEST_CASE("this machine has a name for all that a manifest asks") {
    const HostFacts facts = host_facts();
    CHECK(facts.cpu_class.find("cores") != std::string::npos);
    CHECK(facts.memory_class.ends_with(" GiB"));
    CHECK(facts.kernel.starts_with("Linux "));
    CHECK_FALSE(facts.os.empty());
  }
}
