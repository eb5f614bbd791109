#include "worker/network/allow_list.h"

#include <doctest/doctest.h>

#include "worker/network/proxy_request.h"

namespace proctor {
namespace {

// What a client may write for a host, and the port it asks for.
bool allows(const AllowList& list, const std::string& authority) {
  const auto request = parse_proxy_request("CONNECT " + authority + " HTTP/1.1\r\n\r\n");
  return request.ok() && list.entry_for(request->target) != nullptr;
}

}  // namespace

TEST_SUITE("network") {
  TEST_CASE("a place is allowed by exactly what the list says of it") {
    const auto made = AllowList::of({"packages.example:443", "*.example.org:80", "10.1.2.3:3128",
                                     "[fd00::1]:443", "*.deep.example.org:8080"});
    REQUIRE(made.ok());
    struct Row {
      const char* authority;
      bool allowed;
    };
    const Row rows[] = {
        {"packages.example:443", true},
        {"Packages.Example:443", true},
        {"packages.example.:443", true},
        {"packages.example:80", false},
        {"packages.example:4430", false},
        {"xpackages.example:443", false},
        {"packages.example.evil.com:443", false},
        {"files.packages.example:443", false},
        {"a.example.org:80", true},
        {"a.b.example.org:80", true},
        {"example.org:80", false},
        {"badexample.org:80", false},
        {"a.example.org:443", false},
        {"a.example.org.evil.com:80", false},
        {"x.deep.example.org:8080", true},
        {"x.deep.example.org:80", true},
        {"10.1.2.3:3128", true},
        {"10.1.2.3:80", false},
        {"10.1.2.4:3128", false},
        {"[::ffff:10.1.2.3]:3128", true},
        {"[fd00::1]:443", true},
        {"[fd00:0:0::1]:443", true},
        {"[fd00::2]:443", false},
        {"167838211:3128", false},
        {"0xa010203:3128", false},
        {"10.66051:3128", false},
        {"012.1.2.3:3128", false},
        {"packages.example@evil.com:443", false},
        {"evil.com@packages.example:443", false},
        {"packages.example%00.evil.com:443", false},
        {"packages.example", false},
        {":443", false},
        {"*.example.org:80", false},
        {"localhost:443", false},
    };
    for (const Row& row : rows) {
      CAPTURE(row.authority);
      CHECK(allows(*made, row.authority) == row.allowed);
    }
  }

  TEST_CASE("an entry for the very host goes before one for its domain") {
    for (const auto& entries : {std::vector<std::string>{"*.a.org:1", "x.a.org:1"},
                                std::vector<std::string>{"x.a.org:1", "*.a.org:1"}}) {
      const auto list = AllowList::of(entries);
      REQUIRE(list.ok());
      CHECK_FALSE(list->entry_for({*parse_net_host("x.a.org"), 1})->below);
      CHECK(list->entry_for({*parse_net_host("y.a.org"), 1})->below);
    }
  }

  TEST_CASE("a list with an entry that is none is refused by name") {
    const auto list = AllowList::of({"a.org:1", "b.org"});
    REQUIRE_FALSE(list.ok());
    CHECK(list.error().detail.find("'b.org'") != std::string::npos);
    CHECK(AllowList::of({})->entry_for({*parse_net_host("a.org"), 1}) == nullptr);
  }
}

}  // namespace proctor
