// RUN: xdsl-opt %s -p 'irees-pipeline{target="cuda:sm_80"}' -t irees-cuda | filecheck %s

// A kernel with one access of 16 bytes per thread, and its launcher in C: a row of 128 threads.
// CHECK:       IREES_VECTOR_FLOAT(v4f32, float, 4)
// CHECK:       extern "C" __global__ void __launch_bounds__(128)
// CHECK-NEXT:  irees_k0_w0(float *__restrict__ p{{[0-9]+}}, float *__restrict__ p{{[0-9]+}}) {
// CHECK:         const int64_t workgroup = blockIdx.x; (void)workgroup;
// CHECK:         const int64_t [[T:t[0-9]+]] = threadIdx.x;
// CHECK:         v4f32_load(p{{[0-9]+}} +
// CHECK:         v4f32_store(p{{[0-9]+}} +
// CHECK:       #ifdef IREES_EMULATED
// CHECK-NEXT:  extern "C" IREES_EXPORT void irees_k0_w0_call(const int64_t *a) {
// CHECK:       int32_t irees_k0(const irees_runtime *rt, void *const *buffers, const int64_t *scalars, int32_t *trap) {
// CHECK:         const irees_launch launch_ = {0, 128, 0, 2, 16, 0, arguments_};
// CHECK-NEXT:    if (!status && 16 > 0) status = IREES_LAUNCH(&launch_);
func.func @negate(%x: tensor<64x128xf32>) -> tensor<64x128xf32> {
  %e = tensor.empty() : tensor<64x128xf32>
  %r = linalg.negf ins(%x : tensor<64x128xf32>) outs(%e : tensor<64x128xf32>) -> tensor<64x128xf32>
  return %r : tensor<64x128xf32>
}
