/* --- warpgroup matrix products (wgmma) with operands in shared memory -------------------------- */

/* Included only in texts with wgmma, because it requires `sm_90a`.

   A matrix descriptor locates an operand (PTX ISA, "Matrix Descriptor Format"): bits 0 to 13 are its
   address, 16 to 29 the leading and 32 to 45 the stride byte offset, all in units of 16 bytes. Bits 62
   to 63 are the swizzle mode: 1 for rows of 128 bytes, 2 for 64, 3 for 32. The accumulator of 64 rows
   and N columns is in N / 2 registers of each lane. In each group of 8 columns, lane l of warp w has
   columns 2 * (l % 4) and 2 * (l % 4) + 1 of rows 16 * w + l / 4 and 16 * w + l / 4 + 8 ("Register
   Fragments for wgmma.m64nNk16"). */
#define IREES_WARPGROUPS

#ifdef IREES_EMULATED
/* `sums` are the sums of completed products, `begun` are the pending ones with their results at their
   start. `v` is NaN while products are pending. */
#define IREES_MOST_BEGUN 4
#define IREES_FRESH = {}
template <int N> struct irees_accumulator {
  float v[N / 2], sums[N / 2];
  struct {
    uint64_t a, b;
    float made[N / 2];
  } begun[IREES_MOST_BEGUN];
  int32_t count;
};
IREES_INLINE uint32_t irees_shared_place(const void *p) { return (uint32_t)((const unsigned char *)p - irees_emulated_here()->shared); }
#else
/* Of an accumulator whose first product does not read it. */
#define IREES_FRESH
template <int N> struct irees_accumulator {
  float v[N / 2];
};
IREES_INLINE uint32_t irees_shared_place(const void *p) { return (uint32_t)__cvta_generic_to_shared(p); }
#endif

IREES_INLINE uint64_t irees_descriptor(const void *p, uint32_t leading, uint32_t stride, uint32_t swizzle) {
  return (uint64_t)(irees_shared_place(p) >> 4 & 0x3fff) | (uint64_t)(leading >> 4) << 16 | (uint64_t)(stride >> 4) << 32 | (uint64_t)swizzle << 62;
}

#ifdef IREES_EMULATED

/* The address of one element of an operand: the canonical layouts of the PTX ISA ("Strides"), followed
   by the swizzle of 16-byte chunks. `turned` means transposed: rows are reduction steps. */
IREES_INLINE uint32_t irees_matrix_place(uint64_t descriptor, bool turned, uint32_t point, uint32_t step) {
  const uint32_t start = (uint32_t)(descriptor & 0x3fff) << 4, leading = (uint32_t)(descriptor >> 16 & 0x3fff) << 4;
  const uint32_t stride = (uint32_t)(descriptor >> 32 & 0x3fff) << 4, swizzle = (uint32_t)(descriptor >> 62);
  const uint32_t row = swizzle ? 256u >> swizzle : 16, pieces = row / 16;
  uint32_t place = start;
  if (turned) {
    place += point % 8 * 2 + step % 8 * row;
    if (swizzle) place += point / 8 % pieces * 16 + point / 8 / pieces * leading + step / 8 * stride;
    else place += point / 8 * stride + step / 8 * leading;
  } else {
    place += point % 8 * row + point / 8 * stride;
    place += swizzle ? step * 2 : step / 8 * leading + step % 8 * 2;
  }
  return place ^ (place >> 7 & (pieces - 1)) << 4;
}
template <typename E> IREES_INLINE float irees_matrix_element(uint64_t descriptor, bool turned, uint32_t point, uint32_t step) {
  const uint32_t place = irees_matrix_place(descriptor, turned, point, step);
  E x;
  if ((int64_t)place + 2 > irees_emulated_here()->shared_bytes) return __builtin_nanf("");
  memcpy((void *)&x, irees_emulated_here()->shared + place, 2);
  return irees_wide(x);
}

/* The instruction is executed by whole warps: no lane is past a wait before all are. */
template <int left> IREES_INLINE void irees_warpgroup_wait(void) {
  irees_emulated_products_wait(left);
  __syncwarp();
}
/* Computes what one warpgroup product adds to this lane's sums. */
template <typename E, int N, int steps, int move_a, int move_b, bool turned_a, bool turned_b>
static void irees_warpgroup_product(uint64_t a, uint64_t b, float *made) {
  const uint32_t lane = threadIdx.x % 32, row = threadIdx.x / 32 % 4 * 16 + lane / 4;
  for (int i = 0; i < N / 2; i++) made[i] = 0.0f;
  for (uint32_t s = 0; s < steps; s++, a += move_a, b += move_b)
    for (uint32_t k = 0; k < 16; k++) {
      const float above = irees_matrix_element<E>(a, turned_a, row, k), below = irees_matrix_element<E>(a, turned_a, row + 8, k);
      for (uint32_t j = 0; j < N / 4; j++) {
        const float x = irees_matrix_element<E>(b, turned_b, j / 2 * 8 + lane % 4 * 2 + j % 2, k);
        made[j / 2 * 4 + j % 2] += above * x;
        made[j / 2 * 4 + 2 + j % 2] += below * x;
      }
    }
}
/* Completes a product; its operands must not have changed since its start. */
template <typename E, int N, int steps, int move_a, int move_b, bool turned_a, bool turned_b>
static void irees_warpgroup_arrives(void *sums) {
  irees_accumulator<N> &c = *(irees_accumulator<N> *)sums;
  float made[N / 2];
  irees_warpgroup_product<E, N, steps, move_a, move_b, turned_a, turned_b>(c.begun[0].a, c.begun[0].b, made);
  const bool kept = !__builtin_memcmp(made, c.begun[0].made, sizeof made);
  for (int i = 0; i < N / 2; i++) c.sums[i] = kept ? c.sums[i] + made[i] : __builtin_nanf("");
  c.count--;
  for (int i = 0; i < c.count; i++) c.begun[i] = c.begun[i + 1];
  if (!c.count) memcpy(c.v, c.sums, sizeof c.v);
}
template <typename E, int N, int steps, int move_a, int move_b, bool turned_a, bool turned_b, int left, bool fresh = false>
IREES_INLINE void irees_warpgroup_mma(irees_accumulator<N> &c, uint64_t a, uint64_t b) {
  if (!c.count) memcpy(c.sums, c.v, sizeof c.v);
  if (c.count == IREES_MOST_BEGUN) __builtin_abort();
  auto &mine = c.begun[c.count++];
  mine.a = a, mine.b = b;
  irees_warpgroup_product<E, N, steps, move_a, move_b, turned_a, turned_b>(a, b, mine.made);
  for (int i = 0; i < N / 2; i++) {
    c.v[i] = __builtin_nanf("");
    if (irees_emulated_unfenced()) c.sums[i] = __builtin_nanf("");
  }
  irees_emulated_product(&c, irees_warpgroup_arrives<E, N, steps, move_a, move_b, turned_a, turned_b>);
  irees_warpgroup_wait<left>();
}
template <typename V> IREES_INLINE uint32_t irees_word(V x) {
  uint32_t u;
  memcpy(&u, (const void *)&x, sizeof u);
  return u;
}
/* Each lane reads the rows of A that it sums from the four lanes that hold them. */
template <typename E, int N, int steps, int move_b, bool turned_b>
IREES_INLINE void irees_warpgroup_mma_registers(irees_accumulator<N> &c, const uint32_t *a, uint64_t b) {
  const uint32_t lane = threadIdx.x % 32;
  float rows[2][16 * steps];
  for (uint32_t i = 0; i < 4 * steps; i++) {
    uint64_t all[32] = {0};
    irees_emulated_gather(a[i], all);
    for (uint32_t q = 0; q < 4; q++) {
      const uint32_t word = (uint32_t)all[lane / 4 * 4 + q], k = i / 4 * 16 + i % 4 / 2 * 8 + 2 * q;
      E pair[2];
      memcpy((void *)pair, &word, sizeof pair);
      rows[i % 2][k] = irees_wide(pair[0]), rows[i % 2][k + 1] = irees_wide(pair[1]);
    }
  }
  irees_warpgroup_wait<0>();
  for (uint32_t s = 0; s < steps; s++)
    for (uint32_t k = 0; k < 16; k++)
      for (uint32_t j = 0; j < N / 4; j++) {
        const float x = irees_matrix_element<E>(b + s * move_b, turned_b, j / 2 * 8 + lane % 4 * 2 + j % 2, k);
        c.v[j / 2 * 4 + j % 2] += rows[0][16 * s + k] * x;
        c.v[j / 2 * 4 + 2 + j % 2] += rows[1][16 * s + k] * x;
      }
  __syncwarp();
}
IREES_INLINE void irees_fence_async(void) { irees_emulated_fence(); }
template <int N> IREES_INLINE void irees_settle(irees_accumulator<N> &) {}

#else

template <int left> IREES_INLINE void irees_warpgroup_wait(void) {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(left) : "memory");
}
IREES_INLINE void irees_fence_async(void) { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }
/* The compiler does not know that an asm waits: this keeps accesses to the sums from moving across. */
template <int N> IREES_INLINE void irees_settle(irees_accumulator<N> &c) {
  IREES_UNROLL for (int i = 0; i < N / 2; i++) asm volatile("" : "+f"(c.v[i])::"memory");
}

#define IREES_SUMS_8(i) "+f"(c.v[i]), "+f"(c.v[i + 1]), "+f"(c.v[i + 2]), "+f"(c.v[i + 3]), "+f"(c.v[i + 4]), "+f"(c.v[i + 5]), "+f"(c.v[i + 6]), "+f"(c.v[i + 7])
#define IREES_SUMS_32(i) IREES_SUMS_8(i), IREES_SUMS_8(i + 8), IREES_SUMS_8(i + 16), IREES_SUMS_8(i + 24)
#define IREES_SUMS_64(i) IREES_SUMS_32(i), IREES_SUMS_32(i + 32)
#define IREES_SUMS_128(i) IREES_SUMS_64(i), IREES_SUMS_64(i + 64)
#define IREES_NAMES_32 "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31"
#define IREES_NAMES_64 IREES_NAMES_32 ",%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47,%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63"
#define IREES_NAMES_128 IREES_NAMES_64 ",%64,%65,%66,%67,%68,%69,%70,%71,%72,%73,%74,%75,%76,%77,%78,%79,%80,%81,%82,%83,%84,%85,%86,%87,%88,%89,%90,%91,%92,%93,%94,%95," \
  "%96,%97,%98,%99,%100,%101,%102,%103,%104,%105,%106,%107,%108,%109,%110,%111,%112,%113,%114,%115,%116,%117,%118,%119,%120,%121,%122,%123,%124,%125,%126,%127"
#define IREES_WGMMA(columns, kind, names, sums, others)                                        \
  asm volatile("wgmma.mma_async.sync.aligned.m64n" columns "k16.f32." kind "." kind " {" names "}, " others \
      : sums(0) : "l"(a), "l"(b), "n"((int)turned_a), "n"((int)turned_b));
/* `added` is "0" where the accumulator is not read, else "1". */
#define IREES_WGMMA_OF(kind, added)                                                            \
  if constexpr (N == 64) { IREES_WGMMA("64", kind, IREES_NAMES_32, IREES_SUMS_32, "%32, %33, " added ", 1, 1, %34, %35;") } \
  else if constexpr (N == 128) { IREES_WGMMA("128", kind, IREES_NAMES_64, IREES_SUMS_64, "%64, %65, " added ", 1, 1, %66, %67;") } \
  else { IREES_WGMMA("256", kind, IREES_NAMES_128, IREES_SUMS_128, "%128, %129, " added ", 1, 1, %130, %131;") }
#define IREES_WGMMA_REGISTERS(columns, kind, names, sums, others)                              \
  asm volatile("wgmma.mma_async.sync.aligned.m64n" columns "k16.f32." kind "." kind " {" names "}, " others \
      : sums(0) : "r"(a[4 * s]), "r"(a[4 * s + 1]), "r"(a[4 * s + 2]), "r"(a[4 * s + 3]), "l"(b), "n"((int)turned_b));
#define IREES_WGMMA_REGISTERS_OF(kind)                                                         \
  if constexpr (N == 64) { IREES_WGMMA_REGISTERS("64", kind, IREES_NAMES_32, IREES_SUMS_32, "{%32, %33, %34, %35}, %36, 1, 1, 1, %37;") } \
  else if constexpr (N == 128) { IREES_WGMMA_REGISTERS("128", kind, IREES_NAMES_64, IREES_SUMS_64, "{%64, %65, %66, %67}, %68, 1, 1, 1, %69;") } \
  else { IREES_WGMMA_REGISTERS("256", kind, IREES_NAMES_128, IREES_SUMS_128, "{%128, %129, %130, %131}, %132, 1, 1, 1, %133;") }

template <typename E> constexpr bool irees_is_half = false;
template <> constexpr bool irees_is_half<irees_f16> = true;
template <typename E, int N, int steps, int move_a, int move_b, bool turned_a, bool turned_b, int left, bool fresh = false>
IREES_INLINE void irees_warpgroup_mma(irees_accumulator<N> &c, uint64_t a, uint64_t b) {
  irees_settle(c);
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
  if constexpr (fresh) {
    if constexpr (irees_is_half<E>) { IREES_WGMMA_OF("f16", "0") }
    else { IREES_WGMMA_OF("bf16", "0") }
    a += move_a, b += move_b;
  }
  IREES_UNROLL for (int s = fresh; s < steps; s++, a += move_a, b += move_b) {
    if constexpr (irees_is_half<E>) { IREES_WGMMA_OF("f16", "1") }
    else { IREES_WGMMA_OF("bf16", "1") }
  }
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
  irees_warpgroup_wait<left>();
  irees_settle(c);
}
template <typename E, int N, int steps, int move_b, bool turned_b>
IREES_INLINE void irees_warpgroup_mma_registers(irees_accumulator<N> &c, const uint32_t *a, uint64_t b) {
  irees_settle(c);
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
  IREES_UNROLL for (int s = 0; s < steps; s++, b += move_b) {
    if constexpr (irees_is_half<E>) { IREES_WGMMA_REGISTERS_OF("f16") }
    else { IREES_WGMMA_REGISTERS_OF("bf16") }
  }
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
  irees_warpgroup_wait<0>();
  irees_settle(c);
}
#endif

/* The lane's elements of columns 8 * i to 8 * i + 7. */
template <int i, int N> IREES_INLINE irees_vector<float, 4> irees_warpgroup_sums(const irees_accumulator<N> &c) {
  return irees_vector<float, 4>::of(c.v[4 * i], c.v[4 * i + 1], c.v[4 * i + 2], c.v[4 * i + 3]);
}
template <int i, int N> IREES_INLINE void irees_set_warpgroup_sums(irees_accumulator<N> &c, irees_vector<float, 4> x) {
  for (int j = 0; j < 4; j++) c.v[4 * i + j] = x[j];
}
