#include "ring.h"

#include <stdlib.h>
#include <string.h>

struct ring {
  size_t capacity;
  size_t begin; /* where the oldest byte is */
  size_t size;
  unsigned char bytes[];
};

static size_t smaller(size_t a, size_t b) { return a < b ? a : b; }

ring *ring_open(size_t capacity) {
  ring *r;
  if (capacity == 0 || capacity > (size_t)-1 - sizeof *r) return NULL;
  r = calloc(1, sizeof *r + capacity);
  if (r != NULL) r->capacity = capacity;
  return r;
}

void ring_close(ring *r) { free(r); }

size_t ring_size(const ring *r) { return r->size; }

size_t ring_room(const ring *r) { return r->capacity - r->size; }

size_t ring_write(ring *r, const void *bytes, size_t count) {
  const unsigned char *from = bytes;
  const size_t end = (r->begin + r->size) % r->capacity;
  const size_t total = smaller(count, ring_room(r));
  const size_t first = smaller(total, r->capacity - end);
  memcpy(r->bytes + end, from, first);
  memcpy(r->bytes, from, total - first);
  r->size += total;
  return total;
}

size_t ring_read(ring *r, void *bytes, size_t count) {
  unsigned char *to = bytes;
  const size_t total = smaller(count, r->size);
  const size_t first = smaller(total, r->capacity - r->begin);
  memcpy(to, r->bytes + r->begin, first);
  memcpy(to + first, r->bytes, total - first);
  r->begin = (r->begin + total) % r->capacity;
  r->size -= total;
  return total;
}
