// RUN: xdsl-opt %s -p 'irees-pipeline{target="cuda:sm_90"}' -t irees-cuda | filecheck %s

// One thread copies the boxes of a part, of A 64 rows of 64 steps, of B 64 steps of 64 columns: barriers are told of
// 16384 bytes, and all threads wait for them. Each of four warps frees the slot of the product before, and the thread
// that copies waits for all of them. Of 512 steps the eighth part is the last that is copied.
// CHECK-NOT:   #define IREES_WARPGROUPS
// CHECK:       irees_k0_w0(const __grid_constant__ irees_tensor_map [[A:m[0-9]+]], const __grid_constant__ irees_tensor_map [[B:m[0-9]+]], float *__restrict__ p{{[0-9]+}}) {
// CHECK-NEXT:    IREES_SHARED_DYNAMIC(shared, 1024);
// CHECK:         uint64_t *const [[FULL:b[0-9]+]] = (uint64_t *)(shared + 65536);
// CHECK-NEXT:    uint64_t *const [[FREE:b[0-9]+]] = (uint64_t *)(shared + 65568);
// CHECK:         if (threadIdx.x < 1) {
// CHECK:           irees_mbarrier_init([[FULL]], 1);
// CHECK-NEXT:      irees_mbarrier_init([[FREE]], 4);
// CHECK:           irees_mbarrier_init([[FULL]] + 3, 1);
// CHECK-NEXT:      irees_mbarrier_init([[FREE]] + 3, 4);
// CHECK-NEXT:      irees_mbarrier_fence();
// CHECK-NEXT:    }
// CHECK-NEXT:    __syncthreads();
// CHECK:         const uint8_t [[FIRST:v[0-9]+]] = t{{[0-9]+}} == 0;
// CHECK:         if ([[FIRST]]) {
// CHECK-NEXT:      irees_mbarrier_expect([[FULL]], 16384);
// CHECK-NEXT:      irees_copy_box(p{{[0-9]+}}, &[[A]], [[FULL]], (int32_t)0, (int32_t)v{{[0-9]+}});
// CHECK-NEXT:      irees_copy_box(p{{[0-9]+}}, &[[B]], [[FULL]], (int32_t)v{{[0-9]+}}, (int32_t)0);
// CHECK-NEXT:    }
// CHECK:         for (
// CHECK:           irees_mbarrier_wait([[FULL]] + v{{[0-9]+}}, v{{[0-9]+}}, 10000000);
// CHECK-NOT:       __syncthreads();
// CHECK:           irees_warpgroup_mma<irees_f16, 64, 4, 2, 128, false, true, 1>(
// CHECK:           irees_mbarrier_arrive([[FREE]] + v{{[0-9]+}});
// CHECK:           const int64_t [[NEXT:v[0-9]+]] = (int64_t)(v{{[0-9]+}} + 3);
// CHECK-NEXT:      const uint8_t v{{[0-9]+}} = [[NEXT]] < 8;
// CHECK:           irees_mbarrier_wait([[FREE]] + v{{[0-9]+}}, v{{[0-9]+}}, 10000000);
// CHECK-NEXT:      irees_mbarrier_expect([[FULL]] + v{{[0-9]+}}, 16384);
// CHECK:         irees_warpgroup_wait<0>();
// CHECK:           irees_mbarrier_arrive([[FREE]] + 3);
// CHECK:         __syncthreads();

// The host has the maps made before the launch, whose first arguments are their addresses.
// CHECK:       int32_t irees_k0(
// CHECK:         irees_tensor_map [[MAP:m[0-9]+]];
// CHECK:           const irees_tensor tensor_ = {[[X:a[0-9]+]], 2, 2, 128, {512, 512}, {2, 1024}, {64, 64}};
// CHECK-NEXT:      status = IREES_ENCODE_TENSOR_MAP(&[[MAP]], &tensor_);
// CHECK-NEXT:      if (status) goto done;
// CHECK:           const irees_tensor tensor_ = {a{{[0-9]+}}, 2, 2, 128, {512, 512}, {2, 1024}, {64, 64}};
// CHECK:         const int64_t arguments_[] = {(int64_t)(intptr_t)&[[MAP]], (int64_t)(intptr_t)&m{{[0-9]+}}, (int64_t)(intptr_t)a{{[0-9]+}}};
// CHECK-NEXT:    const irees_launch launch_ = {0, 128, 1, 3, 64, 65600, arguments_};
func.func @main(%a: tensor<512x512xf16>, %b: tensor<512x512xf16>) -> tensor<512x512xf32> {
  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<512x512xf32>
  %f = linalg.fill ins(%z : f32) outs(%e : tensor<512x512xf32>) -> tensor<512x512xf32>
  %r = linalg.matmul ins(%a, %b : tensor<512x512xf16>, tensor<512x512xf16>) outs(%f : tensor<512x512xf32>) -> tensor<512x512xf32>
  return %r : tensor<512x512xf32>
}
