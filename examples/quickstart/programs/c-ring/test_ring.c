#include <stdio.h>
#include <string.h>

#include "ring.h"

static int number, failed;

static void ok(int good, const char *what) {
  printf("%sok %d - %s\n", good ? "" : "not ", ++number, what);
  failed += !good;
}

static void keeps_order(void) {
  ring *r = ring_open(8);
  char out[8] = "";
  ring_write(r, "abc", 3);
  ring_write(r, "def", 3);
  ok(ring_read(r, out, 8) == 6 && memcmp(out, "abcdef", 6) == 0, "bytes leave in the order they came");
  ring_close(r);
}

static void stops_when_full(void) {
  ring *r = ring_open(4);
  ok(ring_write(r, "abcdef", 6) == 4 && ring_room(r) == 0, "a full ring takes no more");
  ring_close(r);
}

static void reads_what_is_there(void) {
  ring *r = ring_open(4);
  char out[4];
  ok(ring_read(r, out, 4) == 0, "an empty ring gives nothing");
  ring_close(r);
}

static void wraps(void) {
  ring *r = ring_open(5);
  char out[5] = "";
  ring_write(r, "abcd", 4);
  ring_read(r, out, 3);
  ok(ring_write(r, "efgh", 4) == 4, "a write may pass the end");
  ok(ring_read(r, out, 5) == 5 && memcmp(out, "defgh", 5) == 0, "what passed the end is read back");
  ring_close(r);
}

static void many_sizes(void) {
  unsigned char next_in = 0, next_out = 0, buffer[7];
  int good = 1;
  ring *r = ring_open(7);
  for (int round = 0; round < 1000; ++round) {
    size_t n = (size_t)(round % 7), i;
    for (i = 0; i < n; ++i) buffer[i] = (unsigned char)(next_in + i);
    next_in = (unsigned char)(next_in + ring_write(r, buffer, n));
    n = ring_read(r, buffer, (size_t)(round % 5));
    for (i = 0; i < n; ++i) good &= buffer[i] == next_out++;
  }
  ok(good, "a thousand writes and reads of many sizes lose nothing");
  ring_close(r);
}

static void refuses_nothing(void) { ok(ring_open(0) == NULL, "a capacity of 0 is refused"); }

int main(void) {
  keeps_order();
  stops_when_full();
  reads_what_is_there();
  wraps();
  many_sizes();
  refuses_nothing();
  printf("1..%d\n", number);
  return failed != 0;
}
