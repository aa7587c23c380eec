/* Runs a kernel on the CPU, block by block.

   The threads of a block are fibers of one OS thread: each runs until it waits at a barrier or for its
   warp, and the wait ends when all of them wait. Under a sanitizer they are OS threads instead, so that
   a missing barrier is detected as a data race. A kernel without synchronization runs as a plain loop
   over threads. Each block's shared memory has the exact size and is filled with NaN. */
#include "irees.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define IREES_SYSTEM_THREADS 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer) || __has_feature(address_sanitizer)
#define IREES_SYSTEM_THREADS 1
#endif
#endif

typedef void (*irees_kernel_fn)(const int64_t *arguments);

#define MAX_THREADS 1024
#define WARP 32
/* Not a power of two, because the tops of all stacks would map to the same cache set. */
#define STACK_BYTES (((size_t)256 << 10) + 4096 + 192)

struct irees_place {
  uint32_t x;
};
struct irees_emulated_state {
  irees_place thread, block, block_dim, grid_dim;
  unsigned char *shared;
  int64_t shared_bytes;
  int32_t *fault;
};

enum waits { READY, AT_BARRIER, AT_MBARRIER, IN_WARP, DONE };

static __thread irees_emulated_state here;
static uint64_t order_seed;

#define EXPORT __attribute__((visibility("default")))

extern "C" EXPORT void irees_emulation_order(uint64_t seed) { order_seed = seed; }
extern "C" irees_emulated_state *irees_emulated_here(void) { return &here; }

/* A permutation of 0..count-1 if a seed is set, to expose dependences on the order. */
static void order_of(uint32_t *order, uint32_t count, uint64_t salt) {
  uint64_t state = order_seed * 0x9e3779b97f4a7c15u + salt;
  for (uint32_t i = 0; i < count; i++) order[i] = i;
  for (uint32_t i = count; order_seed && i > 1; i--) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    uint32_t j = (uint32_t)((state >> 33) % i), t = order[i - 1];
    order[i - 1] = order[j];
    order[j] = t;
  }
}

/* Block number `number` of a permutation of 0..count-1, without a table: a step that is coprime to the
   count visits each block once. */
static int64_t block_at(int64_t number, int64_t count) {
  if (!order_seed) return number;
  uint64_t total = (uint64_t)count, step = order_seed * 0x9e3779b97f4a7c15u % total | 1;
  for (;; step += 2) {
    uint64_t a = step, b = total;
    while (b) {
      const uint64_t rest = a % b;
      a = b;
      b = rest;
    }
    if (a == 1) break;
  }
  return (int64_t)(((unsigned __int128)step * (uint64_t)number + order_seed) % total);
}

/* A fence orders a thread after all earlier fences of other threads, and nothing more, so that a
   sanitizer detects a missing fence as a data race. */
static uint32_t fences;
extern "C" void irees_emulated_threadfence(void) { __atomic_fetch_add(&fences, 1, __ATOMIC_ACQ_REL); }

extern "C" EXPORT void *irees_emulated_counters(const irees_runtime *rt, int64_t bytes) {
  void *counters = rt->alloc(bytes);
  if (counters) memset(counters, 0, (size_t)bytes);
  return counters;
}
/* Checks that counters were reset: on a device, the next launch would find them nonzero. */
extern "C" EXPORT int32_t irees_emulated_counted(const void *counters, int64_t bytes) {
  for (int64_t i = 0; i < bytes; i++)
    if (((const char *)counters)[i]) return IREES_BAD_COUNTER;
  return 0;
}

struct task {
  const irees_launch *launch;
  irees_kernel_fn kernel;
  int32_t fault;
};

extern "C" void irees_emulated_misaligned(void) { __atomic_store_n(here.fault, IREES_MISALIGNED, __ATOMIC_RELAXED); }

/* The pending copies of one thread, in order, and the number of committed groups. */
#define MAX_COPIES 256
struct copies {
  int32_t count, groups;
  struct {
    char *to;
    const char *from;
    int32_t size, count, group;
  } each[MAX_COPIES];
};
static copies *copies_here(void);
/* Set after copies that the async proxy may not see yet. */
static uint8_t *unfenced_here(void);

extern "C" void irees_emulated_copy(void *to, const void *from, int32_t size, int32_t count) {
  copies *mine = copies_here();
  if ((uint64_t)(uintptr_t)to % (uint32_t)size || (count && (uint64_t)(uintptr_t)from % (uint32_t)size)) irees_emulated_misaligned();
  if (mine->count == MAX_COPIES) abort();
  memset(to, 0xff, (size_t)size); /* the old contents are undefined from now on */
  mine->each[mine->count++] = {(char *)to, (const char *)from, size, count, mine->groups};
}

extern "C" void irees_emulated_copies_end(void) { copies_here()->groups++; }

extern "C" void irees_emulated_copies_wait(int32_t groups) {
  copies *mine = copies_here();
  int32_t kept = 0;
  for (int32_t i = 0; i < mine->count; i++) {
    if (mine->each[i].group >= mine->groups - groups) {
      mine->each[kept++] = mine->each[i];
      continue;
    }
    *unfenced_here() = 1;
    memcpy(mine->each[i].to, mine->each[i].from, (size_t)mine->each[i].count);
    memset(mine->each[i].to + mine->each[i].count, 0, (size_t)(mine->each[i].size - mine->each[i].count));
  }
  mine->count = kept;
}

extern "C" void irees_emulated_fence(void) { *unfenced_here() = 0; }

/* The pending warpgroup products of one thread, in order. */
#define MAX_PRODUCTS 8
struct products {
  int32_t count;
  struct {
    void *sums;
    void (*arrive)(void *);
  } each[MAX_PRODUCTS];
};
static products *products_here(void);

extern "C" void irees_emulated_product(void *sums, void (*arrive)(void *)) {
  products *mine = products_here();
  if (mine->count == MAX_PRODUCTS) abort();
  mine->each[mine->count++] = {sums, arrive};
}

extern "C" void irees_emulated_products_wait(int32_t left) {
  products *mine = products_here();
  while (mine->count > left) {
    mine->each[0].arrive(mine->each[0].sums);
    mine->count--;
    for (int32_t i = 0; i < mine->count; i++) mine->each[i] = mine->each[i + 1];
  }
}

/* mbarriers and the pending TMA copies. Undefined behavior and errors of a device are faults here. */
#define MAX_BARRIERS 64
#define MAX_BOXES 64
#define MOST_BYTES ((1 << 20) - 1)
#define MAP_MARK 0x1ee5b0c5u

/* The emulation's encoding of a tensor map. */
struct encoded_map {
  const char *address;
  uint64_t strides[IREES_MOST_DIMS];
  uint32_t sizes[IREES_MOST_DIMS], mark;
  uint16_t box[IREES_MOST_DIMS], swizzle_bytes;
  uint8_t rank, element_bytes;
};
static_assert(sizeof(encoded_map) <= sizeof(irees_tensor_map), "a tensor map has 128 bytes");

struct mbarrier {
  uint64_t *where;
  uint32_t count, pending; /* number of threads */
  int32_t bytes;
  uint32_t thread, met; /* the initializing thread, and its number of passed block barriers */
  uint8_t phase, fenced;
};
struct box {
  unsigned char *to;
  uint64_t *barrier;
  encoded_map map;
  int32_t at[IREES_MOST_DIMS];
};
struct arrivals {
  uint32_t barrier_count, box_count;
  mbarrier barriers[MAX_BARRIERS];
  box boxes[MAX_BOXES];
};
static arrivals *arrivals_here(void); /* those of the block */
static uint32_t *met_here(void);      /* number of block barriers that the thread has passed */
static void bad_box(void) { __atomic_store_n(here.fault, IREES_BAD_BOX, __ATOMIC_RELAXED); }

/* Checks the limits of cuTensorMapEncodeTiled. */
extern "C" EXPORT int32_t irees_emulated_tensor_map(irees_tensor_map *map, const irees_tensor *tensor) {
  encoded_map made = {};
  const int32_t rank = tensor->rank, swizzle = tensor->swizzle_bytes, size = tensor->element_bytes;
  int fine = !((uint64_t)(uintptr_t)map % 64) && !((uint64_t)(uintptr_t)tensor->address % 16) && rank >= 1 && rank <= IREES_MOST_DIMS;
  fine &= (swizzle == 32 || swizzle == 64 || swizzle == 128) && tensor->strides[0] == size;
  for (int32_t d = 0; fine && d < rank; d++) {
    const int64_t points = tensor->sizes[d] ? tensor->sizes[d] : 1, stride = tensor->strides[d];
    fine &= points > 0 && points <= UINT32_MAX && tensor->box[d] >= 1 && tensor->box[d] <= 256;
    if (d) fine &= !(stride % 16) && stride >= 0 && stride < (int64_t)1 << 40;
    made.sizes[d] = (uint32_t)points;
    made.strides[d] = (uint64_t)stride;
    made.box[d] = (uint16_t)tensor->box[d];
  }
  if (!fine || tensor->box[0] * size % 16 || tensor->box[0] * size > swizzle) return IREES_BAD_BOX;
  made.address = (const char *)tensor->address;
  made.mark = MAP_MARK;
  made.rank = (uint8_t)rank;
  made.element_bytes = (uint8_t)size;
  made.swizzle_bytes = (uint16_t)swizzle;
  memset(map, 0, sizeof *map);
  memcpy(map, &made, sizeof made);
  return 0;
}

static uint64_t mbarrier_mark(const uint64_t *where) { return (uint64_t)(uintptr_t)where ^ 0x6d62617272696572u; }
/* The mbarrier at an address. Faults if its mark was overwritten, or if no block barrier separates this
   thread from the initialization. */
static mbarrier *mbarrier_at(uint64_t *where) {
  arrivals *all = arrivals_here();
  for (uint32_t i = 0; i < all->barrier_count; i++) {
    mbarrier *b = &all->barriers[i];
    if (b->where == where && *where == mbarrier_mark(where) && (b->thread == here.thread.x || *met_here() > b->met)) return b;
  }
  bad_box();
  return NULL;
}

static uint32_t box_bytes(const encoded_map *map) {
  uint32_t bytes = map->element_bytes;
  for (uint32_t d = 0; d < map->rank; d++) bytes *= map->box[d];
  return bytes;
}
static void box_arrives(const box *copy) {
  const encoded_map *map = &copy->map;
  const uint32_t size = map->element_bytes, row = map->box[0] * size, lines = box_bytes(map) / row;
  for (uint32_t line = 0; line < lines; line++) {
    uint32_t rest = line;
    int64_t offset = 0;
    int inside = 1;
    for (uint32_t d = 1; d < map->rank; d++) {
      const int64_t x = (int64_t)copy->at[d] + rest % map->box[d];
      rest /= map->box[d];
      inside &= x >= 0 && x < map->sizes[d];
      offset += x * (int64_t)map->strides[d];
    }
    for (uint32_t i = 0; i < map->box[0]; i++) {
      const int64_t x = (int64_t)copy->at[0] + i;
      uint32_t place = (uint32_t)(copy->to - here.shared) + line * row + i * size;
      place ^= (place >> 7 & (map->swizzle_bytes / 16u - 1)) << 4;
      if (inside && x >= 0 && x < map->sizes[0]) memcpy(here.shared + place, map->address + offset + x * size, size);
      else memset(here.shared + place, 0, size);
    }
  }
}

static void mbarrier_ends(mbarrier *b) {
  if (b->pending || b->bytes) return;
  b->phase ^= 1;
  b->pending = b->count;
}
/* Whether a phase is complete; pending boxes arrive when a thread waits. */
static int mbarrier_over(mbarrier *b, uint32_t parity) {
  arrivals *all = arrivals_here();
  uint32_t kept = 0;
  if (b->phase != parity) return 1;
  for (uint32_t i = 0; i < all->box_count; i++) {
    if (all->boxes[i].barrier != b->where) {
      all->boxes[kept++] = all->boxes[i];
      continue;
    }
    box_arrives(&all->boxes[i]);
    b->bytes -= (int32_t)box_bytes(&all->boxes[i].map);
  }
  all->box_count = kept;
  mbarrier_ends(b);
  return b->phase != parity;
}

static void mbarrier_init(uint64_t *where, uint32_t count) {
  arrivals *all = arrivals_here();
  const int64_t offset = (unsigned char *)where - here.shared;
  int fine = offset >= 0 && offset + 8 <= here.shared_bytes && !(offset % 8) && count && count <= MOST_BYTES;
  for (uint32_t i = 0; i < all->barrier_count; i++) fine &= all->barriers[i].where != where;
  if (!fine || all->barrier_count == MAX_BARRIERS) {
    bad_box();
    return;
  }
  *where = mbarrier_mark(where);
  all->barriers[all->barrier_count++] = {where, count, count, 0, here.thread.x, *met_here(), 0, 0};
}
static void mbarrier_fence(void) {
  arrivals *all = arrivals_here();
  for (uint32_t i = 0; i < all->barrier_count; i++) all->barriers[i].fenced |= all->barriers[i].thread == here.thread.x;
}
static void mbarrier_expect(uint64_t *where, uint32_t bytes) {
  mbarrier *b = mbarrier_at(where);
  if (!b) return;
  if (!b->pending || bytes > MOST_BYTES || b->bytes + (int32_t)bytes > MOST_BYTES) {
    bad_box();
    return;
  }
  b->bytes += (int32_t)bytes;
  b->pending--;
  mbarrier_ends(b);
}
static void copy_box(void *to, const void *map, uint64_t *where, int32_t rank, const int32_t *at) {
  arrivals *all = arrivals_here();
  mbarrier *b = mbarrier_at(where);
  box copy = {(unsigned char *)to, where, {}, {}};
  memcpy(&copy.map, map, sizeof copy.map);
  if (!b || !b->fenced || copy.map.mark != MAP_MARK || rank != copy.map.rank || all->box_count == MAX_BOXES) {
    bad_box();
    return;
  }
  const int64_t offset = copy.to - here.shared, bytes = box_bytes(&copy.map);
  if (offset < 0 || offset + bytes > here.shared_bytes || offset % 128 || offset % (8 * copy.map.swizzle_bytes)) {
    bad_box();
    return;
  }
  memcpy(copy.at, at, (size_t)rank * sizeof *at);
  memset(to, 0xff, (size_t)bytes); /* the old contents are undefined from now on */
  all->boxes[all->box_count++] = copy;
}

#ifndef IREES_SYSTEM_THREADS

struct fibre {
  jmp_buf state;
  uint64_t given;
  int32_t line;
  waits wait;
  int alive; /* whether its stack runs `fibre_main` */
  copies begun;
  products multiplied;
  uint8_t unfenced;
  uint32_t met, parity;
  mbarrier *awaited;
};

struct block_state {
  fibre fibres[MAX_THREADS];
  uint64_t together[MAX_THREADS]; /* values of the last exchange of each warp */
  char *stacks;
  jmp_buf scheduler;
  const task *work;
  uint32_t current, count;
  int unfenced; /* whether some thread was unfenced at the last barrier */
  arrivals arriving;
};
static __thread block_state *running;

static copies *copies_here(void) { return &running->fibres[running->current].begun; }
static products *products_here(void) { return &running->fibres[running->current].multiplied; }
static uint8_t *unfenced_here(void) { return &running->fibres[running->current].unfenced; }
extern "C" int irees_emulated_unfenced(void) { return running->unfenced; }
static arrivals *arrivals_here(void) { return &running->arriving; }
static uint32_t *met_here(void) { return &running->fibres[running->current].met; }

static void yield_to_scheduler(waits why) {
  fibre *me = &running->fibres[running->current];
  me->wait = why;
  if (!_setjmp(me->state)) _longjmp(running->scheduler, 1);
}

extern "C" void irees_emulated_barrier(int32_t line) {
  running->fibres[running->current].line = line;
  yield_to_scheduler(AT_BARRIER);
  ++*met_here();
}

extern "C" void irees_emulated_mbarrier_init(uint64_t *where, uint32_t count) { mbarrier_init(where, count); }
extern "C" void irees_emulated_mbarrier_fence(void) { mbarrier_fence(); }
extern "C" void irees_emulated_mbarrier_expect(uint64_t *where, uint32_t bytes) { mbarrier_expect(where, bytes); }
extern "C" void irees_emulated_copy_box(void *to, const void *map, uint64_t *where, int32_t rank, const int32_t *at) {
  copy_box(to, map, where, rank, at);
}
extern "C" void irees_emulated_mbarrier_wait(uint64_t *where, uint32_t parity) {
  fibre *me = &running->fibres[running->current];
  me->awaited = mbarrier_at(where);
  me->parity = parity;
  if (me->awaited && !mbarrier_over(me->awaited, parity)) yield_to_scheduler(AT_MBARRIER);
}

extern "C" void irees_emulated_gather(uint64_t mine, uint64_t *all) {
  uint32_t me = running->current, first = me / WARP * WARP;
  running->fibres[me].given = mine;
  yield_to_scheduler(IN_WARP);
  for (uint32_t i = 0; i < WARP && first + i < running->count; i++) all[i] = running->together[first + i];
}

/* A fiber runs one thread of each block, and is then reused: creating a fiber takes system calls. */
static void fibre_main(void) {
  for (;;) {
    running->work->kernel(running->work->launch->arguments);
    yield_to_scheduler(DONE);
  }
}

static void start(uint32_t thread) {
  static __thread ucontext_t fresh, back;
  getcontext(&fresh);
  fresh.uc_stack.ss_sp = running->stacks + thread * STACK_BYTES;
  fresh.uc_stack.ss_size = STACK_BYTES;
  fresh.uc_link = NULL;
  running->fibres[thread].alive = 1;
  makecontext(&fresh, fibre_main, 0);
  swapcontext(&back, &fresh);
}

static void run_thread(uint32_t thread) {
  running->current = thread;
  here.thread.x = thread;
  if (_setjmp(running->scheduler)) return;
  if (!running->fibres[thread].alive) start(thread);
  else _longjmp(running->fibres[thread].state, 1);
}

/* Releases threads whose wait is over. Returns false on deadlock. */
static int release(void) {
  uint32_t count = running->count, released = 0, done = 0;
  for (uint32_t first = 0; first < count; first += WARP) {
    uint32_t end = first + WARP < count ? first + WARP : count, in_warp = 0;
    for (uint32_t t = first; t < end; t++) in_warp += running->fibres[t].wait == IN_WARP;
    /* Copied here, because other threads may publish new values before a receiver runs. */
    for (uint32_t t = first; in_warp == end - first && t < end; t++, released++) {
      running->together[t] = running->fibres[t].given;
      running->fibres[t].wait = READY;
    }
    for (uint32_t t = first; t < end; t++) {
      fibre *each = &running->fibres[t];
      if (each->wait == AT_MBARRIER && mbarrier_over(each->awaited, each->parity)) {
        each->wait = READY;
        released++;
      }
      done += each->wait == DONE;
    }
  }
  if (released || done == count) return 1;
  for (uint32_t t = 0; t < count; t++)
    if (running->fibres[t].wait == AT_MBARRIER) bad_box();
  for (uint32_t t = 0; t < count; t++)
    if (running->fibres[t].wait != AT_BARRIER || running->fibres[t].line != running->fibres[0].line) return 0;
  running->unfenced = 0;
  for (uint32_t t = 0; t < count; t++) {
    running->fibres[t].wait = READY;
    running->unfenced |= running->fibres[t].unfenced;
  }
  return 1;
}

static int run_waiting_block(const task *work) {
  static __thread block_state *mine;
  uint32_t order[MAX_THREADS];
  if (!mine) {
    void *stacks = mmap(NULL, MAX_THREADS * STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    mine = (block_state *)calloc(1, sizeof *mine);
    if (!mine || stacks == MAP_FAILED) return 0;
    mine->stacks = (char *)stacks;
  }
  running = mine;
  mine->work = work;
  mine->count = (uint32_t)work->launch->threads;
  order_of(order, mine->count, here.block.x);
  for (uint32_t t = 0; t < mine->count; t++) {
    mine->fibres[t].wait = READY;
    mine->fibres[t].begun.count = mine->fibres[t].begun.groups = 0;
    mine->fibres[t].multiplied.count = mine->fibres[t].unfenced = 0;
    mine->fibres[t].met = 0;
  }
  mine->unfenced = 0;
  mine->arriving.barrier_count = mine->arriving.box_count = 0;
  for (;;) {
    uint32_t done = 0;
    for (uint32_t i = 0; i < mine->count; i++) {
      if (mine->fibres[order[i]].wait == READY) run_thread(order[i]);
      done += mine->fibres[order[i]].wait == DONE;
    }
    if (done == mine->count) {
      if (mine->arriving.box_count) bad_box(); /* it would write to the memory of another block */
      return 1;
    }
    if (release()) continue;
    for (uint32_t t = 0; t < mine->count; t++) mine->fibres[t].alive = 0;
    return 0;
  }
}

#else

#define MOST_SECONDS 60
/* Synchronization of the threads of one block. Not shared between blocks, so that a sanitizer sees only
   the synchronization through device memory. */
struct meeting_place {
  pthread_barrier_t block, warps[MAX_THREADS / WARP];
  uint64_t given[MAX_THREADS];
  /* Protected by the lock. */
  arrivals arriving;
  pthread_mutex_t lock;
  pthread_cond_t something_arrived;
};
static __thread meeting_place *meeting;

struct system_thread {
  const task *work;
  meeting_place *meeting;
  irees_emulated_state place;
};

static __thread uint32_t met;
extern "C" void irees_emulated_barrier(int32_t line) {
  (void)line;
  pthread_barrier_wait(&meeting->block);
  met++;
}

static arrivals *arrivals_here(void) { return &meeting->arriving; }
static uint32_t *met_here(void) { return &met; }
template <typename F> static void alone(F work) {
  pthread_mutex_lock(&meeting->lock);
  work();
  pthread_cond_broadcast(&meeting->something_arrived);
  pthread_mutex_unlock(&meeting->lock);
}
extern "C" void irees_emulated_mbarrier_init(uint64_t *where, uint32_t count) {
  alone([=] { mbarrier_init(where, count); });
}
extern "C" void irees_emulated_mbarrier_fence(void) { alone(mbarrier_fence); }
extern "C" void irees_emulated_mbarrier_expect(uint64_t *where, uint32_t bytes) {
  alone([=] { mbarrier_expect(where, bytes); });
}
extern "C" void irees_emulated_copy_box(void *to, const void *map, uint64_t *where, int32_t rank, const int32_t *at) {
  alone([=] { copy_box(to, map, where, rank, at); });
}
extern "C" void irees_emulated_mbarrier_wait(uint64_t *where, uint32_t parity) {
  timespec until;
  clock_gettime(CLOCK_REALTIME, &until);
  until.tv_sec += MOST_SECONDS;
  alone([=] {
    mbarrier *b = mbarrier_at(where);
    while (b && !mbarrier_over(b, parity)) {
      if (__atomic_load_n(here.fault, __ATOMIC_RELAXED)) return; /* one timeout is enough */
      if (pthread_cond_timedwait(&meeting->something_arrived, &meeting->lock, &until)) bad_box();
    }
  });
}

extern "C" void irees_emulated_gather(uint64_t mine, uint64_t *all) {
  uint32_t me = here.thread.x, warp = me / WARP;
  meeting->given[me] = mine;
  pthread_barrier_wait(&meeting->warps[warp]);
  for (uint32_t i = 0; i < WARP; i++) all[i] = meeting->given[warp * WARP + i];
  pthread_barrier_wait(&meeting->warps[warp]);
}

static __thread copies begun;
static __thread products multiplied;
static __thread uint8_t unfenced;
static copies *copies_here(void) { return &begun; }
static products *products_here(void) { return &multiplied; }
static uint8_t *unfenced_here(void) { return &unfenced; }
extern "C" int irees_emulated_unfenced(void) { return 0; }

static void *system_thread_main(void *argument) {
  system_thread *me = (system_thread *)argument;
  here = me->place;
  meeting = me->meeting;
  me->work->kernel(me->work->launch->arguments);
  return NULL;
}

static int run_waiting_block(const task *work) {
  uint32_t count = (uint32_t)work->launch->threads;
  system_thread *threads = (system_thread *)calloc(count, sizeof *threads);
  pthread_t *handles = (pthread_t *)calloc(count, sizeof *handles);
  meeting_place *place = (meeting_place *)calloc(1, sizeof *place);
  if (!threads || !handles || !place) abort();
  pthread_mutex_init(&place->lock, NULL);
  pthread_cond_init(&place->something_arrived, NULL);
  pthread_barrier_init(&place->block, NULL, count);
  for (uint32_t w = 0; w * WARP < count; w++)
    pthread_barrier_init(&place->warps[w], NULL, count - w * WARP < WARP ? count - w * WARP : WARP);
  for (uint32_t t = 0; t < count; t++) {
    threads[t] = {work, place, here};
    threads[t].place.thread.x = t;
    if (pthread_create(&handles[t], NULL, system_thread_main, &threads[t])) abort();
  }
  for (uint32_t t = 0; t < count; t++) pthread_join(handles[t], NULL);
  if (place->arriving.box_count) bad_box();
  pthread_barrier_destroy(&place->block);
  for (uint32_t w = 0; w * WARP < count; w++) pthread_barrier_destroy(&place->warps[w]);
  free(place);
  free(handles);
  free(threads);
  return 1;
}

#endif

static int32_t run_block(task *work, int64_t block) {
  const irees_launch *launch = work->launch;
  void *shared = NULL;
  if (launch->shared_bytes) {
    if (posix_memalign(&shared, 1024, (size_t)launch->shared_bytes)) return IREES_OUT_OF_MEMORY;
    memset(shared, 0xff, (size_t)launch->shared_bytes);
  }
  here.block.x = (uint32_t)block;
  here.block_dim.x = (uint32_t)launch->threads;
  here.grid_dim.x = (uint32_t)launch->blocks;
  here.shared = (unsigned char *)shared;
  here.shared_bytes = launch->shared_bytes;
  here.fault = &work->fault;
  int fine = 1;
  if (launch->waits) {
    fine = run_waiting_block(work);
  } else {
    uint32_t order[MAX_THREADS];
    order_of(order, (uint32_t)launch->threads, (uint64_t)block);
    for (int32_t t = 0; t < launch->threads; t++) {
      here.thread.x = order[t];
      work->kernel(launch->arguments);
    }
  }
  free(shared);
  return fine || work->fault ? 0 : IREES_DEVICE_FAULT;
}

static void run_part(const irees_dispatch *dispatch, int64_t number, void *scratch) {
  (void)scratch;
  task *work = (task *)dispatch->buffers[0];
  const int32_t fault = run_block(work, block_at(number, work->launch->blocks));
  if (fault) __atomic_store_n(&work->fault, fault, __ATOMIC_RELAXED);
}

#ifdef IREES_SYSTEM_THREADS
/* Runs blocks one after another on separate threads, which only the blocks' own operations order. */
struct part {
  const irees_dispatch *dispatch;
  int64_t number, *turn;
};
static void *part_main(void *argument) {
  const part *mine = (const part *)argument;
  while (__atomic_load_n(mine->turn, __ATOMIC_RELAXED) != mine->number) usleep(100);
  run_part(mine->dispatch, mine->number, NULL);
  __atomic_store_n(mine->turn, mine->number + 1, __ATOMIC_RELAXED);
  return NULL;
}
#define MOST_PARTS 64
static void run_parts(const irees_dispatch *dispatch, int64_t count) {
  part parts[MOST_PARTS];
  pthread_t handles[MOST_PARTS];
  for (int64_t first = 0, turn = 0; first < count; first += MOST_PARTS) {
    const int64_t some = count - first < MOST_PARTS ? count - first : MOST_PARTS;
    for (int64_t i = 0; i < some; i++) {
      parts[i] = {dispatch, first + i, &turn};
      if (pthread_create(&handles[i], NULL, part_main, &parts[i])) abort();
    }
    for (int64_t i = 0; i < some; i++) pthread_join(handles[i], NULL);
  }
}
#endif

extern "C" EXPORT int32_t irees_emulated_launch(const irees_runtime *rt, const irees_launch *launch, irees_kernel_fn kernel) {
  task work = {launch, kernel, 0};
  void *buffers[] = {&work};
  int32_t trap = 0;
  irees_dispatch dispatch = {buffers, NULL, &trap};
#ifdef IREES_SYSTEM_THREADS
  run_parts(&dispatch, launch->blocks);
#else
  rt->parallel(rt->pool, run_part, &dispatch, launch->blocks, 0);
#endif
  (void)rt;
  return work.fault;
}
