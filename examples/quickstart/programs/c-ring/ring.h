/* A byte queue of fixed capacity.  All of the capacity can be used. */
#ifndef RING_H
#define RING_H
#include <stddef.h>

typedef struct ring ring;

ring *ring_open(size_t capacity); /* NULL: no memory, or a capacity of 0 */
void ring_close(ring *r);
size_t ring_size(const ring *r);
size_t ring_room(const ring *r);
/* Both move as much as fits and return how much that was. */
size_t ring_write(ring *r, const void *bytes, size_t count);
size_t ring_read(ring *r, void *bytes, size_t count);

#endif
