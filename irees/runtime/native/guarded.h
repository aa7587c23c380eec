/* An allocator for tests. Each block has guard pages before and after it, and is adjacent to one of
   them as far as its alignment allows. It is filled with 0xCB to expose reads of uninitialized memory,
   and returned to the system immediately when freed. */

#include <string.h>

#define POISON 0xCB
#define SLOTS 4096

static struct {
  pthread_mutex_t lock;
  int low; /* whether blocks are adjacent to the guard page before them */
  struct {
    char *pointer, *mapping;
    size_t length;
  } slots[SLOTS];
} guarded = {.lock = PTHREAD_MUTEX_INITIALIZER};

EXPORT void irees_rt_guard_low(int32_t low) { guarded.low = low; }

static void *rt_alloc(int64_t bytes) {
  if (bytes < 0 || bytes > (INT64_C(1) << 46)) return NULL;
  size_t size = ((size_t)bytes + 63) & ~(size_t)63, room = (size + PAGE - 1) & ~(PAGE - 1);
  if (!room) room = PAGE;
  size_t length = room + 2 * PAGE;
  char *mapping = mmap(NULL, length, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapping == MAP_FAILED) return NULL;
  if (mprotect(mapping + PAGE, room, PROT_READ | PROT_WRITE)) return NULL;
  if (bytes <= (INT64_C(1) << 26)) memset(mapping + PAGE, POISON, room);
  char *pointer = guarded.low ? mapping + PAGE : mapping + PAGE + room - size;
  int at = 0;
  pthread_mutex_lock(&guarded.lock);
  while (at < SLOTS && guarded.slots[at].pointer) at++;
  if (at < SLOTS) {
    guarded.slots[at].pointer = pointer;
    guarded.slots[at].mapping = mapping;
    guarded.slots[at].length = length;
  }
  pthread_mutex_unlock(&guarded.lock);
  return at < SLOTS ? pointer : NULL;
}

static void rt_free(void *pointer) {
  if (!pointer) return;
  pthread_mutex_lock(&guarded.lock);
  for (int at = 0; at < SLOTS; at++) {
    if (guarded.slots[at].pointer != pointer) continue;
    munmap(guarded.slots[at].mapping, guarded.slots[at].length);
    guarded.slots[at].pointer = NULL;
  }
  pthread_mutex_unlock(&guarded.lock);
}
