// RUN: irees opt %s -p 'irees-assign-target{facts="gpu.shared_bytes=1024"},irees-gpu-infer-memory-space' | filecheck %s

// The smallest first: 64 and 512 bytes fit into 1024, another 512 do not. Views follow their buffer.
// CHECK-LABEL: func.func @smallest_first
// CHECK:         %[[A:.*]] = memref.alloc() : memref<128xf32, #gpu.address_space<workgroup>>
// CHECK-NEXT:    %[[B:.*]] = memref.alloc() : memref<128xf32>
// CHECK-NEXT:    %[[C:.*]] = memref.alloc() : memref<16xf32, #gpu.address_space<workgroup>>
// CHECK:         memref.subview %[[A]]
// CHECK-SAME:    memref<128xf32, #gpu.address_space<workgroup>> to memref<4xf32, strided<[1]>, #gpu.address_space<workgroup>>
func.func @smallest_first(%v: f32) {
  scf.forall (%i) in (8) {
    %a = memref.alloca() : memref<128xf32>
    %b = memref.alloc() : memref<128xf32>
    %c = memref.alloca() : memref<16xf32>
    %s = memref.subview %a[0] [4] [1] : memref<128xf32> to memref<4xf32, strided<[1]>>
    memref.store %v, %s[%i] : memref<4xf32, strided<[1]>>
    memref.store %v, %b[%i] : memref<128xf32>
    memref.store %v, %c[%i] : memref<16xf32>
  } {mapping = [#gpu.block<linear_dim_0>]}
  return
}

// What one thread allocates is its own, and what has no known size is scratch memory.
// CHECK-LABEL: func.func @no_private
// CHECK:         memref.alloc(%n) : memref<?xf32>
// CHECK:         memref.alloca() : memref<4xf32>
func.func @no_private(%v: f32, %n: index) {
  scf.forall (%i) in (8) {
    %s = memref.alloc(%n) : memref<?xf32>
    scf.forall (%t) in (128) {
      %a = memref.alloca() : memref<4xf32>
      memref.store %v, %a[%i] : memref<4xf32>
      memref.store %v, %s[%i] : memref<?xf32>
    } {mapping = [#gpu.thread<linear_dim_0>]}
  } {mapping = [#gpu.block<linear_dim_0>]}
  return
}
