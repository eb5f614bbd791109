#pragma once
#include <string>

// The value of an expression of whole numbers.  Throws std::runtime_error with what is wrong.
long evaluate(const std::string& text);
