test "$(sh greet.sh Ada)" = "Hello, Ada"
