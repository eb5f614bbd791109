#pragma once
// An image of this machine's own shell and coreutils, as an archive in the format of `docker save`:
// made without an engine and without a registry, in half a second.
#include <string>
#include <vector>

#include "common/base/files.h"
#include "common/base/result.h"

namespace proctor::testing {

struct TestImage {
  fs::path archive;
  std::string id;  // "sha256:...", the same in every engine and store
};
// In `dir`.  It is called `name` ("proctor-test:latest"); another name makes another image.
Result<TestImage> write_test_image(const fs::path& dir, const std::string& name);

// The same with Debian's Python and pytest above it.  An error where this machine has not both.
Result<TestImage> write_python_image(const fs::path& dir, const std::string& name);

// One that holds a file and no program at all.
Result<TestImage> write_image_without_shell(const fs::path& dir, const std::string& name);

// One whose /bin/sh is a program of a machine that nobody has any more.
Result<TestImage> write_image_with_foreign_shell(const fs::path& dir, const std::string& name);

// One layer more: what a hostile or odd image may hold.  `layers` are tars, bottom first.
Result<TestImage> write_image_of(const fs::path& dir, const std::string& name,
                                 const std::vector<fs::path>& layers);

// One of the shell and `layers` above it, with a program of its own.
Result<TestImage> write_program_image(const fs::path& dir, const std::string& name,
                                      const std::vector<fs::path>& layers,
                                      const std::vector<std::string>& entrypoint);

}  // namespace proctor::testing
