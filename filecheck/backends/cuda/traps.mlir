// RUN: xdsl-opt %s -p 'irees-pipeline{target="cuda:sm_80"}' -t irees-cuda | filecheck %s

// A kernel notes its trap and goes on; the call has one word for all kernels, and looks at it before
// it has results: they would be freed twice.
// CHECK:       extern "C" __global__
// CHECK:         if (!v{{[0-9]+}} && !*trap) *trap = 1;
// CHECK-NOT:   IREES_DEVICE_READ(trap
// CHECK:       int32_t irees_entry_0(const irees_call *call) {
// CHECK:         int32_t failed = 0, *const trap = IREES_TRAP_WORD(failed);
// CHECK-NEXT:    if (!trap) { status = IREES_OUT_OF_MEMORY; goto done; }
// CHECK:         status = IREES_TRAPPED(failed, status);
// CHECK-NEXT:    if (status) goto done;
// CHECK-NEXT:    result_0 = call->results[0] =
// CHECK:       done:
// CHECK-NEXT:    status = IREES_TRAPPED(failed, status);
func.func @checked(%x: tensor<64xf32>) -> tensor<64xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<64xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      ins(%x : tensor<64xf32>) outs(%e : tensor<64xf32>) {
  ^bb0(%a: f32, %o: f32):
    %natural = arith.cmpf oge, %a, %zero : f32
    cf.assert %natural, "a number must not be negative"
    %s = math.sqrt %a : f32
    linalg.yield %s : f32
  } -> tensor<64xf32>
  return %r : tensor<64xf32>
}
