#include <doctest/doctest.h>

#include "common/base/net_host.h"

namespace proctor {

TEST_SUITE("net host") {
  TEST_CASE("a host has one spelling however it was written") {
    struct Row {
      const char* text;
      const char* host;
      bool address;
    };
    const Row rows[] = {{"packages.example", "packages.example", false},
                        {"Packages.EXAMPLE", "packages.example", false},
                        {"packages.example.", "packages.example", false},
                        {"localhost", "localhost", false},
                        {"my_host-1.x", "my_host-1.x", false},
                        {"xn--bcher-kva.example", "xn--bcher-kva.example", false},
                        {"10.0.0.1", "10.0.0.1", true},
                        {"[2001:DB8:0:0::1]", "2001:db8::1", true},
                        {"[::ffff:10.0.0.1]", "10.0.0.1", true}};
    for (const Row& row : rows) {
      CAPTURE(row.text);
      const auto host = parse_net_host(row.text);
      REQUIRE(host);
      CHECK(host->text == row.host);
      CHECK(host->address.has_value() == row.address);
    }
  }

  TEST_CASE("what libraries read differently is no host") {
    const std::string long_label(64, 'a');
    for (const std::string& text : {std::string(),
                                    std::string("."),
                                    std::string("a..b"),
                                    std::string("-a.b"),
                                    std::string("a-.b"),
                                    std::string("a b"),
                                    std::string("a/b"),
                                    std::string("u@h"),
                                    std::string("h:1"),
                                    std::string("::1"),
                                    std::string("[10.0.0.1]"),
                                    std::string("[::1"),
                                    std::string("[fe80::1%eth0]"),
                                    std::string("[]"),
                                    std::string("127.1"),
                                    std::string("2130706433"),
                                    std::string("0x7f000001"),
                                    std::string("0x7f.1"),
                                    std::string("0177.0.0.1"),
                                    std::string("10.0.0.256"),
                                    std::string("10.0.0.1."),
                                    std::string("1.2.3.4.5"),
                                    std::string("h\xC3\xA4.org"),
                                    std::string("h%61.org"),
                                    std::string("a\0b", 3),
                                    long_label + ".org",
                                    std::string(254, 'a')}) {
      CAPTURE(text);
      CHECK_FALSE(parse_net_host(text));
    }
  }

  TEST_CASE("ports are plain numbers") {
    CHECK(parse_port("443") == 443);
    CHECK(parse_port("65535") == 65535);
    for (const char* text : {"", "0", "080", "65536", "+80", "-1", "80 ", "8o", "0x50", "999999"})
      CHECK_FALSE(parse_port(text));
  }
}

}  // namespace proctor
