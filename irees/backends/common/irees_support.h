/* Arithmetic that is defined for every input, in the common subset of C and CUDA C++. */

#define IREES_OP_add(a, b) ((a) + (b))
#define IREES_OP_mul(a, b) ((a) * (b))
#define IREES_OP_and(a, b) ((a) & (b))
#define IREES_OP_or(a, b) ((a) | (b))
#define IREES_OP_xor(a, b) ((a) ^ (b))
#define IREES_OP_max(a, b) ((a) > (b) ? (a) : (b))
#define IREES_OP_min(a, b) ((a) < (b) ? (a) : (b))

/* --- integers --------------------------------------------------------------------- */

/* Division by zero gives all ones and the dividend as remainder; MIN / -1 wraps (RISC-V). */
#define IREES_DIVISION(S, U, NAME)                                                          \
  IREES_INLINE S irees_divs_##NAME(S a, S b) { return b == 0 ? (S)-1 : b == -1 ? (S)(0 - (U)a) : (S)(a / b); } \
  IREES_INLINE S irees_rems_##NAME(S a, S b) { return b == 0 ? a : b == -1 ? 0 : (S)(a % b); } \
  IREES_INLINE S irees_divu_##NAME(S a, S b) { return b == 0 ? (S)-1 : (S)((U)a / (U)b); }  \
  IREES_INLINE S irees_remu_##NAME(S a, S b) { return b == 0 ? a : (S)((U)a % (U)b); }      \
  IREES_INLINE S irees_floordiv_##NAME(S a, S b) { S q = irees_divs_##NAME(a, b); return b != 0 && b != -1 && a % b != 0 && ((a < 0) != (b < 0)) ? (S)(q - 1) : q; } \
  IREES_INLINE S irees_ceildiv_##NAME(S a, S b) { S q = irees_divs_##NAME(a, b); return b != 0 && b != -1 && a % b != 0 && ((a < 0) == (b < 0)) ? (S)(q + 1) : q; } \
  IREES_INLINE S irees_ceildivu_##NAME(S a, S b) { return b == 0 ? (S)-1 : (U)a == 0 ? 0 : (S)(((U)a - 1) / (U)b + 1); } \
  IREES_INLINE S irees_shl_##NAME(S a, S b) { return (U)b >= sizeof(S) * 8 ? 0 : (S)((U)a << b); } \
  IREES_INLINE S irees_shrs_##NAME(S a, S b) { return (U)b >= sizeof(S) * 8 ? (S)(a < 0 ? -1 : 0) : (S)(a >> b); } \
  IREES_INLINE S irees_shru_##NAME(S a, S b) { return (U)b >= sizeof(S) * 8 ? 0 : (S)((U)a >> b); }
IREES_DIVISION(int8_t, uint8_t, i8)
IREES_DIVISION(int16_t, uint16_t, i16)
IREES_DIVISION(int32_t, uint32_t, i32)
IREES_DIVISION(int64_t, uint64_t, i64)

/* Out of range saturates, NaN gives 0. */
#define IREES_FROM_FLOAT(NAME, T, LO, HI, LIMIT) \
  IREES_INLINE T NAME(double x) { return x > (double)(LO) && x < LIMIT ? (T)x : x != x ? 0 : x <= (double)(LO) ? (T)(LO) : (T)(HI); }
IREES_FROM_FLOAT(irees_fptosi_i8, int8_t, INT8_MIN, INT8_MAX, 127.0)
IREES_FROM_FLOAT(irees_fptosi_i16, int16_t, INT16_MIN, INT16_MAX, 32767.0)
IREES_FROM_FLOAT(irees_fptosi_i32, int32_t, INT32_MIN, INT32_MAX, 2147483647.0)
IREES_FROM_FLOAT(irees_fptosi_i64, int64_t, INT64_MIN, INT64_MAX, 9223372036854775808.0)
IREES_FROM_FLOAT(irees_fptoui_i8, uint8_t, 0, UINT8_MAX, 255.0)
IREES_FROM_FLOAT(irees_fptoui_i16, uint16_t, 0, UINT16_MAX, 65535.0)
IREES_FROM_FLOAT(irees_fptoui_i32, uint32_t, 0, UINT32_MAX, 4294967295.0)
IREES_FROM_FLOAT(irees_fptoui_i64, uint64_t, 0, UINT64_MAX, 18446744073709551616.0)

/* --- floats ----------------------------------------------------------------------- */

#define IREES_FLOATS(T, U, NAME, COPYSIGN)                                                  \
  IREES_INLINE U NAME##_bits(T x) { U u; memcpy(&u, &x, sizeof u); return u; }              \
  IREES_INLINE T NAME##_of(U u) { T x; memcpy(&x, &u, sizeof x); return x; }                \
  IREES_INLINE T irees_neg_##NAME(T x) { return NAME##_of(NAME##_bits(x) ^ (U)1 << (8 * sizeof(U) - 1)); } \
  IREES_INLINE T irees_maximum_##NAME(T a, T b) { return a == b ? NAME##_of(NAME##_bits(a) & NAME##_bits(b)) : (a > b || a != a) ? a : b; } \
  IREES_INLINE T irees_minimum_##NAME(T a, T b) { return a == b ? NAME##_of(NAME##_bits(a) | NAME##_bits(b)) : (a < b || a != a) ? a : b; } \
  IREES_INLINE T irees_maxnum_##NAME(T a, T b) { return (a > b || b != b) ? a : b; }        \
  IREES_INLINE T irees_minnum_##NAME(T a, T b) { return (a < b || b != b) ? a : b; }
IREES_FLOATS(float, uint32_t, f32, copysignf)
IREES_FLOATS(double, uint64_t, f64, copysign)

/* x * 2^n for integers n from -252 to 254: the low bits of the sum are n + 2 * 127, shifts drop the rest. */
IREES_INLINE float irees_ldexp(float x, float n) {
  const uint32_t whole = f32_bits(n + (0x1.8p+23f + 254)), half = whole >> 1;
  return x * f32_of(half << 23) * f32_of((whole - half) << 23);
}
/* The same for f64, where n is from -2044 to 2046. */
IREES_INLINE double irees_ldexp_f64(double x, double n) {
  const uint64_t whole = f64_bits(n + (0x1.8p+52 + 2046)), half = whole >> 1;
  return x * f64_of(half << 52) * f64_of((whole - half) << 52);
}
/* x * 2^floor(n) for |x| from 2^-20 to 2^20; NaN if n is NaN. */
IREES_INLINE float irees_scalef(float x, float n) {
  float whole = floorf(n);
  whole = whole > 254.0f ? 254.0f : whole;
  whole = whole < -252.0f ? -252.0f : whole;
  const float scaled = irees_ldexp(x, whole);
  return n == n ? scaled : n;
}
IREES_INLINE float irees_fma_f32(float a, float b, float c) { return fmaf(a, b, c); }
IREES_INLINE double irees_fma_f64(double a, double b, double c) { return fma(a, b, c); }
IREES_INLINE float irees_rsqrt_f32(float x) { return 1.0f / sqrtf(x); }
IREES_INLINE double irees_rsqrt_f64(double x) { return 1.0 / sqrt(x); }
IREES_INLINE float irees_roundeven_f32(float x) { return rintf(x); }
IREES_INLINE double irees_roundeven_f64(double x) { return rint(x); }
IREES_INLINE double irees_fpowi(double x, int64_t n) {
  double r = 1.0;
  for (uint64_t k = n < 0 ? 0 - (uint64_t)n : (uint64_t)n; k; k >>= 1, x *= x) if (k & 1) r *= x;
  return n < 0 ? 1.0 / r : r;
}
IREES_INLINE int64_t irees_ipowi(int64_t x, int64_t n) {
  if (n < 0) return x == 1 ? 1 : x == -1 ? (n & 1 ? -1 : 1) : 0;
  uint64_t r = 1, b = (uint64_t)x;
  for (uint64_t k = (uint64_t)n; k; k >>= 1, b *= b) if (k & 1) r *= b;
  return (int64_t)r;
}

/* bf16 is stored as its bits; arithmetic happens in f32 and is rounded to nearest even. */
IREES_INLINE float irees_from_bf16(uint16_t x) { return f32_of((uint32_t)x << 16); }
#ifndef IREES_HARDWARE_BF16
IREES_INLINE uint16_t irees_to_bf16(float x) {
  uint32_t u = f32_bits(x);
  return x != x ? (uint16_t)((u >> 16) | 0x40) : (uint16_t)((u + 0x7fff + ((u >> 16) & 1)) >> 16);
}
#endif
