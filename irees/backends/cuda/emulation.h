/* A CUDA device for a C++17 compiler: what the text of a kernel needs, on the CPU. The threads of a
   block take turns at barriers and shuffles; `emulation.cpp` has the scheduler. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define IREES_EXPORT __attribute__((visibility("default")))
#define __global__
#define __launch_bounds__(threads)
#define IREES_INLINE static inline __attribute__((always_inline, unused))
#define IREES_METHOD inline
#define IREES_UNROLL

struct irees_place {
  uint32_t x;
};

/* Where the thread that runs now is, as its OS thread sees it. */
struct irees_emulated_state {
  irees_place thread, block, block_dim, grid_dim;
  unsigned char *shared;
};
extern "C" irees_emulated_state *irees_emulated_here(void);
extern "C" void irees_emulated_barrier(int32_t line);
/* Gives `mine` to the other threads of the warp, and returns what thread number `from` gave. */
extern "C" uint64_t irees_emulated_exchange(uint64_t mine, uint32_t from);

#define threadIdx (irees_emulated_here()->thread)
#define blockIdx (irees_emulated_here()->block)
#define blockDim (irees_emulated_here()->block_dim)
#define gridDim (irees_emulated_here()->grid_dim)
#define __syncthreads() irees_emulated_barrier(__LINE__)

#define IREES_SHARED_STATIC(name, bytes) unsigned char *const name = irees_emulated_here()->shared
#define IREES_SHARED_DYNAMIC(name) unsigned char *const name = irees_emulated_here()->shared
#define IREES_POPCOUNT(x) __builtin_popcountll(x)
#define IREES_LEADING_ZEROS(x) __builtin_clzll(x)
#define IREES_TRAILING_ZEROS(x) __builtin_ctzll(x)

/* Not through a pointer to the vector: the caller's arrays may lie anywhere. */
template <typename V> IREES_INLINE V irees_read(const void *p) {
  V v;
  memcpy((void *)&v, p, sizeof v);
  return v;
}
template <typename V> IREES_INLINE void irees_write(void *p, V v) { memcpy(p, (const void *)&v, sizeof v); }

template <typename T> IREES_INLINE T irees_shuffle_xor(T x, int mask) {
  uint64_t u = 0;
  memcpy(&u, &x, sizeof x);
  u = irees_emulated_exchange(u, (threadIdx.x % 32) ^ (uint32_t)mask);
  memcpy((void *)&x, &u, sizeof x);
  return x;
}

/* Rounds to the nearest half float, ties to even, from the bits of a double: exact for floats. */
IREES_INLINE uint16_t irees_half_bits(double x) {
  uint64_t u;
  memcpy(&u, &x, sizeof u);
  uint16_t sign = (uint16_t)(u >> 48 & 0x8000);
  if (x != x) return (uint16_t)(sign | 0x7e00 | (u >> 42 & 0x3ff));
  double a = fabs(x);
  if (a >= 65520.0) return (uint16_t)(sign | 0x7c00);
  if (a < 0x1p-14) return (uint16_t)(sign | (uint16_t)(int32_t)rint(a * 0x1p24));
  int exponent;
  double fraction = frexp(a, &exponent); /* 0.5 to 1 */
  int32_t mantissa = (int32_t)rint(fraction * 2048.0);
  return (uint16_t)(sign | ((exponent + 14) << 10) + (mantissa - 1024));
}
IREES_INLINE uint16_t irees_half_bits(float x) { return irees_half_bits((double)x); }
IREES_INLINE float irees_half_value(uint16_t u) {
  uint32_t size = u & 0x7fff, bits;
  if (size > 0x7c00) bits = 0x7fc00000 | (size & 0x3ff) << 13;
  else if (size == 0x7c00) bits = 0x7f800000;
  else {
    float x = size < 0x400 ? (float)size * 0x1p-24f : (float)ldexp((double)(0x400 | (size & 0x3ff)), (int)(size >> 10) - 25);
    memcpy(&bits, &x, sizeof bits);
  }
  bits |= (uint32_t)(u & 0x8000) << 16;
  float x;
  memcpy(&x, &bits, sizeof x);
  return x;
}
