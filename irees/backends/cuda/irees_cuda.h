/* Definitions of the CUDA backend: vectors, half floats and complex numbers are structs with the
   operators that printed expressions use. The same text compiles with NVRTC, and with a C++17 compiler
   if IREES_EMULATED is defined; then emulation.h before it emulates the device. */
#ifndef IREES_EMULATED
typedef signed char int8_t;
typedef short int16_t;
typedef int int32_t;
typedef long long int64_t;
typedef unsigned char uint8_t;
typedef unsigned short uint16_t;
typedef unsigned int uint32_t;
typedef unsigned long long uint64_t;
#define INT8_MIN (-128)
#define INT8_MAX 127
#define INT16_MIN (-32768)
#define INT16_MAX 32767
#define INT32_MIN (-2147483647 - 1)
#define INT32_MAX 2147483647
#define INT64_MIN (-9223372036854775807LL - 1)
#define INT64_MAX 9223372036854775807LL
#define UINT8_MAX 255
#define UINT16_MAX 65535
#define UINT32_MAX 4294967295U
#define UINT64_MAX 18446744073709551615ULL
#define INT64_C(x) x##LL
#define UINT16_C(x) x
#define UINT32_C(x) x##U
#define UINT64_C(x) x##ULL
#define NULL 0

#define IREES_INLINE static __device__ __forceinline__
#define IREES_METHOD __device__ __forceinline__
#define IREES_UNROLL _Pragma("unroll")
#define IREES_PREFETCH(p, write, locality) ((void)(p))
/* Shared memory of a block: static up to 48 KiB, so that ptxas reports it. */
#define IREES_SHARED_STATIC(name, bytes, alignment) __shared__ __align__(alignment) unsigned char name[bytes]
#define IREES_SHARED_DYNAMIC(name, alignment) extern __shared__ __align__(alignment) unsigned char name[]
#define IREES_POPCOUNT(x) __popcll((long long)(x))
#define IREES_LEADING_ZEROS(x) __clzll((long long)(x))
#define IREES_TRAILING_ZEROS(x) (__ffsll((long long)(x)) - 1)

template <typename V> IREES_INLINE V irees_read(const void *p) { return *(const V *)p; }
template <typename V> IREES_INLINE void irees_write(void *p, V v) { *(V *)p = v; }

template <typename T> IREES_INLINE T irees_shuffle_xor(T x, int mask) {
  T r;
  if constexpr (sizeof(T) == 8) {
    unsigned long long u;
    memcpy(&u, &x, 8);
    u = __shfl_xor_sync(0xffffffffu, u, mask);
    memcpy(&r, &u, 8);
  } else {
    unsigned u = 0;
    memcpy(&u, &x, sizeof x);
    u = __shfl_xor_sync(0xffffffffu, u, mask);
    memcpy(&r, &u, sizeof r);
  }
  return r;
}

template <typename T> IREES_INLINE int32_t irees_match_any(T x) { return (int32_t)__match_any_sync(0xffffffffu, x); }
/* The same for values that differ only in their low bits: a ballot per bit, or its complement. The bits
   are extracted in PTX, because the compiler takes three instructions for each where one would do; in
   groups, because ptxas moves all bits of a word into predicates at once, and may run out of them. */
template <int BITS> IREES_INLINE int32_t irees_match_bits(int32_t x) {
  constexpr int GROUP = 3;
  uint32_t same = 0xffffffffu, part = 0, bit = 0;
  IREES_UNROLL for (int i = 0; i < BITS; i++) {
    if (i % GROUP == 0) asm volatile("shr.u32 %0, %1, %2;" : "=r"(part) : "r"(x), "r"(i));
    asm("and.b32 %0, %1, %2;" : "=r"(bit) : "r"(part), "r"(1 << i % GROUP));
    same &= __ballot_sync(0xffffffffu, bit != 0) ^ (bit ? 0u : 0xffffffffu);
  }
  return (int32_t)same;
}

IREES_INLINE uint16_t irees_half_bits(float x) {
  uint16_t u;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(u) : "f"(x));
  return u;
}
IREES_INLINE uint16_t irees_half_bits(double x) {
  uint16_t u;
  asm("cvt.rn.f16.f64 %0, %1;" : "=h"(u) : "d"(x));
  return u;
}
IREES_INLINE float irees_half_value(uint16_t u) {
  float x;
  asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(u));
  return x;
}
/* 2^x within 2 ulp; results below 2^-126 are 0 (PTX ISA, "ex2"). */
IREES_INLINE float irees_exp2_approx(float x) {
  float r;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x));
  return r;
}
IREES_INLINE float irees_rsqrt_approx(float x) { return rsqrtf(x); }
/* Like irees_maxnum_f32 and irees_minnum_f32, but for 0 and -0 either may result: one instruction. */
IREES_INLINE float irees_max_any_zero(float a, float b) { return fmaxf(a, b); }
IREES_INLINE float irees_min_any_zero(float a, float b) { return fminf(a, b); }
#if __CUDA_ARCH__ >= 800
/* Rounds to nearest even, like irees_to_bf16 in irees_support.h; NaN gives 0x7fff (PTX ISA, "cvt"). */
#define IREES_HARDWARE_BF16
IREES_INLINE uint16_t irees_to_bf16(float x) {
  uint16_t u;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(u) : "f"(x));
  return u;
}
#endif
#endif

template <typename T, typename S> IREES_INLINE T irees_bitcast(S x) {
  static_assert(sizeof(T) == sizeof(S), "a bit cast keeps the size");
  T r;
  memcpy(&r, &x, sizeof r);
  return r;
}
#define IREES_BITCAST(T, S, x) irees_bitcast<T>((S)(x))

/* --- half floats: stored in 16 bits, computed in f32 -------------------------------- */

struct irees_f16 {
  uint16_t bits;
  irees_f16() = default;
  IREES_METHOD explicit irees_f16(double x) : bits(irees_half_bits(x)) {}
  template <typename T> IREES_METHOD explicit irees_f16(T x) : bits(irees_half_bits((float)x)) {}
  IREES_METHOD operator float() const { return irees_half_value(bits); }
};
#define irees_from_f16(x) ((float)(x))

/* --- complex numbers ------------------------------------------------------------------ */

template <typename T> struct irees_complex {
  T re, im;
};
typedef irees_complex<float> irees_c64;
typedef irees_complex<double> irees_c128;
#define IREES_REAL(z) ((z).re)
#define IREES_IMAGINARY(z) ((z).im)
IREES_INLINE irees_c64 irees_complex_c64(float re, float im) { return irees_c64{re, im}; }
IREES_INLINE irees_c128 irees_complex_c128(double re, double im) { return irees_c128{re, im}; }

template <typename T> IREES_INLINE irees_complex<T> operator+(irees_complex<T> a, irees_complex<T> b) { return {a.re + b.re, a.im + b.im}; }
template <typename T> IREES_INLINE irees_complex<T> operator-(irees_complex<T> a, irees_complex<T> b) { return {a.re - b.re, a.im - b.im}; }
template <typename T> IREES_INLINE irees_complex<T> operator-(irees_complex<T> a) { return {-a.re, -a.im}; }
template <typename T> IREES_INLINE irees_complex<T> operator*(irees_complex<T> a, irees_complex<T> b) {
  return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}
/* Smith's algorithm: scales by the larger part of the divisor, so that squares do not overflow. */
template <typename T> IREES_INLINE irees_complex<T> operator/(irees_complex<T> a, irees_complex<T> b) {
  if (fabs(b.re) >= fabs(b.im)) {
    if (b.re == 0) return {a.re / (T)fabs(b.re), a.im / (T)fabs(b.re)};
    T ratio = b.im / b.re, scale = 1 / (b.re + b.im * ratio);
    return {(a.re + a.im * ratio) * scale, (a.im - a.re * ratio) * scale};
  }
  T ratio = b.re / b.im, scale = 1 / (b.re * ratio + b.im);
  return {(a.re * ratio + a.im) * scale, (a.im * ratio - a.re) * scale};
}
template <typename T> IREES_INLINE bool operator==(irees_complex<T> a, irees_complex<T> b) { return a.re == b.re && a.im == b.im; }
template <typename T> IREES_INLINE bool operator!=(irees_complex<T> a, irees_complex<T> b) { return !(a == b); }
template <typename T> IREES_INLINE T irees_cabs(irees_complex<T> z) { return (T)hypot(z.re, z.im); }
template <typename T> IREES_INLINE T irees_carg(irees_complex<T> z) { return (T)atan2(z.im, z.re); }
template <typename T> IREES_INLINE irees_complex<T> irees_conj(irees_complex<T> z) { return {z.re, -z.im}; }
/* Infinities, NaN and zeros have the results of C99, annex G. */
template <typename T> IREES_INLINE irees_complex<T> irees_cexp(irees_complex<T> z) {
  T r = (T)exp(z.re);
  if (z.im == 0) return {r, z.im};
  if (isinf(z.re) && !isfinite(z.im)) return z.re < 0 ? irees_complex<T>{0, 0} : irees_complex<T>{r, z.im - z.im};
  return {r * (T)cos(z.im), r * (T)sin(z.im)};
}
template <typename T> IREES_INLINE irees_complex<T> irees_clog(irees_complex<T> z) { return {(T)log(irees_cabs(z)), irees_carg(z)}; }
template <typename T> IREES_INLINE irees_complex<T> irees_csqrt(irees_complex<T> z) {
  if (z.re == 0 && z.im == 0) return {0, z.im};
  if (isinf(z.im)) return {(T)fabs(z.im), z.im};
  if (isinf(z.re)) {
    T none = z.im - z.im;
    return z.re > 0 ? irees_complex<T>{z.re, none} : irees_complex<T>{none, (T)copysign(z.re, z.im)};
  }
  T t = (T)sqrt((fabs((double)z.re) + hypot((double)z.re, (double)z.im)) / 2);
  return z.re >= 0 ? irees_complex<T>{t, z.im / (2 * t)} : irees_complex<T>{(T)fabs(z.im) / (2 * t), (T)copysign(t, z.im)};
}
template <typename T> IREES_INLINE irees_complex<T> irees_csin(irees_complex<T> z) {
  T x = z.re, y = z.im;
  if (!isfinite(x) && (y == 0 || isinf(y))) return {x - x, y == 0 ? y : (T)fabs(y)};
  return {x == 0 ? x : (T)(sin(x) * cosh(y)), (T)(cos(x) * sinh(y))};
}
template <typename T> IREES_INLINE irees_complex<T> irees_ccos(irees_complex<T> z) {
  T x = z.re, y = z.im;
  if (!isfinite(x) && y == 0) return {x - x, 0};
  if (!isfinite(x) && isinf(y)) return {(T)fabs(y), x - x};
  return {(T)(cos(x) * cosh(y)), x == 0 ? (T)0 : (T)(-sin(x) * sinh(y))};
}
/* W. Kahan, Branch cuts for complex elementary functions, 1987. */
template <typename T> IREES_INLINE irees_complex<T> irees_ctanh(irees_complex<T> z) {
  T x = z.re, y = z.im;
  if (isnan(x)) return {x, y == 0 ? y : x};
  if (!isfinite(y) && !isinf(x)) return {x == 0 ? x : y - y, y - y};
  if (fabs(x) > 22) return {(T)copysign((T)1, x), isinf(x) ? (T)0 : (T)(4 * sin(y) * cos(y) * exp(-2 * fabs(x)))};
  double t = tan((double)y), b = 1 + t * t, s = sinh((double)x), d = 1 + b * s * s;
  return {(T)(b * sqrt(1 + s * s) * s / d), (T)(t / d)};
}
/* exp(b log a), in double: the product may be large. */
template <typename T> IREES_INLINE irees_complex<T> irees_cpow(irees_complex<T> a, irees_complex<T> b) {
  irees_c128 product = irees_c128{b.re, b.im} * irees_clog(irees_c128{a.re, a.im});
  irees_c128 power = irees_cexp(product);
  return {(T)power.re, (T)power.im};
}
#define irees_cabs_c64 irees_cabs
#define irees_cabs_c128 irees_cabs
#define irees_carg_c64 irees_carg
#define irees_carg_c128 irees_carg
#define irees_conj_c64 irees_conj
#define irees_conj_c128 irees_conj
#define irees_cexp_c64 irees_cexp
#define irees_cexp_c128 irees_cexp
#define irees_clog_c64 irees_clog
#define irees_clog_c128 irees_clog
#define irees_csqrt_c64 irees_csqrt
#define irees_csqrt_c128 irees_csqrt
#define irees_csin_c64 irees_csin
#define irees_csin_c128 irees_csin
#define irees_ccos_c64 irees_ccos
#define irees_ccos_c128 irees_ccos
#define irees_ctanh_c64 irees_ctanh
#define irees_ctanh_c128 irees_ctanh
#define irees_cmul_c64(a, b) ((a) * (b))
#define irees_cmul_c128(a, b) ((a) * (b))
#define irees_cdiv_c64(a, b) ((a) / (b))
#define irees_cdiv_c128(a, b) ((a) / (b))
#define irees_cpow_c64 irees_cpow
#define irees_cpow_c128 irees_cpow

/* --- vectors: comparisons give lanes of 0 and -1, like GNU vectors ------------------------ */

template <int B> struct irees_lane;
template <> struct irees_lane<1> { typedef int8_t type; };
template <> struct irees_lane<2> { typedef int16_t type; };
template <> struct irees_lane<4> { typedef int32_t type; };
template <> struct irees_lane<8> { typedef int64_t type; };

template <typename T, int N> struct alignas(sizeof(T) * N < 16 ? sizeof(T) * N : 16) irees_vector {
  typedef T element;
  T v[N];
  irees_vector() = default;
  template <typename... U> static IREES_METHOD irees_vector of(U... x) { irees_vector r; T t[] = {(T)x...}; IREES_UNROLL for (int i = 0; i < N; i++) r.v[i] = t[i]; return r; }
  template <typename U, int M> IREES_METHOD explicit irees_vector(irees_vector<U, M> x) {
    static_assert(sizeof(U) * M == sizeof(T) * N, "a cast of vectors keeps the bits");
    memcpy(v, x.v, sizeof v);
  }
  IREES_METHOD T &operator[](int64_t i) { return v[i]; }
  IREES_METHOD T operator[](int64_t i) const { return v[i]; }
};

/* A product that is rounded and never contracted into an FMA. */
#ifdef IREES_EMULATED
#define IREES_PRODUCT(FMA, ZERO, a, b) ((a) * (b))
#else
IREES_INLINE float irees_product(float x) { asm("" : "+f"(x)); return x; }
IREES_INLINE double irees_product(double x) { asm("" : "+d"(x)); return x; }
template <typename T, int N> IREES_INLINE irees_vector<T, N> irees_product(irees_vector<T, N> x) {
  IREES_UNROLL for (int i = 0; i < N; i++) x.v[i] = irees_product(x.v[i]);
  return x;
}
#define IREES_PRODUCT(FMA, ZERO, a, b) irees_product((a) * (b))
#endif

#define IREES_EACH(x) IREES_UNROLL for (int i = 0; i < N; i++) r.v[i] = x; return r;
#define IREES_BINARY(op) \
  template <typename T, int N> IREES_INLINE irees_vector<T, N> operator op(irees_vector<T, N> a, irees_vector<T, N> b) { irees_vector<T, N> r; IREES_EACH((T)(a.v[i] op b.v[i])) } \
  template <typename T, int N> IREES_INLINE irees_vector<T, N> operator op(irees_vector<T, N> a, int b) { irees_vector<T, N> r; IREES_EACH((T)(a.v[i] op (T)b)) }
IREES_BINARY(+) IREES_BINARY(-) IREES_BINARY(*) IREES_BINARY(/) IREES_BINARY(&) IREES_BINARY(|) IREES_BINARY(^) IREES_BINARY(<<)
#define IREES_COMPARISON(op) \
  template <typename T, int N> IREES_INLINE irees_vector<typename irees_lane<sizeof(T)>::type, N> operator op(irees_vector<T, N> a, irees_vector<T, N> b) { irees_vector<typename irees_lane<sizeof(T)>::type, N> r; IREES_EACH(a.v[i] op b.v[i] ? -1 : 0) } \
  template <typename T, int N> IREES_INLINE irees_vector<typename irees_lane<sizeof(T)>::type, N> operator op(irees_vector<T, N> a, int b) { irees_vector<typename irees_lane<sizeof(T)>::type, N> r; IREES_EACH(a.v[i] op (T)b ? -1 : 0) }
IREES_COMPARISON(==) IREES_COMPARISON(!=) IREES_COMPARISON(<) IREES_COMPARISON(<=) IREES_COMPARISON(>) IREES_COMPARISON(>=)
template <typename T, int N> IREES_INLINE irees_vector<T, N> operator-(irees_vector<T, N> a) { irees_vector<T, N> r; IREES_EACH((T)(-a.v[i])) }
template <typename T, int N> IREES_INLINE irees_vector<T, N> operator~(irees_vector<T, N> a) { irees_vector<T, N> r; IREES_EACH((T)(~a.v[i])) }
template <typename R, typename T, int N> IREES_INLINE irees_vector<R, N> irees_convert(irees_vector<T, N> a) { irees_vector<R, N> r; IREES_EACH((R)a.v[i]) }
template <typename F, typename T, int N> IREES_INLINE irees_vector<T, N> irees_map(F f, irees_vector<T, N> a) { irees_vector<T, N> r; IREES_EACH((T)f(a.v[i])) }
template <typename F, typename T, int N> IREES_INLINE irees_vector<T, N> irees_map(F f, irees_vector<T, N> a, irees_vector<T, N> b) { irees_vector<T, N> r; IREES_EACH((T)f(a.v[i], b.v[i])) }
template <typename T, typename F, typename S, int N> IREES_INLINE T irees_tree(F f, irees_vector<S, N> a) {
  T t[N];
  IREES_UNROLL for (int i = 0; i < N; i++) t[i] = (T)a.v[i];
  IREES_UNROLL for (int w = N / 2; w > 0; w /= 2) IREES_UNROLL for (int i = 0; i < w; i++) t[i] = f(t[i], t[i + w]);
  return t[0];
}
template <int... I, typename T, int N> IREES_INLINE irees_vector<T, N> irees_shuffled(irees_vector<T, N> a, irees_vector<T, N> b) {
  return irees_vector<T, N>::of((I < N ? a.v[I % N] : b.v[I % N])...);
}
#ifndef IREES_EMULATED
/* Four of eight bytes: one instruction (PRMT), and not the shifts and masks that NVRTC finds itself. */
template <int i, int j, int k, int l> IREES_INLINE irees_vector<int8_t, 4> irees_shuffled(irees_vector<int8_t, 4> a, irees_vector<int8_t, 4> b) {
  unsigned x, y;
  memcpy(&x, &a, 4);
  memcpy(&y, &b, 4);
  x = __byte_perm(x, y, i | j << 4 | k << 8 | l << 12);
  irees_vector<int8_t, 4> r;
  memcpy((void *)&r, &x, 4);
  return r;
}
#endif

#define IREES_VECTOR(V, T, N)                                                                  \
  typedef irees_vector<T, N> V;                                                                \
  IREES_INLINE V V##_load(const void *p) { return irees_read<V>(p); }                          \
  IREES_INLINE void V##_store(void *p, V v) { irees_write(p, v); }                             \
  IREES_INLINE V V##_splat(T x) { V r; IREES_UNROLL for (int i = 0; i < N; i++) r.v[i] = x; return r; } \
  IREES_INLINE V V##_step(void) { V r; IREES_UNROLL for (int i = 0; i < N; i++) r.v[i] = (T)i; return r; }
#define IREES_VECTOR_HALF IREES_VECTOR
#define IREES_VECTOR_BOTH(V, N, NAME, F) \
  IREES_INLINE V V##_##NAME(V a, V b) { V r; IREES_UNROLL for (int i = 0; i < N; i++) r.v[i] = F(a.v[i], b.v[i]); return r; }
#define IREES_VECTOR_ORDER(V, T, N, KIND)                                                      \
  IREES_VECTOR(V, T, N) IREES_VECTOR_BOTH(V, N, max, IREES_OP_max) IREES_VECTOR_BOTH(V, N, min, IREES_OP_min) \
  IREES_VECTOR_BOTH(V, N, maximum, irees_maximum_##KIND) IREES_VECTOR_BOTH(V, N, minimum, irees_minimum_##KIND) \
  IREES_INLINE V V##_fma(V a, V b, V c) { V r; IREES_UNROLL for (int i = 0; i < N; i++) r.v[i] = irees_fma_##KIND(a.v[i], b.v[i], c.v[i]); return r; }
#define IREES_VECTOR_DOUBLE(V, T, N) IREES_VECTOR_ORDER(V, T, N, f64) IREES_VECTOR_BOTH(V, N, ldexp, irees_ldexp_f64)
#define IREES_VECTOR_FLOAT(V, T, N) IREES_VECTOR_ORDER(V, T, N, f32) IREES_VECTOR_BOTH(V, N, ldexp, irees_ldexp)
#define IREES_SELECT(V, M, m, a, b) ((V)(((M)(a) & (M)(m)) | ((M)(b) & ~(M)(m))))
#define IREES_MAP1(V, N, f, a) irees_map([](auto x_) { return f(x_); }, a)
#define IREES_MAP2(V, N, f, a, b) irees_map([](auto x_, auto y_) { return f(x_, y_); }, a, b)
#define IREES_TREE(T, N, f, a) irees_tree<T>([](T x_, T y_) -> T { return f(x_, y_); }, a)
#define IREES_ALL(N, x) (IREES_TREE(int32_t, N, IREES_OP_and, x) != 0)
#define IREES_ANY(N, x) (IREES_TREE(int32_t, N, IREES_OP_or, x) != 0)
#define IREES_CONVERT(V, x) irees_convert<V::element>(x)
#define irees_v8f64_of_v8f32(x) IREES_CONVERT(v8f64, x)
#define IREES_SHUFFLE(M, a, b, ...) irees_shuffled<__VA_ARGS__>(a, b)
#define IREES_LITERAL(V, ...) (V::of(__VA_ARGS__))

/* Converts two numbers to halves, the first in the low bits: one instruction since sm_80. */
#if defined IREES_EMULATED || __CUDA_ARCH__ < 800
template <typename V, typename T> IREES_INLINE V irees_pair_f16(irees_vector<T, 2> x) { return irees_convert<irees_f16>(x); }
IREES_INLINE uint16_t irees_to_bf16(float x); /* irees_support.h */
template <typename V, typename T> IREES_INLINE V irees_pair_bf16(irees_vector<T, 2> x) { return V::of(irees_to_bf16(x.v[0]), irees_to_bf16(x.v[1])); }
#else
#define IREES_PAIR(NAME)                                                                       \
  template <typename V, typename T> IREES_INLINE V irees_pair_##NAME(irees_vector<T, 2> x) {   \
    uint32_t u;                                                                                \
    asm("cvt.rn." #NAME "x2.f32 %0, %1, %2;" : "=r"(u) : "f"(x.v[1]), "f"(x.v[0]));            \
    V r;                                                                                       \
    memcpy((void *)&r, &u, sizeof r);                                                          \
    return r;                                                                                  \
  }
IREES_PAIR(f16)
IREES_PAIR(bf16)
#endif

/* --- tiles in shared memory --------------------------------------------------------------- */

/* Asynchronous copies of `size` bytes: the first `count` are read, the rest is zero-filled. */
#ifdef IREES_EMULATED
template <int size> IREES_INLINE void irees_copy_async(void *to, const void *from, int64_t count) {
  irees_emulated_copy(to, from, size, (int32_t)count);
}
IREES_INLINE void irees_copies_end(void) { irees_emulated_copies_end(); }
template <int groups> IREES_INLINE void irees_copies_wait(void) { irees_emulated_copies_wait(groups); }
#else
template <int size> IREES_INLINE void irees_copy_async(void *to, const void *from, int64_t count) {
  const unsigned place = (unsigned)__cvta_generic_to_shared(to);
  if constexpr (size == 16)
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(place), "l"(from), "r"((int)count) : "memory");
  else
    asm volatile("cp.async.ca.shared.global [%0], [%1], %3, %2;" ::"r"(place), "l"(from), "r"((int)count), "n"(size) : "memory");
}
IREES_INLINE void irees_copies_end(void) { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int groups> IREES_INLINE void irees_copies_wait(void) {
  asm volatile("cp.async.wait_group %0;" ::"n"(groups) : "memory");
}
#endif

/* Loads four 8 x 8 matrices of 16-bit elements. Lane l passes the address of row l % 8 of matrix l / 8.
   From each matrix it gets word l % 4 of row l / 4 or, transposed, two adjacent elements of column l / 4
   (PTX ISA, "ldmatrix"). */
#ifdef IREES_EMULATED
template <typename V, bool turned> IREES_INLINE irees_vector<V, 4> irees_ldmatrix(const void *row) {
  uint64_t rows[32] = {0};
  irees_emulated_gather((uint64_t)(uintptr_t)row, rows);
  const uint32_t lane = threadIdx.x % 32;
  irees_vector<V, 4> r;
  IREES_UNROLL for (uint32_t i = 0; i < 4; i++) {
    uint16_t pair[2];
    for (uint32_t j = 0; j < 2; j++) {
      const uint32_t y = turned ? lane % 4 * 2 + j : lane / 4, x = turned ? lane / 4 : lane % 4 * 2 + j;
      const char *from = (const char *)(uintptr_t)rows[i * 8 + y];
      irees_emulated_aligned(from, 16);
      memcpy(&pair[j], from + 2 * x, 2);
    }
    memcpy((void *)&r.v[i], pair, 4);
  }
  return r;
}
#else
template <typename V, bool turned> IREES_INLINE irees_vector<V, 4> irees_ldmatrix(const void *row) {
  const unsigned place = (unsigned)__cvta_generic_to_shared(row);
  unsigned u[4];
  if constexpr (turned)
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];" : "=r"(u[0]), "=r"(u[1]), "=r"(u[2]), "=r"(u[3]) : "r"(place) : "memory");
  else
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];" : "=r"(u[0]), "=r"(u[1]), "=r"(u[2]), "=r"(u[3]) : "r"(place) : "memory");
  irees_vector<V, 4> r;
  IREES_UNROLL for (int i = 0; i < 4; i++) memcpy((void *)&r.v[i], &u[i], 4);
  return r;
}
#endif

/* --- warp-level matrix products: 16 rows of 32 bytes times 8 columns ---------------------------- */

/* A word is two halves, four bytes or one f32. Fragments of lane l (PTX ISA, "mma.m16n8k16",
   "mma.m16n8k32" and "mma.m16n8k8"):
   - A, a0 to a3: word l % 4 of rows l / 4 and l / 4 + 8, then word l % 4 + 4 of the same rows;
   - B, b0 and b1: words l % 4 and l % 4 + 4 of column l / 4;
   - accumulators: rows l / 4 and l / 4 + 8 of columns 2 * (l % 4) and 2 * (l % 4) + 1.
   An f32 is rounded to tf32 first (10 bits of fraction, ties away from zero), because the instruction
   truncates. */
#ifdef IREES_EMULATED
IREES_INLINE float irees_wide(irees_f16 x) { return (float)x; }
IREES_INLINE float irees_wide(uint16_t x) {
  uint32_t bits = (uint32_t)x << 16;
  return irees_bitcast<float>(bits);
}
IREES_INLINE uint32_t irees_wide(int8_t x) { return (uint32_t)(int32_t)x; }
IREES_INLINE float irees_wide(float x) {
  const uint32_t bits = irees_bitcast<uint32_t>(x);
  return (bits & 0x7fffffff) < 0x7f800000 ? irees_bitcast<float>((bits + 0x1000) & 0xffffe000) : x;
}
template <typename V, typename T> IREES_INLINE irees_vector<T, 4> irees_mma(V a0, V a1, V a2, V a3, V b0, V b1, irees_vector<T, 4> c) {
  const V mine[6] = {a0, a1, a2, a3, b0, b1};
  const uint32_t word = 4 / sizeof(mine[0].v[0]);
  uint64_t all[32] = {0};
  irees_emulated_gather((uint64_t)(uintptr_t)mine, all);
  uint32_t lane = threadIdx.x % 32;
  for (uint32_t i = 0; i < 4; i++) {
    uint32_t row = lane / 4 + i / 2 * 8, column = lane % 4 * 2 + i % 2;
    for (uint32_t k = 0; k < 8 * word; k++) {
      const V *left = (const V *)(uintptr_t)all[row % 8 * 4 + k / word % 4];
      const V *right = (const V *)(uintptr_t)all[column * 4 + k / word % 4];
      c.v[i] += irees_wide(left[row / 8 + k / word / 4 * 2].v[k % word]) * irees_wide(right[4 + k / word / 4].v[k % word]);
    }
  }
  irees_emulated_gather(0, all); /* keeps `mine` alive until all lanes have read it */
  return c;
}
#define irees_mma_f16 irees_mma
#define irees_mma_bf16 irees_mma
#define irees_mma_i8 irees_mma
#define irees_mma_f32 irees_mma
#else
template <typename V> IREES_INLINE uint32_t irees_word(V x) {
  uint32_t u;
  memcpy(&u, &x, sizeof u);
  return u;
}
#define IREES_MMA_ASM(shape, kinds, A, B)                                                      \
  asm volatile("mma.sync.aligned." shape ".row.col.f32." kinds ".f32 {%0,%1,%2,%3}, " A ", " B ", {%0,%1,%2,%3};" \
      : "+f"(c.v[0]), "+f"(c.v[1]), "+f"(c.v[2]), "+f"(c.v[3])
template <typename V> IREES_INLINE irees_vector<float, 4> irees_mma_f16(V a0, V a1, V a2, V a3, V b0, V b1, irees_vector<float, 4> c) {
#if __CUDA_ARCH__ >= 800
  IREES_MMA_ASM("m16n8k16", "f16.f16", "{%4,%5,%6,%7}", "{%8,%9}")
      : "r"(irees_word(a0)), "r"(irees_word(a1)), "r"(irees_word(a2)), "r"(irees_word(a3)), "r"(irees_word(b0)), "r"(irees_word(b1)));
#else
  IREES_MMA_ASM("m16n8k8", "f16.f16", "{%4,%5}", "{%6}") : "r"(irees_word(a0)), "r"(irees_word(a1)), "r"(irees_word(b0)));
  IREES_MMA_ASM("m16n8k8", "f16.f16", "{%4,%5}", "{%6}") : "r"(irees_word(a2)), "r"(irees_word(a3)), "r"(irees_word(b1)));
#endif
  return c;
}
#if __CUDA_ARCH__ >= 800
template <typename V> IREES_INLINE irees_vector<float, 4> irees_mma_bf16(V a0, V a1, V a2, V a3, V b0, V b1, irees_vector<float, 4> c) {
  IREES_MMA_ASM("m16n8k16", "bf16.bf16", "{%4,%5,%6,%7}", "{%8,%9}")
      : "r"(irees_word(a0)), "r"(irees_word(a1)), "r"(irees_word(a2)), "r"(irees_word(a3)), "r"(irees_word(b0)), "r"(irees_word(b1)));
  return c;
}
/* Not volatile, so that a word used in several products is rounded once. */
template <typename V> IREES_INLINE uint32_t irees_tf32(V x) {
  uint32_t u;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(u) : "f"(x.v[0]));
  return u;
}
template <typename V> IREES_INLINE irees_vector<float, 4> irees_mma_f32(V a0, V a1, V a2, V a3, V b0, V b1, irees_vector<float, 4> c) {
  IREES_MMA_ASM("m16n8k8", "tf32.tf32", "{%4,%5,%6,%7}", "{%8,%9}")
      : "r"(irees_tf32(a0)), "r"(irees_tf32(a1)), "r"(irees_tf32(a2)), "r"(irees_tf32(a3)), "r"(irees_tf32(b0)), "r"(irees_tf32(b1)));
  return c;
}
template <typename V> IREES_INLINE irees_vector<int32_t, 4> irees_mma_i8(V a0, V a1, V a2, V a3, V b0, V b1, irees_vector<int32_t, 4> c) {
  asm volatile("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+r"(c.v[0]), "+r"(c.v[1]), "+r"(c.v[2]), "+r"(c.v[3])
      : "r"(irees_word(a0)), "r"(irees_word(a1)), "r"(irees_word(a2)), "r"(irees_word(a3)), "r"(irees_word(b0)), "r"(irees_word(b1)));
  return c;
}
#else
/* The first instructions for bytes (sm_75) multiply 8 x 16 by 16 x 8. */
template <typename V> IREES_INLINE irees_vector<int32_t, 4> irees_mma_i8(V a0, V a1, V a2, V a3, V b0, V b1, irees_vector<int32_t, 4> c) {
  const uint32_t a[4] = {irees_word(a0), irees_word(a1), irees_word(a2), irees_word(a3)}, b[2] = {irees_word(b0), irees_word(b1)};
  IREES_UNROLL for (int i = 0; i < 4; i++)
    asm volatile("mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32 {%0,%1}, {%2}, {%3}, {%0,%1};"
        : "+r"(c.v[i % 2 * 2]), "+r"(c.v[i % 2 * 2 + 1]) : "r"(a[i]), "r"(b[i / 2]));
  return c;
}
#endif
#endif
