/* Definitions of the C backend: vectors, half floats and complex numbers are native compiler types. */
#define IREES_INLINE static inline __attribute__((always_inline, unused))

typedef _Float16 irees_f16;
#if defined(__F16C__) && !defined(__AVX512FP16__) && !defined(__clang__)
/* gcc 12 makes a cast of an f16 to float and on to double one call of a library function. */
IREES_INLINE float irees_from_f16(irees_f16 x) {
  typedef short lanes __attribute__((vector_size(16)));
  lanes bits = {0};
  __builtin_memcpy(&bits, &x, sizeof x);
  return __builtin_ia32_vcvtph2ps(bits)[0];
}
#else
#define irees_from_f16(x) ((float)(x))
#endif
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

#define IREES_LIBM_COMPLEX(NAME) irees_c128 NAME(irees_c128); irees_c64 NAME##f(irees_c64);
double cabs(irees_c128), carg(irees_c128);
float cabsf(irees_c64), cargf(irees_c64);
IREES_LIBM_COMPLEX(conj) IREES_LIBM_COMPLEX(cexp) IREES_LIBM_COMPLEX(clog)
IREES_LIBM_COMPLEX(csqrt) IREES_LIBM_COMPLEX(csin) IREES_LIBM_COMPLEX(ccos) IREES_LIBM_COMPLEX(ctanh)

/* The operators of C compute products and quotients of infinities again, by annex G. PyTorch and numpy
   do not, and quotients are Smith's; those of f32 are rounded from double. */
#define IREES_COMPLEX(T, PART, NAME) \
  IREES_INLINE T irees_cmul_##NAME(T a, T b) { \
    PART re = __real__ a * __real__ b - __imag__ a * __imag__ b, im = __real__ a * __imag__ b + __imag__ a * __real__ b; \
    return irees_complex_##NAME(re, im); \
  } \
  IREES_INLINE T irees_cdiv_##NAME(T x, T y) { \
    double a = __real__ x, b = __imag__ x, c = __real__ y, d = __imag__ y; \
    if (fabs(c) >= fabs(d)) { \
      if (c == 0) return irees_complex_##NAME(a / fabs(c), b / fabs(c)); \
      double ratio = d / c, scale = 1 / (c + d * ratio); \
      return irees_complex_##NAME((a + b * ratio) * scale, (b - a * ratio) * scale); \
    } \
    double ratio = c / d, scale = 1 / (d + c * ratio); \
    return irees_complex_##NAME((a * ratio + b) * scale, (b * ratio - a) * scale); \
  }
IREES_COMPLEX(irees_c64, float, c64)
IREES_COMPLEX(irees_c128, double, c128)
IREES_INLINE irees_c128 irees_cpow_c128(irees_c128 a, irees_c128 b) { return cexp(irees_cmul_c128(b, clog(a))); }
IREES_INLINE irees_c64 irees_cpow_c64(irees_c64 a, irees_c64 b) { return (irees_c64)irees_cpow_c128((irees_c128)a, (irees_c128)b); }

#define IREES_BITCAST(T, S, x) __extension__({ S a_ = (x); T r_; memcpy(&r_, &a_, sizeof r_); r_; })
/* A product that is rounded and never contracted. An FMA with -0 has this effect, and cannot be fused
   further. clang would simplify it to a product; gcc ignores __builtin_assoc_barrier. */
#if defined(__clang__)
#define IREES_PRODUCT(FMA, ZERO, a, b) __extension__({ __auto_type p_ = (a) * (b); __asm__("" : "+m"(p_)); p_; })
#elif defined(__FMA__) || defined(__ARM_FEATURE_FMA)
#define IREES_PRODUCT(FMA, ZERO, a, b) FMA(a, b, ZERO)
#else
#define IREES_PRODUCT(FMA, ZERO, a, b) ((a) * (b))
#endif
#define IREES_POPCOUNT(x) __builtin_popcountll(x)
#define IREES_LEADING_ZEROS(x) __builtin_clzll(x)
#define IREES_TRAILING_ZEROS(x) __builtin_ctzll(x)

/* A size in bytes, a * b; more than 2^60 saturates to 2^60, which no allocation satisfies, unless a
   later dim is 0. A negative size is 2^61 and stays so. */
IREES_INLINE int64_t irees_bytes(int64_t a, int64_t b) {
  int64_t r;
  if (a < 0 || b < 0 || a >> 61 || b >> 61) return INT64_C(1) << 61;
  if (a == 0 || b == 0) return 0;
  return a >> 60 || b >> 60 || __builtin_mul_overflow(a, b, &r) || r >> 60 ? INT64_C(1) << 60 : r;
}

/* The offset after a part of `bytes` at `place`, rounded up to a line; saturates at 2^60, like sizes. */
IREES_INLINE int64_t irees_after(int64_t place, int64_t bytes, int64_t line) {
  int64_t r = place + (bytes + line - 1) / line * line;
  return r >> 60 ? INT64_C(1) << 60 : r;
}

/* --- vectors ---------------------------------------------------------------------- */

/* Broadcasts x lane by lane: 16-bit floats would be promoted to float in mixed arithmetic. */
#define IREES_LANES(V, T, N, x) __extension__({ V v_; for (int i_ = 0; i_ < N; i_++) v_[i_] = x; v_; })

/* Defines the vector type V of N lanes of T, with its unaligned loads and stores, splat and step. */
#define IREES_VECTOR_OF(V, T, N, SPLAT)                                                     \
  typedef T V __attribute__((vector_size(N * sizeof(T))));                                  \
  IREES_INLINE V V##_load(const void *p) { V v; memcpy(&v, p, sizeof v); return v; }        \
  IREES_INLINE void V##_store(void *p, V v) { memcpy(p, &v, sizeof v); }                    \
  IREES_INLINE void V##_store_first(T *p, V v, int64_t n) { memcpy(p, &v, (size_t)n * sizeof(T)); } \
  IREES_INLINE V V##_load_first(const T *p, int64_t n, V rest) { memcpy(&rest, p, (size_t)n * sizeof(T)); return rest; } \
  IREES_INLINE V V##_splat(T x) { return SPLAT; } \
  IREES_INLINE V V##_step(void) { V v; for (int i = 0; i < N; i++) v[i] = (T)i; return v; }

#if defined(__AVX512F__) && defined(__clang__)
#define v16f32_max(a, b) ((v16f32)__builtin_ia32_maxps512(a, b, 4))
#define v16f32_min(a, b) ((v16f32)__builtin_ia32_minps512(a, b, 4))
#define v8f64_max(a, b) ((v8f64)__builtin_ia32_maxpd512(a, b, 4))
#define v8f64_min(a, b) ((v8f64)__builtin_ia32_minpd512(a, b, 4))
#elif defined(__AVX512F__)
#define v16f32_max(a, b) ((v16f32)__builtin_ia32_maxps512_mask(a, b, a, (short)-1, 4))
#define v16f32_min(a, b) ((v16f32)__builtin_ia32_minps512_mask(a, b, a, (short)-1, 4))
#define v8f64_max(a, b) ((v8f64)__builtin_ia32_maxpd512_mask(a, b, a, (char)-1, 4))
#define v8f64_min(a, b) ((v8f64)__builtin_ia32_minpd512_mask(a, b, a, (char)-1, 4))
#endif
#ifdef __AVX512F__
#ifdef __AVX512DQ__
/* The range instructions order zeros but drop NaNs; a + b restores them, in lanes where a compare
   finds a NaN. */
#ifdef __clang__
#define IREES_ADD_IN_ps(m, a, b, r) __builtin_ia32_selectps_512(m, a + b, r)
#define IREES_ADD_IN_pd(m, a, b, r) __builtin_ia32_selectpd_512(m, a + b, r)
#else
#define IREES_ADD_IN_ps(m, a, b, r) __builtin_ia32_addps512_mask(a, b, r, m, 4)
#define IREES_ADD_IN_pd(m, a, b, r) __builtin_ia32_addpd512_mask(a, b, r, m, 4)
#endif
#define IREES_RANGE(V, KIND, MASK, a, b, which) __extension__({ V a_ = (a), b_ = (b);       \
  V r_ = (V)__builtin_ia32_range##KIND##512_mask(a_, b_, which, a_, (MASK)-1, 4);           \
  MASK m_ = (MASK)__builtin_ia32_cmp##KIND##512_mask(a_, b_, 3, (MASK)-1, 4);               \
  (V)IREES_ADD_IN_##KIND(m_, a_, b_, r_); })
#define v16f32_maximum(a, b) IREES_RANGE(v16f32, ps, short, a, b, 5)
#define v16f32_minimum(a, b) IREES_RANGE(v16f32, ps, short, a, b, 4)
#define v8f64_maximum(a, b) IREES_RANGE(v8f64, pd, char, a, b, 5)
#define v8f64_minimum(a, b) IREES_RANGE(v8f64, pd, char, a, b, 4)
#endif
#define v16f32_ldexp(x, n) ((v16f32)__builtin_ia32_scalefps512_mask(x, n, x, (short)-1, 4))
#define v16f32_scalef(x, n) ((v16f32)__builtin_ia32_scalefps512_mask(x, n, x, (short)-1, 4))
#define v16f32_fma(a, b, c) ((v16f32)__builtin_ia32_vfmaddps512_mask(a, b, c, (short)-1, 4))
#define v8f64_ldexp(x, n) ((v8f64)__builtin_ia32_scalefpd512_mask(x, n, x, (char)-1, 4))
#define v8f64_fma(a, b, c) ((v8f64)__builtin_ia32_vfmaddpd512_mask(a, b, c, (char)-1, 4))
#endif
#ifdef __FMA__
#define v8f32_fma(a, b, c) ((v8f32)__builtin_ia32_vfmaddps256(a, b, c))
#define v4f32_fma(a, b, c) ((v4f32)__builtin_ia32_vfmaddps(a, b, c))
#define v4f64_fma(a, b, c) ((v4f64)__builtin_ia32_vfmaddpd256(a, b, c))
#define v2f64_fma(a, b, c) ((v2f64)__builtin_ia32_vfmaddpd(a, b, c))
#endif
/* Non-temporal stores, if the address is aligned; the runtime fences them at the end of a region. */
#if defined(__clang__)
#define IREES_PAST(V, p) __builtin_nontemporal_store(v_, (V *)(p))
#define IREES_PAST_64(V, p) IREES_PAST(V, p)
#define IREES_PAST_32(V, p) IREES_PAST(V, p)
#define IREES_PAST_16(V, p) IREES_PAST(V, p)
#else
#define IREES_PAST_64(V, p) V##_store(p, v_)
#define IREES_PAST_32(V, p) V##_store(p, v_)
#define IREES_PAST_16(V, p) V##_store(p, v_)
#ifdef __AVX512F__
typedef float irees_64 __attribute__((vector_size(64)));
#undef IREES_PAST_64
#define IREES_PAST_64(V, p) __builtin_ia32_movntps512(p, (irees_64)v_)
#endif
#ifdef __AVX__
typedef float irees_32 __attribute__((vector_size(32)));
#undef IREES_PAST_32
#define IREES_PAST_32(V, p) __builtin_ia32_movntps256(p, (irees_32)v_)
#endif
#ifdef __SSE__
typedef float irees_16 __attribute__((vector_size(16)));
#undef IREES_PAST_16
#define IREES_PAST_16(V, p) __builtin_ia32_movntps(p, (irees_16)v_)
#endif
#endif
#define IREES_PREFETCH(p, write, locality) __builtin_prefetch(p, write, locality)
#define IREES_STREAM(V, N, p, v) do { V v_ = (v); void *p_ = (p); \
  if ((uintptr_t)p_ % N) V##_store(p_, v_); else IREES_PAST_##N(V, p_); } while (0)
#define IREES_STREAM_64(V, p, v) IREES_STREAM(V, 64, p, v)
#define IREES_STREAM_32(V, p, v) IREES_STREAM(V, 32, p, v)
#define IREES_STREAM_16(V, p, v) IREES_STREAM(V, 16, p, v)

#ifdef __AVX__
/* maxps returns b for zeros and NaNs. Both orders of operands agree but for the signs of zeros, which
   are combined, and for NaNs, which get all bits. */
#define IREES_EITHER(V, SUFFIX, f, op, a, b) __extension__({ V a_ = (a), b_ = (b);          \
  (V)(((V##_mask)f##SUFFIX(a_, b_) op (V##_mask)f##SUFFIX(b_, a_)) |                        \
      (V##_mask)__builtin_ia32_cmp##SUFFIX(a_, b_, 3)); })
#define v8f32_maximum(a, b) IREES_EITHER(v8f32, ps256, __builtin_ia32_max, &, a, b)
#define v8f32_minimum(a, b) IREES_EITHER(v8f32, ps256, __builtin_ia32_min, |, a, b)
#define v4f64_maximum(a, b) IREES_EITHER(v4f64, pd256, __builtin_ia32_max, &, a, b)
#define v4f64_minimum(a, b) IREES_EITHER(v4f64, pd256, __builtin_ia32_min, |, a, b)
#define v8f32_max(a, b) ((v8f32)__builtin_ia32_maxps256(a, b))
#define v8f32_min(a, b) ((v8f32)__builtin_ia32_minps256(a, b))
#endif

/* x - 0 broadcasts x exactly, including -0. */
#define IREES_VECTOR(V, T, N) IREES_VECTOR_OF(V, T, N, x - (V){0})
#define IREES_VECTOR_HALF(V, T, N) IREES_VECTOR_OF(V, T, N, IREES_LANES(V, T, N, x))

/* Returns b where a and b are unordered, like x86. The macros above override these functions. */
#define IREES_VECTOR_ORDER(V, T, N, I)                                                      \
  typedef I V##_mask __attribute__((vector_size(N * sizeof(T))));                           \
  IREES_INLINE V (V##_max)(V a, V b) { V##_mask m = a > b; return (V)((m & (V##_mask)a) | (~m & (V##_mask)b)); } \
  IREES_INLINE V (V##_min)(V a, V b) { V##_mask m = a < b; return (V)((m & (V##_mask)a) | (~m & (V##_mask)b)); } \
  /* NaN if either is NaN, and -0 < +0: the bits of equal numbers differ only in the sign. */ \
  IREES_INLINE V (V##_maximum)(V a, V b) {                                                  \
    V##_mask m = (a > b) | (a != a), e = a == b, r = (m & (V##_mask)a) | (~m & (V##_mask)b); \
    return (V)(r & (~e | (V##_mask)a));                                                     \
  }                                                                                         \
  IREES_INLINE V (V##_minimum)(V a, V b) {                                                  \
    V##_mask m = (a < b) | (a != a), e = a == b, r = (m & (V##_mask)a) | (~m & (V##_mask)b); \
    return (V)(r | (e & (V##_mask)a));                                                      \
  }
#define IREES_VECTOR_FMA(V, N, KIND) \
  IREES_INLINE V (V##_fma)(V a, V b, V c) { V r; for (int i = 0; i < N; i++) r[i] = irees_fma_##KIND(a[i], b[i], c[i]); return r; }
/* Shifts of unsigned lanes: AVX2 has no others of 64 bits. */
#define IREES_VECTOR_DOUBLE(V, T, N) IREES_VECTOR(V, T, N) IREES_VECTOR_ORDER(V, T, N, int64_t) IREES_VECTOR_FMA(V, N, f64) \
  typedef uint64_t V##_bits __attribute__((vector_size(N * sizeof(T))));                    \
  IREES_INLINE V (V##_ldexp)(V x, V n) {                                                    \
    V##_bits whole = (V##_bits)(n + (0x1.8p+52 + 2046)), half = whole >> 1;                 \
    return x * (V)(half << 52) * (V)((whole - half) << 52);                                 \
  }
/* x * 2^n for integers n from -252 to 254, with two factors, so that only the second product can round.
   The low bits of the sum are n + 2 * 127 and the shifts drop the others: each half is a biased
   exponent. */
#define IREES_VECTOR_FLOAT(V, T, N) IREES_VECTOR(V, T, N) IREES_VECTOR_ORDER(V, T, N, int32_t) IREES_VECTOR_FMA(V, N, f32) \
  IREES_INLINE V (V##_ldexp)(V x, V n) {                                                    \
    V##_mask whole = (V##_mask)(n + (0x1.8p+23f + 254)), half = whole >> 1;                 \
    return x * (V)(half << 23) * (V)((whole - half) << 23);                                 \
  }                                                                                         \
  IREES_INLINE V (V##_scalef)(V x, V n) { V r; for (int i = 0; i < N; i++) r[i] = irees_scalef(x[i], n[i]); return r; }

#define IREES_SELECT(V, M, m, a, b) ((V)(((M)(a) & (m)) | ((M)(b) & ~(m))))
/* Selects lanes of a and b by index; M is the vector of integers of the same lane width. */
#if defined(__clang__) || __GNUC__ >= 12
#define IREES_SHUFFLE(M, a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define IREES_SHUFFLE(M, a, b, ...) __builtin_shuffle(a, b, (M){__VA_ARGS__})
#endif
#define IREES_MAP1(V, N, f, a) __extension__({ V a_ = (a), r_; for (int i_ = 0; i_ < N; i_++) r_[i_] = f(a_[i_]); r_; })
#define IREES_MAP2(V, N, f, a, b) __extension__({ V a_ = (a), b_ = (b), r_; for (int i_ = 0; i_ < N; i_++) r_[i_] = f(a_[i_], b_[i_]); r_; })
#define IREES_FOLD(T, N, f, a) __extension__({ __auto_type a_ = (a); T r_ = a_[0]; for (int i_ = 1; i_ < N; i_++) r_ = f(r_, a_[i_]); r_; })
/* Looks up lanes in a table of 16 entries: one instruction with AVX-512. */
#define IREES_LOOKUP(N, V, table, n) __extension__({ __auto_type t_ = (table); __auto_type n_ = (n); V r_; \
  for (int i_ = 0; i_ < N; i_++) r_[i_] = t_[n_[i_] & 15]; r_; })
#if !defined(__AVX512F__)
#define IREES_LOOKUP_16(V, table, n) IREES_LOOKUP(16, V, table, n)
#elif defined(__clang__)
#define IREES_LOOKUP_16(V, table, n) ((V)__builtin_ia32_permvarsf512(table, n))
#else
#define IREES_LOOKUP_16(V, table, n) __builtin_shuffle(table, n)
#endif
/* Whether all lanes of a mask of N lanes are set, or any. */
#define IREES_ALL(N, x) (IREES_SIGNS_##N(x) == (1 << N) - 1)
#define IREES_ANY(N, x) (IREES_SIGNS_##N(x) != 0)
#define IREES_SIGNS_4(x) __builtin_ia32_movmskps((float __attribute__((vector_size(16))))(x))
#define IREES_SIGNS_8(x) __builtin_ia32_movmskps256((float __attribute__((vector_size(32))))(x))
#define IREES_SIGNS_16(x) __builtin_ia32_cvtd2mask512((int __attribute__((vector_size(64))))(x))

#define IREES_CONVERT(V, x) __builtin_convertvector(x, V)
#if defined(__AVX512F__) && !defined(__clang__)
/* gcc 12 converts in two halves without the builtin. */
#define irees_v8f64_of_v8f32(x) ((v8f64)__builtin_ia32_cvtps2pd512_mask(x, (v8f64){0}, (char)-1, 4))
#else
#define irees_v8f64_of_v8f32(x) IREES_CONVERT(v8f64, x)
#endif
/* Like irees_to_bf16, for every lane; U is the vector of integers of the same lane width as x. */
#define IREES_TO_BF16(U, x) __extension__({ __auto_type x_ = (x); U u_ = (U)x_, n_ = (U)(x_ != x_); \
  (((u_ + 0x7fff + ((u_ >> 16) & 1)) & ~n_) | ((u_ | 0x400000) & n_)) >> 16; })
#define IREES_LITERAL(V, ...) ((V){__VA_ARGS__})
