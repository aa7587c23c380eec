/* What the C backend spells differently from others: its vectors, half floats and complex numbers
   are the compiler's own. */
#include <complex.h>
#undef I
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define IREES_INLINE static inline __attribute__((always_inline, unused))

typedef _Float16 irees_f16;
typedef float _Complex irees_c64;
typedef double _Complex irees_c128;

#define irees_complex_c64(re, im) __builtin_complex((float)(re), (float)(im))
#define irees_complex_c128(re, im) __builtin_complex((double)(re), (double)(im))
#define IREES_REAL(z) (__real__(z))
#define IREES_IMAGINARY(z) (__imag__(z))
#define irees_cabs_c64 cabsf
#define irees_cabs_c128 cabs
#define irees_carg_c64 cargf
#define irees_carg_c128 carg
#define irees_conj_c64 conjf
#define irees_conj_c128 conj
#define irees_cexp_c64 cexpf
#define irees_cexp_c128 cexp
#define irees_clog_c64 clogf
#define irees_clog_c128 clog
#define irees_csqrt_c64 csqrtf
#define irees_csqrt_c128 csqrt
#define irees_csin_c64 csinf
#define irees_csin_c128 csin
#define irees_ccos_c64 ccosf
#define irees_ccos_c128 ccos
#define irees_ctanh_c64 ctanhf
#define irees_ctanh_c128 ctanh
#define irees_cpow_c64 cpowf
#define irees_cpow_c128 cpow

#define IREES_BITCAST(T, S, x) __extension__({ S a_ = (x); T r_; memcpy(&r_, &a_, sizeof r_); r_; })
#define IREES_POPCOUNT(x) __builtin_popcountll(x)
#define IREES_LEADING_ZEROS(x) __builtin_clzll(x)
#define IREES_TRAILING_ZEROS(x) __builtin_ctzll(x)

/* A size in bytes; what is negative or needs more than 60 bits becomes what no memory has room for. */
IREES_INLINE int64_t irees_bytes(int64_t a, int64_t b) {
  int64_t r;
  return a < 0 || b < 0 || __builtin_mul_overflow(a, b, &r) || r >> 60 ? INT64_C(1) << 60 : r;
}

/* --- vectors ---------------------------------------------------------------------- */

/* N lanes of x, one by one: 16-bit floats promote to float in mixed arithmetic. */
#define IREES_LANES(V, T, N, x) __extension__({ V v_; for (int i_ = 0; i_ < N; i_++) v_[i_] = x; v_; })

/* Defines vector type V of N lanes of T, its unaligned load and store, and what is done lane by lane. */
#define IREES_VECTOR_OF(V, T, N, SPLAT)                                                     \
  typedef T V __attribute__((vector_size(N * sizeof(T))));                                  \
  IREES_INLINE V V##_load(const void *p) { V v; memcpy(&v, p, sizeof v); return v; }        \
  IREES_INLINE void V##_store(void *p, V v) { memcpy(p, &v, sizeof v); }                    \
  IREES_INLINE void V##_store_first(T *p, V v, int64_t n) { memcpy(p, &v, (size_t)n * sizeof(T)); } \
  IREES_INLINE V V##_load_first(const T *p, int64_t n, V rest) { memcpy(&rest, p, (size_t)n * sizeof(T)); return rest; } \
  IREES_INLINE V V##_splat(T x) { return SPLAT; } \
  IREES_INLINE V V##_step(void) { V v; for (int i = 0; i < N; i++) v[i] = (T)i; return v; }

/* x - 0 is x exactly, for -0 too, and broadcasts. */
#define IREES_VECTOR(V, T, N) IREES_VECTOR_OF(V, T, N, x - (V){0})
#define IREES_VECTOR_HALF(V, T, N) IREES_VECTOR_OF(V, T, N, IREES_LANES(V, T, N, x))

#define IREES_SELECT(V, M, m, a, b) ((V)(((M)(a) & (m)) | ((M)(b) & ~(m))))
/* Lanes of a and b by number; M is the vector of integers as wide as their lanes. */
#if defined(__clang__) || __GNUC__ >= 12
#define IREES_SHUFFLE(M, a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define IREES_SHUFFLE(M, a, b, ...) __builtin_shuffle(a, b, (M){__VA_ARGS__})
#endif
#define IREES_MAP1(V, N, f, a) __extension__({ V a_ = (a), r_; for (int i_ = 0; i_ < N; i_++) r_[i_] = f(a_[i_]); r_; })
#define IREES_MAP2(V, N, f, a, b) __extension__({ V a_ = (a), b_ = (b), r_; for (int i_ = 0; i_ < N; i_++) r_[i_] = f(a_[i_], b_[i_]); r_; })
#define IREES_FOLD(T, N, f, a) __extension__({ __auto_type a_ = (a); T r_ = a_[0]; for (int i_ = 1; i_ < N; i_++) r_ = f(r_, a_[i_]); r_; })
/* Sums halves, so that the order is a tree and not a chain. */
#define IREES_TREE(T, N, f, a) __extension__({ __auto_type a_ = (a); T t_[N]; memcpy(t_, &a_, sizeof t_); \
  for (int w_ = N / 2; w_ > 0; w_ /= 2) for (int i_ = 0; i_ < w_; i_++) t_[i_] = f(t_[i_], t_[i_ + w_]); t_[0]; })

#define IREES_CONVERT(V, x) __builtin_convertvector(x, V)
#define IREES_LITERAL(V, ...) ((V){__VA_ARGS__})
