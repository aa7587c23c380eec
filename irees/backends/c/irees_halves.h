#ifndef IREES_HALVES_H
#define IREES_HALVES_H
/* Conversions between vectors of halves and f32: gcc 12 splits or scalarizes them without builtins. */
typedef short irees_v8hi __attribute__((vector_size(16)));
typedef short irees_v16hi __attribute__((vector_size(32)));
typedef int irees_v16si __attribute__((vector_size(64)));
typedef float irees_v16sf __attribute__((vector_size(64)));
#if defined(__F16C__) && !defined(__AVX512FP16__) && !defined(__clang__)
#define irees_v8f32_of_v8f16(x) ((v8f32)__builtin_ia32_vcvtph2ps256((irees_v8hi)(x)))
#define irees_v8f16_of_v8f32(x) ((v8f16)__builtin_ia32_vcvtps2ph256((x), 0))
#else
#define irees_v8f32_of_v8f16(x) IREES_CONVERT(v8f32, x)
#define irees_v8f16_of_v8f32(x) IREES_CONVERT(v8f16, x)
#endif
#if defined(__AVX512F__) && !defined(__AVX512FP16__) && !defined(__clang__)
#define irees_v16f32_of_v16f16(x) ((v16f32)__builtin_ia32_vcvtph2ps512_mask((irees_v16hi)(x), (irees_v16sf){0}, -1, 4))
#define irees_v16f16_of_v16f32(x) ((v16f16)__builtin_ia32_vcvtps2ph512_mask((x), 0, (irees_v16hi){0}, -1))
#else
#define irees_v16f32_of_v16f16(x) IREES_CONVERT(v16f32, x)
#define irees_v16f16_of_v16f32(x) IREES_CONVERT(v16f16, x)
#endif
#if defined(__AVX512F__) && !defined(__clang__)
#define irees_v16u32_of_v16u16(x) ((v16u32)__builtin_ia32_pmovzxwd512_mask((irees_v16hi)(x), (irees_v16si){0}, -1))
#define irees_v16u16_of_v16u32(x) __builtin_ia32_pmovdw512_mask((irees_v16si)(x), (irees_v16hi){0}, -1)
#else
#define irees_v16u32_of_v16u16(x) IREES_CONVERT(v16u32, x)
#define irees_v16u16_of_v16u32(x) IREES_CONVERT(v16bf16, x)
#endif
#define irees_v16f32_of_v16bf16(x) ((v16f32)(irees_v16u32_of_v16u16(x) << 16))
#define irees_v16bf16_of_v16f32(x) ((v16bf16)irees_v16u16_of_v16u32(IREES_TO_BF16(v16u32, x)))
#endif
