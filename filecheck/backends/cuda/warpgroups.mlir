// RUN: xdsl-opt %s -p 'irees-pipeline{target="cuda:sm_90"}' -t irees-cuda | filecheck %s

// A product of 64 x 64 for each workgroup, of which B is turned: 16 steps further are 32 bytes in a row of A,
// and 16 rows of 128 bytes of B. Rows of A are no multiples of 16 bytes, so each thread copies. Sums stay in one variable, which is settled before it is read.
// CHECK-NOT:   #define IREES_WARPGROUPS
// CHECK:       irees_k0_w0(
// CHECK-NEXT:    IREES_SHARED_DYNAMIC(shared, 1024);
// CHECK:         irees_copies_end();
// CHECK:         irees_accumulator<64> [[ZERO:v[0-9]+]] = {};
// CHECK-NEXT:    irees_accumulator<64> [[SUMS:x[0-9]+]] = [[ZERO]];
// CHECK-NEXT:    for (
// CHECK:           irees_copies_wait<1>();
// CHECK-NEXT:      irees_fence_async();
// CHECK-NEXT:      __syncthreads();
// CHECK:           const uint64_t [[A:d[0-9]+]] = irees_descriptor(p{{[0-9]+}}, 16, 1024, 1);
// CHECK:           const uint64_t [[B:d[0-9]+]] = irees_descriptor(p{{[0-9]+}}, 8192, 1024, 1);
// CHECK-NEXT:      irees_warpgroup_mma<irees_f16, 64, 4, 2, 128, false, true, 1>([[SUMS]], [[A]], [[B]]);
// CHECK-NEXT:    }
// CHECK-NEXT:    irees_warpgroup_wait<0>();
// CHECK:         irees_settle([[SUMS]]);
// CHECK-NEXT:    const v4f32 v{{[0-9]+}} = irees_warpgroup_sums<0>([[SUMS]]);
func.func @main(%a: tensor<512x508xf16>, %b: tensor<508x512xf16>) -> tensor<512x512xf32> {
  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<512x512xf32>
  %f = linalg.fill ins(%z : f32) outs(%e : tensor<512x512xf32>) -> tensor<512x512xf32>
  %r = linalg.matmul ins(%a, %b : tensor<512x508xf16>, tensor<508x512xf16>) outs(%f : tensor<512x512xf32>) -> tensor<512x512xf32>
  return %r : tensor<512x512xf32>
}
