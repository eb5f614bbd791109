#include "worker/network/allow_list.h"

#include <doctest/doctest.h>

namespace proctor {

TEST_SUITE("network") {
  TEST_CASE("addresses are told apart by what is behind them") {
    using enum AddressKind;
    struct Row {
      const char* address;
      AddressKind kind;
    };
    const Row rows[] = {
        {"1.1.1.1", kPublic},
        {"9.255.255.255", kPublic},
        {"10.0.0.0", kPrivate},
        {"10.255.255.255", kPrivate},
        {"11.0.0.0", kPublic},
        {"100.63.255.255", kPublic},
        {"100.64.0.1", kPrivate},
        {"100.127.255.255", kPrivate},
        {"100.128.0.0", kPublic},
        {"100.100.100.200", kLinkLocal},
        {"126.255.255.255", kPublic},
        {"127.0.0.1", kLoopback},
        {"127.255.255.254", kLoopback},
        {"128.0.0.0", kPublic},
        {"168.63.129.16", kLinkLocal},
        {"169.253.255.255", kPublic},
        {"169.254.169.254", kLinkLocal},
        {"172.15.255.255", kPublic},
        {"172.16.0.1", kPrivate},
        {"172.31.255.255", kPrivate},
        {"172.32.0.0", kPublic},
        {"192.0.0.192", kLinkLocal},
        {"192.0.2.1", kUnusable},
        {"192.168.1.1", kPrivate},
        {"192.169.0.0", kPublic},
        {"198.18.0.1", kPrivate},
        {"198.20.0.0", kPublic},
        {"0.0.0.0", kUnusable},
        {"0.1.2.3", kUnusable},
        {"223.255.255.255", kPublic},
        {"224.0.0.1", kUnusable},
        {"255.255.255.255", kUnusable},
        {"::", kUnusable},
        {"::1", kLoopback},
        {"::7f00:1", kUnusable},
        {"::ffff:127.0.0.1", kLoopback},
        {"::ffff:169.254.169.254", kLinkLocal},
        {"64:ff9b::a9fe:a9fe", kLinkLocal},
        {"64:ff9b::101:101", kPublic},
        {"64:ff9b:1::1", kPrivate},
        {"2002:7f00:1::", kLoopback},
        {"2002:a00:1::1", kPrivate},
        {"2002:101:101::1", kPublic},
        {"2001:0:1::1", kUnusable},
        {"2001:db8::1", kUnusable},
        {"2606:4700::1111", kPublic},
        {"fd00:ec2::254", kLinkLocal},
        {"fd20:ce::254", kLinkLocal},
        {"fd00::1", kPrivate},
        {"fe80::1", kLinkLocal},
        {"fec0::1", kPrivate},
        {"ff02::1", kUnusable},
        {"4000::1", kUnusable},
    };
    for (const Row& row : rows) {
      CAPTURE(row.address);
      const auto address = parse_ip(row.address);
      REQUIRE(address);
      CHECK(to_string(kind_of(*address)) == to_string(row.kind));
    }
  }

  TEST_CASE("how an entry names a place says which addresses it may lead to") {
    struct Row {
      const char* entry;
      const char* address;
      bool admitted;
    };
    const Row rows[] = {
        {"a.org:1", "1.1.1.1", true},
        {"a.org:1", "10.0.0.1", true},
        {"a.org:1", "127.0.0.1", true},
        {"a.org:1", "169.254.169.254", false},
        {"a.org:1", "0.0.0.0", false},
        {"*.a.org:1", "1.1.1.1", true},
        {"*.a.org:1", "10.0.0.1", false},
        {"*.a.org:1", "127.0.0.1", false},
        {"*.a.org:1", "::1", false},
        {"*.a.org:1", "fd00::1", false},
        {"*.a.org:1", "::ffff:10.0.0.1", false},
        {"169.254.169.254:1", "169.254.169.254", true},
        {"169.254.169.254:1", "169.254.169.253", false},
        {"10.0.0.1:1", "::ffff:10.0.0.1", true},
        {"[fe80::1]:1", "fe80::1", true},
    };
    for (const Row& row : rows) {
      CAPTURE(row.entry);
      CAPTURE(row.address);
      const auto place = parse_allowed_place(row.entry);
      REQUIRE(place.ok());
      CHECK(admits(*place, *parse_ip(row.address)) == row.admitted);
    }
  }
}

}  // namespace proctor
