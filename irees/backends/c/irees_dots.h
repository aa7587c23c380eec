#ifndef IREES_DOTS_H
#define IREES_DOTS_H
/* Dot products of narrow lanes: one instruction if the target has it, else lane by lane. */
#ifdef __x86_64__
#include <immintrin.h>
#endif

/* c[i] + a[4i] * b[4i] + ... + a[4i + 3] * b[4i + 3], a unsigned and b signed, wrapping. */
#define IREES_DOT_I8(C, N, c, a, b) __extension__({ C c_ = (c); __auto_type a_ = (a); __auto_type b_ = (b); \
  for (int i_ = 0; i_ < 4 * N; i_++) c_[i_ / 4] = (int32_t)((uint32_t)c_[i_ / 4] + (uint32_t)((uint8_t)a_[i_] * b_[i_])); c_; })
#ifdef __AVX512VNNI__
#define irees_dot_v64i8(c, a, b) ((v16i32)_mm512_dpbusd_epi32((__m512i)(c), (__m512i)(a), (__m512i)(b)))
#else
#define irees_dot_v64i8(c, a, b) IREES_DOT_I8(v16i32, 16, c, a, b)
#endif
#ifdef __AVXVNNI__
#define irees_dot_v32i8(c, a, b) ((v8i32)_mm256_dpbusd_avx_epi32((__m256i)(c), (__m256i)(a), (__m256i)(b)))
#else
#define irees_dot_v32i8(c, a, b) IREES_DOT_I8(v8i32, 8, c, a, b)
#endif

/* c[i] + a[2i + 1] * b[2i + 1] + a[2i] * b[2i]; the instruction flushes subnormals to zero. */
#ifdef __AVX512BF16__
#define irees_dot_v32bf16(c, a, b) ((v16f32)_mm512_dpbf16_ps((__m512)(c), (__m512bh)(a), (__m512bh)(b)))
#else
#define irees_dot_v32bf16(c, a, b) __extension__({ v16f32 c_ = (c); v32bf16 a_ = (a), b_ = (b); \
  for (int i_ = 31; i_ >= 0; i_--) c_[i_ / 2] += irees_from_bf16(a_[i_]) * irees_from_bf16(b_[i_]); c_; })
#endif
#endif
