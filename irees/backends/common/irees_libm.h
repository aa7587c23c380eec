/* Declarations of all libc and libm functions that kernels call. Parsing the system headers would take
   longer than compiling many kernels; those of C++ are slower still. */
#ifdef __cplusplus
extern "C" {
#endif
void *memcpy(void *to, const void *from, __SIZE_TYPE__ size);
#define isnan(x) __builtin_isnan(x)
#define isinf(x) __builtin_isinf(x)
#define isfinite(x) __builtin_isfinite(x)
#define IREES_LIBM_1(NAME) double NAME(double); float NAME##f(float);
#define IREES_LIBM_2(NAME) double NAME(double, double); float NAME##f(float, float);
IREES_LIBM_1(exp) IREES_LIBM_1(exp2) IREES_LIBM_1(expm1)
IREES_LIBM_1(log) IREES_LIBM_1(log2) IREES_LIBM_1(log10) IREES_LIBM_1(log1p)
IREES_LIBM_1(sqrt) IREES_LIBM_1(cbrt) IREES_LIBM_2(pow) IREES_LIBM_1(erf) IREES_LIBM_1(erfc)
IREES_LIBM_1(sin) IREES_LIBM_1(cos) IREES_LIBM_1(tan)
IREES_LIBM_1(asin) IREES_LIBM_1(acos) IREES_LIBM_1(atan) IREES_LIBM_2(atan2)
IREES_LIBM_1(sinh) IREES_LIBM_1(cosh) IREES_LIBM_1(tanh)
IREES_LIBM_1(asinh) IREES_LIBM_1(acosh) IREES_LIBM_1(atanh)
IREES_LIBM_1(fabs) IREES_LIBM_1(floor) IREES_LIBM_1(ceil) IREES_LIBM_1(round)
IREES_LIBM_1(trunc) IREES_LIBM_1(rint) IREES_LIBM_2(copysign) IREES_LIBM_2(fmod) IREES_LIBM_2(hypot)
double fma(double, double, double);
float fmaf(float, float, float);
#ifdef __cplusplus
}
#endif
