#pragma once
// The only file of this room that includes Boost.Asio; others that need it may include this one.
#include <utility>  // must come first: Boost 1.74's awaitable.hpp uses std::exchange without it

#ifndef BOOST_ASIO_NO_DEPRECATED
#define BOOST_ASIO_NO_DEPRECATED
#endif
#include <boost/asio.hpp>
