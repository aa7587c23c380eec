// RUN: xdsl-opt %s -p 'irees-pipeline{target="cpu:generic"}' -t irees-c | filecheck %s

// An elementwise op is a loop over vectors; no name of the program is in the text.
// CHECK:       IREES_VECTOR_FLOAT(v4f32, float, 4)
// CHECK:       static void irees_k0_w0(const irees_dispatch *d, int64_t workgroup, void *scratch) {
// CHECK:         for (int64_t [[I:i[0-9]+]] = 0; [[I]] < 8; [[I]] += 4) {
// CHECK-NEXT:      const v4f32 [[X:v[0-9]+]] = v4f32_load(p{{[0-9]+}} + [[I]]);
// CHECK-NEXT:      const v4f32 [[Y:v[0-9]+]] = (v4f32)((v4i32)[[X]] ^ INT32_MIN);
// CHECK-NEXT:      v4f32_store(p{{[0-9]+}} + [[I]], [[Y]]);
// CHECK:       int32_t irees_k0(const irees_runtime *rt, void *const *buffers, const int64_t *scalars, int32_t *trap) {
// CHECK:         rt->parallel(rt->pool, irees_k0_w0,
func.func @negate(%x: tensor<8xf32>) -> tensor<8xf32> {
  %e = tensor.empty() : tensor<8xf32>
  %r = linalg.negf ins(%x : tensor<8xf32>) outs(%e : tensor<8xf32>) -> tensor<8xf32>
  return %r : tensor<8xf32>
}

// A dynamic dim is an argument of the kernel, and agreement is checked before it runs.
// CHECK:         irees_divs_i32(
// CHECK:       int32_t irees_k1(const irees_runtime *rt,
// CHECK:         irees_entry_1(const irees_call *call) {
// CHECK:         const int64_t [[X:n[0-9]+]] = call->arg_dims[0];
// CHECK:         const int64_t [[Y:n[0-9]+]] = call->arg_dims[1];
// CHECK:         const uint8_t [[OK:v[0-9]+]] = [[Y]] == [[X]];
// CHECK-NEXT:    if (![[OK]]) { status = 1; goto done; }
func.func @add(%x: tensor<?xi32>, %y: tensor<?xi32>) -> tensor<?xi32> {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?xi32>
  %e = tensor.empty(%n) : tensor<?xi32>
  %r = linalg.div ins(%x, %y : tensor<?xi32>, tensor<?xi32>) outs(%e : tensor<?xi32>) -> tensor<?xi32>
  return %r : tensor<?xi32>
}

// Scalars of the host are C scalars.
// CHECK:         irees_entry_2(const irees_call *call) {
// CHECK:         const int64_t [[C:v[0-9]+]] = (-INT64_C(9223372036854775807)-1);
// CHECK-NEXT:    const int64_t v{{[0-9]+}} = (int64_t)({{.*}} + [[C]]);
// CHECK-NEXT:    const double v{{[0-9]+}} = 0x1.999999999999ap-4;
func.func @scalar(%a: i64, %b: f64) -> (i64, f64) {
  %c = arith.constant -9223372036854775808 : i64
  %d = arith.addi %a, %c : i64
  %e = arith.constant 0.1 : f64
  %f = arith.mulf %b, %e : f64
  return %d, %f : i64, f64
}

// A buffer that a region has allocated and yields belongs to the result, and is freed with it.
// CHECK:         irees_entry_3(const irees_call *call) {
// CHECK:         float *[[R:x[0-9]+]];
// CHECK-NEXT:    int64_t [[N:n[0-9]+]];
// CHECK-NEXT:    if ({{a[0-9]+}}) {
// CHECK:           float *const [[X:p[0-9]+]] = rt->alloc(
// CHECK:           owned[1] = [[X]];
// CHECK:           rt->free(owned[0]);
// CHECK-NEXT:      owned[0] = [[X]]; owned[1] = NULL;
// CHECK-NEXT:      [[R]] = [[X]];
// CHECK-NEXT:      [[N]] = {{n[0-9]+}};
// CHECK-NEXT:    }
func.func @branch(%x: tensor<?xf32>, %y: tensor<?xf32>, %c: i1) -> tensor<?xf32> {
  %r = scf.if %c -> (tensor<?xf32>) {
    scf.yield %x : tensor<?xf32>
  } else {
    scf.yield %y : tensor<?xf32>
  }
  return %r : tensor<?xf32>
}
