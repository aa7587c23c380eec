/* --- TMA copies and mbarriers -------------------------------------------------------------------- */

/* Included only in texts with TMA copies. A tensor map has 128 bytes in the driver's private format,
   encoded on the host. An mbarrier's phase completes when its threads and all expected bytes have
   arrived; then the next phase starts. Phases have alternating parity, starting with even (PTX ISA,
   "mbarrier", "cp.async.bulk.tensor"). Coordinates start with the last dim. */
struct alignas(64) irees_tensor_map {
  uint64_t words[16];
};

#ifdef IREES_EMULATED
IREES_INLINE void irees_mbarrier_init(uint64_t *b, uint32_t count) { irees_emulated_mbarrier_init(b, count); }
IREES_INLINE void irees_mbarrier_fence(void) { irees_emulated_mbarrier_fence(); }
IREES_INLINE void irees_mbarrier_expect(uint64_t *b, uint32_t bytes) { irees_emulated_mbarrier_expect(b, bytes); }
IREES_INLINE void irees_mbarrier_arrive(uint64_t *b) { irees_emulated_mbarrier_expect(b, 0); }
IREES_INLINE void irees_mbarrier_wait(uint64_t *b, uint32_t parity, uint32_t) { irees_emulated_mbarrier_wait(b, parity); }
template <typename... C> IREES_INLINE void irees_copy_box(void *to, const irees_tensor_map *map, uint64_t *b, C... places) {
  const int32_t at[] = {places...};
  irees_emulated_copy_box(to, map, b, (int32_t)sizeof...(C), at);
}
#else
IREES_INLINE unsigned irees_shared_address(const void *p) { return (unsigned)__cvta_generic_to_shared(p); }
IREES_INLINE void irees_mbarrier_init(uint64_t *b, uint32_t count) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(irees_shared_address(b)), "r"(count) : "memory");
}
IREES_INLINE void irees_mbarrier_fence(void) { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }
IREES_INLINE void irees_mbarrier_expect(uint64_t *b, uint32_t bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(irees_shared_address(b)), "r"(bytes) : "memory");
}
IREES_INLINE void irees_mbarrier_arrive(uint64_t *b) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(irees_shared_address(b)) : "memory");
}
IREES_INLINE void irees_mbarrier_wait(uint64_t *b, uint32_t parity, uint32_t ticks) {
  const unsigned place = irees_shared_address(b);
  uint32_t done;
  do {
    asm volatile("{\n.reg .pred p;\nmbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2, %3;\nselp.u32 %0, 1, 0, p;\n}"
        : "=r"(done) : "r"(place), "r"(parity), "r"(ticks) : "memory");
  } while (!done);
}
#define IREES_COPY_BOX(dims, coordinates, ...)                                                 \
  asm volatile("cp.async.bulk.tensor." dims ".shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {" coordinates "}], [%2];" \
      ::"r"(irees_shared_address(to)), "l"(map), "r"(irees_shared_address(b)), __VA_ARGS__ : "memory")
IREES_INLINE void irees_copy_box(void *to, const irees_tensor_map *map, uint64_t *b, int32_t i) { IREES_COPY_BOX("1d", "%3", "r"(i)); }
IREES_INLINE void irees_copy_box(void *to, const irees_tensor_map *map, uint64_t *b, int32_t i, int32_t j) {
  IREES_COPY_BOX("2d", "%3, %4", "r"(i), "r"(j));
}
IREES_INLINE void irees_copy_box(void *to, const irees_tensor_map *map, uint64_t *b, int32_t i, int32_t j, int32_t k) {
  IREES_COPY_BOX("3d", "%3, %4, %5", "r"(i), "r"(j), "r"(k));
}
IREES_INLINE void irees_copy_box(void *to, const irees_tensor_map *map, uint64_t *b, int32_t i, int32_t j, int32_t k, int32_t l) {
  IREES_COPY_BOX("4d", "%3, %4, %5, %6", "r"(i), "r"(j), "r"(k), "r"(l));
}
IREES_INLINE void irees_copy_box(void *to, const irees_tensor_map *map, uint64_t *b, int32_t i, int32_t j, int32_t k, int32_t l, int32_t m) {
  IREES_COPY_BOX("5d", "%3, %4, %5, %6, %7", "r"(i), "r"(j), "r"(k), "r"(l), "r"(m));
}
#endif
