#pragma once
// A TCP server on this machine's loopback that tests may let things reach: an HTTP request is
// answered with what the server saw of it, anything else comes back as it was.
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace proctor::testing {

class LocalServer {
 public:
  LocalServer();  // listens when it returns
  LocalServer(const LocalServer&) = delete;
  LocalServer& operator=(const LocalServer&) = delete;
  ~LocalServer();  // ends every connection

  std::uint16_t port() const;
  std::string at() const;  // "127.0.0.1:PORT"
  // Everything that connections have said so far, one entry each, in order of their begin.
  std::vector<std::string> heard() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace proctor::testing
