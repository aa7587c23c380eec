/* Emulates a CUDA device on the CPU: kernel texts compile with a C++17 compiler and this header. The
   threads of a block are switched at barriers and shuffles; the scheduler is in `emulation.cpp`. */
#include <stdint.h>

#define IREES_EXPORT __attribute__((visibility("default")))
#define __global__
#define __launch_bounds__(...)
#define __grid_constant__
#define IREES_INLINE static inline __attribute__((always_inline, unused))
#define IREES_METHOD inline
#define IREES_UNROLL

struct irees_place {
  uint32_t x;
};

/* The position of the running thread; one state per OS thread. */
struct irees_emulated_state {
  irees_place thread, block, block_dim, grid_dim;
  unsigned char *shared;
  int64_t shared_bytes;
  int32_t *fault;
};
extern "C" irees_emulated_state *irees_emulated_here(void);
extern "C" void irees_emulated_barrier(int32_t line);
/* Exchanges values in a warp: publishes `mine`, and receives the values of all 32 threads. */
extern "C" void irees_emulated_gather(uint64_t mine, uint64_t *all);

/* Asynchronous copies: start a copy, commit a group, wait for all but the last `groups`. The copied
   data appears only at the wait. */
extern "C" void irees_emulated_copy(void *to, const void *from, int32_t size, int32_t count);
extern "C" void irees_emulated_copies_end(void);
extern "C" void irees_emulated_copies_wait(int32_t groups);
/* Asynchronous warpgroup products: start one, wait for all but the last `left` of this thread. `arrive`
   is called for each completed product. */
extern "C" void irees_emulated_product(void *sums, void (*arrive)(void *));
extern "C" void irees_emulated_products_wait(int32_t left);
/* The async-proxy fence: makes this thread's copies to shared memory visible to products. `unfenced`
   returns whether some thread had copies without a fence at the last barrier. */
extern "C" void irees_emulated_fence(void);
extern "C" int irees_emulated_unfenced(void);
/* mbarriers, which count threads and bytes, and TMA copies, whose bytes they count. The box of a copy
   appears only at a wait for its mbarrier. */
extern "C" void irees_emulated_mbarrier_init(uint64_t *where, uint32_t count);
extern "C" void irees_emulated_mbarrier_fence(void);
extern "C" void irees_emulated_mbarrier_expect(uint64_t *where, uint32_t bytes);
extern "C" void irees_emulated_mbarrier_wait(uint64_t *where, uint32_t parity);
extern "C" void irees_emulated_copy_box(void *to, const void *map, uint64_t *where, int32_t rank, const int32_t *at);
/* A memory fence: a thread that observes a later write, and then fences, also observes earlier ones. */
extern "C" void irees_emulated_threadfence(void);
/* Reports an access that is not aligned to its size, which is an error on a device. */
extern "C" void irees_emulated_misaligned(void);
IREES_INLINE void irees_emulated_aligned(const void *p, uint64_t size) {
  if ((uint64_t)(uintptr_t)p % size) irees_emulated_misaligned();
}

#define threadIdx (irees_emulated_here()->thread)
#define blockIdx (irees_emulated_here()->block)
#define blockDim (irees_emulated_here()->block_dim)
#define gridDim (irees_emulated_here()->grid_dim)
#define __threadfence() irees_emulated_threadfence()
#define atomicAdd(p, x) __atomic_fetch_add(p, x, __ATOMIC_RELAXED)
#define atomicExch(p, x) __atomic_exchange_n(p, x, __ATOMIC_RELAXED)
#define __syncthreads() irees_emulated_barrier(__LINE__)

#define IREES_SHARED_STATIC(name, bytes, alignment) unsigned char *const name = irees_emulated_here()->shared
#define IREES_SHARED_DYNAMIC(name, alignment) unsigned char *const name = irees_emulated_here()->shared
#define IREES_POPCOUNT(x) __builtin_popcountll(x)
#define IREES_LEADING_ZEROS(x) __builtin_clzll(x)
#define IREES_TRAILING_ZEROS(x) __builtin_ctzll(x)

/* memcpy instead of a vector load, so that a misaligned access is reported instead of crashing. */
template <typename V> IREES_INLINE V irees_read(const void *p) {
  V v;
  irees_emulated_aligned(p, alignof(V));
  memcpy((void *)&v, p, sizeof v);
  return v;
}
template <typename V> IREES_INLINE void irees_write(void *p, V v) {
  irees_emulated_aligned(p, alignof(V));
  memcpy(p, (const void *)&v, sizeof v);
}

template <typename T> IREES_INLINE T irees_shuffle_xor(T x, int mask) {
  uint64_t u = 0;
  memcpy(&u, &x, sizeof x);
  uint64_t all[32] = {0};
  irees_emulated_gather(u, all);
  memcpy((void *)&x, &all[(threadIdx.x % 32) ^ (uint32_t)mask], sizeof x);
  return x;
}

template <typename T> IREES_INLINE int32_t irees_match_any(T x) {
  uint64_t all[32] = {0};
  uint32_t same = 0;
  irees_emulated_gather((uint64_t)x, all);
  for (uint32_t i = 0; i < 32; i++) same |= (uint32_t)(all[i] == (uint64_t)x) << i;
  return (int32_t)same;
}
template <int BITS> IREES_INLINE int32_t irees_match_bits(int32_t x) { return irees_match_any(x & ((1 << BITS) - 1)); }
IREES_INLINE void __syncwarp() {
  uint64_t all[32];
  irees_emulated_gather(0, all);
}

/* Approximate functions of a device: as exact as libm here, but subnormal results are 0. */
IREES_INLINE float irees_exp2_approx(float x) {
  const float r = exp2f(x);
  return r < 0x1p-126f ? 0.0f : r;
}
IREES_INLINE float irees_rsqrt_approx(float x) { return 1.0f / sqrtf(x); }
IREES_INLINE float irees_max_any_zero(float a, float b) { return a > b || b != b ? a : b; }
IREES_INLINE float irees_min_any_zero(float a, float b) { return a < b || b != b ? a : b; }

/* Rounds to half, to nearest even. NaN keeps the high bits of its fraction, like in the interpreter;
   the hardware instruction returns 0x7fff for all NaNs. */
IREES_INLINE uint16_t irees_half_bits(float x) {
  uint32_t u, size;
  memcpy(&u, &x, sizeof u);
  uint32_t sign = u >> 16 & 0x8000;
  size = u & 0x7fffffff;
  if (size > 0x7f800000) return (uint16_t)(sign | 0x7e00 | (size >> 13 & 0x3ff));
  if (size >= 0x477ff000) return (uint16_t)(sign | 0x7c00);
  if (size < 0x38800000) return (uint16_t)(sign | (uint32_t)(int32_t)rintf(fabsf(x) * 0x1p24f));
  return (uint16_t)(sign | (size + 0xfff + (size >> 13 & 1) - 0x38000000) >> 13);
}
IREES_INLINE uint16_t irees_half_bits(double x) {
  double a = fabs(x);
  uint16_t sign = __builtin_signbit(x) ? 0x8000 : 0;
  if (!(a < 65520.0) || a == (double)(float)a) return irees_half_bits((float)x);
  if (a < 0x1p-14) return (uint16_t)(sign | (uint16_t)(int32_t)rint(a * 0x1p24));
  int exponent;
  double fraction = __builtin_frexp(a, &exponent); /* in [0.5, 1) */
  return (uint16_t)(sign | (((exponent + 14) << 10) + ((int32_t)rint(fraction * 2048.0) - 1024)));
}
IREES_INLINE float irees_half_value(uint16_t u) {
  uint32_t size = u & 0x7fff, bits = (size << 13) + 0x38000000;
  float x = (float)size * 0x1p-24f;
  if (size >= 0x7c00) bits += 0x38000000; /* infinity and NaN */
  if (size >= 0x400) memcpy(&x, &bits, sizeof x);
  memcpy(&bits, &x, sizeof bits);
  bits |= (uint32_t)(u & 0x8000) << 16;
  memcpy(&x, &bits, sizeof x);
  return x;
}
