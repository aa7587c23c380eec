/* Several callers, changing thread counts, blocks and forks at once; built with sanitizers. */
#include "irees.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

const irees_runtime *irees_rt_get(void);
void irees_rt_set_threads(int32_t threads, int32_t cores);
void irees_rt_trim(void);

static const irees_runtime *rt;
enum { CALLERS = 4, ROUNDS = 400 };

static void square(const irees_dispatch *d, int64_t i, void *scratch) {
  int64_t bytes = d->scalars[0];
  if (bytes) memset(scratch, (int)i, (size_t)bytes);
  ((int64_t *)d->buffers[0])[i] = i * i + (bytes ? ((char *)scratch)[bytes - 1] - (char)i : 0);
}

static void fail(const char *what) {
  fprintf(stderr, "FAILED: %s\n", what);
  exit(1);
}

static void one_round(unsigned *seed) {
  int64_t count = rand_r(seed) % 300, bytes = rand_r(seed) % 3 ? rand_r(seed) % 200000 : 0;
  int64_t size = count * 8 + (rand_r(seed) % 4 ? 0 : 3 << 20);
  void *buffers[1] = {rt->alloc(size)};
  if (!buffers[0] || (uintptr_t)buffers[0] % 64) fail("alloc");
  memset(buffers[0], 0xFF, (size_t)size);
  irees_dispatch d = {.buffers = buffers, .scalars = &bytes};
  rt->parallel(rt->pool, square, &d, count, bytes);
  for (int64_t i = 0; i < count; i++)
    if (((int64_t *)buffers[0])[i] != i * i) fail("a workgroup did not run exactly once");
  rt->free(buffers[0]);
  if (rand_r(seed) % 50 == 0) irees_rt_trim();
}

/* Each workgroup of the first half takes long; each says which thread it ran on. */
enum { SHARED = 16 };

static void slow_half(const irees_dispatch *d, int64_t i, void *scratch) {
  (void)scratch;
  if (i < SHARED / 2) usleep(4000);
  ((pthread_t *)d->buffers[0])[i] = pthread_self();
}

/* A thread that is through with its share takes what is left of the caller's, which is slow. */
static void shares(void) {
  pthread_t ran[SHARED];
  void *buffers[1] = {ran};
  irees_dispatch d = {.buffers = buffers};
  int taken = 0;
  irees_rt_set_threads(2, 2);
  for (int turn = 0; turn < 10 && !taken; turn++) {
    rt->parallel(rt->pool, slow_half, &d, SHARED, 0);
    for (int i = 0; i < SHARED / 2; i++) taken += !pthread_equal(ran[i], pthread_self());
  }
  if (!taken) fail("nobody took over from a thread that is slow");
}

static void *caller(void *argument) {
  unsigned seed = (unsigned)(uintptr_t)argument;
  for (int i = 0; i < ROUNDS; i++) {
    one_round(&seed);
    if (i % 20 == 0) irees_rt_set_threads(rand_r(&seed) % 6 + 1, rand_r(&seed) % 4 + 1);
    if (i % 40 == 0) usleep(200);
  }
  return NULL;
}

int main(int count, char **arguments) {
  (void)arguments;
  rt = irees_rt_get();
  shares();
  irees_rt_set_threads(3, 2);
  pthread_t threads[CALLERS];
  for (uintptr_t i = 0; i < CALLERS; i++) pthread_create(&threads[i], NULL, caller, (void *)(i + 1));
  for (int i = 0; i < CALLERS; i++) pthread_join(threads[i], NULL);
  if (rt->alloc(-1) || rt->alloc(INT64_MAX)) fail("absurd sizes");
  rt->free(NULL);
  for (int i = 0; i < 20 && count == 1; i++) {
    unsigned seed = 99;
    pid_t child = fork();
    if (child == 0) {
      for (int k = 0; k < 20; k++) one_round(&seed);
      _exit(0);
    }
    int status = 1;
    one_round(&seed);
    waitpid(child, &status, 0);
    if (status) fail("after fork");
  }
  return 0;
}
