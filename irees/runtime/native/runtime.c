/* The services that generated code uses through `irees_runtime`: a thread pool and memory.

   There is one pool per process. Workers start at the first parallel region that needs them. After
   each region they spin for a moment, longer while a program runs, and then sleep. Only one caller at
   a time uses the workers; a concurrent caller runs its region alone, with its own scratch, so callers
   never wait for each other and cannot deadlock. Results do not depend on this.

   Static partition first, then work stealing. Each thread has a static part of a region's workgroups,
   the same for all regions of the same size, for cache reuse. A thread that has finished its part
   steals from the others: their cores may be slow or preempted by other programs. A region does not
   wait for a worker that has not started when all work is taken. Results do not depend on which thread
   computes what. */
#define _GNU_SOURCE
#include "irees.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#define EXPORT __attribute__((visibility("default")))
#define LINE 128 /* two cache lines: the prefetcher loads pairs of lines */
#define MAX_THREADS 1024
#define SPIN_NS 50000
#define CALL_NS 1000000 /* while a program runs: waking a worker costs at least 30 us */
#define YIELD_NS 1000000

static inline void relax(void) {
#if defined(__SSE2__)
  _mm_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

static inline int64_t now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* ---- memory ---------------------------------------------------------------------------------

   A block is a 64-byte header and the payload. Freed blocks of at least 64 KiB are cached, up to a
   bound, because each fresh page costs a page fault.

   The payload of such a block is page-aligned, and its header is in a separate page. Processors
   disambiguate loads from earlier stores by page offset (4K aliasing). If the block started 64 bytes
   later in its page than the array that a loop reads, each load would wait for the store of the previous
   iteration. Arrays of other allocators start 0 to 64 bytes after a page boundary. */

#define PAGE ((size_t)4096)
#ifdef IREES_GUARDED
#include "guarded.h"
#define kept guarded /* the fork handlers take its lock */
EXPORT void irees_rt_trim(void) {}
#else
#define HEADER 64
#define HUGE_PAGE ((size_t)2 << 20)
#define KEEP_FROM ((size_t)64 << 10)
#define KEEP_BYTES ((size_t)256 << 20)
#define KEEP_BLOCKS 8

typedef struct block {
  size_t capacity;
  void *memory; /* the allocation */
} block;

static struct {
  pthread_mutex_t lock;
  block *blocks[KEEP_BLOCKS]; /* oldest first */
  int count;
  size_t bytes;
} kept = {.lock = PTHREAD_MUTEX_INITIALIZER};

static block *block_new(size_t capacity) {
  size_t lead = capacity < KEEP_FROM ? HEADER : PAGE, total = capacity + lead;
  void *memory = NULL;
  if (posix_memalign(&memory, total >= HUGE_PAGE ? HUGE_PAGE : lead, total)) return NULL;
#ifdef MADV_HUGEPAGE
  if (total >= HUGE_PAGE) madvise(memory, total & ~(HUGE_PAGE - 1), MADV_HUGEPAGE);
#endif
  block *fresh = (block *)((char *)memory + lead - HEADER);
  *fresh = (block){capacity, memory};
  return fresh;
}

static block *kept_take(int index) {
  block *taken = kept.blocks[index];
  kept.count--;
  kept.bytes -= taken->capacity;
  for (int i = index; i < kept.count; i++) kept.blocks[i] = kept.blocks[i + 1];
  return taken;
}

/* Best fit: the smallest cached block that is large enough and wastes at most a quarter of itself. */
static block *kept_find(size_t bytes) {
  int best = -1;
  for (int i = 0; i < kept.count; i++) {
    size_t capacity = kept.blocks[i]->capacity;
    if (capacity >= bytes && capacity - bytes <= capacity / 4 &&
        (best < 0 || capacity <= kept.blocks[best]->capacity))
      best = i;
  }
  return best < 0 ? NULL : kept_take(best);
}

static void *rt_alloc(int64_t bytes) {
  if (bytes < 0 || bytes > INT64_MAX - (int64_t)(2 * HUGE_PAGE)) return NULL;
  size_t capacity = ((size_t)bytes + 63) & ~(size_t)63;
  block *found = NULL;
  if (capacity >= KEEP_FROM) {
    pthread_mutex_lock(&kept.lock);
    found = kept_find(capacity);
    pthread_mutex_unlock(&kept.lock);
  }
  if (!found) found = block_new(capacity);
  return found ? (char *)found + HEADER : NULL;
}

static void rt_free(void *pointer) {
  if (!pointer) return;
  block *done = (block *)((char *)pointer - HEADER);
  if (done->capacity < KEEP_FROM || done->capacity > KEEP_BYTES) {
    free(done->memory);
    return;
  }
  block *dropped[KEEP_BLOCKS];
  int drops = 0;
  pthread_mutex_lock(&kept.lock);
  while (kept.count == KEEP_BLOCKS || kept.bytes + done->capacity > KEEP_BYTES)
    dropped[drops++] = kept_take(0);
  kept.blocks[kept.count++] = done;
  kept.bytes += done->capacity;
  pthread_mutex_unlock(&kept.lock);
  while (drops) free(dropped[--drops]->memory);
}

/* Returns cached blocks to the system. */
EXPORT void irees_rt_trim(void) {
  block *dropped[KEEP_BLOCKS];
  int drops = 0;
  pthread_mutex_lock(&kept.lock);
  while (kept.count) dropped[drops++] = kept_take(0);
  pthread_mutex_unlock(&kept.lock);
  while (drops) free(dropped[--drops]->memory);
}
#endif

/* ---- per-thread state -----------------------------------------------------------------------*/

typedef struct {
  void *memory;
  int64_t bytes;
} scratch;

static pthread_key_t caller_key; /* the scratch of a calling thread, freed with the thread */
static _Thread_local int out_of_memory;

/* Grows the scratch to at least `bytes`, without preserving its contents; false if out of memory. */
static int scratch_reserve(scratch *mine, int64_t bytes) {
#ifdef IREES_GUARDED
  if (mine->bytes == bytes) return 1;
  int64_t grown = bytes;
#else
  if (mine->bytes >= bytes) return 1;
  int64_t grown = bytes + bytes / 4;
#endif
  rt_free(mine->memory);
  mine->memory = rt_alloc(grown);
  mine->bytes = mine->memory ? grown : 0;
  return mine->memory != NULL;
}

static void caller_scratch_free(void *state) {
  rt_free(((scratch *)state)->memory);
  free(state);
}

static scratch *caller_scratch(void) {
  scratch *mine = pthread_getspecific(caller_key);
  if (!mine && (mine = calloc(1, sizeof *mine)) && pthread_setspecific(caller_key, mine)) {
    free(mine);
    mine = NULL;
  }
  return mine;
}

/* ---- pool -----------------------------------------------------------------------------------*/

/* The caller moves a worker from IDLE to CALLED and back; the worker moves from CALLED to AT_WORK and
   then to IDLE. */
enum { IDLE, CALLED, AT_WORK };

typedef struct {
  _Alignas(LINE) atomic_int turn; /* IDLE, CALLED or AT_WORK */
  atomic_int asleep;
  pthread_mutex_t lock;
  pthread_cond_t wake;
  scratch scratch;
  pthread_t thread;
  int kept_off; /* the core excluded from its affinity, or -1 */
  int started;
} worker;

static struct {
  /* The current region. Written while no worker is CALLED or AT_WORK, read by workers that are. */
  irees_workgroup_fn fn;
  const irees_dispatch *dispatch;
  int parts;
  int core; /* the core of the caller, or -1 */
  int64_t *log; /* the caller's part_log */

  _Alignas(LINE) atomic_int caller_asleep;
  pthread_mutex_t lock;
  pthread_cond_t done;

  _Alignas(LINE) atomic_flag busy;
  atomic_int threads;
  atomic_int cores;
  atomic_int calls; /* number of running programs */
} pool = {
    .lock = PTHREAD_MUTEX_INITIALIZER,
    .done = PTHREAD_COND_INITIALIZER,
    .busy = ATOMIC_FLAG_INIT,
    .threads = 1,
    .cores = 1,
};

static worker workers[MAX_THREADS]; /* workers[i] runs part i; 0 is the caller and unused */

/* The workgroups of each part that are not taken yet. */
static struct {
  _Alignas(LINE) _Atomic int64_t next;
  int64_t end;
} shares[MAX_THREADS];

static void share_out(int64_t count, int parts) {
  int64_t size = count / parts, extra = count % parts, begin = 0;
  for (int i = 0; i < parts; i++) {
    atomic_store_explicit(&shares[i].next, begin, memory_order_relaxed);
    shares[i].end = begin += size + (i < extra);
  }
}

/* Non-temporal stores are weakly ordered: this fences them before the store that ends the region. */
static void end_part(void) {
#if defined(__SSE2__)
  _mm_sfence();
#endif
}

/* The log of a caller that times its program: capacity and count of its rows, then the rows. A row is
   the number of a thread, and when the thread began and ended its part of a region. */
static _Thread_local int64_t *part_log;

static void log_part(int64_t *log, int part, int64_t begin) {
  int64_t end = now_ns(), row = __atomic_fetch_add(&log[1], 1, __ATOMIC_RELAXED);
  if (row >= log[0]) return;
  log[2 + 3 * row] = part;
  log[3 + 3 * row] = begin;
  log[4 + 3 * row] = end;
}

/* A thread takes 1 / PIECES of the remaining workgroups at a time, and single ones at the end. Taking
   all of them one by one is too expensive: an atomic addition waits for all earlier stores, including
   non-temporal ones. */
#define PIECES 4

static void run_part(int part, void *memory) {
  int64_t begin = pool.log ? now_ns() : 0;
  for (int i = 0, from = part; i < pool.parts; i++, from = from + 1 < pool.parts ? from + 1 : 0) {
    int64_t end = shares[from].end, left;
    /* A load first: it does not take the cache line away from its owner, as an atomic addition does. */
    while ((left = end - atomic_load_explicit(&shares[from].next, memory_order_relaxed)) > 0) {
      int64_t some = (left + PIECES - 1) / PIECES;
      int64_t next = atomic_fetch_add_explicit(&shares[from].next, some, memory_order_relaxed);
      int64_t stop = next + some < end ? next + some : end;
      for (; next < stop; next++) pool.fn(pool.dispatch, next, memory);
    }
  }
  end_part();
  if (pool.log) log_part(pool.log, part, begin);
}

static int64_t spin_limit(void) {
  return atomic_load_explicit(&pool.threads, memory_order_relaxed) <=
                 atomic_load_explicit(&pool.cores, memory_order_relaxed)
             ? SPIN_NS
             : 0;
}

/* Spins for a bounded time; returns whether the worker is called. */
static int spin(const worker *me) {
  int64_t limit = spin_limit(), begin = limit ? now_ns() : 0, spent;
  for (int i = 1; limit; i++) {
    if (atomic_load_explicit(&me->turn, memory_order_relaxed) == CALLED) return 1;
    relax();
    if (i % 32 || (spent = now_ns() - begin) <= limit) continue;
    if (spent > CALL_NS || !atomic_load_explicit(&pool.calls, memory_order_relaxed)) break;
  }
  return atomic_load(&me->turn) == CALLED;
}

/* Returns when the worker is called; the call may have been withdrawn since. A worker woken too late
   for a region spins for the next one, because otherwise it would be too late again. */
static void worker_wait(worker *me) {
  while (!spin(me)) {
    pthread_mutex_lock(&me->lock);
    atomic_store(&me->asleep, 1);
    if (atomic_load(&me->turn) != CALLED) pthread_cond_wait(&me->wake, &me->lock);
    atomic_store(&me->asleep, 0);
    pthread_mutex_unlock(&me->lock);
  }
}

/* Pins a sleeping worker away from the caller's core before waking it. The scheduler often wakes it on
   that core, where it waits behind the caller for milliseconds, until the next load balancing. A worker
   that finds itself on that core leaves it, too. */
static void keep_off(worker *sleeper, int core) {
#ifdef __linux__
  cpu_set_t others;
  if (core < 0 || core == sleeper->kept_off || sched_getaffinity(0, sizeof others, &others)) return;
  CPU_CLR((size_t)core, &others);
  if (CPU_COUNT(&others) == 0) return;
  if (!pthread_setaffinity_np(sleeper->thread, sizeof others, &others)) sleeper->kept_off = core;
#else
  (void)sleeper, (void)core;
#endif
}

static void *worker_main(void *argument) {
  worker *me = argument;
  int part = (int)(me - workers);
  for (;;) {
    int called = CALLED;
    worker_wait(me);
    if (!atomic_compare_exchange_strong(&me->turn, &called, AT_WORK)) continue;
#ifdef __linux__
    if (sched_getcpu() == pool.core) keep_off(me, pool.core);
#endif
    run_part(part, me->scratch.memory);
    /* Sequentially consistent on both sides: either the caller sees IDLE, or we see it asleep. */
    atomic_store(&me->turn, IDLE);
    if (atomic_load(&pool.caller_asleep)) {
      pthread_mutex_lock(&pool.lock);
      pthread_cond_signal(&pool.done);
      pthread_mutex_unlock(&pool.lock);
    }
  }
  return NULL;
}

static int worker_start(worker *fresh) {
  sigset_t all, before;
  pthread_attr_t attributes;
  pthread_mutex_init(&fresh->lock, NULL);
  pthread_cond_init(&fresh->wake, NULL);
  atomic_store(&fresh->turn, IDLE);
  atomic_store(&fresh->asleep, 0);
  fresh->kept_off = -1;
  if (pthread_attr_init(&attributes)) return 0;
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  /* Workers block all signals, which are for the program's threads, mainly Python's main thread. */
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  fresh->started = !pthread_create(&fresh->thread, &attributes, worker_main, fresh);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  pthread_attr_destroy(&attributes);
#ifdef __linux__
  if (fresh->started) pthread_setname_np(fresh->thread, "irees-worker");
#endif
  return fresh->started;
}

/* Returns how many of the wanted parts can run: workers that could start and allocate scratch. */
static int prepare_workers(int parts, int64_t scratch_bytes) {
  for (int i = 1; i < parts; i++) {
    if (!workers[i].started && !worker_start(workers + i)) return i;
    if (!scratch_reserve(&workers[i].scratch, scratch_bytes)) return i;
  }
  return parts;
}

static int at_work(int parts) {
  for (int i = 1; i < parts; i++)
    if (atomic_load(&workers[i].turn) != IDLE) return 1;
  return 0;
}

static void wait_for_workers(int parts) {
  int64_t begin = 0, limit = spin_limit(), spent;
  for (int i = 1; at_work(parts); i++) {
    relax();
    if (i % 32) continue;
    if (!begin) begin = now_ns();
    spent = now_ns() - begin;
    if (spent > limit) sched_yield();
    if (spent > YIELD_NS) break;
  }
  if (!at_work(parts)) return;
  pthread_mutex_lock(&pool.lock);
  atomic_store(&pool.caller_asleep, 1);
  while (at_work(parts)) pthread_cond_wait(&pool.done, &pool.lock);
  atomic_store(&pool.caller_asleep, 0);
  pthread_mutex_unlock(&pool.lock);
}

static void run_together(int64_t count, int parts, void *memory) {
  pool.parts = parts;
  pool.log = part_log;
#ifdef __linux__
  pool.core = sched_getcpu();
#else
  pool.core = -1;
#endif
  share_out(count, parts);
  for (int i = 1; i < parts; i++) {
    /* Sequentially consistent on both sides: either the worker sees CALLED, or we see it asleep. */
    atomic_store(&workers[i].turn, CALLED);
    if (!atomic_load(&workers[i].asleep)) continue;
    keep_off(workers + i, pool.core);
    pthread_mutex_lock(&workers[i].lock);
    pthread_cond_signal(&workers[i].wake);
    pthread_mutex_unlock(&workers[i].lock);
  }
  run_part(0, memory);
  for (int i = 1; i < parts; i++) {
    int called = CALLED;
    atomic_compare_exchange_strong(&workers[i].turn, &called, IDLE);
  }
  wait_for_workers(parts);
}

static void rt_parallel(void *unused, irees_workgroup_fn fn, const irees_dispatch *dispatch,
                        int64_t count, int64_t scratch_bytes) {
  (void)unused;
  if (count <= 0) return;
  scratch *mine = caller_scratch();
  if (!mine || !scratch_reserve(mine, scratch_bytes)) {
    out_of_memory = 1;
    return;
  }
  int parts = atomic_load_explicit(&pool.threads, memory_order_relaxed);
  if (parts > count) parts = (int)count;
  if (parts > 1 && !atomic_flag_test_and_set_explicit(&pool.busy, memory_order_acquire)) {
    parts = prepare_workers(parts, scratch_bytes);
    pool.fn = fn;
    pool.dispatch = dispatch;
    run_together(count, parts, mine->memory);
    atomic_flag_clear_explicit(&pool.busy, memory_order_release);
    return;
  }
  for (int64_t i = 0; i < count; i++) fn(dispatch, i, mine->memory);
  end_part();
}

/* ---- kernels of a CUDA device -------------------------------------------------------------------

   Launches, copies and tensor maps call the driver functions that Python has looked up: a CuPy call
   per kernel would take longer than most kernels. They use the stream of the thread's current call. */

#define MOST_ARGUMENTS 512 /* of 64 bits each: kernel parameters are limited to 4 KiB */
#define INVALID_VALUE 1    /* CUDA_ERROR_INVALID_VALUE */

typedef int (*cuda_launch_fn)(void *function, unsigned x, unsigned y, unsigned z, unsigned threads_x,
                              unsigned threads_y, unsigned threads_z, unsigned shared_bytes,
                              void *stream, void **arguments, void **extra);
typedef int (*cuda_copy_fn)(uint64_t to, uint64_t source, size_t bytes, void *stream);
typedef int (*cuda_encode_fn)(void *map, int kind, uint32_t rank, const void *address,
                              const uint64_t *sizes, const uint64_t *strides, const uint32_t *box,
                              const uint32_t *steps, int layout, int swizzle, int promotion, int fill);

typedef struct irees_cuda_kernel {
  void *function;
  int64_t maps;          /* number of leading arguments that are addresses of tensor maps */
  int64_t dynamic_bytes; /* dynamic shared memory */
} irees_cuda_kernel;

typedef struct irees_cuda_program {
  cuda_launch_fn launch;
  cuda_copy_fn copy;
  cuda_encode_fn encode; /* NULL before CUDA 12 */
  int (*current)(void **context);
  int (*push)(void *context);
  int (*pop)(void **context);
  void *context; /* that the kernels were loaded in */
  /* Stores the error of a tensor map; status 0: the driver makes none. Returns its status. */
  int32_t (*refused)(void *pool, int32_t status, const irees_tensor *tensor);
  const irees_cuda_kernel *kernels;
} irees_cuda_program;

/* Memory for one allocation of an entry; the size is negative for counters and the trap word. */
typedef struct irees_cuda_block {
  int64_t bytes;
  void *memory;
} irees_cuda_block;

typedef struct cuda_state {
  void *stream;
  int64_t launches;
  int32_t error;
  const irees_cuda_block *blocks; /* of a planned call */
  int64_t count, taken;
} cuda_state;
static _Thread_local cuda_state cuda_call;

EXPORT void irees_cuda_begin(void *stream) {
  cuda_call.stream = stream;
  cuda_call.launches = 0;
  cuda_call.error = 0;
}

EXPORT int64_t irees_cuda_launches(void) { return cuda_call.launches; }

/* The CUresult of the last launch or copy. */
EXPORT int32_t irees_cuda_error(void) { return cuda_call.error; }

EXPORT int32_t irees_cuda_launch(void *pool, const irees_launch *launch) {
  const irees_cuda_program *program = pool;
  const irees_cuda_kernel *kernel = &program->kernels[launch->kernel];
  void *arguments[MOST_ARGUMENTS];
  cuda_call.error = INVALID_VALUE;
  if (launch->count > MOST_ARGUMENTS || launch->blocks > INT32_MAX) return IREES_DEVICE_FAULT;
  for (int32_t i = 0; i < launch->count; i++)
    arguments[i] = i < kernel->maps ? (void *)(intptr_t)launch->arguments[i]
                                    : (void *)&launch->arguments[i];
  cuda_call.launches++;
  cuda_call.error = program->launch(kernel->function, (unsigned)launch->blocks, 1, 1,
                                    (unsigned)launch->threads, 1, 1,
                                    (unsigned)kernel->dynamic_bytes, cuda_call.stream, arguments, NULL);
  return cuda_call.error ? IREES_DEVICE_FAULT : 0;
}

EXPORT int32_t irees_cuda_copy(void *pool, void *device, const void *source, int64_t bytes) {
  const irees_cuda_program *program = pool;
  if (bytes <= 0) return 0;
  cuda_call.error = program->copy((uint64_t)(uintptr_t)device, (uint64_t)(uintptr_t)source,
                                  (size_t)bytes, cuda_call.stream);
  return cuda_call.error ? IREES_DEVICE_FAULT : 0;
}

/* Tensor maps that this thread made last. A map depends on nothing but its tensor and the device. */
#define KEPT_MAPS 32 /* a kernel has 2 or 3 */
typedef struct kept_map {
  irees_tensor_map map;
  irees_tensor tensor;
  const void *context; /* NULL: empty */
} kept_map;
static _Thread_local kept_map kept_maps[KEPT_MAPS];
static _Thread_local unsigned next_map; /* the oldest one */

/* Not of all bytes: a struct has padding. */
static int is_same(const irees_tensor *a, const irees_tensor *b) {
  return a->address == b->address && a->rank == b->rank && a->element_bytes == b->element_bytes &&
         a->swizzle_bytes == b->swizzle_bytes && !memcmp(a->sizes, b->sizes, sizeof a->sizes) &&
         !memcmp(a->strides, b->strides, sizeof a->strides) && !memcmp(a->box, b->box, sizeof a->box);
}

static const kept_map *find_map(const void *context, const irees_tensor *tensor) {
  for (int i = 0; i < KEPT_MAPS; i++)
    if (kept_maps[i].context == context && is_same(&kept_maps[i].tensor, tensor))
      return &kept_maps[i];
  return NULL;
}

static int make_map(cuda_encode_fn encode, void *map, const irees_tensor *tensor) {
  static const uint32_t steps[IREES_MOST_DIMS] = {1, 1, 1, 1, 1};
  uint64_t sizes[IREES_MOST_DIMS], strides[IREES_MOST_DIMS] = {0};
  uint32_t box[IREES_MOST_DIMS];
  int bytes = tensor->element_bytes, rank = tensor->rank;
  /* CU_TENSOR_MAP_DATA_TYPE_UINT8, 16, 32 and 64: elements are copied as raw bits. */
  int kind = bytes == 1 ? 0 : bytes == 2 ? 1 : bytes == 4 ? 2 : bytes == 8 ? 4 : -1;
  int swizzle = tensor->swizzle_bytes == 32    ? 1
                : tensor->swizzle_bytes == 64  ? 2
                : tensor->swizzle_bytes == 128 ? 3
                                               : -1;
  if (kind < 0 || swizzle < 0 || rank < 1 || rank > IREES_MOST_DIMS) return INVALID_VALUE;
  for (int i = 0; i < rank; i++) {
    sizes[i] = tensor->sizes[i] > 0 ? (uint64_t)tensor->sizes[i] : 1;
    box[i] = (uint32_t)tensor->box[i];
    if (i) strides[i - 1] = (uint64_t)tensor->strides[i];
  }
  return encode(map, kind, (uint32_t)rank, tensor->address, sizes, strides, box, steps, 0, swizzle, 0, 0);
}

EXPORT int32_t irees_cuda_encode(void *pool, irees_tensor_map *map, const irees_tensor *tensor) {
  const irees_cuda_program *program = pool;
  if (!program->encode) return program->refused(pool, 0, tensor);
  const kept_map *found = find_map(program->context, tensor);
  if (!found) {
    kept_map *made = &kept_maps[next_map];
    made->context = NULL;
    int32_t status = make_map(program->encode, &made->map, tensor);
    if (status) return program->refused(pool, status, tensor);
    made->tensor = *tensor;
    made->context = program->context;
    next_map = (next_map + 1) % KEPT_MAPS;
    found = made;
  }
  *map = found->map;
  return 0;
}

/* A planned call: Python allocates all memory before the call, with the sizes that an earlier call
   requested, so no service is in Python. A call that needs something else fails, and Python repeats it
   without a plan: kernels write only to memory of their call. */

typedef struct irees_cuda_plan {
  irees_entry_fn entry;
  const irees_call *call;
  int64_t results;
  const irees_cuda_program *program;
  const irees_cuda_block *blocks; /* one per allocation, in call order */
  int64_t count;
  const int64_t *places; /* of each result: the number of its block */
  const int64_t *dims;   /* all dims of all results */
  int64_t rank;          /* number of `dims` */
} irees_cuda_plan;

static void *planned_alloc(int64_t bytes) {
  int64_t next = cuda_call.taken;
  if (next >= cuda_call.count || cuda_call.blocks[next].bytes != bytes) return NULL;
  cuda_call.taken++;
  return cuda_call.blocks[next].memory;
}

static void planned_free(void *pointer) { (void)pointer; }

static void *planned_counters(void *pool, int64_t bytes) {
  (void)pool;
  return planned_alloc(-bytes);
}

static int32_t *planned_trap_word(void *pool) { return planned_counters(pool, sizeof(int32_t)); }

static int32_t no_transfer(void *pool, void *to, const void *source, int64_t bytes) {
  (void)pool, (void)to, (void)source, (void)bytes;
  return IREES_DEVICE_FAULT;
}

/* Fills in the services of planned calls. */
EXPORT void irees_cuda_planned(irees_runtime *services, irees_cuda_program *program) {
  *services = (irees_runtime){
      .pool = program, .alloc = planned_alloc, .free = planned_free, .launch = irees_cuda_launch,
      .read = no_transfer, .write = no_transfer, .copy = irees_cuda_copy,
      .encode_tensor_map = irees_cuda_encode, .counters = planned_counters, .trap_word = planned_trap_word,
  };
}

static int is_as_planned(const irees_cuda_plan *plan) {
  for (int64_t i = 0; i < plan->results; i++)
    if (plan->call->results[i] != plan->blocks[plan->places[i]].memory) return 0;
  return !memcmp(plan->call->result_dims, plan->dims, (size_t)plan->rank * sizeof *plan->dims);
}

EXPORT int32_t irees_rt_invoke(irees_entry_fn entry, const irees_call *call, int64_t results);

/* Returns 0 if the call was as planned. */
EXPORT int32_t irees_cuda_call(const irees_cuda_plan *plan, void *stream) {
  const irees_cuda_program *program = plan->program;
  void *current = NULL;
  if (program->current(&current)) return IREES_DEVICE_FAULT;
  int pushed = current != program->context;
  if (pushed && program->push(program->context)) return IREES_DEVICE_FAULT;
  /* A finalizer may call a program while another call of this thread is in a service. */
  cuda_state outer = cuda_call;
  irees_cuda_begin(stream);
  cuda_call.blocks = plan->blocks;
  cuda_call.count = plan->count;
  cuda_call.taken = 0;
  int32_t status = irees_rt_invoke(plan->entry, plan->call, plan->results);
  cuda_call = outer;
  if (pushed) program->pop(&current);
  return status ? status : is_as_planned(plan) ? 0 : IREES_DEVICE_FAULT;
}

/* ---- fork: the child inherits the memory of the workers, but not their threads ----------------*/

static void before_fork(void) { pthread_mutex_lock(&kept.lock); }

static void after_fork_parent(void) { pthread_mutex_unlock(&kept.lock); }

static void after_fork_child(void) {
  pthread_mutex_unlock(&kept.lock);
  pthread_mutex_init(&pool.lock, NULL);
  pthread_cond_init(&pool.done, NULL);
  atomic_store(&pool.caller_asleep, 0);
  /* The scratch of a worker may be in the middle of a replacement, so it is leaked. */
  for (int i = 1; i < MAX_THREADS; i++) {
    workers[i].started = 0;
    workers[i].scratch = (scratch){0};
  }
  atomic_flag_clear(&pool.busy);
  atomic_store(&pool.calls, 0);
}

/* ---- exports --------------------------------------------------------------------------------*/

static const irees_runtime services = {
    .pool = &pool, .parallel = rt_parallel, .alloc = rt_alloc, .free = rt_free};

EXPORT int32_t irees_rt_abi(void) { return 1; }

/* Returns NULL if no thread-specific key is available. Called once, under a lock of Python code. */
EXPORT const irees_runtime *irees_rt_get(void) {
  static int ready;
  if (!ready) {
    if (pthread_key_create(&caller_key, caller_scratch_free)) return NULL;
    pthread_atfork(before_fork, after_fork_parent, after_fork_child);
    ready = 1;
  }
  return &services;
}

/* `cores` is the number of threads that can run at once; with more threads, workers do not spin. */
EXPORT void irees_rt_set_threads(int32_t threads, int32_t cores) {
  if (threads < 1) threads = 1;
  if (threads > MAX_THREADS) threads = MAX_THREADS;
  atomic_store(&pool.cores, cores);
  atomic_store(&pool.threads, threads);
}

/* The log of programs that time their dispatches: pairs of a trace number and a time, in a buffer of
   the calling thread. The count continues when the buffer is full, so the thread detects overflow. */
static _Thread_local struct {
  int64_t *log;
  int64_t capacity, count;
} times;

EXPORT void irees_rt_time_to(int64_t *log, int64_t capacity) {
  times.log = log;
  times.capacity = capacity;
  times.count = 0;
}

/* NULL: log no more. */
EXPORT void irees_rt_parts_to(int64_t *log) { part_log = log; }

EXPORT int64_t irees_rt_times(void) { return times.count; }

EXPORT void irees_rt_time(int32_t trace, void *const *values, const int64_t *dims) {
  (void)values, (void)dims;
  if (times.count < times.capacity) {
    times.log[2 * times.count] = trace;
    times.log[2 * times.count + 1] = now_ns();
  }
  times.count++;
}

EXPORT int32_t irees_rt_threads(void) { return atomic_load(&pool.threads); }

EXPORT void irees_rt_free(void *pointer) { rt_free(pointer); }

/* Runs an entry with empty results and the default float environment: the caller may have enabled
   flush-to-zero or another rounding mode, which the workers do not have. */
EXPORT int32_t irees_rt_invoke(irees_entry_fn entry, const irees_call *call, int64_t results) {
  for (int64_t i = 0; i < results; i++) call->results[i] = NULL;
  out_of_memory = 0;
#if defined(__SSE2__)
  unsigned before = _mm_getcsr();
  _mm_setcsr(0x1f80);
#endif
  atomic_fetch_add_explicit(&pool.calls, 1, memory_order_relaxed);
  int32_t status = entry(call);
  atomic_fetch_sub_explicit(&pool.calls, 1, memory_order_relaxed);
#if defined(__SSE2__)
  _mm_setcsr(before);
#endif
  return status == 0 && out_of_memory ? IREES_OUT_OF_MEMORY : status;
}
