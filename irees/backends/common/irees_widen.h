/* Conversions of vectors of integers to wider lanes, each one instruction of x86: gcc 12 takes two
   halves, or a step for each width. */
#if defined(__AVX2__) && !defined(__clang__)
#define IREES_RAW(NAME, T, BYTES) typedef T irees_##NAME __attribute__((vector_size(BYTES)));
IREES_RAW(16qi, char, 16) IREES_RAW(8hi, short, 16) IREES_RAW(4si, int, 16)
IREES_RAW(2di, long long, 16) IREES_RAW(32qi, char, 32) IREES_RAW(16hi, short, 32)
IREES_RAW(8si, int, 32) IREES_RAW(32hi, short, 64) IREES_RAW(16si, int, 64)
IREES_RAW(8di, long long, 64)
/* Eight bytes as the first half of a vector. */
#define IREES_LOW(x) ((irees_16qi)(irees_2di){(long long)(x), 0})
#define irees_v8i32_of_v8i8(x) ((v8i32)__builtin_ia32_pmovsxbd256(IREES_LOW(x)))
#define irees_v8i32_of_v8u8(x) ((v8i32)__builtin_ia32_pmovzxbd256(IREES_LOW(x)))
#define irees_v8i32_of_v8i16(x) ((v8i32)__builtin_ia32_pmovsxwd256((irees_8hi)(x)))
#define irees_v8i32_of_v8u16(x) ((v8i32)__builtin_ia32_pmovzxwd256((irees_8hi)(x)))
#define irees_v4i64_of_v4i32(x) ((v4i64)__builtin_ia32_pmovsxdq256((irees_4si)(x)))
#define irees_v4i64_of_v4u32(x) ((v4i64)__builtin_ia32_pmovzxdq256((irees_4si)(x)))
#define irees_v16i16_of_v16i8(x) ((v16i16)__builtin_ia32_pmovsxbw256((irees_16qi)(x)))
#define irees_v16i16_of_v16u8(x) ((v16i16)__builtin_ia32_pmovzxbw256((irees_16qi)(x)))
#else
#define irees_v8i32_of_v8i8(x) IREES_CONVERT(v8i32, IREES_CONVERT(v8i16, x))
#define irees_v8i32_of_v8u8(x) IREES_CONVERT(v8i32, IREES_CONVERT(v8u16, x))
#define irees_v8i32_of_v8i16(x) IREES_CONVERT(v8i32, x)
#define irees_v8i32_of_v8u16(x) IREES_CONVERT(v8i32, x)
#define irees_v4i64_of_v4i32(x) IREES_CONVERT(v4i64, x)
#define irees_v4i64_of_v4u32(x) IREES_CONVERT(v4i64, x)
#define irees_v16i16_of_v16i8(x) IREES_CONVERT(v16i16, x)
#define irees_v16i16_of_v16u8(x) IREES_CONVERT(v16i16, x)
#endif
#if defined(__AVX512F__) && !defined(__clang__)
#define irees_v16i32_of_v16i8(x) ((v16i32)__builtin_ia32_pmovsxbd512_mask((irees_16qi)(x), (irees_16si){0}, (short)-1))
#define irees_v16i32_of_v16u8(x) ((v16i32)__builtin_ia32_pmovzxbd512_mask((irees_16qi)(x), (irees_16si){0}, (short)-1))
#define irees_v16i32_of_v16i16(x) ((v16i32)__builtin_ia32_pmovsxwd512_mask((irees_16hi)(x), (irees_16si){0}, (short)-1))
#define irees_v16i32_of_v16u16(x) ((v16i32)__builtin_ia32_pmovzxwd512_mask((irees_16hi)(x), (irees_16si){0}, (short)-1))
#define irees_v8i64_of_v8i8(x) ((v8i64)__builtin_ia32_pmovsxbq512_mask(IREES_LOW(x), (irees_8di){0}, (char)-1))
#define irees_v8i64_of_v8u8(x) ((v8i64)__builtin_ia32_pmovzxbq512_mask(IREES_LOW(x), (irees_8di){0}, (char)-1))
#define irees_v8i64_of_v8i16(x) ((v8i64)__builtin_ia32_pmovsxwq512_mask((irees_8hi)(x), (irees_8di){0}, (char)-1))
#define irees_v8i64_of_v8u16(x) ((v8i64)__builtin_ia32_pmovzxwq512_mask((irees_8hi)(x), (irees_8di){0}, (char)-1))
#define irees_v8i64_of_v8i32(x) ((v8i64)__builtin_ia32_pmovsxdq512_mask((irees_8si)(x), (irees_8di){0}, (char)-1))
#define irees_v8i64_of_v8u32(x) ((v8i64)__builtin_ia32_pmovzxdq512_mask((irees_8si)(x), (irees_8di){0}, (char)-1))
#else
#define irees_v16i32_of_v16i8(x) IREES_CONVERT(v16i32, IREES_CONVERT(v16i16, x))
#define irees_v16i32_of_v16u8(x) IREES_CONVERT(v16i32, IREES_CONVERT(v16u16, x))
#define irees_v16i32_of_v16i16(x) IREES_CONVERT(v16i32, x)
#define irees_v16i32_of_v16u16(x) IREES_CONVERT(v16i32, x)
#define irees_v8i64_of_v8i8(x) IREES_CONVERT(v8i64, IREES_CONVERT(v8i32, IREES_CONVERT(v8i16, x)))
#define irees_v8i64_of_v8u8(x) IREES_CONVERT(v8i64, IREES_CONVERT(v8u32, IREES_CONVERT(v8u16, x)))
#define irees_v8i64_of_v8i16(x) IREES_CONVERT(v8i64, IREES_CONVERT(v8i32, x))
#define irees_v8i64_of_v8u16(x) IREES_CONVERT(v8i64, IREES_CONVERT(v8u32, x))
#define irees_v8i64_of_v8i32(x) IREES_CONVERT(v8i64, x)
#define irees_v8i64_of_v8u32(x) IREES_CONVERT(v8i64, x)
#endif
#if defined(__AVX512BW__) && !defined(__clang__)
#define irees_v32i16_of_v32i8(x) ((v32i16)__builtin_ia32_pmovsxbw512_mask((irees_32qi)(x), (irees_32hi){0}, -1))
#define irees_v32i16_of_v32u8(x) ((v32i16)__builtin_ia32_pmovzxbw512_mask((irees_32qi)(x), (irees_32hi){0}, -1))
#else
#define irees_v32i16_of_v32i8(x) IREES_CONVERT(v32i16, x)
#define irees_v32i16_of_v32u8(x) IREES_CONVERT(v32i16, x)
#endif
/* Lanes of 8 and 16 bits are shifted in lanes V of i32, by amounts of which x86 takes any, and C those
   up to 31: a larger one shifts all bits out of the low lanes, too. */
#define IREES_SHIFT(V, a, OPERATOR, b) __extension__({ V n_ = (b), m_ = n_ > 31; (a) OPERATOR ((n_ & ~m_) | (m_ & 31)); })
