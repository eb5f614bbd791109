#pragma once
// A check, a service or an agent that is a program of its own in an image, as a service of a
// compose file is: it sees the image's environment and what is said here, not what commands of the
// contract see.
#include <map>
#include <string>
#include <vector>

namespace proctor {

struct ProgramContainer {
  std::string image;                    // by digest; empty: the environment's
  std::vector<std::string> entrypoint;  // empty: the image's
  std::vector<std::string> command;     // empty: the image's, unless an entrypoint is given
  std::string working_dir;              // absolute; empty: the image's
  std::map<std::string, std::string> variables;  // beside the image's own
  struct Mount {
    std::string from;  // a path of the workspace; a folder that is not there is an empty one
    std::string at;    // absolute
    bool writable = true;
  };
  std::vector<Mount> mounts;
};

}  // namespace proctor
